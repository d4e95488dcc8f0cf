//! Every rule a manifest must keep on its own, without the object it replaces.
//!
//! **Invariant:** all problems at once, in the order of the manifest; no problem stops the search.
//! What only a running part can know (unknown configuration keys, free ports) is not asked here.

mod change;
mod parts;

use crate::cluster::brokers::BrokersSpec;
use crate::cluster::{NameServerSpec, RocketMQCluster};
use crate::defaults;
use crate::problem::{Field, Problem, Reason};
use rmq_types::ClusterName;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

pub use change::{is_downgrade, validate_change};

/// Everything that is wrong with `cluster`.
#[must_use]
pub fn validate(cluster: &RocketMQCluster) -> Vec<Problem> {
    let mut found = Findings::default();
    let spec = &cluster.spec;
    match cluster.metadata.name.as_deref() {
        None | Some("") => found.add(Field::Name, Reason::Missing),
        Some(name) => found.label(Field::Name, name, defaults::NAME_BYTES_MAX),
    }
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    if name.len() + spec.brokers.name_prefix.len() > defaults::NAMES_TOGETHER_BYTES_MAX {
        found.add(
            Field::Name,
            Reason::Rule {
                says: crate::rules::NAMES_TOGETHER,
            },
        );
    }
    if !is_version(&spec.version) {
        found.add(
            Field::Version,
            Reason::NotAVersion {
                text: spec.version.clone(),
            },
        );
    }
    if let Some(Err(error)) = spec.cluster_name.as_deref().map(ClusterName::check) {
        found.add(Field::ClusterName, error.into());
    }
    name_server(&spec.name_server, &mut found);
    brokers(&spec.brokers, &mut found);
    if let Some(controller) = &spec.controller {
        let value = controller.replicas;
        if !found.range(
            Field::ControllerReplicas,
            value,
            defaults::CONTROLLER_REPLICAS_RANGE,
        ) && value % 2 == 0
        {
            found.add(Field::ControllerReplicas, Reason::Even { value });
        }
    }
    if let Some(proxy) = &spec.proxy {
        found.range(
            Field::ProxyReplicas,
            proxy.replicas,
            defaults::PROXY_REPLICAS_RANGE,
        );
    }
    parts::listeners(&spec.listeners, &mut found);
    parts::policies(spec, &mut found);
    found.0
}

fn name_server(spec: &NameServerSpec, found: &mut Findings) {
    found.range(
        Field::NameServerReplicas,
        spec.replicas,
        defaults::NAME_SERVER_REPLICAS_RANGE,
    );
    found.config(
        &spec.config,
        Field::NameServerConfig,
        Field::NameServerConfigKey,
        owned_name_server_key,
    );
    parts::external(&spec.external_ref, found);
    parts::pods(
        "nameServer",
        spec.resources.as_ref(),
        spec.pod_template.as_ref(),
        &parts::NAME_SERVER_FLOOR,
        found,
    );
}

fn brokers(spec: &BrokersSpec, found: &mut Findings) {
    found.range(
        Field::BrokerGroups,
        spec.groups,
        defaults::BROKER_GROUPS_RANGE,
    );
    found.label(
        Field::BrokerNamePrefix,
        &spec.name_prefix,
        defaults::BROKER_NAME_PREFIX_BYTES_MAX,
    );
    found.range(
        Field::ReplicasPerGroup,
        spec.replicas_per_group,
        defaults::REPLICAS_PER_GROUP_RANGE,
    );
    parts::replication(spec, found);
    if spec.storage.size.bytes() == 0 {
        found.add(Field::StorageSize, Reason::Zero);
    }
    parts::auto_expand(&spec.storage, found);
    found.config(
        &spec.config,
        Field::BrokerConfig,
        Field::BrokerConfigKey,
        owned_broker_key,
    );
    parts::overrides(spec, found);
    parts::pods(
        "brokers",
        spec.resources.as_ref(),
        spec.pod_template.as_ref(),
        &parts::BROKER_FLOOR,
        found,
    );
    parts::grace(spec, found);
}

