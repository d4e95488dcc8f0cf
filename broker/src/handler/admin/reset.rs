//! Moving a group's progress: to a time or an offset (222), to that of another group (314).
//!
//! The reset happens here and not in the clients: each queue gets a pending offset that the next
//! pull takes, and commits are ignored until then. **Invariant:** all queues of a request are
//! computed before any is set.

use std::{collections::BTreeMap, sync::Arc};

use rmq_protocol::{
    body::{MessageQueue, ResetOffsetBody},
    header::{CloneGroupOffset, ResetOffset},
};
use rmq_store::Boundary;
use rmq_types::{GroupName, Timestamp};

use super::is_left_behind;
use crate::{
    answer::{Answer, Failure, success},
    arrival,
    core::{Core, lock},
    handler::Call,
    namespace, pop,
};

/// Code 222.
pub(super) fn reset(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: ResetOffset<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.group);
    if !core.settings.get().use_server_side_reset_offset {
        return Err(Failure::system(
            "resets by the clients are not supported: set useServerSideResetOffset=true",
        ));
    }
    let (topic, group) = (header.topic.as_ref(), header.group.as_ref());
    let config = core.topic(topic)?;
    if !core.groups.contains(group) {
        return Err(Failure::no_group(group));
    }
    let count = config.read_queue_nums;
    if header.queue_id >= count {
        return Err(Failure::parameter(format!(
            "queueId {} is out of range, topic {topic} has {count} queues",
            header.queue_id
        )));
    }
    let targets: BTreeMap<i32, i64> = if header.queue_id < 0 {
        (0..count)
            .map(|id| (id, offset_at(core, topic, id, header.timestamp)))
            .collect()
    } else {
        let offset = match header.offset.filter(|offset| *offset != -1) {
            Some(offset) => checked(core, topic, header.queue_id, offset)?,
            None => offset_at(core, topic, header.queue_id, header.timestamp),
        };
        BTreeMap::from([(header.queue_id, offset)])
    };
    if targets.is_empty() {
        return Err(Failure::system("No queues to reset."));
    }
    let mut body = ResetOffsetBody::default();
    for (queue_id, offset) in targets {
        core.offsets.set_reset(topic, group, queue_id, offset);
        wake(core, topic, group, queue_id);
        let queue = MessageQueue {
            broker_name: core.identity.name.to_string(),
            queue_id,
            topic: topic.to_owned(),
        };
        body.offset_table.insert(queue, offset);
    }
    tracing::info!(
        topic,
        group,
        queues = body.offset_table.len(),
        "offsets reset"
    );
    Ok(success().with_body(body.to_json()))
}

/// A time below 0 is the end of the queue.
fn offset_at(core: &Core, topic: &str, queue_id: i32, time: i64) -> i64 {
    let queue = queue_id as u32;
    let found = if time < 0 {
        core.store.max_queue_offset(topic, queue)
    } else {
        let time = Timestamp::from_millis(time);
        core.store
            .offset_by_time(topic, queue, time, Boundary::Lower)
    };
    found.unwrap_or(0)
}

fn checked(core: &Core, topic: &str, queue_id: i32, offset: i64) -> Result<i64, Failure> {
    let queue = queue_id as u32;
    let min = core.store.min_queue_offset(topic, queue).unwrap_or(0);
    let max = core.store.max_queue_offset(topic, queue).unwrap_or(0);
    if (min..=max.saturating_add(1)).contains(&offset) {
        return Ok(offset);
    }
    Err(Failure::system(format!(
        "Target offset {offset} not in consume queue range [{min}-{max}]"
    )))
}

/// A pull of the group that waits hears of its reset now and not when its wait is over.
fn wake(core: &Core, topic: &str, group: &str, queue_id: i32) {
    let waiting = {
        let mut holds = lock(&core.holds);
        let waiting = holds.take(topic, queue_id as u32, |waiter| {
            waiter.what.header.consumer_group == group
        });
        core.arrivals.set_waiting(holds.len());
        waiting
    };
    for waiter in waiting {
        arrival::answer_pull(core, &waiter.what);
    }
    pop::wake(core, topic, group, queue_id as u32);
}

/// Code 314. Without a topic: all topics in which the source group has progress.
pub(super) fn clone_offsets(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: CloneGroupOffset<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.src_group);
    namespace::join(&call.header.ext, &mut header.dest_group);
    let (from, to) = (header.src_group.as_ref(), header.dest_group.as_ref());
    GroupName::check(from)?;
    GroupName::check(to)?;
    core.find_group(to)?;
    let mut topic = header.topic.unwrap_or_default();
    namespace::join(&call.header.ext, &mut topic);
    let topics = if topic.trim().is_empty() {
        core.offsets.topics_of(from)
    } else {
        vec![topic.into_owned()]
    };
    for topic in topics.iter().filter(|topic| core.topics.contains(topic)) {
        if header.offline || !is_left_behind(core, from, topic) {
            core.offsets.clone_group(topic, from, to);
        }
    }
    Ok(success())
}
