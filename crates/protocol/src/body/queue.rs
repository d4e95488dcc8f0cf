//! Message queues, their locks, and how the server shares them among consumers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MessageModel, json_body, json_file};
use crate::json::de::{self, java_enum};

/// `MessageQueue`: one queue of a topic on a broker group.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageQueue {
    /// The broker group.
    pub broker_name: String,
    /// The queue; −1 stands for all in pop assignments.
    #[serde(deserialize_with = "de::number")]
    pub queue_id: i32,
    /// The topic.
    pub topic: String,
}

/// `LockBatchRequestBody` and `UnlockBatchRequestBody`, bodies of codes 41 and 42.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LockBatchRequest {
    /// Who asks.
    pub client_id: String,
    /// For which group.
    pub consumer_group: String,
    /// The queues.
    pub mq_set: Vec<MessageQueue>,
    /// The receiver need not ask its replicas.
    #[serde(deserialize_with = "de::switch")]
    pub only_this_broker: bool,
}

/// `LockBatchResponseBody`, answer to code 41.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockBatchResponse {
    /// The queues the asker now holds.
    #[serde(rename = "lockOKMQSet")]
    pub lock_ok_mq_set: Vec<MessageQueue>,
}

java_enum! {
    /// How a group takes messages of a topic.
    pub enum MessageRequestMode {
        /// Pull.
        #[default]
        Pull = "PULL",
        /// Pop.
        Pop = "POP",
    }
}

/// `QueryAssignmentRequestBody`, body of code 400.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QueryAssignmentRequest {
    /// Who asks.
    pub client_id: String,
    /// For which group.
    pub consumer_group: String,
    /// How members share.
    pub message_model: MessageModel,
    /// `AVG`, `AVG_BY_CIRCLE`, …
    pub strategy_name: String,
    /// Of which topic.
    pub topic: String,
}

/// `QueryAssignmentResponseBody`. Java leaves the list out where there is nothing to share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QueryAssignmentResponse {
    /// The queues of the asker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_queue_assignments: Option<Vec<MessageQueueAssignment>>,
}

/// `MessageQueueAssignment`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageQueueAssignment {
    /// Reserved by Java.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<BTreeMap<String, String>>,
    /// The queue.
    pub message_queue: MessageQueue,
    /// How to take its messages.
    pub mode: MessageRequestMode,
}

/// `SetMessageRequestModeRequestBody`, body of code 401 and entry of [`MessageRequestModes`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SetMessageRequestMode {
    /// The group.
    pub consumer_group: String,
    /// The mode.
    pub mode: MessageRequestMode,
    /// How many further clients share a queue under pop.
    #[serde(deserialize_with = "de::number")]
    pub pop_share_queue_num: i32,
    /// The topic.
    pub topic: String,
}

/// `messageRequestMode.json` and the answer to code 402: topic, then group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageRequestModes {
    /// Topic, then group.
    pub message_request_mode_map: BTreeMap<String, BTreeMap<String, SetMessageRequestMode>>,
}

json_body!(
    MessageQueue,
    LockBatchRequest,
    LockBatchResponse,
    QueryAssignmentRequest,
    QueryAssignmentResponse,
    SetMessageRequestMode,
);
json_file!(MessageRequestModes);
