//! Every spec of `invalid-specs.yaml` is refused by the definitions, as an API server would.
//!
//! Defaults are filled in first and rules of CEL run by kube's own evaluator; bounds, patterns and
//! unknown fields are checked by the small walk of the schema in `schema.rs`.

mod schema;

use kube::core::cel::Validator;
use rmq_operator_api::crd;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    says: String,
    kind: Option<String>,
    name: Option<String>,
    was: Option<Value>,
    spec: Value,
    message: String,
}

fn cases() -> Vec<Case> {
    serde_saphyr::from_str(include_str!("invalid-specs.yaml")).expect("the table can be read")
}

/// The schema of each kind, made once.
static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    crd::all()
        .into_iter()
        .map(|definition| {
            let version = definition.spec.versions.into_iter().next();
            let schema = version.and_then(|version| version.schema);
            let schema = serde_json::to_value(schema.map(|schema| schema.open_api_v3_schema))
                .expect("a schema is plain JSON");
            (definition.spec.names.kind, schema)
        })
        .collect()
});

fn schema_of(kind: &str) -> &'static Value {
    &SCHEMAS[kind]
}

fn object(schema: &Value, name: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "rocketmq.rs/v1alpha1",
        "metadata": { "name": name },
        "spec": spec,
    });
    schema::fill_defaults(schema, &mut object);
    object
}

/// Everything an API server would say of creating or changing the object.
fn refusals(kind: &str, name: &str, was: Option<&Value>, spec: &Value) -> Vec<String> {
    let schema = schema_of(kind);
    let new = object(schema, name, spec);
    let mut found = schema::problems(schema, &new);
    if !found.is_empty() {
        // An API server does not run rules on what the schema refuses.
        return found;
    }
    let old = was.map(|was| object(schema, name, was));
    if let Err(errors) = Validator::new().validate(schema, &new, old.as_ref()) {
        found.push(errors.to_string());
    }
    found
}

#[test]
fn every_invalid_spec_is_refused_with_our_words() {
    let cases = cases();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let kind = case.kind.as_deref().unwrap_or("RocketMQCluster");
        let name = case.name.as_deref().unwrap_or("a");
        let said = refusals(kind, name, case.was.as_ref(), &case.spec);
        if !said.iter().any(|text| text.contains(&case.message)) {
            wrong.push(format!("{}: {said:?}", case.says));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_was_there_before_an_invalid_update_is_valid() {
    for case in cases() {
        let kind = case.kind.as_deref().unwrap_or("RocketMQCluster");
        if let Some(was) = &case.was {
            let said = refusals(kind, "a", None, was);
            assert!(said.is_empty(), "{}: {said:?}", case.says);
        }
    }
}

#[test]
fn unknown_fields_are_refused_by_name() {
    let said = refusals(
        "RocketMQCluster",
        "a",
        None,
        &json!({"version": "0.1.0", "size": 3}),
    );
    assert!(
        said.iter().any(|text| text.contains("spec.size")),
        "{said:?}"
    );
    let spec = json!({"version": "0.1.0", "brokers": {"podTemplate": {"tolerationz": []}}});
    let said = refusals("RocketMQCluster", "a", None, &spec);
    assert!(
        said.iter()
            .any(|text| text.contains("spec.brokers.podTemplate.tolerationz")),
        "{said:?}"
    );
}

#[test]
fn the_examples_and_a_full_spec_are_accepted() {
    for text in [
        include_str!("../../../examples/quickstart.yaml"),
        include_str!("../../../examples/production.yaml"),
        include_str!("full-spec.yaml"),
    ] {
        let cluster = rmq_operator_api::parse_manifest(text).unwrap();
        assert_eq!(rmq_operator_api::validate(&cluster), []);
        let spec: Value = serde_json::to_value(&cluster.spec).unwrap();
        let said = refusals("RocketMQCluster", "a", None, &spec);
        assert!(said.is_empty(), "{said:?}");
    }
}

#[test]
fn defaults_of_the_schema_are_those_of_the_types() {
    let schema = schema_of("RocketMQCluster");
    let mut filled = object(schema, "a", &json!({"version": "0.1.0"}));
    let parsed = rmq_operator_api::parse_manifest(
        "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata: {name: a}\n\
         spec: {version: 0.1.0}\n",
    )
    .unwrap();
    assert_eq!(
        filled["spec"].take(),
        serde_json::to_value(&parsed.spec).unwrap()
    );
}
