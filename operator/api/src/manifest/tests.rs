//! What a manifest may look like, and what is said when it does not.

use super::*;
use crate::Flush;

/// A manifest whose `spec:` line is line 5.
fn with(spec: &str) -> String {
    format!("apiVersion: {API_VERSION}\nkind: RocketMQCluster\nmetadata:\n  name: a\n{spec}")
}

fn error(spec: &str) -> String {
    parse_manifest(&with(spec)).unwrap_err().to_string()
}

#[test]
fn a_version_alone_gives_the_defaults() {
    let cluster = parse_manifest(&with("spec:\n  version: 0.1.0\n")).unwrap();
    let spec = &cluster.spec;
    assert_eq!(cluster.cluster_name(), "a");
    assert_eq!((spec.name_server.replicas, spec.brokers.groups), (3, 2));
    assert_eq!(
        (spec.brokers.replicas_per_group, spec.brokers.flush),
        (1, Flush::Async)
    );
    assert_eq!(spec.brokers.broker_name(1), "broker-1");
    assert_eq!(spec.brokers.storage.size.bytes(), 20 << 30);
    assert!(spec.controller.is_none() && spec.proxy.is_none());
    assert!(crate::validate(&cluster).is_empty());
}

#[test]
fn a_section_keeps_the_defaults_of_what_it_does_not_say() {
    let cluster = parse_manifest(&with(
        "spec:\n  version: 0.1.0\n  brokers:\n    groups: 5\n",
    ))
    .unwrap();
    assert_eq!(
        (
            cluster.spec.brokers.groups,
            cluster.spec.brokers.replicas_per_group
        ),
        (5, 1)
    );
}

#[test]
fn an_unknown_field_is_named_with_its_line_and_the_nearest_known_one() {
    let text = "spec:\n  version: 0.1.0\n  brokers:\n    groops: 1\n";
    assert_eq!(
        error(text),
        "line 8: unknown field `groops`; did you mean `groups`?"
    );
    let text = "spec:\n  version: 0.1.0\n  storage:\n    size: 1Gi\n";
    assert!(error(text).starts_with("line 7: unknown field `storage`; known here: version,"));
}

#[test]
fn an_unknown_field_beside_spec_and_in_metadata_is_refused_too() {
    let text = "spec:\n  version: 0.1.0\nspek: 1\n";
    assert_eq!(
        error(text),
        "line 7: unknown field `spek`; did you mean `spec`?"
    );
    let text = format!(
        "apiVersion: {API_VERSION}\nkind: RocketMQCluster\nmetadata:\n  nmae: a\nspec: {{}}\n"
    );
    let text = parse_manifest(&text).unwrap_err().to_string();
    assert!(text.starts_with("line 4: unknown field `nmae`"), "{text}");
    assert!(!text.contains("managedFields"), "{text}");
}

#[test]
fn another_kind_or_version_is_said_plainly() {
    let kind = parse_manifest(&format!("apiVersion: {API_VERSION}\nkind: Topic\n")).unwrap_err();
    assert_eq!(
        kind.to_string(),
        "kind is `Topic`, but must be RocketMQCluster"
    );
    let pod = parse_manifest("apiVersion: v1\nkind: Pod\nspec: {a: 1}\n").unwrap_err();
    assert_eq!(
        pod.to_string(),
        "kind is `Pod`, but must be RocketMQCluster"
    );
    let old = parse_manifest("apiVersion: rocketmq.rs/v1\nkind: RocketMQCluster\n").unwrap_err();
    assert!(
        old.to_string()
            .contains("`rocketmq.rs/v1`, but must be rocketmq.rs/v1alpha1")
    );
    let none = parse_manifest("kind: RocketMQCluster\n").unwrap_err();
    assert!(
        none.to_string().starts_with("apiVersion is missing"),
        "{none}"
    );
}

