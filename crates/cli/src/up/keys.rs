//! What the broker would say of the keys that a manifest gives it, said of the manifest's field.
//!
//! **Invariant:** a key that would keep a broker from starting is named before anything runs. Keys
//! that the manifest itself does not allow are `rmq_operator_api`'s to name.

use rmq_broker::config::Loaded;
use rmq_operator_api::{Field, Problem, RocketMQCluster};

/// One line for each wrong key of `spec.brokers.config` that is not among `found`.
pub(super) fn broker_problems(manifest: &RocketMQCluster, found: &[Problem]) -> Vec<String> {
    let mut loaded = Loaded::default();
    let mut problems = Vec::new();
    for (key, value) in &manifest.spec.brokers.config {
        let field = Field::BrokerConfigKey(key.clone());
        if found.iter().any(|problem| problem.field == field) {
            continue;
        }
        if let Err(error) = loaded.set(key, value) {
            problems.push(format!("{field}: {error}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_operator_api::{parse_manifest, validate};

    fn problems(config: &str) -> Vec<String> {
        let text = format!(
            "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata:\n  name: a\n\
             spec:\n  version: 0.1.0\n  brokers:\n    config: {config}\n"
        );
        let manifest = parse_manifest(&text).unwrap();
        broker_problems(&manifest, &validate(&manifest))
    }

    #[test]
    fn a_key_that_the_broker_refuses_is_named_as_the_manifests_field() {
        let found = problems(
            "{fileReservedTimes: \"48\", aclEnable: \"true\", maxMessageSize: \"-1\", \
             traceOn: \"false\", sendMessageThreadPoolNums: \"4\"}",
        );
        assert_eq!(found.len(), 3, "{found:?}");
        for (line, says) in found.iter().zip([
            ("spec.brokers.config.aclEnable: ", "may do everything"),
            (
                "spec.brokers.config.fileReservedTimes: ",
                "fileReservedTime",
            ),
            ("spec.brokers.config.maxMessageSize: ", "whole number"),
        ]) {
            assert!(line.starts_with(says.0) && line.contains(says.1), "{line}");
        }
    }

    #[test]
    fn a_key_that_another_field_sets_is_said_once() {
        assert_eq!(problems("{listenPort: \"abc\"}"), Vec::<String>::new());
    }
}
