//! How the objects of a cluster are called.
//!
//! **Invariant:** names follow from the manifest's immutable fields alone and never change, so that
//! claims (`data-<pod>`) and addresses survive every edit and every loss of an object. They keep
//! Kubernetes' limits when `metadata.name` and `namePrefix` keep theirs.

use super::NAME_SERVER_PORT;
use rmq_operator_api::RocketMQCluster;

/// Names of the objects of one cluster.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    cluster: &'a RocketMQCluster,
}

impl<'a> Names<'a> {
    /// The names of `cluster`.
    #[must_use]
    pub const fn of(cluster: &'a RocketMQCluster) -> Self {
        Self { cluster }
    }

    /// `metadata.name`.
    #[must_use]
    pub fn cluster(&self) -> &'a str {
        self.cluster.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace(&self) -> &'a str {
        self.cluster
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default()
    }

    /// StatefulSet, Service, ConfigMap, ServiceAccount and policies of the NameServers.
    #[must_use]
    pub fn name_server(&self) -> String {
        format!("{}-namesrv", self.cluster())
    }

    /// Headless Service of the NameServers.
    #[must_use]
    pub fn name_server_headless(&self) -> String {
        format!("{}-namesrv-hl", self.cluster())
    }

    /// Pod of NameServer `ordinal`.
    #[must_use]
    pub fn name_server_pod(&self, ordinal: i32) -> String {
        format!("{}-namesrv-{ordinal}", self.cluster())
    }

    /// ServiceAccount and NetworkPolicy of all brokers.
    #[must_use]
    pub fn brokers(&self) -> String {
        format!("{}-broker", self.cluster())
    }

    /// Broker name of group `index`, as it stands in routes.
    #[must_use]
    pub fn broker_name(&self, index: i32) -> String {
        self.cluster.spec.brokers.broker_name(index)
    }

    /// StatefulSet, ConfigMap, PodDisruptionBudget and `BrokerGroup` of group `index`.
    #[must_use]
    pub fn group(&self, index: i32) -> String {
        format!("{}-{}", self.cluster(), self.broker_name(index))
    }

    /// Headless Service of group `index`.
    #[must_use]
    pub fn group_headless(&self, index: i32) -> String {
        format!("{}-hl", self.group(index))
    }

    /// Service of whoever is master of group `index`.
    #[must_use]
    pub fn master(&self, index: i32) -> String {
        format!("{}-g{index}-master", self.cluster())
    }

    /// Service of the readable replicas of group `index`.
    #[must_use]
    pub fn replicas(&self, index: i32) -> String {
        format!("{}-g{index}-replicas", self.cluster())
    }

    /// Pod `ordinal` of group `index`, and the Service whose address clients are told.
    #[must_use]
    pub fn broker_pod(&self, index: i32, ordinal: i32) -> String {
        format!("{}-{ordinal}", self.group(index))
    }

    /// Address of a NameServer pod.
    #[must_use]
    pub fn name_server_address(&self, ordinal: i32) -> String {
        format!(
            "{}.{}.{}.svc:{NAME_SERVER_PORT}",
            self.name_server_pod(ordinal),
            self.name_server_headless(),
            self.namespace()
        )
    }

    /// Every NameServer, in the order of their ordinals; those of somebody else as they were given.
    #[must_use]
    pub fn name_server_addresses(&self) -> Vec<String> {
        let external = &self.cluster.spec.name_server.external_ref;
        if external.is_empty() {
            (0..self.cluster.spec.own_name_servers())
                .map(|ordinal| self.name_server_address(ordinal))
                .collect()
        } else {
            external.clone()
        }
    }

    /// As [`Self::name_server_addresses`], in the form clients and brokers take.
    #[must_use]
    pub fn name_server_list(&self) -> String {
        self.name_server_addresses().join(";")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_names_keep_the_limits_of_kubernetes() {
        let of = |name: usize| {
            let (name, prefix) = ("a".repeat(name), "b".repeat(16));
            let text = format!(
                "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata: {{name: {name}}}\n\
                 spec: {{version: 0.1.0, brokers: {{groups: 128, namePrefix: {prefix}}}}}\n"
            );
            rmq_operator_api::parse_manifest(&text).unwrap()
        };
        let found = rmq_operator_api::validate(&of(32));
        assert!(
            found.len() == 1 && found[0].to_string().contains("at most 47"),
            "{found:?}"
        );
        let cluster = of(31);
        assert_eq!(rmq_operator_api::validate(&cluster), []);
        let names = Names::of(&cluster);
        // A revision is the set's name, '-' and ten letters, and a label of 63 bytes.
        assert_eq!(names.group(127).len() + 11, 63);
        for name in [
            names.broker_pod(127, 8),
            names.group_headless(127),
            names.replicas(127),
            names.name_server_headless(),
        ] {
            assert!(name.len() <= 63, "{name}");
        }
    }
}
