//! Receipt handles: what clients give back to acknowledge a message.
//!
//! **Invariant:** a handle says to which broker, topic and queue its message belongs; nothing of a
//! request but the group and the topic it was popped from is needed beside it. Whether its numbers
//! are true is the broker's question.

use rmq_protocol::header::{ChangeInvisibleTimeResponse, PopMessageResponse};
use rmq_protocol::message::Record;
use rmq_protocol::message::properties::{self, names};
use rmq_protocol::pop::{ReceiptHandle, parse_order_counts, parse_start_offsets};
use rmq_types::Timestamp;
use rmq_types::pop::PopTopic;

use crate::proto::v2::Code;
use crate::rules::refusal::Refusal;

/// Reads a client's handle; one whose time has passed is as bad as one that is none.
pub(crate) fn parse(text: &str, now: Timestamp) -> Result<ReceiptHandle<'_>, Refusal> {
    let invalid = |text: String| Refusal::new(Code::InvalidReceiptHandle, text);
    let handle = ReceiptHandle::parse_of_message(text).map_err(|e| invalid(e.to_string()))?;
    // Made by some broker: the check against its own name cannot fail.
    handle
        .check(&handle.broker_name)
        .map_err(|e| invalid(e.to_string()))?;
    if visible_at(&handle) <= now {
        return Err(invalid("the handle has expired".to_owned()));
    }
    Ok(handle)
}

/// When the handle's message is delivered again.
pub(crate) fn visible_at(handle: &ReceiptHandle<'_>) -> Timestamp {
    Timestamp::from_millis(handle.pop_time).plus_millis(handle.invisible_time)
}

/// The stored topic of a handle's message.
pub(crate) fn stored_topic(handle: &ReceiptHandle<'_>, topic: &str, group: &str) -> String {
    handle.topic.stored_topic(topic, group)
}

/// What a pop's answer says of each message: its handle and how often it came before.
#[derive(Debug)]
pub(crate) struct Handles<'a> {
    answer: &'a PopMessageResponse<'a>,
    broker: &'a str,
    starts: Vec<rmq_protocol::pop::StartOffset>,
    counts: Vec<rmq_protocol::pop::OrderCount>,
}

impl<'a> Handles<'a> {
    /// Reads the texts of a pop's answer.
    pub(crate) fn new(
        answer: &'a PopMessageResponse<'a>,
        broker: &'a str,
    ) -> Result<Self, Refusal> {
        let broken = |e: rmq_protocol::pop::OffsetInfoError| Refusal::internal(e.to_string());
        let text =
            |text: &'a Option<std::borrow::Cow<'a, str>>| text.as_deref().unwrap_or_default();
        Ok(Self {
            answer,
            broker,
            starts: parse_start_offsets(text(&answer.start_offset_info)).map_err(broken)?,
            counts: parse_order_counts(text(&answer.order_count_info)).map_err(broken)?,
        })
    }

    /// The handle of a message, in the form of gRPC.
    pub(crate) fn of(&self, record: &Record<'_>) -> Result<String, Refusal> {
        let given = properties::get_str(record.properties, names::POP_CK);
        let mut handle = match given {
            // Brokers give it to retried messages, which have their first topic again.
            Some(given) => ReceiptHandle::parse_of_message(given)
                .map_err(|e| Refusal::internal(format!("the broker's POP_CK: {e}")))?,
            None => self.built(record),
        };
        handle.commit_log_offset = Some(record.physical_offset);
        Ok(handle.to_string())
    }

    fn built(&self, record: &Record<'_>) -> ReceiptHandle<'a> {
        let topic = PopTopic::of(record.topic);
        let start = self
            .starts
            .iter()
            .find(|start| start.topic == topic && start.queue_id == record.queue_id);
        ReceiptHandle {
            start_offset: start.map_or(record.queue_offset, |start| start.offset),
            pop_time: self.answer.pop_time,
            invisible_time: self.answer.invisible_time,
            revive_queue_id: self.answer.revive_qid,
            topic,
            broker_name: self.broker.into(),
            queue_id: record.queue_id,
            queue_offset: Some(record.queue_offset),
            commit_log_offset: None,
        }
    }

    /// How often a message was consumed before.
    pub(crate) fn consumed(&self, record: &Record<'_>) -> i32 {
        let topic = PopTopic::of(record.topic);
        let of_queue = || {
            self.counts
                .iter()
                .filter(|count| count.topic == topic && count.queue_id == record.queue_id)
        };
        let count = of_queue()
            .find(|count| count.offset == Some(record.queue_offset))
            .or_else(|| of_queue().find(|count| count.offset.is_none()));
        match count {
            Some(count) if count.count > 0 => count.count,
            _ => record.reconsume_times,
        }
    }
}

/// The handle after its invisible time was changed: the message alone is its checkpoint now.
pub(crate) fn changed(old: &ReceiptHandle<'_>, answer: &ChangeInvisibleTimeResponse) -> String {
    let offset = old.queue_offset.unwrap_or(old.start_offset);
    ReceiptHandle {
        start_offset: offset,
        pop_time: answer.pop_time,
        invisible_time: answer.invisible_time,
        revive_queue_id: answer.revive_qid,
        queue_offset: Some(offset),
        ..old.clone()
    }
    .to_string()
}

#[cfg(test)]
mod tests;