/// Which field of the manifest, or which part of the system, sets this key of `broker.conf`.
#[must_use]
pub fn owned_broker_key(key: &str) -> Option<&'static str> {
    Some(match key {
        "brokerPermission" => "the operator, when a group opens or drains",
        "brokerClusterName" => "spec.clusterName",
        "brokerName" => "spec.brokers.namePrefix",
        "flushDiskType" => "spec.brokers.flush",
        "brokerId" | "brokerRole" | "enableControllerMode" | "controllerAddr" => {
            "the role of each broker"
        }
        "namesrvAddr" | "fetchNamesrvAddrByAddressServer" | "fetchNameSrvAddrByDnsLookup" => {
            "spec.nameServer"
        }
        "listenPort"
        | "fastListenPort"
        | "haListenPort"
        | "bindAddress"
        | "brokerIP1"
        | "brokerIP2"
        | "metricsPromExporterHost"
        | "metricsPromExporterPort" => "the place where the broker runs",
        "storePathRootDir"
        | "storePathCommitLog"
        | "storePathConsumeQueue"
        | "storePathIndex"
        | "storeCheckpoint"
        | "abortFile" => "spec.brokers.storage",
        _ => return None,
    })
}

/// As [`owned_broker_key`], for `namesrv.conf`.
#[must_use]
pub fn owned_name_server_key(key: &str) -> Option<&'static str> {
    Some(match key {
        "listenPort" | "bindAddress" => "the place where the NameServer runs",
        "kvConfigPath" | "configStorePath" | "rocketmqHome" => "the NameServer's data folder",
        "enableControllerInNamesrv" => "spec.controller",
        _ => return None,
    })
}

#[derive(Default)]
struct Findings(Vec<Problem>);

impl Findings {
    fn add(&mut self, field: Field, reason: Reason) {
        self.0.push(Problem { field, reason });
    }

    fn rule(&mut self, path: impl Into<String>, says: &'static str) {
        self.add(Field::Spec(path.into()), Reason::Rule { says });
    }

    /// Whether a problem was found.
    fn range(&mut self, field: Field, value: i32, range: RangeInclusive<i32>) -> bool {
        let outside = !range.contains(&value);
        if outside {
            let (min, max) = range.into_inner();
            self.add(field, Reason::OutOfRange { value, min, max });
        }
        outside
    }

    fn label(&mut self, field: Field, text: &str, max: usize) {
        if !is_label(text) || text.len() > max {
            self.add(
                field,
                Reason::NotALabel {
                    text: text.to_owned(),
                    max,
                },
            );
        }
    }

    fn config(
        &mut self,
        config: &BTreeMap<String, String>,
        whole: Field,
        at: fn(String) -> Field,
        owned: fn(&str) -> Option<&'static str>,
    ) {
        if config.len() > defaults::CONFIG_KEYS_MAX {
            let reason = Reason::TooManyKeys {
                count: config.len(),
                max: defaults::CONFIG_KEYS_MAX,
            };
            self.add(whole, reason);
        }
        for (key, value) in config {
            if !is_config_key(key) {
                self.add(at(key.clone()), Reason::BadKey);
            } else if let Some(owner) = owned(key) {
                self.add(at(key.clone()), Reason::Owned { owner });
            }
            if value.chars().any(char::is_control) {
                self.add(at(key.clone()), Reason::BadValue);
            }
        }
    }
}

fn is_label(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.ends_with('-')
}

fn is_config_key(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn is_version(text: &str) -> bool {
    let core = text
        .find(['-', '+'])
        .map_or(text, |at| text.get(..at).unwrap_or_default());
    let rest = text.get(core.len()..).unwrap_or_default();
    let parts: Vec<&str> = core.split('.').collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.len() <= 64
        && parts.len() == 3
        && parts.iter().all(digits)
        && (rest.is_empty()
            || rest.len() > 1
                && rest
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-+.".contains(&b)))
}

#[cfg(test)]
mod tests;
