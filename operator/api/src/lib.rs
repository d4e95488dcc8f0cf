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
mod condition;
#[expect(
    unreachable_pub,
    reason = "the schema derive copies each struct into a private scope"
)]
mod consumer_group;
mod cpu;
pub mod crd;
pub mod defaults;
mod duration;
mod event;
#[expect(
    unreachable_pub,
    reason = "the schema derive copies each struct into a private scope"
)]
mod group;
pub mod keys;
mod manifest;
#[expect(
    unreachable_pub,
    reason = "the schema derive copies each struct into a private scope"
)]
mod operation;
mod problem;
mod quantity;
pub mod rules;
#[expect(
    unreachable_pub,
    reason = "the schema derive copies each struct into a private scope"
)]
mod status;
mod suggest;
#[expect(
    unreachable_pub,
    reason = "the schema derive copies each struct into a private scope"
)]
mod topic;
mod validate;
mod words;

pub use cluster::brokers::{
    AckPolicy, AntiAffinity, AutoExpandSpec, BrokersSpec, Flush, GroupOverride, PlacementSpec,
    ReadFromReplicaSpec, ReadMode, ReplicationSpec, StorageSpec,
};
pub use cluster::listener::{AdvertisedFrom, AdvertisedSpec, ListenerSpec, ListenerType};
pub use cluster::pod::{
    ExtraVolume, Identity, ImageSpec, PodTemplate, PullPolicy, ResourceAmounts, ResourcesSpec,
};
pub use cluster::policy::{
    CanarySpec, DeletionPolicySpec, MasterUpdate, MonitoringSpec, NetworkPolicySpec,
    OperationModeSpec, PdbSpec, PeerSpec, RetainPolicy, ScaleInPolicy, ScaleInSpec,
    UpdateStrategySpec, UpdateType,
};
pub use cluster::{
    ControllerSpec, NameServerSpec, ProxySpec, RocketMQCluster, RocketMQClusterSpec,
};
pub use condition::{ConditionReason, ConditionType, Phase};
pub use consumer_group::{ConsumerGroup, ConsumerGroupSpec, ConsumerGroupStatus, TopicLag};
pub use cpu::{CpuError, CpuQuantity};
pub use duration::{DurationError, DurationText};
pub use event::{EventKind, EventReason};
pub use group::{
    BrokerGroup, BrokerGroupSpec, BrokerGroupStatus, DrainPhase, DrainStatus, GroupSummary,
    MasterStatus, MemberRole, MemberStatus, ReadRouting, RoutesStatus, SafetyStatus, Transition,
};
pub use manifest::{ManifestError, parse_manifest};
pub use operation::{Operation, OperationPhase, OperationSpec, OperationStatus, OperationType};
pub use problem::{Field, Problem, Reason};
pub use quantity::{ByteQuantity, QuantityError};
pub use status::{
    ControllersStatus, Endpoints, FailoverRecord, GroupCounts, NameServerStatus, NameServersStatus,
    RocketMQClusterStatus, RolloutStatus, VersionStatus, WaitingOn,
};
pub use suggest::nearest;
pub use topic::{
    ManagedMode, ObjectDeletionPolicy, Topic, TopicPermission, TopicSpec, TopicStatus, TopicType,
};
pub use validate::{
    is_downgrade, owned_broker_key, owned_name_server_key, validate, validate_change,
};

/// The API group of every kind.
pub const GROUP: &str = "rocketmq.rs";
/// The version in which manifests are written.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of a manifest.
pub const API_VERSION: &str = "rocketmq.rs/v1alpha1";
