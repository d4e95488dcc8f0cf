//! The body of `BATCH_ACK_MESSAGE` (200151): acks of several checkpoints, each with a bit set.
//!
//! | key | long name | meaning |
//! |---|---|---|
//! | `c` `t` `q` | `consumerGroup` `topic` `queueId` | group, popped topic, queue |
//! | `r` | `retry` | kind of topic, as in handles |
//! | `so` | `startOffset` | first offset of the checkpoint |
//! | `rq` | `reviveQueueId` | 999: ordered |
//! | `pt` `it` | `popTime` `invisibleTime` | as in the handle |
//! | `b` | `bitSet` | Base64; bit i of byte j means offset `so + 8j + i` |
//!
//! **Invariant:** a body of any content costs memory in proportion to its own bytes: entries and
//! bits are bounded, and an offset that leaves 63 bits is skipped.

use rmq_types::pop::PopTopic;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::base64;
use crate::json::{self, JsonError};

/// Most entries of one request that are read; a proxy sends one for each checkpoint.
pub const ACKS_MAX: usize = 4096;
/// Most bytes of one bit set: half a million offsets behind the start of a checkpoint.
const BIT_BYTES_MAX: usize = 64 * 1024;

/// `BatchAckMessageRequestBody`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BatchAckRequest {
    /// The acks, one for each checkpoint.
    pub acks: Vec<BatchAck>,
    /// The broker they are for.
    pub broker_name: String,
}

/// Acks of the messages of one checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchAck {
    /// Which messages, counted from the start offset.
    #[serde(rename = "b", alias = "bitSet")]
    pub bits: BitSet,
    /// The group.
    #[serde(rename = "c", alias = "consumerGroup")]
    pub group: String,
    /// Invisible time, ms.
    #[serde(rename = "it", alias = "invisibleTime")]
    pub invisible_time: i64,
    /// When they were popped.
    #[serde(rename = "pt", alias = "popTime")]
    pub pop_time: i64,
    /// The queue.
    #[serde(rename = "q", alias = "queueId")]
    pub queue_id: i32,
    /// Kind of topic.
    #[serde(rename = "r", alias = "retry", with = "sign")]
    pub retry: PopTopic,
    /// Queue of the revive topic.
    #[serde(rename = "rq", alias = "reviveQueueId")]
    pub revive_queue_id: i32,
    /// First offset of the checkpoint.
    #[serde(rename = "so", alias = "startOffset")]
    pub start_offset: i64,
    /// The popped topic.
    #[serde(rename = "t", alias = "topic")]
    pub topic: String,
}

impl BatchAck {
    /// The offsets that are acked, ascending; none below zero.
    pub fn offsets(&self) -> impl Iterator<Item = i64> {
        let start = self.start_offset;
        self.bits
            .iter()
            .filter_map(move |bit| start.checked_add(bit.into()))
            .filter(|&offset| offset >= 0)
    }
}

impl BatchAckRequest {
    /// The body's bytes.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::to_vec(self)
    }

    /// Reads the body; entries beyond [`ACKS_MAX`] are an error of the caller.
    pub fn from_json(body: &[u8]) -> Result<Self, JsonError> {
        let read: Self = json::object_from_slice(body)?;
        if read.acks.len() > ACKS_MAX {
            let many = format_args!("more than {ACKS_MAX} acks in one request");
            return Err(JsonError::Shape(serde_json::Error::custom(many)));
        }
        Ok(read)
    }
}

/// `java.util.BitSet`: bytes little-endian, without zero bytes at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitSet(Vec<u8>);

/// Why a text is no bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BitSetError {
    /// No Base64.
    #[error("the bit set is no Base64")]
    Base64,
    /// Too many bits.
    #[error("the bit set has more than {BIT_BYTES_MAX} bytes")]
    TooLong,
}

impl BitSet {
    /// Sets a bit; bits beyond the limit are left out.
    pub fn set(&mut self, bit: u32) {
        let at = (bit / 8) as usize;
        if at >= BIT_BYTES_MAX {
            return;
        }
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (bit % 8);
    }

    /// The bits that are set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().enumerate().flat_map(|(at, &byte)| {
            (0..8)
                .filter(move |bit| byte >> bit & 1 == 1)
                .map(move |bit| at as u32 * 8 + bit)
        })
    }

    /// Reads the Base64 form.
    pub fn parse(text: &str) -> Result<Self, BitSetError> {
        if text.len() > BIT_BYTES_MAX / 3 * 4 {
            return Err(BitSetError::TooLong);
        }
        let mut bytes = base64::decode(text).ok_or(BitSetError::Base64)?;
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(Self(bytes))
    }

    /// The Base64 form.
    #[must_use]
    pub fn to_base64(&self) -> String {
        base64::encode(&self.0)
    }
}

impl FromIterator<u32> for BitSet {
    fn from_iter<I: IntoIterator<Item = u32>>(bits: I) -> Self {
        let mut set = Self::default();
        bits.into_iter().for_each(|bit| set.set(bit));
        set
    }
}

impl Serialize for BitSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for BitSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

/// The kind of topic as the text that Java gives it.
mod sign {
    use super::{Deserialize, Deserializer, Error, PopTopic, Serializer};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    pub(super) fn serialize<S: Serializer>(kind: &PopTopic, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(kind.sign())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PopTopic, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        PopTopic::from_sign(&text).ok_or_else(|| D::Error::custom("r is none of 0, 1, 2"))
    }
}
