//! `BrokerGroup`: one broker group, for machines and for `kubectl get rmqbg`.
//!
//! **Invariant:** its spec is written by the operator alone, from the `RocketMQCluster` that owns it;
//! its status has what brokers report, rounded so that a healthy group at rest is never written.

use crate::quantity::ByteQuantity;
use crate::words::words;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a broker group shall be. Written by the operator; edit the `RocketMQCluster` instead.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[kube(
    group = "rocketmq.rs",
    version = "v1alpha1",
    kind = "BrokerGroup",
    doc = "A broker group of a RocketMQCluster. Written by the operator; edit the cluster instead.",
    namespaced,
    status = "BrokerGroupStatus",
    derive = "PartialEq",
    shortname = "rmqbg",
    category = "rocketmq",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.cluster"),
    printcolumn(name = "Broker", type_ = "string", json_path = ".spec.brokerName"),
    printcolumn(
        name = "Master",
        type_ = "string",
        json_path = ".status.currentMaster.pod"
    ),
    printcolumn(name = "Epoch", type_ = "integer", json_path = ".status.epoch"),
    printcolumn(
        name = "InSync",
        type_ = "string",
        json_path = ".status.summary.inSync"
    ),
    printcolumn(
        name = "Readable",
        type_ = "string",
        json_path = ".status.summary.readable"
    ),
    printcolumn(name = "Writable", type_ = "boolean", json_path = ".status.writable"),
    printcolumn(name = "Lag", type_ = "string", json_path = ".status.summary.lag"),
    printcolumn(name = "Step", type_ = "string", json_path = ".status.summary.step"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".status.unwritableReason",
        priority = 1
    ),
    validation = Rule::new(
        "self.spec.cluster == oldSelf.spec.cluster && self.spec.index == oldSelf.spec.index && \
         self.spec.brokerName == oldSelf.spec.brokerName"
    ).message("cluster, index and brokerName of a BrokerGroup are immutable")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BrokerGroupSpec {
    /// Name of the `RocketMQCluster`.
    #[schemars(length(min = 1, max = 40))]
    pub cluster: String,
    /// Which group, counted from 0.
    #[schemars(range(min = 0, max = 127))]
    pub index: i32,
    /// Its name in routes.
    #[schemars(length(min = 1, max = 24))]
    pub broker_name: String,
    /// Members, the master counted.
    #[schemars(range(min = 1, max = 9))]
    pub members: i32,
    /// Fewest members in sync with which it takes sends.
    #[schemars(range(min = 1, max = 9))]
    pub min_in_sync: i32,
    /// Size of each member's disk.
    pub storage_size: ByteQuantity,
    /// Whether it is drained and then removed.
    #[serde(default)]
    pub drain: bool,
}

words! {
    /// How far the removal of a group has come.
    DrainPhase {
        /// It takes no sends any more.
        Cordoned,
        /// Consumers have messages left.
        Draining,
        /// Nothing is left.
        Drained,
        /// No NameServer knows it any more.
        Unregistered,
        /// Its pods are gone.
        Removed,
    }
}

words! {
    /// What a member of a group does.
    MemberRole {
        /// Takes sends.
        Master,
        /// Copies from the master.
        Replica,
        /// Is catching up for the first time.
        Joining,
        /// Nobody could ask it.
        Unknown,
    }
}

/// What a broker group is.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BrokerGroupStatus {
    /// `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Epoch of the master; 0 without a controller.
    #[serde(default)]
    pub epoch: i64,
    /// Epoch of the set of members in sync; 0 without a controller.
    #[serde(default)]
    pub sync_state_set_epoch: i64,
    /// Who takes sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_master: Option<MasterStatus>,
    /// Pod that shall become master.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_master: Option<String>,
    /// What is being done to the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition: Option<Transition>,
    /// Broker ids of the members in sync.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 9))]
    pub in_sync: Vec<i64>,
    /// Fewest members in sync with which it takes sends.
    #[serde(default)]
    pub min_in_sync: i32,
    /// Whether it takes sends.
    #[serde(default)]
    pub writable: bool,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritable_reason: Option<String>,
    /// Whether it was opened for sends once: its metadata was complete.
    #[serde(default)]
    pub opened: bool,
    /// Live configuration keys that the operator has set, so that removed ones go back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub managed_keys: Vec<String>,
    /// Each member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 9))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["pod".into()]))]
    pub members: Vec<MemberStatus>,
    /// Where slow consumers read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_routing: Option<ReadRouting>,
    /// Whether NameServers agree about the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<RoutesStatus>,
    /// How far its removal has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainStatus>,
    /// Texts of the columns.
    #[serde(default)]
    pub summary: GroupSummary,
    /// The last moves of mastership, newest first, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub history: Vec<crate::status::FailoverRecord>,
    /// Conditions in the sense of the Kubernetes API conventions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// Texts of the columns of `kubectl get rmqbg`.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupSummary {
    /// Members in sync of members, `2/3`.
    pub in_sync: String,
    /// Members that answer pulls of members, `3/3`.
    pub readable: String,
    /// How far the slowest replica is behind, `0` or `12Mi`.
    pub lag: String,
    /// What is being done, `Idle` when nothing is.
    pub step: String,
}

/// Who takes sends.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MasterStatus {
    /// Its pod.
    pub pod: String,
    /// Its broker id.
    pub broker_id: i64,
    /// Its address as registered.
    pub address: String,
    /// Since when.
    pub since: Time,
}

/// What is being done to a group.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// What: `RollingUpdate`, `ScaleOut`, `ScaleIn`, `ExpandVolume`, `ReplaceVolume`.
    pub op: String,
    /// How far.
    pub step: String,
    /// Since when.
    pub started_at: Time,
    /// When it is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// Why.
    pub reason: String,
}

/// A member of a group.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// Its pod.
    pub pod: String,
    /// The pod's number.
    pub ordinal: i32,
    /// Its broker id; absent when nobody could ask it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_id: Option<i64>,
    /// What it does.
    pub role: MemberRole,
    /// Whether it has what the master has.
    pub in_sync: bool,
    /// Whether it answers pulls.
    pub readable: bool,
    /// Bytes it is behind its master, rounded.
    pub lag_bytes: i64,
    /// Version it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Revision of its template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pvc: Option<String>,
    /// How often its container was started again.
    pub restarts: i32,
    /// Whether it may be restarted now.
    pub safety: SafetyStatus,
}

/// Whether a member may be restarted.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SafetyStatus {
    /// Yes.
    pub safe: bool,
    /// Why not, or what to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub risks: Vec<String>,
}

/// Where slow consumers read.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadRouting {
    /// `Off`, `OnSlowConsume` or `PreferReplica`.
    pub mode: String,
    /// The broker id that consumers are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_broker_id: Option<i64>,
    /// Whether they are sent back to the master.
    pub fallback_to_master: bool,
    /// Why.
    pub reason: String,
}

/// Whether NameServers agree about a group.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoutesStatus {
    /// All that answer have the same.
    pub name_servers_agree: bool,
    /// NameServers that lack it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 9))]
    pub missing_on: Vec<String>,
}

/// How far the removal of a group has come.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainStatus {
    /// How far.
    pub phase: DrainPhase,
    /// Since when it is being removed.
    pub since: Time,
    /// Messages that consumers have left, rounded up to two digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_messages: Option<i64>,
    /// The consumer group with the most left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_group: Option<String>,
}
