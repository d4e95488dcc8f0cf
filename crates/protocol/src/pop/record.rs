//! The records of the revive topic (`PopCheckPoint`, `AckMsg`, `BatchAckMsg`): JSON bodies, told
//! apart by the message's tag.
//!
//! | tag | key | meaning |
//! |---|---|---|
//! | `ck` | `so` `n` `d` | first offset; number of messages; their offsets less `so`, absent: `so + i` |
//! | | `bm` | bit i: message i needs no redelivery |
//! | | `pt` `it` | popped at, invisible for, ms; `reviveTime` is their sum, written for people |
//! | | `q` `t` `c` `bn` | queue, stored topic, group, broker |
//! | | `ro` `rp` `sp` | offset in the revive queue; how often it was put again, as text; suspended |
//! | `ack` | `ao` `so` `pt` `q` `t` `c` `bn` | acked offset; the rest names the checkpoint |
//! | `bAck` | `aol`, and the keys of `ack` | acked offsets; `ao` is −1 |
//!
//! The message of a record carries its unique key (`key`) and a delivery time: a checkpoint one
//! second before its messages become visible, an ack when they do; so acks always come after.
//!
//! **Invariant:** keys stand in the order Java writes, so equal records have equal bytes. A record
//! whose counts contradict each other is refused as a whole: no offset is guessed.

use rmq_types::pop::POP_MESSAGES_MAX;
use serde::{Deserialize, Serialize};

use crate::json::{self, JsonError};

/// Tag of a checkpoint.
pub const CHECKPOINT_TAG: &str = "ck";
/// Tag of an ack.
pub const ACK_TAG: &str = "ack";
/// Tag of acks of several messages of one checkpoint.
pub const BATCH_ACK_TAG: &str = "bAck";
/// How long before its messages become visible a checkpoint is delivered, ms (`ackTimeInterval`).
pub const CHECKPOINT_LEAD_MILLIS: i64 = 1000;

/// Why a record was refused: it is corrupt or of another kind, and will never be readable.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No tag of the revive topic.
    #[error("a message of the revive topic has the tag {tag:?}")]
    Tag {
        /// Its first characters.
        tag: String,
    },
    /// No JSON of the record.
    #[error("a {tag} record of the revive topic is unreadable")]
    Json {
        /// Its tag.
        tag: &'static str,
        /// What is wrong.
        #[source]
        source: JsonError,
    },
    /// Numbers that contradict each other or leave their range.
    #[error("a checkpoint of {topic} {queue_id} at {start} has no sound offsets")]
    Offsets {
        /// Its topic.
        topic: String,
        /// Its queue.
        queue_id: i32,
        /// Its start offset.
        start: i64,
    },
}

/// `PopCheckPoint`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CheckpointRecord {
    /// Bit i: message i needs no redelivery.
    #[serde(rename = "bm", alias = "bitMap")]
    pub bit_map: i32,
    /// The broker whose messages they are; absent in records of old brokers.
    #[serde(rename = "bn", alias = "brokerName")]
    pub broker_name: Option<String>,
    /// The group.
    #[serde(rename = "c", alias = "cid")]
    pub group: String,
    /// Offsets less the start offset; absent: counted from it.
    #[serde(rename = "d", alias = "queueOffsetDiff")]
    pub offset_diffs: Option<Vec<i32>>,
    /// Invisible for, ms.
    #[serde(rename = "it", alias = "invisibleTime")]
    pub invisible_time: i64,
    /// Number of messages.
    #[serde(rename = "n", alias = "num")]
    pub count: i8,
    /// Popped at, ms since the epoch.
    #[serde(rename = "pt", alias = "popTime")]
    pub pop_time: i64,
    /// The queue.
    #[serde(rename = "q", alias = "queueId")]
    pub queue_id: i32,
    /// Where it stands in its revive queue; set by readers.
    #[serde(rename = "ro", alias = "reviveOffset")]
    pub revive_offset: i64,
    /// How often it was put again, as text.
    #[serde(rename = "rp", alias = "rePutTimes")]
    pub put_again: Option<String>,
    /// First offset.
    #[serde(rename = "so", alias = "startOffset")]
    pub start_offset: i64,
    /// Since 5.5: the message was given back without having failed.
    #[serde(rename = "sp", alias = "suspend")]
    pub suspended: bool,
    /// The stored topic.
    #[serde(rename = "t", alias = "topic")]
    pub topic: String,
}

