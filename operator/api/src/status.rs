//! What a `RocketMQCluster` is: the status columns of `kubectl get rmq`.
//!
//! **Invariant:** addresses come from what NameServers and brokers report, never from a guess; the
//! phase is derived from the conditions and carries nothing more.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a cluster is.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RocketMQClusterStatus {
    /// `metadata.generation` that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Version of the operator that wrote this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<String>,
    /// Versions of the programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionStatus>,
    /// One word for people; derived from the conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Where clients connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// NameServers wanted and ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_servers: Option<ReadyCounts>,
    /// Broker groups wanted, ready, readable and writable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<GroupCounts>,
    /// Conditions in the sense of the Kubernetes API conventions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
}

/// How many of a kind are wanted and ready.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadyCounts {
    /// Wanted.
    pub desired: i32,
    /// Ready.
    pub ready: i32,
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
    #[schemars(extend("maxItems" = 20))]
    pub degraded: Vec<String>,
}
