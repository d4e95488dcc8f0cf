//! What the roles would say of the keys that a manifest gives them, said of the manifest's fields.
//!
//! **Invariant:** a key or value that would keep a role from starting is named before anything
//! runs, by the same code with which the role reads its file. Keys that the manifest itself does
//! not allow are `rmq_operator_api`'s to name.

use rmq_broker::config::Loaded;
use rmq_broker::in_force;
use rmq_namesrv::config::{ConfigError, Form, NamesrvOptions};
use rmq_operator_api::{Field, Problem, RocketMQCluster};
use std::collections::BTreeMap;
use std::path::Path;

/// Where a broker's data would be while its keys are tried; nothing is made there.
const NOWHERE: &str = "/nonexistent/rocketmq-up";

/// What is to be said of all keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// What keeps a role from starting, a line each.
    pub(super) problems: Vec<String>,
    /// Keys that are taken and do nothing here, a line each.
    pub(super) notes: Vec<String>,
}

/// Tries every key of `nameServer.config`, `brokers.config` and `brokers.groupOverrides[].config`;
/// those among `found` are told already.
pub(super) fn check(manifest: &RocketMQCluster, found: &[Problem]) -> Said {
    let mut said = Said::default();
    let spec = &manifest.spec;
    for (key, value) in &spec.name_server.config {
        let field = Field::NameServerConfigKey(key.clone());
        if !is_told(found, &field) {
            name_server_key(&field, key, value, &mut said);
        }
    }
    let field = |key: &str| Field::BrokerConfigKey(key.to_owned());
    broker_keys(&spec.brokers.config, field, found, &mut said);
    for (index, given) in spec.brokers.group_overrides.iter().enumerate() {
        let at = format!("brokers.groupOverrides[{index}].config");
        let field = |key: &str| Field::Spec(format!("{at}.{key}"));
        broker_keys(&given.config, field, found, &mut said);
    }
    if said.problems.is_empty() && found.is_empty() {
        together(manifest, &mut said);
    }
    said
}

fn is_told(found: &[Problem], field: &Field) -> bool {
    found.iter().any(|problem| problem.field == *field)
}

fn name_server_key(field: &Field, key: &str, value: &str, said: &mut Said) {
    let line = format!("{key}={}\n", value.replace('\\', "\\\\"));
    let options = NamesrvOptions::new(Path::new(NOWHERE));
    match options.parse_as(Form::Properties, &line) {
        Ok(parsed) if parsed.notes.is_empty() => {}
        Ok(_) => said.notes.push(without_effect(field)),
        Err(error) => {
            let text = match error {
                ConfigError::UnknownKey {
                    nearest: Some(nearest),
                    ..
                } => format!("no NameServer knows this key; did you mean {nearest:?}?"),
                ConfigError::UnknownKey { nearest: None, .. } => {
                    "no NameServer knows this key: remove it".to_owned()
                }
                ConfigError::Value { value, problem, .. } => {
                    format!("{value:?} is refused: {problem}")
                }
                error @ (ConfigError::Syntax(_)
                | ConfigError::Yaml(_)
                | ConfigError::Twice { .. }) => error.to_string(),
            };
            said.problems.push(format!("{field}: {text}"));
        }
    }
}

/// Each key by itself, so that what is wrong is wrong with this key.
fn broker_keys(
    config: &BTreeMap<String, String>,
    field: impl Fn(&str) -> Field,
    found: &[Problem],
    said: &mut Said,
) {
    for (key, value) in config {
        let field = field(key);
        if is_told(found, &field) {
            continue;
        }
        match broker([(key, value)]) {
            Ok(loaded) if loaded.without_effect.is_empty() => {}
            Ok(_) => said.notes.push(without_effect(&field)),
            Err(text) => {
                let own = format!("{key}: ");
                let text = text.strip_prefix(&own).unwrap_or(&text);
                said.problems.push(format!("{field}: {text}"));
            }
        }
    }
}

/// The settings of each group as a whole: keys that are sound one by one may not go together.
fn together(manifest: &RocketMQCluster, said: &mut Said) {
    let brokers = &manifest.spec.brokers;
    for index in 0..brokers.groups {
        let config = brokers.config_of(index);
        if let Err(text) = broker(&config) {
            let group = brokers.broker_name(index);
            said.problems
                .push(format!("spec.brokers.config, as it is for {group}: {text}"));
            return;
        }
    }
}

