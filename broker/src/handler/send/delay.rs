//! A delayed message rests in the schedule topic, its real target kept in properties.

use rmq_protocol::message::properties::{self, names};
use rmq_types::{Timestamp, system};

use crate::schedule::DelayTable;

/// Where a delayed message rests.
pub(crate) struct Rest {
    /// Topic of the delay levels.
    pub(crate) topic: &'static str,
    /// The level's queue.
    pub(crate) queue_id: u32,
    /// When it is due: stands in the queue entry in place of the tag's hash.
    pub(crate) tags_code: i64,
}

/// Adds the real target to `text` and says where the message rests; the caller took older `REAL_*`
/// properties out.
pub(crate) fn rest(
    delays: &DelayTable,
    now: Timestamp,
    level: i32,
    (topic, queue_id): (&str, u32),
    text: &mut Vec<u8>,
) -> Rest {
    let level = delays.clamp(level).max(1);
    properties::push(text, names::REAL_TOPIC, topic.as_bytes());
    properties::push(text, names::REAL_QID, queue_id.to_string().as_bytes());
    Rest {
        topic: system::SCHEDULE_TOPIC,
        queue_id: (level - 1) as u32,
        tags_code: now.millis() + delays.delay(level),
    }
}
