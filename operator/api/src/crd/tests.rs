//! The committed file, the bounds in the schema, and each CEL rule as an API server runs it.

use super::*;
use crate::{defaults, parse_manifest};
use kube::core::cel::Validator;
use serde_json::Value;

/// The committed files, in the order of their names.
const COMMITTED: [(&str, &str); 5] = [
    (
        "brokergroups.yaml",
        include_str!("../../../../crds/brokergroups.yaml"),
    ),
    (
        "consumergroups.yaml",
        include_str!("../../../../crds/consumergroups.yaml"),
    ),
    (
        "operations.yaml",
        include_str!("../../../../crds/operations.yaml"),
    ),
    (
        "rocketmqclusters.yaml",
        include_str!("../../../../crds/rocketmqclusters.yaml"),
    ),
    ("topics.yaml", include_str!("../../../../crds/topics.yaml")),
];

fn schema() -> Value {
    let version = rocketmq_cluster().spec.versions.remove(0);
    serde_json::to_value(version.schema.and_then(|s| s.open_api_v3_schema)).unwrap()
}

fn cluster(name: &str, spec: &str) -> Value {
    let text = format!(
        "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata:\n  name: {name}\n\
         spec: {{version: 0.1.0, {spec}}}\n"
    );
    serde_json::to_value(parse_manifest(&text).unwrap()).unwrap()
}

fn create(name: &str, spec: &str) -> String {
    outcome(Validator::new().validate(&schema(), &cluster(name, spec), None))
}

fn update(old: &str, new: &str) -> String {
    let (old, new) = (cluster("a", old), cluster("a", new));
    outcome(Validator::new().validate(&schema(), &new, Some(&old)))
}

fn outcome<E: std::fmt::Display>(result: Result<(), E>) -> String {
    result.map_or_else(|error| error.to_string(), |()| "ok".to_owned())
}

#[test]
fn the_committed_definitions_are_those_the_types_give() {
    for ((name, text), (committed_name, committed)) in files().unwrap().iter().zip(COMMITTED) {
        assert_eq!(name, committed_name);
        assert!(
            text == committed,
            "crds/{name} is stale: run `rocketmq crd --dir crds`"
        );
    }
    let texts: Vec<&str> = COMMITTED.iter().map(|(_, text)| *text).collect();
    assert_eq!(yaml().unwrap(), texts.join("---\n"));
}

#[test]
fn no_definition_is_too_large_to_be_applied_from_a_client() {
    for definition in all() {
        let json = serde_json::to_string(&definition).unwrap();
        // `kubectl apply` keeps the object in an annotation; annotations hold 256 KiB in all.
        assert!(json.len() < 200 << 10, "{} bytes", json.len());
    }
}

#[test]
fn every_kind_has_short_name_category_status_and_columns() {
    for definition in all() {
        let names = &definition.spec.names;
        assert_eq!(names.short_names.as_ref().map(Vec::len), Some(1));
        assert_eq!(
            names.categories.as_deref(),
            Some(["rocketmq".to_owned()].as_slice())
        );
        let version = definition.spec.versions.first().unwrap();
        let subresources = version.subresources.as_ref().unwrap();
        assert!(subresources.status.is_some(), "{}", names.kind);
        assert_eq!(
            subresources.scale.is_some(),
            names.kind == "RocketMQCluster"
        );
        let columns = version.additional_printer_columns.as_ref().unwrap();
        assert!(columns.iter().any(|column| column.name == "Age"));
    }
}

#[test]
fn bounds_and_defaults_in_the_schema_are_those_of_the_defaults_module() {
    let schema = schema();
    let at = |path: &str, key: &str| {
        let path = format!(
            "/properties/spec/properties/{}/{key}",
            path.replace('.', "/properties/")
        );
        schema
            .pointer(&path)
            .and_then(Value::as_f64)
            .map(|number| number as i32)
    };
    for (path, default, range) in [
        (
            "nameServer.replicas",
            defaults::NAME_SERVER_REPLICAS,
            defaults::NAME_SERVER_REPLICAS_RANGE,
        ),
        (
            "brokers.groups",
            defaults::BROKER_GROUPS,
            defaults::BROKER_GROUPS_RANGE,
        ),
        (
            "brokers.replicasPerGroup",
            defaults::REPLICAS_PER_GROUP,
            defaults::REPLICAS_PER_GROUP_RANGE,
        ),
        (
            "controller.replicas",
            defaults::CONTROLLER_REPLICAS,
            defaults::CONTROLLER_REPLICAS_RANGE,
        ),
        (
            "proxy.replicas",
            defaults::PROXY_REPLICAS,
            defaults::PROXY_REPLICAS_RANGE,
        ),
    ] {
        assert_eq!(at(path, "default"), Some(default), "{path}");
        assert_eq!(at(path, "minimum"), Some(*range.start()), "{path}");
        assert_eq!(at(path, "maximum"), Some(*range.end()), "{path}");
    }
    let max = |path: &str, key: &str| at(path, key).and_then(|n| usize::try_from(n).ok());
    assert_eq!(
        max("brokers.namePrefix", "maxLength"),
        Some(defaults::BROKER_NAME_PREFIX_BYTES_MAX)
    );
    assert_eq!(
        max("brokers.config", "maxProperties"),
        Some(defaults::CONFIG_KEYS_MAX)
    );
}

#[test]
fn the_schema_allows_no_unknown_field_where_the_parser_allows_none() {
    let text = schema().to_string();
    assert!(!text.contains("x-kubernetes-preserve-unknown-fields"));
}

#[test]
fn a_long_or_ill_formed_name_is_refused_at_admission() {
    assert_eq!(create(&"a".repeat(40), ""), "ok");
    assert!(create(&"a".repeat(41), "").contains("at most 40 characters"));
    assert!(create("a.b", "").contains("lower-case letters"));
}

#[test]
fn an_even_number_of_controllers_is_refused_at_admission() {
    assert_eq!(create("a", "controller: {replicas: 3}"), "ok");
    assert!(create("a", "controller: {replicas: 2}").contains("must be odd"));
}

#[test]
fn the_cluster_name_cannot_change_appear_or_go() {
    assert_eq!(update("clusterName: a", "clusterName: a"), "ok");
    for (old, new) in [
        ("clusterName: a", "clusterName: b"),
        ("clusterName: a", ""),
        ("", "clusterName: a"),
    ] {
        assert!(
            update(old, new).contains("clusterName is immutable"),
            "{old} -> {new}"
        );
    }
}

#[test]
fn the_name_prefix_cannot_change() {
    assert!(update("", "brokers: {namePrefix: b}").contains("namePrefix is immutable"));
}

#[test]
fn groups_grow_freely_and_shrink_by_one() {
    assert_eq!(update("brokers: {groups: 2}", "brokers: {groups: 9}"), "ok");
    assert_eq!(update("brokers: {groups: 3}", "brokers: {groups: 2}"), "ok");
    assert!(update("brokers: {groups: 3}", "brokers: {groups: 1}").contains("by one at a time"));
}

#[test]
fn storage_only_grows() {
    let size = |size: &str| format!("brokers: {{storage: {{size: {size}}}}}");
    assert_eq!(update(&size("20Gi"), &size("0.5Ti")), "ok");
    assert_eq!(update(&size("1Gi"), &size("1024Mi")), "ok");
    assert!(update(&size("20Gi"), &size("19Gi")).contains("may only grow"));
}
