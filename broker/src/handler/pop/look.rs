//! Looking without taking: peek (200052), how many pops wait (200055), and the move of records from
//! another kind of store (200056), of which this broker has none.
//!
//! **Invariant:** nothing becomes invisible here, and no offset moves.

use std::sync::Arc;

use rmq_net::Outbox;
use rmq_protocol::{
    header::{PollingInfo, PollingInfoResponse},
    remoting::response_code,
};
use rmq_types::{GroupName, TopicName};

use super::{admit, answer, refuse};
use crate::{
    answer::{Answer, Failure, success},
    core::Core,
    handler::Call,
    metadata::PERM_READ,
    namespace, pop,
};

/// Code 200052.
pub(super) fn peek(core: &Core, call: &Call<'_>, out: &mut Outbox) {
    let wish = match admit::peek(core, call) {
        Ok(wish) => wish,
        Err(failure) => {
            refuse(core, call, &failure, out.buffer());
            return;
        }
    };
    let (records, rest) = pop::peek(core, &wish);
    let opaque = call.header.opaque;
    answer::peeked(core.now(), &records, rest, opaque, out.buffer());
    let code = if records.is_empty() {
        response_code::PULL_NOT_FOUND
    } else {
        response_code::SUCCESS
    };
    core.rpc
        .record(call.answered(code), call.since.elapsed(), 1);
}

/// Code 200055.
pub(crate) fn polling_info(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let mut header: PollingInfo<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.consumer_group);
    let config = core.topic(&header.topic)?;
    if config.perm & PERM_READ == 0 {
        return Err(Failure::no_permission(format!(
            "the topic[{}] is not readable",
            header.topic
        )));
    }
    if header.queue_id >= config.read_queue_nums {
        return Err(Failure::parameter(format!(
            "queueId[{}] is illegal, topic:[{}] topicConfig.readQueueNums:[{}]",
            header.queue_id, header.topic, config.read_queue_nums
        )));
    }
    if !core.groups.contains(&header.consumer_group) {
        return Err(Failure::no_group(&header.consumer_group));
    }
    let topic = TopicName::parse(&header.topic)?;
    let group = GroupName::parse(&header.consumer_group)?;
    let queue = u32::try_from(header.queue_id).ok();
    let waiting = core.pops.waits.waiting_for(&topic, &group, queue);
    let polling_num = i32::try_from(waiting).unwrap_or(i32::MAX);
    Ok(success().with_header(&PollingInfoResponse { polling_num }))
}

/// Code 200056: there are no records of another kind to move.
#[expect(
    clippy::unnecessary_wraps,
    reason = "all handlers have one signature, also those that cannot fail"
)]
pub(crate) fn rollback(_core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    Ok(success())
}
