//! Offsets: a group's progress, the bounds of a queue, the offset for a time.

use std::sync::Arc;

use rmq_protocol::{
    header::{
        GetMaxOffset, OffsetResponse, QueryConsumerOffset, QueueHeader, SearchOffset,
        TimestampResponse, UpdateConsumerOffset,
    },
    remoting::{Command, response_code},
};
use rmq_store::Boundary;
use rmq_types::Timestamp;

use super::Call;
use crate::{
    answer::{Answer, Failure, success},
    core::Core,
    metadata::Pending,
    namespace,
};

fn offset_answer(offset: i64) -> Command {
    success().with_header(&OffsetResponse { offset })
}

/// Queue ids below zero name no queue; the store then answers as for one that never had a message.
fn queue_number(id: i32) -> u32 {
    u32::try_from(id).unwrap_or(u32::MAX)
}

/// Code 14.
pub(crate) fn query(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: QueryConsumerOffset<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.consumer_group);
    let stored = core
        .offsets
        .committed(&header.topic, &header.consumer_group, header.queue_id);
    if let Some(offset) = stored {
        return Ok(offset_answer(offset));
    }
    let queue = queue_number(header.queue_id);
    let min = core
        .store
        .min_queue_offset(&header.topic, queue)
        .unwrap_or(-1);
    let from_start = header.set_zero_if_not_found != Some(false) && min <= 0 && {
        // A new group reads a small topic from its beginning: message 0 is not far back yet.
        // A queue that cannot be read is no new one: "not found" would let the group begin at the end.
        let first = core
            .store
            .log_offset_of(&header.topic, queue, 0)
            .map_err(|error| Failure::system(format!("queue {queue} cannot be read: {error}")))?;
        let end = core.store.max_offset().get();
        first.is_some_and(|first| end - first.get() < core.memory_window)
    };
    if from_start {
        return Ok(offset_answer(0));
    }
    Err(Failure::new(
        response_code::QUERY_NOT_FOUND,
        "Not found, do not set to zero, maybe this group boot first",
    ))
}

/// Code 15.
pub(crate) fn update(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: UpdateConsumerOffset<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.consumer_group);
    if !core.groups.contains(&header.consumer_group) {
        return Err(Failure::no_group(&header.consumer_group));
    }
    let topic = core.topic(&header.topic)?;
    if header.queue_id < 0 || header.commit_offset < 0 {
        return Err(Failure::parameter(format!(
            "queueId {} or commitOffset {} is negative",
            header.queue_id, header.commit_offset
        )));
    }
    let queues = topic.read_queue_nums.max(topic.write_queue_nums);
    if header.queue_id >= queues {
        return Err(Failure::parameter(format!(
            "topic {} has {queues} queues, no queue {}",
            header.topic, header.queue_id
        )));
    }
    let outcome = core.offsets.commit(
        &header.topic,
        &header.consumer_group,
        header.queue_id,
        header.commit_offset,
    );
    Ok(match outcome {
        Pending::None => success(),
        Pending::Reset => success().with_remark("Offset has been previously reset"),
    })
}

/// Code 30.
pub(crate) fn max(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: GetMaxOffset<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    let queue = queue_number(header.queue_id);
    let offset = if header.committed {
        core.store.max_queue_offset(&header.topic, queue)
    } else {
        core.store.next_queue_offset(&header.topic, queue)
    };
    Ok(offset_answer(offset.unwrap_or(0)))
}

/// Code 31.
pub(crate) fn min(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: QueueHeader<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    let offset = core
        .store
        .min_queue_offset(&header.topic, queue_number(header.queue_id));
    Ok(offset_answer(offset.unwrap_or(0)))
}

/// Code 29.
pub(crate) fn search(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: SearchOffset<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    let upper = header
        .boundary_type
        .is_some_and(|kind| kind.eq_ignore_ascii_case("upper"));
    let boundary = if upper {
        Boundary::Upper
    } else {
        Boundary::Lower
    };
    let time = Timestamp::from_millis(header.timestamp);
    let queue = queue_number(header.queue_id);
    let offset = core
        .store
        .offset_by_time(&header.topic, queue, time, boundary);
    Ok(offset_answer(offset.unwrap_or(0)))
}

/// Code 32.
pub(crate) fn earliest(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: QueueHeader<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    let time = core
        .store
        .earliest_time_of(&header.topic, queue_number(header.queue_id));
    let timestamp = time.map_or(-1, Timestamp::millis);
    Ok(success().with_header(&TimestampResponse { timestamp }))
}
