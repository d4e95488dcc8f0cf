//! `startOffsetInfo`, `msgOffsetInfo` and `orderCountInfo` of a pop's answer (`ExtraInfoUtil`).
//!
//! **Invariant:** a text that names the same queue (or the same message) twice is refused, as in
//! Java: so a broker must never write one. The forms are in the parent module's table.

use std::{collections::BTreeSet, fmt::Write};

use rmq_types::pop::PopTopic;

/// Where the checkpoint of one queue begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartOffset {
    /// Which topic.
    pub topic: PopTopic,
    /// The queue.
    pub queue_id: i32,
    /// First offset of the checkpoint.
    pub offset: i64,
}

/// The messages of one queue in a pop's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageOffsets {
    /// Which topic.
    pub topic: PopTopic,
    /// The queue.
    pub queue_id: i32,
    /// Their offsets, in the order of the body.
    pub offsets: Vec<i64>,
}

/// How often a message (or the least of a queue's messages) of an ordered pop came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderCount {
    /// Which topic.
    pub topic: PopTopic,
    /// The queue.
    pub queue_id: i32,
    /// The message; `None` for the queue's own line, which older clients read.
    pub offset: Option<i64>,
    /// Times consumed before.
    pub count: i32,
}

/// Why a text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OffsetInfoError {
    /// An entry has not its three fields or a field that is no number.
    #[error("entry {entry:?} of the pop's offsets cannot be read")]
    Entry {
        /// Its first characters.
        entry: String,
    },
    /// The same queue or message again.
    #[error("entry {entry:?} of the pop's offsets is there twice")]
    Twice {
        /// Its first characters.
        entry: String,
    },
}

/// Appends one queue to `startOffsetInfo`.
pub fn push_start_offset(out: &mut String, topic: PopTopic, queue_id: i32, offset: i64) {
    begin(out);
    // Writing into a String cannot fail.
    let _ = write!(out, "{} {queue_id} {offset}", topic.sign());
}

/// Appends one queue to `msgOffsetInfo`.
pub fn push_message_offsets(
    out: &mut String,
    topic: PopTopic,
    queue_id: i32,
    offsets: impl IntoIterator<Item = i64>,
) {
    begin(out);
    let _ = write!(out, "{} {queue_id} ", topic.sign());
    for (index, offset) in offsets.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let _ = write!(out, "{offset}");
    }
}

/// Appends one message to `orderCountInfo`.
pub fn push_order_count(out: &mut String, topic: PopTopic, queue_id: i32, offset: i64, count: i32) {
    begin(out);
    let _ = write!(out, "{} qo{queue_id}%{offset} {count}", topic.sign());
}

/// Appends a queue's own line to `orderCountInfo`.
pub fn push_queue_order_count(out: &mut String, topic: PopTopic, queue_id: i32, count: i32) {
    begin(out);
    let _ = write!(out, "{} {queue_id} {count}", topic.sign());
}

fn begin(out: &mut String) {
    if !out.is_empty() {
        out.push(';');
    }
}

/// Reads `startOffsetInfo`.
pub fn parse_start_offsets(text: &str) -> Result<Vec<StartOffset>, OffsetInfoError> {
    let mut seen = BTreeSet::new();
    entries(text)
        .map(|entry| {
            let (topic, queue_id, offset) = fields(entry)?;
            let read = StartOffset {
                topic,
                queue_id: number(queue_id, entry)?,
                offset: number(offset, entry)?,
            };
            once(seen.insert((read.topic, read.queue_id)), entry)?;
            Ok(read)
        })
        .collect()
}

/// Reads `msgOffsetInfo`.
pub fn parse_message_offsets(text: &str) -> Result<Vec<MessageOffsets>, OffsetInfoError> {
    let mut seen = BTreeSet::new();
    entries(text)
        .map(|entry| {
            let (topic, queue_id, offsets) = fields(entry)?;
            let read = MessageOffsets {
                topic,
                queue_id: number(queue_id, entry)?,
                offsets: offsets
                    .split(',')
                    .map(|offset| number(offset, entry))
                    .collect::<Result<_, _>>()?,
            };
            once(seen.insert((read.topic, read.queue_id)), entry)?;
            Ok(read)
        })
        .collect()
}

/// Reads `orderCountInfo`.
pub fn parse_order_counts(text: &str) -> Result<Vec<OrderCount>, OffsetInfoError> {
    let mut seen = BTreeSet::new();
    entries(text)
        .map(|entry| {
            let (topic, place, count) = fields(entry)?;
            let (queue_id, offset) = match place.strip_prefix("qo") {
                None => (place, None),
                Some(place) => {
                    let (queue_id, offset) = place.split_once('%').ok_or_else(|| bad(entry))?;
                    (queue_id, Some(number(offset, entry)?))
                }
            };
            let read = OrderCount {
                topic,
                queue_id: number(queue_id, entry)?,
                offset,
                count: number(count, entry)?,
            };
            once(seen.insert((read.topic, read.queue_id, read.offset)), entry)?;
            Ok(read)
        })
        .collect()
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(';').filter(|entry| !entry.is_empty())
}

fn fields(entry: &str) -> Result<(PopTopic, &str, &str), OffsetInfoError> {
    let mut parts = entry.split(' ');
    let (Some(sign), Some(place), Some(value), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(bad(entry));
    };
    let topic = PopTopic::from_sign(sign).ok_or_else(|| bad(entry))?;
    Ok((topic, place, value))
}

fn number<T: std::str::FromStr>(text: &str, entry: &str) -> Result<T, OffsetInfoError> {
    text.parse().map_err(|_| bad(entry))
}

fn once(first: bool, entry: &str) -> Result<(), OffsetInfoError> {
    let entry = || entry.chars().take(48).collect();
    first
        .then_some(())
        .ok_or_else(|| OffsetInfoError::Twice { entry: entry() })
}

fn bad(entry: &str) -> OffsetInfoError {
    OffsetInfoError::Entry {
        entry: entry.chars().take(48).collect(),
    }
}
