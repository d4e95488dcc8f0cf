//! Figures of topics, groups and the broker, as the admin tools show them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MessageQueue, json_body, object_key};
use crate::json::{self, JsonError};

/// `ConsumeStats`, answer to code 208.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumeStats {
    /// Messages a second.
    pub consume_tps: f64,
    /// Progress by queue.
    #[serde(deserialize_with = "object_key::read")]
    pub offset_table: BTreeMap<MessageQueue, OffsetWrapper>,
}

/// `OffsetWrapper`: a group's progress in one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OffsetWrapper {
    /// End of the queue.
    pub broker_offset: i64,
    /// Committed offset.
    pub consumer_offset: i64,
    /// Store time of the last message consumed, in milliseconds.
    pub last_timestamp: i64,
    /// Where the group last pulled.
    pub pull_offset: i64,
}

impl ConsumeStats {
    /// The body's bytes, with object keys.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"consumeTps\":");
        out.extend(json::to_vec(&self.consume_tps));
        out.extend_from_slice(b",\"offsetTable\":");
        json::object_map(out, &self.offset_table);
        out.push(b'}');
    }

    /// Reads the body from what Java wrote.
    pub fn from_json(body: &[u8]) -> Result<Self, JsonError> {
        json::object_from_slice(body)
    }
}

/// `ConsumeStatsList`, answer to code 317.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumeStatsList {
    /// The broker's address.
    pub broker_addr: String,
    /// Maps from group to the stats of its topics.
    pub consume_stats_list: Vec<BTreeMap<String, Vec<ConsumeStats>>>,
    /// Messages behind, all groups.
    pub total_diff: i64,
    /// Messages pulled and not committed, all groups.
    pub total_inflight_diff: i64,
}

impl ConsumeStatsList {
    /// The body's bytes, with object keys.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = b"{\"brokerAddr\":".to_vec();
        out.extend(json::to_vec(&self.broker_addr));
        out.extend_from_slice(b",\"consumeStatsList\":[");
        for (index, groups) in self.consume_stats_list.iter().enumerate() {
            out.extend_from_slice(if index > 0 { b",{" } else { b"{" });
            for (index, (group, list)) in groups.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend(json::to_vec(group));
                out.extend_from_slice(b":[");
                for (index, stats) in list.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    stats.write(&mut out);
                }
                out.push(b']');
            }
            out.push(b'}');
        }
        out.extend_from_slice(b"],\"totalDiff\":");
        out.extend(json::to_vec(&self.total_diff));
        out.extend_from_slice(b",\"totalInflightDiff\":");
        out.extend(json::to_vec(&self.total_inflight_diff));
        out.push(b'}');
        out
    }

    /// Reads the body from what Java wrote.
    pub fn from_json(body: &[u8]) -> Result<Self, JsonError> {
        json::object_from_slice(body)
    }
}

/// `TopicStatsTable`, answer to code 202.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicStatsTable {
    /// Bounds by queue.
    #[serde(deserialize_with = "object_key::read")]
    pub offset_table: BTreeMap<MessageQueue, TopicOffset>,
    /// Messages a second; since 5.3.
    pub topic_put_tps: f64,
}

/// `TopicOffset`: the bounds of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicOffset {
    /// Store time of the last message, in milliseconds; 0 if there is none.
    pub last_update_timestamp: i64,
    /// End.
    pub max_offset: i64,
    /// Beginning.
    pub min_offset: i64,
}

impl TopicStatsTable {
    /// The body's bytes, with object keys.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = b"{\"offsetTable\":".to_vec();
        json::object_map(&mut out, &self.offset_table);
        out.extend_from_slice(b",\"topicPutTps\":");
        out.extend(json::to_vec(&self.topic_put_tps));
        out.push(b'}');
        out
    }

    /// Reads the body from what Java wrote.
    pub fn from_json(body: &[u8]) -> Result<Self, JsonError> {
        json::object_from_slice(body)
    }
}

/// `BrokerStatsData`, answer to code 315.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BrokerStatsData {
    /// The last day.
    pub stats_day: BrokerStatsItem,
    /// The last hour.
    pub stats_hour: BrokerStatsItem,
    /// The last minute.
    pub stats_minute: BrokerStatsItem,
}

/// `BrokerStatsItem`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokerStatsItem {
    /// Mean of the added values.
    pub avgpt: f64,
    /// All together.
    pub sum: i64,
    /// A second.
    pub tps: f64,
}

/// `QueryConsumeTimeSpanBody`, answer to code 303.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumeTimeSpan {
    /// One entry per queue.
    pub consume_time_span_set: Vec<QueueTimeSpan>,
}

/// `QueueTimeSpan`: times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QueueTimeSpan {
    /// Store time of the last message consumed.
    pub consume_time_stamp: i64,
    /// How far the group is behind.
    pub delay_time: i64,
    /// Store time of the newest message.
    pub max_time_stamp: i64,
    /// The queue.
    pub message_queue: MessageQueue,
    /// Store time of the oldest message.
    pub min_time_stamp: i64,
}

json_body!(BrokerStatsData, ConsumeTimeSpan);
