//! What a `RocketMQCluster` is: the status columns of `kubectl get rmq`.
//!
//! **Invariant:** addresses come from what NameServers and brokers report, never from a guess; the
//! phase is derived from the conditions and carries nothing more.

use crate::condition::Phase;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a cluster is.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RocketMQClusterStatus {
    /// `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Version of the operator that wrote this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<String>,
    /// Versions of the programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionStatus>,
    /// One word for people; derived from the conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Where clients connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// NameServers wanted and ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_servers: Option<NameServersStatus>,
    /// Controllers; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controllers: Option<ControllersStatus>,
    /// Broker groups wanted, ready, readable and writable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<GroupCounts>,
    /// The roll that is going on or was the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,
    /// What the operator waits for before it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_on: Option<WaitingOn>,
    /// The last time mastership moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failover: Option<FailoverRecord>,
    /// How often mastership moved because a master was lost.
    #[serde(default)]
    pub failover_count: i64,
    /// Label selector of the brokers' pods, for autoscalers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Conditions in the sense of the Kubernetes API conventions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// Versions of the programs.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VersionStatus {
    /// What runs everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// What shall run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// Where clients connect.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoints {
    /// NameServer addresses in the form clients take: `a:9876;b:9876`.
    pub name_server: String,
    /// Brokers as they are registered, for people: `broker-0 10.0.0.7:10911`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub brokers: Vec<String>,
}

/// NameServers in numbers.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NameServersStatus {
    /// Wanted.
    pub desired: i32,
    /// Ready.
    pub ready: i32,
    /// Broker registrations that are on some NameServers and not on others.
    pub route_skew: i32,
    /// Each of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 9))]
    pub pods: Vec<NameServerStatus>,
}

/// One NameServer.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NameServerStatus {
    /// Its pod, or its address when somebody else runs it.
    pub name: String,
    /// Broker groups registered at it; absent when it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registered_brokers: Option<i32>,
}

/// Controllers in numbers.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllersStatus {
    /// Wanted.
    pub desired: i32,
    /// Ready.
    pub ready: i32,
    /// Who leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// The term in which it leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub term: Option<i64>,
}

/// Broker groups in numbers.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupCounts {
    /// Wanted.
    pub desired: i32,
    /// Every member ready.
    pub ready: i32,
    /// `ready/desired`, for the column.
    pub summary: String,
    /// Groups that answer pulls.
    pub readable: i32,
    /// Groups that take sends.
    pub writable: i32,
    /// Names of groups with a fault, at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub degraded: Vec<String>,
}

/// A roll.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStatus {
    /// What it rolls out: the revision of the first part that is not updated everywhere.
    pub id: String,
    /// The part that is being rolled: `namesrv` or a broker name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Pods that have the new template.
    pub updated: i32,
    /// All pods.
    pub total: i32,
    /// `updated/total` and what is waited for, for the column.
    pub summary: String,
    /// Whether it was stopped because an updated pod did not become healthy.
    pub halted: bool,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_on: Option<WaitingOn>,
}

/// What something waits for.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingOn {
    /// The pod, or the part of the cluster.
    pub pod: String,
    /// Why, in one sentence.
    pub reason: String,
    /// Since when.
    pub since: Time,
    /// Whether it takes longer than it should.
    #[serde(default)]
    pub late: bool,
}

/// One move of mastership.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailoverRecord {
    /// Broker name of the group.
    pub group: String,
    /// Pod that was master.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Pod that is master.
    pub to: String,
    /// Epoch of the new master.
    pub epoch: i64,
    /// Why.
    pub reason: String,
    /// When the loss was seen.
    pub detected_at: Time,
    /// When the group took sends again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writable_at: Option<Time>,
    /// Milliseconds between the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rto_millis: Option<i64>,
    /// Whether somebody asked for it.
    pub planned: bool,
}