#[test]
fn a_second_document_is_refused_with_its_line_but_an_empty_tail_is_not() {
    let two = with("spec:\n  version: 0.1.0\n---\nkind: Topic\n");
    let error = parse_manifest(&two).unwrap_err();
    assert!(
        matches!(error, ManifestError::SeveralDocuments { line: 7 | 8 }),
        "{error:?}"
    );
    let tail = with("spec:\n  version: 0.1.0\n---\n# the end\n\n---\n");
    assert!(parse_manifest(&tail).is_ok());
    assert!(parse_manifest(&format!("---\n{tail}")).is_ok());
}

#[test]
fn an_empty_manifest_is_called_empty() {
    for text in ["", "\n\n", "# nothing\n", "---\n# nothing\n"] {
        assert_eq!(
            parse_manifest(text).unwrap_err(),
            ManifestError::Empty,
            "{text:?}"
        );
    }
}

#[test]
fn values_of_a_wrong_type_are_named_by_line_in_plain_words() {
    let brokers = |line: &str| {
        error(&format!(
            "spec:\n  version: 0.1.0\n  brokers:\n    {line}\n"
        ))
    };
    assert_eq!(
        brokers("groups: two"),
        "line 8, column 13: must be a whole number"
    );
    assert_eq!(
        brokers("groups: 1.5"),
        "line 8, column 13: must be a whole number"
    );
    assert!(brokers("flush: sync").contains("unknown variant `sync`, expected one of Async, Sync"));
    assert_eq!(
        brokers("config: {autoCreateTopicEnable: true}"),
        "line 8, column 37: text is wanted here: write \"true\" in quotes"
    );
    assert!(brokers("storage: {size: 10GB}").contains("`10GB` is no size"));
}

#[test]
fn a_doubled_key_a_missing_field_and_a_tab_are_named_by_line() {
    assert_eq!(
        error("spec:\n  version: 0.1.0\n  version: 0.1.0\n"),
        "line 7, column 3: `version` stands here twice"
    );
    assert!(error("spec: {}\n").starts_with("line 5, column 7: missing field `version`"));
    assert!(error("spec:\n  version: 0.1.0\n\tx: 1\n").starts_with("line "));
}

#[test]
fn what_kubectl_adds_to_an_object_is_passed_over() {
    let text = format!(
        "apiVersion: {API_VERSION}\nkind: RocketMQCluster\nmetadata:\n  name: a\n  uid: b\n  \
         generation: 3\n  managedFields: [{{a: b}}]\nspec:\n  version: 0.1.0\nstatus:\n  phase: Ready\n"
    );
    assert_eq!(
        parse_manifest(&text).unwrap().metadata.name.as_deref(),
        Some("a")
    );
}

#[test]
fn no_input_breaks_the_parser() {
    for text in [
        "\u{feff}",
        "[",
        "{a: &a [*a]}",
        "a: *b",
        "\0",
        "- 1",
        "!!binary x",
        "&a [*a, *a]",
    ] {
        assert!(parse_manifest(text).is_err(), "{text:?}");
    }
    let deep = "[".repeat(100_000);
    assert!(parse_manifest(&deep).is_err());
}

#[test]
fn an_unknown_field_in_a_part_of_kubernetes_own_is_refused_by_its_path() {
    let tolerations = |field: &str| {
        with(&format!(
            "spec:\n  version: 0.1.0\n  brokers:\n    podTemplate:\n      tolerations:\n      \
             - {{key: a, {field}: Exists}}\n"
        ))
    };
    assert!(parse_manifest(&tolerations("operator")).is_ok());
    assert_eq!(
        parse_manifest(&tolerations("operater"))
            .unwrap_err()
            .to_string(),
        "unknown field `spec.brokers.podTemplate.tolerations[0].operater`"
    );
    let empty =
        with("spec:\n  version: 0.1.0\n  brokers:\n    config: {}\n    podTemplate: {env: []}\n");
    assert!(parse_manifest(&empty).is_ok());
}
