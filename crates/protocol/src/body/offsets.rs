//! Committed offsets: the broker's tables and the bodies that move or show them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DataVersion, MessageQueue, json_body, json_file, object_key};
use crate::json::{self, JsonError};

/// `consumerOffset.json` and the answer to code 43; `topic@group`, then queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumerOffsets {
    /// Version of the table.
    pub data_version: DataVersion,
    /// Committed offsets.
    pub offset_table: BTreeMap<String, BTreeMap<i32, i64>>,
    /// Where groups last pulled; in the file only.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pull_offset_table: BTreeMap<String, BTreeMap<i32, i64>>,
    /// Resets that no pull has taken yet; in the file only.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reset_offset_table: BTreeMap<String, BTreeMap<i32, i64>>,
}

/// `delayOffset.json` and the answer to code 45: delay level to offset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DelayOffsets {
    /// Version of the table.
    pub data_version: DataVersion,
    /// By delay level.
    pub offset_table: BTreeMap<i32, i64>,
}

/// `QueryCorrectionOffsetBody`, answer to code 308.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CorrectionOffsets {
    /// By queue.
    pub correction_offsets: BTreeMap<i32, i64>,
}

/// `ResetOffsetBody` (codes 220 and 222); the Java client's local offset file has the same form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResetOffsetBody {
    /// New offsets.
    #[serde(deserialize_with = "object_key::read")]
    pub offset_table: BTreeMap<MessageQueue, i64>,
}

impl ResetOffsetBody {
    /// The body's bytes, with object keys.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = b"{\"offsetTable\":".to_vec();
        json::object_map(&mut out, &self.offset_table);
        out.push(b'}');
        out
    }

    /// Reads the body from what Java wrote.
    pub fn from_json(body: &[u8]) -> Result<Self, JsonError> {
        json::object_from_slice(body)
    }
}

/// `ResetOffsetBodyForC`: the form that C++ clients get with code 220.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResetOffsetBodyForC {
    /// New offsets.
    pub offset_table: Vec<QueueOffsetForC>,
}

/// `MessageQueueForC`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QueueOffsetForC {
    /// The broker group.
    pub broker_name: String,
    /// The new offset.
    pub offset: i64,
    /// The queue.
    pub queue_id: i32,
    /// The topic.
    pub topic: String,
}

impl From<&ResetOffsetBody> for ResetOffsetBodyForC {
    fn from(body: &ResetOffsetBody) -> Self {
        let entry = |(queue, &offset): (&MessageQueue, &i64)| QueueOffsetForC {
            broker_name: queue.broker_name.clone(),
            offset,
            queue_id: queue.queue_id,
            topic: queue.topic.clone(),
        };
        Self {
            offset_table: body.offset_table.iter().map(entry).collect(),
        }
    }
}

/// `GetConsumerStatusBody` (codes 221 and 223): offsets as clients see them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumerStatusBody {
    /// By client, in the broker's answer.
    #[serde(deserialize_with = "object_key::read_nested")]
    pub consumer_table: BTreeMap<String, BTreeMap<MessageQueue, i64>>,
    /// Of one client, in the client's answer.
    #[serde(deserialize_with = "object_key::read")]
    pub message_queue_table: BTreeMap<MessageQueue, i64>,
}

impl ConsumerStatusBody {
    /// The body's bytes, with object keys.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = b"{\"consumerTable\":{".to_vec();
        for (index, (client, table)) in self.consumer_table.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend(json::to_vec(client));
            out.push(b':');
            json::object_map(&mut out, table);
        }
        out.extend_from_slice(b"},\"messageQueueTable\":");
        json::object_map(&mut out, &self.message_queue_table);
        out.push(b'}');
        out
    }

    /// Reads the body from what Java wrote.
    pub fn from_json(body: &[u8]) -> Result<Self, JsonError> {
        json::object_from_slice(body)
    }
}

json_body!(CorrectionOffsets, ResetOffsetBodyForC);
json_file!(ConsumerOffsets, DelayOffsets);
