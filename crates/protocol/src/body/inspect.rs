//! Bodies that look into one client, one queue or one message.
//!
//! A broker passes [`ConsumerRunningInfo`] and [`ConsumeMessageDirectlyResult`] from client to tool
//! as the bytes they are; the structs are for the tool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MessageQueue, SubscriptionData, json_body, object_key};
use crate::json::{self, JsonError, de::java_enum};

/// `ConsumerRunningInfo`, answer to code 307; read only.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumerRunningInfo {
    /// Thread dump, if asked for.
    pub jstack: Option<String>,
    /// Queues taken by pop.
    #[serde(deserialize_with = "object_key::read")]
    pub mq_pop_table: BTreeMap<MessageQueue, PopProcessQueueInfo>,
    /// Queues taken by pull.
    #[serde(deserialize_with = "object_key::read")]
    pub mq_table: BTreeMap<MessageQueue, ProcessQueueInfo>,
    /// Settings of the client.
    pub properties: BTreeMap<String, String>,
    /// Rates by topic.
    pub status_table: BTreeMap<String, ConsumeStatus>,
    /// What it subscribes to.
    pub subscription_set: Vec<SubscriptionData>,
    /// What the application adds.
    pub user_consumer_info: BTreeMap<String, String>,
}

impl ConsumerRunningInfo {
    /// Reads the body from what a client wrote.
    pub fn from_json(body: &[u8]) -> Result<Self, JsonError> {
        json::object_from_slice(body)
    }
}

/// `PopProcessQueueInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PopProcessQueueInfo {
    /// The client gave the queue up (Java's spelling).
    pub droped: bool,
    /// Last pop, in milliseconds.
    pub last_pop_timestamp: i64,
    /// Messages popped and not acknowledged.
    pub wait_ack_count: i32,
}

/// `ProcessQueueInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProcessQueueInfo {
    /// Messages held.
    pub cached_msg_count: i32,
    /// Highest offset held.
    pub cached_msg_max_offset: i64,
    /// Lowest offset held.
    pub cached_msg_min_offset: i64,
    /// Size of the messages held.
    #[serde(rename = "cachedMsgSizeInMiB")]
    pub cached_msg_size_in_mib: i32,
    /// Committed offset.
    pub commit_offset: i64,
    /// The client gave the queue up (Java's spelling).
    pub droped: bool,
    /// Last consumption, in milliseconds.
    pub last_consume_timestamp: i64,
    /// Last lock, in milliseconds.
    pub last_lock_timestamp: i64,
    /// Last pull, in milliseconds.
    pub last_pull_timestamp: i64,
    /// Whether the client holds the lock.
    pub locked: bool,
}

/// `ConsumeStatus`: rates of one topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ConsumeStatus {
    /// Failures in the last hour.
    #[serde(rename = "consumeFailedMsgs")]
    pub consume_failed_msgs: i64,
    /// Failures a second.
    #[serde(rename = "consumeFailedTPS")]
    pub consume_failed_tps: f64,
    /// Successes a second.
    #[serde(rename = "consumeOKTPS")]
    pub consume_ok_tps: f64,
    /// Milliseconds a consumption.
    #[serde(rename = "consumeRT")]
    pub consume_rt: f64,
    /// Milliseconds a pull.
    #[serde(rename = "pullRT")]
    pub pull_rt: f64,
    /// Messages pulled a second.
    #[serde(rename = "pullTPS")]
    pub pull_tps: f64,
}

java_enum! {
    /// How a message that a tool handed over was consumed.
    pub enum ConsumeResult {
        /// Consumed.
        #[default]
        Success = "CR_SUCCESS",
        /// To be tried later.
        Later = "CR_LATER",
        /// Rolled back, in order mode.
        Rollback = "CR_ROLLBACK",
        /// Committed, in order mode.
        Commit = "CR_COMMIT",
        /// The listener threw.
        ThrowException = "CR_THROW_EXCEPTION",
        /// The listener gave nothing back.
        ReturnNull = "CR_RETURN_NULL",
    }
}

/// `ConsumeMessageDirectlyResult`, answer to code 309.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumeMessageDirectlyResult {
    /// Whether the listener commits by itself.
    pub auto_commit: bool,
    /// The outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consume_result: Option<ConsumeResult>,
    /// Whether the listener is an ordered one.
    pub order: bool,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// How long it took, in milliseconds.
    pub spent_time_mills: i64,
}

impl Default for ConsumeMessageDirectlyResult {
    fn default() -> Self {
        Self {
            auto_commit: true,
            consume_result: None,
            order: false,
            remark: None,
            spent_time_mills: 0,
        }
    }
}

/// `QueryConsumeQueueResponseBody`, answer to code 321.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QueryConsumeQueueResponse {
    /// The group's compiled filter, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter_data: Option<String>,
    /// End of the queue.
    pub max_queue_index: i64,
    /// Beginning of the queue.
    pub min_queue_index: i64,
    /// The entries asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_data: Option<Vec<ConsumeQueueData>>,
    /// The group's subscription.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_data: Option<SubscriptionData>,
}

/// `ConsumeQueueData`: one entry of a consume queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumeQueueData {
    /// Filter bits of the extension file, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bit_map: Option<String>,
    /// Whether the group's filter lets the message through.
    pub eval: bool,
    /// The extension file's entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extend_data_json: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg: Option<String>,
    /// Commit log offset.
    pub physic_offset: i64,
    /// Size of the record.
    pub physic_size: i32,
    /// Hash of the tag.
    pub tags_code: i64,
}

/// `QuerySubscriptionResponseBody`, answer to code 345.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QuerySubscriptionResponse {
    /// The group.
    pub group: String,
    /// Its subscription, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_data: Option<SubscriptionData>,
    /// The topic.
    pub topic: String,
}

json_body!(
    ConsumeMessageDirectlyResult,
    QueryConsumeQueueResponse,
    QuerySubscriptionResponse
);
