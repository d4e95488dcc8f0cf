//! `Topic`: a topic on every broker group of a cluster, groups that come later too.
//!
//! **Invariant:** a topic that somebody else made is adopted, never emptied; deleting the object
//! deletes messages only with `deletionPolicy: Delete`.

use crate::defaults;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a topic shall be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[kube(
    group = "rocketmq.rs",
    version = "v1alpha1",
    kind = "Topic",
    doc = "A topic on every broker group of a RocketMQCluster.",
    namespaced,
    status = "TopicStatus",
    derive = "PartialEq",
    shortname = "rmqt",
    category = "rocketmq",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.cluster"),
    printcolumn(name = "Topic", type_ = "string", json_path = ".status.topic"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "Queues", type_ = "integer", json_path = ".spec.writeQueues"),
    printcolumn(name = "Applied", type_ = "string", json_path = ".status.summary"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("has(self.spec.topic) || self.metadata.name.size() <= 127")
        .message("give spec.topic: metadata.name is longer than the 127 bytes of a topic's name")
)]
#[x_kube(
    validation = Rule::new("self.cluster == oldSelf.cluster").message("cluster is immutable"),
    validation = Rule::new(
        "has(self.topic) == has(oldSelf.topic) && (!has(self.topic) || self.topic == oldSelf.topic)"
    ).message("topic is immutable"),
    validation = Rule::new("self.type == oldSelf.type")
        .message("type is immutable: consumers rely on it; make another topic"),
    validation = Rule::new("self.readQueues >= self.writeQueues")
        .message(crate::rules::READ_QUEUES),
    validation = Rule::new(
        "!has(self.topic) || !(self.topic.startsWith('%RETRY%') || self.topic.startsWith('%DLQ%') \
         || self.topic.startsWith('rmq_sys_') || self.topic == 'SCHEDULE_TOPIC_XXXX')"
    ).message(crate::rules::NOT_A_SYSTEM_NAME)
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TopicSpec {
    /// Name of the `RocketMQCluster`, in the same namespace.
    #[schemars(length(min = 1, max = 40))]
    pub cluster: String,
    /// Name of the topic; `metadata.name` when absent. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 127), regex(pattern = r"^[%|a-zA-Z0-9_-]+$"))]
    pub topic: Option<String>,
    /// What messages of the topic are. Immutable.
    #[serde(default, rename = "type")]
    pub kind: TopicType,
    /// Queues that are written, on each group.
    #[serde(default = "defaults::topic_queues")]
    #[schemars(range(min = 1, max = 1024))]
    pub write_queues: i32,
    /// Queues that are read, on each group.
    #[serde(default = "defaults::topic_queues")]
    #[schemars(range(min = 1, max = 1024))]
    pub read_queues: i32,
    /// What clients may do.
    #[serde(default)]
    pub permission: TopicPermission,
    /// What deleting this object does to the topic.
    #[serde(default)]
    pub deletion_policy: ObjectDeletionPolicy,
    /// Whether a topic that exists and differs is changed.
    #[serde(default)]
    pub managed: ManagedMode,
}

/// What messages of a topic are.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum TopicType {
    /// Plain messages.
    #[default]
    Normal,
    /// Messages in order of each message group.
    Fifo,
    /// Messages that appear later.
    Delay,
    /// Messages that are committed or rolled back.
    Transaction,
}

impl TopicType {
    /// Value of the topic's attribute `message.type`.
    #[must_use]
    pub const fn attribute(self) -> &'static str {
        match self {
            Self::Normal => "NORMAL",
            Self::Fifo => "FIFO",
            Self::Delay => "DELAY",
            Self::Transaction => "TRANSACTION",
        }
    }
}

/// What clients may do with a topic.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum TopicPermission {
    /// Send and consume.
    #[default]
    ReadWrite,
    /// Consume.
    ReadOnly,
    /// Send.
    WriteOnly,
}

impl TopicPermission {
    /// RocketMQ's number: 4 reads, 2 writes.
    #[must_use]
    pub const fn bits(self) -> i32 {
        match self {
            Self::ReadWrite => 6,
            Self::ReadOnly => 4,
            Self::WriteOnly => 2,
        }
    }
}

/// What deleting an object does to what brokers have.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum ObjectDeletionPolicy {
    /// Nothing.
    #[default]
    Retain,
    /// It is deleted on every broker, with its messages or offsets.
    Delete,
}

/// Whether what exists and differs is changed.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum ManagedMode {
    /// It is made as the object says.
    #[default]
    Full,
    /// What is missing is made; what differs is reported and left.
    AdoptOnly,
}

/// What a topic is.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopicStatus {
    /// `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Name of the topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Broker names of the groups that have it as it is here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub applied: Vec<String>,
    /// Groups that have it of all groups, `2/2`.
    #[serde(default)]
    pub summary: String,
    /// Conditions in the sense of the Kubernetes API conventions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Topic {
    /// The topic's name.
    #[must_use]
    pub fn topic_name(&self) -> &str {
        self.spec
            .topic
            .as_deref()
            .or(self.metadata.name.as_deref())
            .unwrap_or_default()
    }
}
