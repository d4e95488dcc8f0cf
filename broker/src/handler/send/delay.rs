//! A delayed message rests in the schedule topic, its real target kept in properties.

use rmq_protocol::message::properties::{self, names};
use rmq_types::system;

use crate::schedule::DelayTable;

/// Where a delayed message rests.
pub(crate) struct Rest {
    /// Topic of the delay levels.
    pub(crate) topic: &'static str,
    /// The level's queue.
    pub(crate) queue_id: u32,
}

/// Adds the real target to `text` and says where the message rests; the caller took older `REAL_*`
/// properties out. When it is due is known once it is stored: the level's delay counts from the time
/// in its record, and stands in its queue entry in place of the tag's hash (`tags_code_of`).
pub(crate) fn rest(
    delays: &DelayTable,
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
    }
}
