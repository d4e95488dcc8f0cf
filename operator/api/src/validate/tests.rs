//! One test for each thing that can be wrong.

use super::*;
use crate::parse_manifest;

fn problems(name: &str, spec: &str) -> Vec<String> {
    let text = format!(
        "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata:\n  name: {name}\n\
         spec:\n  {}\n",
        spec.replace('\n', "\n  ")
    );
    validate(&parse_manifest(&text).unwrap())
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn one(spec: &str) -> String {
    let found = problems("a", &format!("version: 0.1.0\n{spec}"));
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap_or_default()
}

#[test]
fn all_problems_are_found_at_once_in_the_order_of_the_manifest() {
    let found = problems(
        "A",
        "version: \"1\"\nclusterName: \"a/b\"\nnameServer: {replicas: 0}\nbrokers: {groups: 0}",
    );
    let fields: Vec<_> = found.iter().filter_map(|p| p.split(':').next()).collect();
    assert_eq!(
        fields,
        [
            "metadata.name",
            "spec.version",
            "spec.clusterName",
            "spec.nameServer.replicas",
            "spec.brokers.groups"
        ]
    );
}

#[test]
fn a_name_that_cannot_name_pods_is_refused() {
    for name in ["A", "1a", "a-", "a.b", &"a".repeat(41), "\"a b\""] {
        let found = problems(name, "version: 0.1.0");
        assert!(
            found.iter().any(|p| p.starts_with("metadata.name: ")),
            "{name}"
        );
    }
    assert!(problems(&"a".repeat(40), "version: 0.1.0").is_empty());
    assert_eq!(
        problems("\"\"", "version: 0.1.0"),
        ["metadata.name: is required"]
    );
}

#[test]
fn a_name_and_a_name_prefix_that_are_too_long_together_are_refused() {
    let said = |prefix: &str| {
        let spec = format!("version: 0.1.0\nbrokers: {{namePrefix: {prefix}}}");
        problems(&"a".repeat(40), &spec)
    };
    assert!(said("bbbbbbb").is_empty());
    let found = said("bbbbbbbb");
    assert!(
        found.len() == 1 && found[0].contains("at most 47"),
        "{found:?}"
    );
}

#[test]
fn a_version_has_three_numbers() {
    for version in [
        "latest", "\"1.2\"", "1.2.x", "1.2.3-", "1.2.3.4", "\"\"", "v1.2.3",
    ] {
        let found = problems("a", &format!("version: {version}"));
        assert!(
            found.iter().any(|p| p.starts_with("spec.version: ")),
            "{version}"
        );
    }
    assert!(problems("a", "version: 0.1.0-rc.1").is_empty());
}

#[test]
fn a_cluster_name_is_what_rocketmq_takes() {
    assert!(one("clusterName: \"a b\"").contains("cluster name contains illegal characters"));
    assert!(problems("a", "version: 0.1.0\nclusterName: DefaultCluster").is_empty());
}

#[test]
fn numbers_have_bounds() {
    assert_eq!(
        one("nameServer: {replicas: 10}"),
        "spec.nameServer.replicas: must be from 1 to 9, but is 10"
    );
    assert!(one("brokers: {groups: 129}").contains("from 1 to 128, but is 129"));
    assert!(one("brokers: {groups: -1}").contains("but is -1"));
    assert!(one("brokers: {replicasPerGroup: 9}").contains("from 0 to 8"));
    assert!(one("controller: {replicas: 7}").contains("from 1 to 5"));
    assert!(one("proxy: {replicas: 0}").contains("from 1 to 64"));
}

#[test]
fn an_even_quorum_is_refused_with_the_reason() {
    assert!(one("controller: {replicas: 4}").contains("must be odd"));
}

#[test]
fn a_name_prefix_is_a_short_label() {
    assert!(one("brokers: {namePrefix: Broker}").starts_with("spec.brokers.namePrefix: `Broker`"));
    assert!(one("brokers: {namePrefix: abcdefghijklmnopq}").contains("1 to 16"));
}

#[test]
fn a_disk_of_nothing_is_refused() {
    assert!(one("brokers: {storage: {size: \"0\"}}").starts_with("spec.brokers.storage.size: "));
}

#[test]
fn a_key_that_another_field_sets_is_refused_and_the_field_named() {
    assert_eq!(
        one("brokers: {config: {flushDiskType: SYNC_FLUSH}}"),
        "spec.brokers.config.flushDiskType: is set by spec.brokers.flush; remove it here"
    );
    assert!(one("nameServer: {config: {listenPort: \"1\"}}").contains("the NameServer runs"));
}

#[test]
fn a_key_or_value_that_would_break_the_properties_file_is_refused() {
    assert!(one("brokers: {config: {\"a=b\": c}}").contains("is no configuration key"));
    assert!(one("brokers: {config: {a: \"b\\nlistenPort=1\"}}").contains("line break"));
}

#[test]
fn a_config_map_has_a_bound() {
    let keys: Vec<String> = (0..257).map(|i| format!("k{i}: v")).collect();
    let found = one(&format!("brokers: {{config: {{{}}}}}", keys.join(", ")));
    assert_eq!(found, "spec.brokers.config: has 257 keys, more than 256");
}
