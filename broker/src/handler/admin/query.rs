//! Looking for messages: by key (12), by log offset (33), and the entries of a queue (321).
//!
//! **Invariant:** what one query may find is bounded in number and stays below a frame.

use std::sync::Arc;

use bytes::BytesMut;
use rmq_protocol::{
    body::{ConsumeQueueData, QueryConsumeQueueResponse},
    header::{QueryConsumeQueue, QueryMessage, QueryMessageResponse, ViewMessage},
    remoting::{Command, response_code},
};
use rmq_types::{CommitLogOffset, Timestamp, limits};

use crate::{
    answer::{Answer, Failure, success},
    core::{Core, lock},
    handler::Call,
    namespace,
};

/// Most bytes of records in one answer: a frame, less its header.
const ANSWER_BYTES_MAX: usize = limits::FRAME_BYTES_MAX - 64 * 1024;
/// Most entries of a queue in one answer.
const ENTRIES_MAX: i32 = 1024;

/// Code 12.
pub(super) fn by_key(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: QueryMessage<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    let default = core.settings.get().default_query_max_num.get() as i32;
    let unique = call.header.ext.is_true("_UNIQUE_KEY_QUERY");
    let asked = if unique { default } else { header.max_num };
    let most = usize::try_from(asked)
        .ok()
        .filter(|most| *most > 0)
        .ok_or_else(|| {
            Failure::parameter(format!("the custom field <maxNum> is not above 0: {asked}"))
        })?;
    let found = core.store.query_by_key(
        &header.topic,
        &header.key,
        most.min(limits::QUERY_MESSAGES_MAX),
        Timestamp::from_millis(header.begin_timestamp),
        Timestamp::from_millis(header.end_timestamp),
    );
    let fields = QueryMessageResponse {
        index_last_update_timestamp: found.last_update.millis(),
        index_last_update_phyoffset: found.last_offset as i64,
    };
    if found.messages.is_empty() {
        return Ok(Command::response(0, response_code::QUERY_NOT_FOUND)
            .with_remark("can not find message, maybe time range not correct")
            .with_header(&fields));
    }
    // The newest count when not all fit; they are sent oldest first.
    let mut room = ANSWER_BYTES_MAX;
    let fitting = found.messages.iter().rev().take_while(|record| {
        let fits = record.len() <= room;
        room = room.saturating_sub(record.len());
        fits
    });
    let first = found.messages.len() - fitting.count();
    let mut body = BytesMut::new();
    for record in found.messages.iter().skip(first) {
        body.extend_from_slice(record);
    }
    Ok(success().with_header(&fields).with_body(body))
}

/// Code 33.
pub(super) fn by_offset(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let header: ViewMessage<'_> = call.decode()?;
    let none = || {
        Failure::system(format!(
            "can not find message by the offset, {}",
            header.offset
        ))
    };
    let offset = u64::try_from(header.offset).map_err(|_| none())?;
    let record = core
        .store
        .read_at(CommitLogOffset::new(offset))
        .map_err(|_| none())?;
    Ok(success().with_body(record.to_vec()))
}

/// Code 321.
pub(super) fn queue_entries(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: QueryConsumeQueue<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    let topic = header.topic.as_ref();
    let none = || Failure::system(format!("{}@{topic} is not exist!", header.queue_id));
    let queue = u32::try_from(header.queue_id).map_err(|_| none())?;
    let max = core.store.max_queue_offset(topic, queue).ok_or_else(none)?;
    let min = core.store.min_queue_offset(topic, queue).ok_or_else(none)?;
    let mut body = QueryConsumeQueueResponse {
        max_queue_index: max,
        min_queue_index: min,
        ..QueryConsumeQueueResponse::default()
    };
    if let Some(group) = &mut header.consumer_group {
        namespace::join(&call.header.ext, group);
        let found = lock(&core.consumers).subscription(group, topic);
        body.subscription_data = found.into_option();
        if body.subscription_data.is_none() {
            body.filter_data = Some(format!("{group}@{topic} is not online!"));
        }
    }
    if header.index < min || header.index >= max {
        let remark = format!("Index {} of {queue}@{topic} is not exist!", header.index);
        return Ok(success().with_remark(remark).with_body(body.to_json()));
    }
    let count = header.count.clamp(0, ENTRIES_MAX);
    let end = header.index.saturating_add(i64::from(count)).min(max);
    let entries = (header.index..end).map_while(|index| core.store.entry_of(topic, queue, index));
    let entries = entries.map(|(offset, size, tags_code)| ConsumeQueueData {
        physic_offset: offset.get() as i64,
        physic_size: size as i32,
        tags_code,
        ..ConsumeQueueData::default()
    });
    body.queue_data = Some(entries.collect());
    Ok(success().with_body(body.to_json()))
}
