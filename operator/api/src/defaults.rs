//! What a field is when the manifest does not say it, and between which bounds it may be.
//!
//! **Invariant:** the schema (`crd.rs`), the parser and `validate` all read these; no default or
//! bound is written anywhere else, schema attributes aside, which a test compares with these.

use crate::cluster::NameServerSpec;
use crate::cluster::brokers::{
    BrokersSpec, Flush, PlacementSpec, ReadFromReplicaSpec, ReplicationSpec, StorageSpec,
};
use crate::cluster::policy::RetainPolicy;
use crate::duration::DurationText;
use crate::quantity::ByteQuantity;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// `nameServer.replicas`.
pub const NAME_SERVER_REPLICAS: i32 = 3;
/// Bounds of `nameServer.replicas`.
pub const NAME_SERVER_REPLICAS_RANGE: RangeInclusive<i32> = 1..=9;
/// `brokers.groups`.
pub const BROKER_GROUPS: i32 = 2;
/// Bounds of `brokers.groups`.
pub const BROKER_GROUPS_RANGE: RangeInclusive<i32> = 1..=128;
/// `brokers.namePrefix`.
pub const BROKER_NAME_PREFIX: &str = "broker";
/// Longest `brokers.namePrefix`: pods are called `<cluster>-<prefix>-<group>-<ordinal>`.
pub const BROKER_NAME_PREFIX_BYTES_MAX: usize = 16;
/// `brokers.replicasPerGroup`, the master not counted.
pub const REPLICAS_PER_GROUP: i32 = 1;
/// Bounds of `brokers.replicasPerGroup`.
pub const REPLICAS_PER_GROUP_RANGE: RangeInclusive<i32> = 0..=8;
/// `brokers.storage.size`.
pub const STORAGE_SIZE: &str = "20Gi";
/// `controller.replicas`.
pub const CONTROLLER_REPLICAS: i32 = 3;
/// Bounds of `controller.replicas`, which is odd besides.
pub const CONTROLLER_REPLICAS_RANGE: RangeInclusive<i32> = 1..=5;
/// `proxy.replicas`.
pub const PROXY_REPLICAS: i32 = 2;
/// Bounds of `proxy.replicas`.
pub const PROXY_REPLICAS_RANGE: RangeInclusive<i32> = 1..=64;
/// Longest `metadata.name`: names of Services and pods are made from it, 63 bytes in all.
pub const NAME_BYTES_MAX: usize = 40;
/// Longest `metadata.name` and `brokers.namePrefix` together: the revision of a StatefulSet is a label
/// of its pods, 63 bytes, made from `<name>-<prefix>-<group>` and a hash of 11.
pub const NAMES_TOGETHER_BYTES_MAX: usize = 47;
/// Most keys in a `config` map.
pub const CONFIG_KEYS_MAX: usize = 256;

/// `brokers.terminationGracePeriod`.
pub const TERMINATION_GRACE_SECONDS: u32 = 120;
/// `brokers.placement.topologyKey`.
pub const TOPOLOGY_KEY: &str = "kubernetes.io/hostname";
/// `brokers.readFromReplica.maxLag`.
pub const READ_LAG_MAX: &str = "256Mi";
/// `brokers.storage.autoExpand.thresholdPercent`.
pub const EXPAND_THRESHOLD_PERCENT: i32 = 80;
/// `brokers.storage.autoExpand.step`.
pub const EXPAND_STEP: &str = "10Gi";
/// `updateStrategy.canary.soak`.
pub const CANARY_SOAK_SECONDS: u32 = 60;
/// `scaleIn.timeout`.
pub const SCALE_IN_TIMEOUT: &str = "24h";
/// `listeners[].port`.
pub const LISTENER_PORT: i32 = 10_911;
/// Most `listeners`: a broker registers one address.
pub const LISTENERS_MAX: usize = 1;
/// Least memory of a broker, in bytes.
pub const BROKER_MEMORY_MIN: u64 = 128 << 20;
/// Least memory of a NameServer, in bytes.
pub const NAME_SERVER_MEMORY_MIN: u64 = 32 << 20;
/// Queues of a Topic object.
pub const TOPIC_QUEUES: i32 = 8;
/// Bounds of queues of a Topic object.
pub const TOPIC_QUEUES_RANGE: RangeInclusive<i32> = 1..=1024;
/// `retryMaxTimes` of a ConsumerGroup object.
pub const RETRY_MAX_TIMES: i32 = 16;
/// `timeout` of an Operation.
pub const OPERATION_TIMEOUT: &str = "10m";
/// `ttlAfterFinished` of an Operation.
pub const OPERATION_TTL: &str = "24h";

