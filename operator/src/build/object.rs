//! One object of Kubernetes, ready to be applied.
//!
//! **Invariant:** the value is a server-side-apply configuration: it holds every field the operator
//! owns and no other, and its annotation `rocketmq.rs/applied-hash` is the hash of the rest.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata, Resource};
use kube::core::{ApiResource, GroupVersionKind};
use rmq_operator_api::keys::ANNOTATION_APPLIED_HASH as APPLIED_HASH;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;

/// The kinds that the operator writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A name pods run under; it has no right.
    ServiceAccount,
    /// A stable address.
    Service,
    /// Configuration files.
    ConfigMap,
    /// Pods with names and disks.
    StatefulSet,
    /// How many pods may be evicted.
    PodDisruptionBudget,
    /// Who may connect.
    NetworkPolicy,
    /// One broker group, of our own group of kinds.
    BrokerGroup,
    /// A whole cluster, of our own group of kinds; made by users, never by us.
    RocketMQCluster,
    /// A topic, of our own group of kinds; made by users, never by us.
    Topic,
    /// A consumer group, of our own group of kinds; made by users, never by us.
    ConsumerGroup,
    /// Something to be done once, of our own group of kinds.
    Operation,
    /// One pod; made by a StatefulSet, never by us.
    Pod,
    /// One disk; made by a StatefulSet, never by us.
    PersistentVolumeClaim,
}

impl Kind {
    /// Those that are built, in the order in which they are applied.
    pub const MADE: [Self; 7] = [
        Self::ServiceAccount,
        Self::Service,
        Self::ConfigMap,
        Self::StatefulSet,
        Self::PodDisruptionBudget,
        Self::NetworkPolicy,
        Self::BrokerGroup,
    ];

    /// Where the API server has it.
    #[must_use]
    pub fn resource(self) -> ApiResource {
        const OWN: &str = rmq_operator_api::GROUP;
        const OWN_VERSION: &str = rmq_operator_api::VERSION;
        let (group, version, plural) = match self {
            Self::ServiceAccount => ("", "v1", "serviceaccounts"),
            Self::Service => ("", "v1", "services"),
            Self::ConfigMap => ("", "v1", "configmaps"),
            Self::StatefulSet => ("apps", "v1", "statefulsets"),
            Self::PodDisruptionBudget => ("policy", "v1", "poddisruptionbudgets"),
            Self::NetworkPolicy => ("networking.k8s.io", "v1", "networkpolicies"),
            Self::Pod => ("", "v1", "pods"),
            Self::PersistentVolumeClaim => ("", "v1", "persistentvolumeclaims"),
            Self::BrokerGroup => (OWN, OWN_VERSION, "brokergroups"),
            Self::RocketMQCluster => (OWN, OWN_VERSION, "rocketmqclusters"),
            Self::Topic => (OWN, OWN_VERSION, "topics"),
            Self::ConsumerGroup => (OWN, OWN_VERSION, "consumergroups"),
            Self::Operation => (OWN, OWN_VERSION, "operations"),
        };
        ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(group, version, &self.to_string()),
            plural,
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// All of it.
    pub value: Value,
}

impl Object {
    /// From a typed object.
    #[must_use]
    pub fn typed<T>(kind: Kind, object: &T) -> Self
    where
        T: Resource + Metadata<Ty = ObjectMeta> + Serialize,
    {
        let name = object.metadata().name.clone().unwrap_or_default();
        let value =
            serde_json::to_value(object).expect("types of the Kubernetes API are plain JSON");
        Self::new(kind, name, value)
    }

    /// From JSON; puts the hash of all else into it.
    #[must_use]
    pub fn new(kind: Kind, name: String, mut value: Value) -> Self {
        let hash = format!("{:016x}", hash(value.to_string().as_bytes()));
        if let Some(annotations) = value
            .pointer_mut("/metadata")
            .and_then(Value::as_object_mut)
            .map(|metadata| metadata.entry("annotations").or_insert_with(|| json!({})))
            .and_then(Value::as_object_mut)
        {
            annotations.insert(APPLIED_HASH.to_owned(), Value::String(hash));
        }
        Self { kind, name, value }
    }
}

/// FNV-1a with 64 bits: the same on every machine and in every version.
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |state, byte| {
        (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn the_hash_of_an_object_changes_with_every_field_of_it() {
        let object = |data: &str| {
            let value = json!({"metadata": {"name": "a"}, "data": {"x": data}});
            Object::new(Kind::ConfigMap, "a".to_owned(), value)
        };
        assert_eq!(object("1"), object("1"));
        let of = |object: Object| {
            object.value["metadata"]["annotations"][APPLIED_HASH]
                .as_str()
                .map(str::to_owned)
        };
        assert_eq!(of(object("1")).map(|hash| hash.len()), Some(16));
        assert_ne!(of(object("1")), of(object("2")));
    }
}
