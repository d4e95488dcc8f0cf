//! `consumerOrderInfo.json`: what ordered groups have in flight (`QueueLevelConsumerManager`).
//!
//! **Invariant:** reads the form of 5.0 to 5.5 (the newer ones only add counters); writes the keys
//! in the order Java does. Offsets but the first are differences to the first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json::{self, JsonError};

/// The file: `topic@group`, then queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderInfoFile {
    /// The batches.
    pub table: BTreeMap<String, BTreeMap<i32, OrderInfo>>,
}

/// The batch of one queue (`OrderInfo`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderInfo {
    /// Attempt of the client that got it.
    #[serde(rename = "a", skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    /// Bit i: message i is acked.
    #[serde(rename = "cm")]
    pub commit_bits: i64,
    /// Invisible for, ms; absent in files of old brokers.
    #[serde(rename = "i", skip_serializing_if = "Option::is_none")]
    pub invisible_time: Option<i64>,
    /// Last time it was popped.
    #[serde(rename = "l")]
    pub last_consumed: i64,
    /// First offset, then the differences of the others to it.
    #[serde(rename = "o")]
    pub offsets: Vec<i64>,
    /// Times consumed before, by offset; those above zero.
    #[serde(rename = "oc", skip_serializing_if = "Option::is_none")]
    pub consumed: Option<BTreeMap<i64, i32>>,
    /// Times of visibility that were changed, by offset.
    #[serde(rename = "ot", skip_serializing_if = "Option::is_none")]
    pub next_visible: Option<BTreeMap<i64, i64>>,
    /// Popped at.
    #[serde(rename = "popTime")]
    pub pop_time: i64,
}

impl OrderInfo {
    /// The absolute offsets; `None` if they leave their range or do not ascend.
    #[must_use]
    pub fn absolute_offsets(&self) -> Option<Vec<u64>> {
        let mut list: Vec<u64> = Vec::with_capacity(self.offsets.len());
        for &one in &self.offsets {
            let offset = match list.first() {
                None => u64::try_from(one).ok()?,
                Some(first) => first.checked_add(u64::try_from(one).ok()?)?,
            };
            if list.last().is_some_and(|&last| last >= offset) {
                return None;
            }
            list.push(offset);
        }
        Some(list)
    }
}

impl OrderInfoFile {
    /// The text of the file.
    #[must_use]
    pub fn to_json_pretty(&self) -> Vec<u8> {
        json::to_vec_pretty(self)
    }

    /// Reads the text of the file.
    pub fn from_json(text: &[u8]) -> Result<Self, JsonError> {
        json::object_from_slice(text)
    }
}