/// What Java writes: every getter, null ones left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    bm: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    bn: Option<&'a str>,
    c: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    d: Option<&'a [i32]>,
    it: i64,
    n: i8,
    pt: i64,
    q: i32,
    revive_time: i64,
    ro: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rp: Option<&'a str>,
    so: i64,
    sp: bool,
    t: &'a str,
}

impl CheckpointRecord {
    /// The body's bytes.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::to_vec(&Written {
            bm: self.bit_map,
            bn: self.broker_name.as_deref(),
            c: &self.group,
            d: self.offset_diffs.as_deref(),
            it: self.invisible_time,
            n: self.count,
            pt: self.pop_time,
            q: self.queue_id,
            revive_time: self.revive_time(),
            ro: self.revive_offset,
            rp: self.put_again.as_deref(),
            so: self.start_offset,
            sp: self.suspended,
            t: &self.topic,
        })
    }

    /// When its messages become visible again, ms since the epoch.
    #[must_use]
    pub const fn revive_time(&self) -> i64 {
        self.pop_time.saturating_add(self.invisible_time)
    }

    /// Unique key of the message; `broker_name` is the one in the record.
    #[must_use]
    pub fn key(&self) -> String {
        format!(
            "{}@{}@{}@{}@{}@{}@{CHECKPOINT_TAG}",
            self.topic,
            self.queue_id,
            self.start_offset,
            self.group,
            self.pop_time,
            self.broker_name.as_deref().unwrap_or("null")
        )
    }

    /// Offset of each message and whether it still needs redelivery, in ascending order.
    pub fn messages(&self) -> Result<Vec<(u64, bool)>, RecordError> {
        self.sound_messages().ok_or_else(|| RecordError::Offsets {
            topic: self.topic.clone(),
            queue_id: self.queue_id,
            start: self.start_offset,
        })
    }

    fn sound_messages(&self) -> Option<Vec<(u64, bool)>> {
        let start = u64::try_from(self.start_offset).ok()?;
        let count = usize::try_from(self.count).ok()?;
        let diffs = self.offset_diffs.as_deref().filter(|list| !list.is_empty());
        if count > POP_MESSAGES_MAX || diffs.is_some_and(|list| list.len() != count) {
            return None;
        }
        let mut list = Vec::with_capacity(count);
        for index in 0..count {
            let diff = match diffs {
                Some(list) => u64::try_from(list[index]).ok()?,
                None => index as u64,
            };
            let offset = start.checked_add(diff)?;
            let ascends = list.last().is_none_or(|&(last, _)| last < offset);
            if !ascends || offset > i64::MAX as u64 {
                return None;
            }
            list.push((offset, self.bit_map >> index & 1 == 0));
        }
        Some(list)
    }
}

/// `AckMsg`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AckRecord {
    /// The acked offset.
    #[serde(rename = "ao", alias = "ackOffset")]
    pub ack_offset: i64,
    /// The broker.
    #[serde(
        rename = "bn",
        alias = "brokerName",
        skip_serializing_if = "Option::is_none"
    )]
    pub broker_name: Option<String>,
    /// The group.
    #[serde(rename = "c", alias = "consumerGroup")]
    pub group: String,
    /// Popped at: names the checkpoint.
    #[serde(rename = "pt", alias = "popTime")]
    pub pop_time: i64,
    /// The queue.
    #[serde(rename = "q", alias = "queueId")]
    pub queue_id: i32,
    /// First offset of the checkpoint.
    #[serde(rename = "so", alias = "startOffset")]
    pub start_offset: i64,
    /// The stored topic.
    #[serde(rename = "t", alias = "topic")]
    pub topic: String,
}