/// What a broker would say of these keys.
fn broker<'a>(keys: impl IntoIterator<Item = (&'a String, &'a String)>) -> Result<Loaded, String> {
    let mut loaded = Loaded::default();
    for (key, value) in keys {
        loaded.set(key, value).map_err(|error| error.to_string())?;
    }
    let mut settings = loaded.settings.clone();
    NOWHERE.clone_into(&mut settings.store_path_root_dir);
    in_force(settings).map_err(|error| error.to_string())?;
    Ok(loaded)
}

fn without_effect(field: &Field) -> String {
    format!("{field} is a key of the Java server and has no effect here")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_operator_api::{parse_manifest, validate};

    fn said(spec: &str) -> Said {
        let text = format!(
            "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata:\n  name: a\n\
             spec: {{version: 0.1.0, {spec}}}\n"
        );
        let manifest = parse_manifest(&text).unwrap();
        check(&manifest, &validate(&manifest))
    }

    #[track_caller]
    fn assert_said(lines: &[String], wanted: &[(&str, &str)]) {
        assert_eq!(lines.len(), wanted.len(), "{lines:?}");
        for (line, (start, holds)) in lines.iter().zip(wanted) {
            assert!(line.starts_with(start) && line.contains(holds), "{line}");
        }
    }

    #[test]
    fn a_key_that_the_broker_refuses_is_named_as_the_manifests_field() {
        let said = said(
            "brokers: {config: {fileReservedTimes: \"48\", aclEnable: \"true\", \
             maxMessageSize: \"-1\", traceOn: \"false\", sendMessageThreadPoolNums: \"4\"}}",
        );
        assert_said(
            &said.problems,
            &[
                ("spec.brokers.config.aclEnable: ", "may do everything"),
                (
                    "spec.brokers.config.fileReservedTimes: ",
                    "fileReservedTime",
                ),
                ("spec.brokers.config.maxMessageSize: ", "whole number"),
            ],
        );
        let note = (
            "spec.brokers.config.sendMessageThreadPoolNums ",
            "no effect",
        );
        assert_said(&said.notes, &[note]);
    }

    #[test]
    fn a_value_that_only_the_start_would_refuse_is_named_too_and_its_key_once() {
        let said = said(
            "brokers: {config: {deleteWhen: \"25\", messageDelayLevel: \"1s 2x\"}, \
             groupOverrides: [{groups: [0], config: {deleteWhen: noon}}]}",
        );
        assert_said(
            &said.problems,
            &[
                ("spec.brokers.config.deleteWhen: \"25\" is no hour", ""),
                ("spec.brokers.config.messageDelayLevel: ", "2x"),
                (
                    "spec.brokers.groupOverrides[0].config.deleteWhen: \"noon\"",
                    "no hour",
                ),
            ],
        );
    }

    #[test]
    fn keys_of_name_servers_are_tried_as_well() {
        let said = said(
            "nameServer: {config: {orderMessageEnabled: \"true\", needWaitForService: maybe, \
             useTLS: \"true\", serverWorkerThreads: \"8\", enableTopicList: \"false\"}}",
        );
        assert_said(
            &said.problems,
            &[
                (
                    "spec.nameServer.config.needWaitForService: \"maybe\" is refused",
                    "true or false",
                ),
                (
                    "spec.nameServer.config.orderMessageEnabled: no NameServer knows",
                    "\"orderMessageEnable\"",
                ),
                ("spec.nameServer.config.useTLS: ", "only false"),
            ],
        );
        let note = ("spec.nameServer.config.serverWorkerThreads ", "no effect");
        assert_said(&said.notes, &[note]);
    }

    #[test]
    fn nothing_is_to_be_said_of_the_examples() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            if path.extension().is_none_or(|end| end != "yaml")
                || !text.contains("kind: RocketMQCluster\n")
            {
                continue;
            }
            let manifest = parse_manifest(&text).unwrap();
            let found = validate(&manifest);
            assert_eq!(found, [], "{}", path.display());
            assert_eq!(
                check(&manifest, &found),
                Said::default(),
                "{}",
                path.display()
            );
            count += 1;
        }
        assert!(count >= 3, "{count} examples");
    }

    #[test]
    fn a_key_that_another_field_sets_is_said_once() {
        let both = said(
            "nameServer: {config: {listenPort: abc}}, brokers: {config: {listenPort: abc}, \
             groupOverrides: [{groups: [0], config: {brokerId: abc}}]}",
        );
        assert_eq!(both, Said::default());
    }
}
