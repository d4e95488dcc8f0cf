//! What a field is when the manifest does not say it, and between which bounds it may be.
//!
//! **Invariant:** the schema (`crd.rs`), the parser and `validate` all read these; no default or
//! bound is written anywhere else, schema attributes aside, which a test compares with these.

use crate::cluster::{BrokersSpec, Flush, NameServerSpec, StorageSpec};
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
/// Most keys in a `config` map.
pub const CONFIG_KEYS_MAX: usize = 256;

pub(crate) fn name_server() -> NameServerSpec {
    NameServerSpec {
        replicas: NAME_SERVER_REPLICAS,
        config: BTreeMap::new(),
    }
}

pub(crate) fn name_server_replicas() -> i32 {
    NAME_SERVER_REPLICAS
}

pub(crate) fn brokers() -> BrokersSpec {
    BrokersSpec {
        groups: BROKER_GROUPS,
        name_prefix: broker_name_prefix(),
        replicas_per_group: REPLICAS_PER_GROUP,
        storage: storage(),
        flush: Flush::Async,
        config: BTreeMap::new(),
    }
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

pub(crate) fn storage() -> StorageSpec {
    StorageSpec {
        size: storage_size(),
    }
}

pub(crate) fn storage_size() -> ByteQuantity {
    ByteQuantity::parse(STORAGE_SIZE).expect("the default size is a quantity: tested below")
}

pub(crate) fn controller_replicas() -> i32 {
    CONTROLLER_REPLICAS
}

pub(crate) fn proxy_replicas() -> i32 {
    PROXY_REPLICAS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_size_is_a_quantity() {
        assert_eq!(storage_size().bytes(), 20 << 30);
    }
}
