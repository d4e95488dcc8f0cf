//! A stored message put again under another topic: redelivery after a delay, retry, dead letter.

use rmq_protocol::message::{Record, properties};
use rmq_store::Append;

/// The record to append: all as it was, but for topic, queue and properties.
pub(crate) fn of<'a>(
    record: &Record<'a>,
    (topic, queue_id): (&'a str, u32),
    text: &'a [u8],
) -> Append<'a> {
    Append {
        topic,
        queue_id,
        tags_code: properties::tags_code(text),
        flag: record.flag,
        sys_flag: record.sys_flag,
        born_at: record.born_at,
        born_host: record.born_host,
        reconsume_times: record.reconsume_times,
        prepared_transaction_offset: record.prepared_transaction_offset,
        body: record.body,
        properties: text,
    }
}
