//! `ConsumerGroup`: a subscription group on every broker group of a cluster, and its lag.
//!
//! **Invariant:** offsets are never touched by the spec; deleting the object deletes them only with
//! `deletionPolicy: Delete`.

use crate::defaults;
use crate::topic::{ManagedMode, ObjectDeletionPolicy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a consumer group may do.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[kube(
    group = "rocketmq.rs",
    version = "v1alpha1",
    kind = "ConsumerGroup",
    doc = "A consumer group on every broker group of a RocketMQCluster.",
    namespaced,
    status = "ConsumerGroupStatus",
    derive = "PartialEq",
    shortname = "rmqcg",
    category = "rocketmq",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.cluster"),
    printcolumn(name = "Group", type_ = "string", json_path = ".status.group"),
    printcolumn(name = "Members", type_ = "integer", json_path = ".status.members"),
    printcolumn(name = "Lag", type_ = "integer", json_path = ".status.lag"),
    printcolumn(name = "Applied", type_ = "string", json_path = ".status.summary"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("has(self.spec.group) || self.metadata.name.size() <= 120")
        .message("give spec.group: metadata.name is longer than the 120 bytes of a group's name")
)]
#[x_kube(
    validation = Rule::new("self.cluster == oldSelf.cluster").message("cluster is immutable"),
    validation = Rule::new(
        "has(self.group) == has(oldSelf.group) && (!has(self.group) || self.group == oldSelf.group)"
    ).message("group is immutable"),
    validation = Rule::new("!(self.orderly && self.broadcast)")
        .message("orderly and broadcast exclude each other: in broadcast nobody shares queues")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConsumerGroupSpec {
    /// Name of the `RocketMQCluster`, in the same namespace.
    #[schemars(length(min = 1, max = 40))]
    pub cluster: String,
    /// Name of the group; `metadata.name` when absent. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 120), regex(pattern = r"^[%|a-zA-Z0-9_-]+$"))]
    pub group: Option<String>,
    /// Whether its members may consume.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Whether every member may get every message.
    #[serde(default)]
    pub broadcast: bool,
    /// Whether messages of a queue are consumed in order.
    #[serde(default)]
    pub orderly: bool,
    /// How often a message is tried again before it goes to the dead letters; -1 keeps Java's own.
    #[serde(default = "defaults::retry_max_times")]
    #[schemars(range(min = -1, max = 1000))]
    pub retry_max_times: i32,
    /// Queues of its retry topic.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1024))]
    pub retry_queues: i32,
    /// What deleting this object does to the group.
    #[serde(default)]
    pub deletion_policy: ObjectDeletionPolicy,
    /// Whether a group that exists and differs is changed.
    #[serde(default)]
    pub managed: ManagedMode,
}

/// What a consumer group is.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerGroupStatus {
    /// `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Name of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Connected members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<i32>,
    /// Messages it has not consumed, over all topics, rounded up to two digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<i64>,
    /// The topics with the most, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub topics: Vec<TopicLag>,
    /// Broker names of the groups that have it as it is here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub applied: Vec<String>,
    /// Broker groups that have it of all, `2/2`.
    #[serde(default)]
    pub summary: String,
    /// Conditions in the sense of the Kubernetes API conventions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// What a group has not consumed of a topic.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicLag {
    /// The topic.
    pub topic: String,
    /// Messages, rounded up to two digits.
    pub lag: i64,
}

impl ConsumerGroup {
    /// The group's name.
    #[must_use]
    pub fn group_name(&self) -> &str {
        self.spec
            .group
            .as_deref()
            .or(self.metadata.name.as_deref())
            .unwrap_or_default()
    }
}

fn yes() -> bool {
    true
}

fn one() -> i32 {
    1
}
