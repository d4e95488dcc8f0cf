//! `Operation`: something done once to a cluster, with a trace of who asked and how it ended.
//!
//! **Invariant:** an operation never changes; it ends, and stays `ttlAfterFinished`. Types that need
//! a controller are taken and end at once with the reason `NeedsController` while there is none.

use crate::defaults;
use crate::duration::DurationText;
use crate::words::words;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// What shall be done.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[kube(
    group = "rocketmq.rs",
    version = "v1alpha1",
    kind = "Operation",
    doc = "Something done once to a RocketMQCluster.",
    namespaced,
    status = "OperationStatus",
    derive = "PartialEq",
    shortname = "rmqop",
    category = "rocketmq",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.cluster"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "Group", type_ = "integer", json_path = ".spec.group"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Step", type_ = "string", json_path = ".status.step"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        priority = 1
    ),
    validation = Rule::new("self.spec == oldSelf.spec").message(crate::rules::OPERATION_IMMUTABLE)
)]
#[x_kube(
    validation = Rule::new("self.type != 'Switchover' || has(self.group)")
        .message(crate::rules::SWITCHOVER_NEEDS_GROUP),
    validation = Rule::new("self.type != 'DrainGroup' || has(self.group)")
        .message(crate::rules::DRAIN_NEEDS_GROUP),
    validation = Rule::new("self.type != 'ReplaceReplica' || has(self.pod)")
        .message(crate::rules::REPLACE_NEEDS_POD),
    validation = Rule::new(
        "self.type != 'ForceElect' || \
         (has(self.group) && has(self.pod) && self.acknowledgeDataLoss)"
    ).message(crate::rules::FORCE_ELECT_NEEDS)
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperationSpec {
    /// Name of the `RocketMQCluster`, in the same namespace.
    #[schemars(length(min = 1, max = 40))]
    pub cluster: String,
    /// What shall be done.
    #[serde(rename = "type")]
    pub kind: OperationType,
    /// To which broker group, counted from 0; to all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 127))]
    pub group: Option<i32>,
    /// To which pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub pod: Option<String>,
    /// That messages may be lost is understood.
    #[serde(default)]
    pub acknowledge_data_loss: bool,
    /// After this long it fails.
    #[serde(default = "defaults::operation_timeout")]
    pub timeout: DurationText,
    /// How long the object stays after its end.
    #[serde(default = "defaults::operation_ttl")]
    pub ttl_after_finished: DurationText,
}

words! {
    /// What an operation does.
    OperationType {
        /// Makes another member master. Needs a controller.
        Switchover,
        /// Restarts pods in order.
        Restart,
        /// Takes write permission from a group and waits until it is consumed.
        DrainGroup,
        /// Gives a member an empty disk.
        ReplaceReplica,
        /// Makes a member master that may lack messages. Needs a controller.
        ForceElect,
    }
}

words! {
    /// How far an operation is.
    OperationPhase {
        /// Seen, not begun.
        Pending,
        /// Begun.
        Running,
        /// Done.
        Succeeded,
        /// Not done, and the message says why.
        Failed,
    }
}

impl OperationType {
    /// Whether it can only be done with a controller.
    #[must_use]
    pub const fn needs_controller(self) -> bool {
        matches!(self, Self::Switchover | Self::ForceElect)
    }
}

/// How an operation goes.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationStatus {
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<OperationPhase>,
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What happened, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Conditions in the sense of the Kubernetes API conventions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