/// `BatchAckMsg`: the fields of [`AckRecord`] and a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchAckRecord {
    /// −1.
    #[serde(rename = "ao", alias = "ackOffset")]
    pub ack_offset: i64,
    /// The acked offsets.
    #[serde(rename = "aol", alias = "ackOffsetList")]
    pub ack_offsets: Vec<i64>,
    /// The broker.
    #[serde(
        rename = "bn",
        alias = "brokerName",
        skip_serializing_if = "Option::is_none"
    )]
    pub broker_name: Option<String>,
    /// The group.
    #[serde(rename = "c", alias = "consumerGroup")]
    pub group: String,
    /// Popped at: names the checkpoint.
    #[serde(rename = "pt", alias = "popTime")]
    pub pop_time: i64,
    /// The queue.
    #[serde(rename = "q", alias = "queueId")]
    pub queue_id: i32,
    /// First offset of the checkpoint.
    #[serde(rename = "so", alias = "startOffset")]
    pub start_offset: i64,
    /// The stored topic.
    #[serde(rename = "t", alias = "topic")]
    pub topic: String,
}

impl Default for BatchAckRecord {
    fn default() -> Self {
        Self {
            ack_offset: -1,
            ack_offsets: Vec::new(),
            broker_name: None,
            group: String::new(),
            pop_time: 0,
            queue_id: 0,
            start_offset: 0,
            topic: String::new(),
        }
    }
}

impl AckRecord {
    /// The body's bytes.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::to_vec(self)
    }

    /// Unique key of the message.
    #[must_use]
    pub fn key(&self) -> String {
        format!(
            "{}@{}@{}@{}@{}@{}@{ACK_TAG}",
            self.topic,
            self.queue_id,
            self.ack_offset,
            self.group,
            self.pop_time,
            self.broker_name.as_deref().unwrap_or("null")
        )
    }
}

impl BatchAckRecord {
    /// The body's bytes.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::to_vec(self)
    }

    /// Unique key of the message: that of a single ack of offset −1, which is what Java stores.
    #[must_use]
    pub fn key(&self) -> String {
        format!(
            "{}@{}@{}@{}@{}@{}@{ACK_TAG}",
            self.topic,
            self.queue_id,
            self.ack_offset,
            self.group,
            self.pop_time,
            self.broker_name.as_deref().unwrap_or("null")
        )
    }
}

/// Any record of the revive topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviveRecord {
    /// Messages that were popped.
    Checkpoint(CheckpointRecord),
    /// One of them was acked.
    Ack(AckRecord),
    /// Several of one checkpoint were acked.
    BatchAck(BatchAckRecord),
}

impl ReviveRecord {
    /// Reads the body of a message with this tag.
    pub fn decode(tag: &str, body: &[u8]) -> Result<Self, RecordError> {
        let json = |tag| move |source| RecordError::Json { tag, source };
        match tag {
            CHECKPOINT_TAG => json::object_from_slice(body)
                .map(Self::Checkpoint)
                .map_err(json(CHECKPOINT_TAG)),
            ACK_TAG => json::object_from_slice(body)
                .map(Self::Ack)
                .map_err(json(ACK_TAG)),
            BATCH_ACK_TAG => json::object_from_slice(body)
                .map(Self::BatchAck)
                .map_err(json(BATCH_ACK_TAG)),
            other => Err(RecordError::Tag {
                tag: other.chars().take(32).collect(),
            }),
        }
    }

    /// The message's tag.
    #[must_use]
    pub const fn tag(&self) -> &'static str {
        match self {
            Self::Checkpoint(_) => CHECKPOINT_TAG,
            Self::Ack(_) => ACK_TAG,
            Self::BatchAck(_) => BATCH_ACK_TAG,
        }
    }

    /// The message's body.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        match self {
            Self::Checkpoint(record) => record.to_json(),
            Self::Ack(record) => record.to_json(),
            Self::BatchAck(record) => record.to_json(),
        }
    }
}