impl Default for NameServerSpec {
    fn default() -> Self {
        Self {
            replicas: NAME_SERVER_REPLICAS,
            external_ref: Vec::new(),
            config: BTreeMap::new(),
            resources: None,
            pod_template: None,
        }
    }
}

impl Default for BrokersSpec {
    fn default() -> Self {
        Self {
            groups: BROKER_GROUPS,
            name_prefix: broker_name_prefix(),
            replicas_per_group: REPLICAS_PER_GROUP,
            replication: ReplicationSpec::default(),
            read_from_replica: ReadFromReplicaSpec::default(),
            storage: StorageSpec::default(),
            flush: Flush::Async,
            config: BTreeMap::new(),
            group_overrides: Vec::new(),
            placement: PlacementSpec::default(),
            resources: None,
            pod_template: None,
            termination_grace_period: termination_grace(),
        }
    }
}

impl Default for StorageSpec {
    fn default() -> Self {
        Self {
            class: None,
            size: storage_size(),
            retain_policy: RetainPolicy::Retain,
            auto_expand: None,
        }
    }
}

fn quantity(text: &str) -> ByteQuantity {
    ByteQuantity::parse(text).expect("default sizes are quantities: tested below")
}

fn duration(text: &str) -> DurationText {
    DurationText::parse(text).expect("default durations are lengths of time: tested below")
}

pub(crate) fn broker_groups() -> i32 {
    BROKER_GROUPS
}

pub(crate) fn broker_name_prefix() -> String {
    BROKER_NAME_PREFIX.to_owned()
}

pub(crate) fn replicas_per_group() -> i32 {
    REPLICAS_PER_GROUP
}

pub(crate) fn termination_grace() -> DurationText {
    DurationText::seconds(TERMINATION_GRACE_SECONDS)
}

pub(crate) fn storage_size() -> ByteQuantity {
    quantity(STORAGE_SIZE)
}

pub(crate) fn controller_replicas() -> i32 {
    CONTROLLER_REPLICAS
}

pub(crate) fn proxy_replicas() -> i32 {
    PROXY_REPLICAS
}

pub(crate) fn expand_threshold() -> i32 {
    EXPAND_THRESHOLD_PERCENT
}

pub(crate) fn expand_step() -> ByteQuantity {
    quantity(EXPAND_STEP)
}

pub(crate) fn listener_port() -> i32 {
    LISTENER_PORT
}

pub(crate) fn topic_queues() -> i32 {
    TOPIC_QUEUES
}

pub(crate) fn retry_max_times() -> i32 {
    RETRY_MAX_TIMES
}

pub(crate) fn operation_timeout() -> DurationText {
    duration(OPERATION_TIMEOUT)
}

pub(crate) fn operation_ttl() -> DurationText {
    duration(OPERATION_TTL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_sizes_and_durations_can_be_read() {
        for (text, bytes) in [
            (STORAGE_SIZE, 20 << 30),
            (READ_LAG_MAX, 256 << 20),
            (EXPAND_STEP, 10 << 30),
        ] {
            assert_eq!(quantity(text).bytes(), bytes);
        }
        for (text, seconds) in [
            (SCALE_IN_TIMEOUT, 86_400),
            (OPERATION_TIMEOUT, 600),
            (OPERATION_TTL, 86_400),
        ] {
            assert_eq!(duration(text).get().as_secs(), seconds);
        }
    }
}
