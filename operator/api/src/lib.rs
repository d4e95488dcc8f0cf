//! The kinds of the operator as typed structs, their rules, and manifests as text.
//!
//! **Invariant:** pure: no files, clock, network or client. What a manifest means is decided here
//! once, for the operator in a cluster and for `rocketmq up` on one computer.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[expect(
    unreachable_pub,
    reason = "the schema derive copies each struct into a private scope"
)]
mod cluster;
pub mod crd;
pub mod defaults;
mod manifest;
mod problem;
mod quantity;
mod status;
mod suggest;
mod validate;

pub use cluster::{
    BrokersSpec, ControllerSpec, Flush, NameServerSpec, ProxySpec, RocketMQCluster,
    RocketMQClusterSpec, StorageSpec,
};
pub use manifest::{ManifestError, parse_manifest};
pub use problem::{Field, Problem, Reason};
pub use quantity::{ByteQuantity, QuantityError};
pub use status::{Endpoints, GroupCounts, ReadyCounts, RocketMQClusterStatus, VersionStatus};
pub use suggest::nearest;
pub use validate::{owned_broker_key, owned_name_server_key, validate};

/// The API group of every kind.
pub const GROUP: &str = "rocketmq.rs";
/// The version in which manifests are written.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of a manifest.
pub const API_VERSION: &str = "rocketmq.rs/v1alpha1";
