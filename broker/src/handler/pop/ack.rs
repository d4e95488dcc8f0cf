//! Acks: of one message (200051), of many (200151).
//!
//! **Invariant:** an ack of something that is not in flight by its handle (acked before, late, from
//! before a change, a reset or a restart) changes nothing and is answered as success, as in Java.
//! What no pop of this broker can have given is refused.

use std::sync::Arc;

use bytes::BytesMut;
use rmq_pop::{AckOutcome, Handle, OrderAck};
use rmq_protocol::{
    header::AckMessage,
    pop::{BatchAck, BatchAckRequest, HandleError, ReceiptHandle},
    remoting::{ResponseWriter, response_code},
};
use rmq_types::{QueueOffset, Timestamp, pop::ORDER_REVIVE_QUEUE, system::RETRY_PREFIX};

use crate::{
    answer::{Answer, Failure, success},
    core::Core,
    handler::{Call, send::write_failure},
    namespace,
    pop::{Cell, note_acks, step, stored_topic},
};

impl From<HandleError> for Failure {
    fn from(error: HandleError) -> Self {
        Self::new(response_code::MESSAGE_ILLEGAL, error.to_string())
    }
}

/// What a request says of one message, after its checks.
#[derive(Debug)]
pub(super) struct Named<'a> {
    pub(super) receipt: ReceiptHandle<'a>,
    pub(super) handle: Handle,
    /// The queue; `None`: nothing of it was popped since anybody remembers.
    pub(super) cell: Option<Arc<Cell>>,
}

/// Checks topic, queue, offset and handle. `end`: how far behind the last message is allowed.
pub(super) fn named<'a>(
    core: &Core,
    call: &Call<'_>,
    (topic, group): (&str, &str),
    (queue, offset, extra_info): (i32, i64, &'a str),
    end: i64,
) -> Result<Named<'a>, Failure> {
    let config = core.topic(topic)?;
    if queue < 0 || queue >= config.read_queue_nums {
        return Err(Failure::new(
            response_code::MESSAGE_ILLEGAL,
            format!(
                "queueId[{queue}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{}] \
                 consumer:[{}]",
                config.read_queue_nums,
                call.conn.peer_addr()
            ),
        ));
    }
    let receipt = ReceiptHandle::parse(extra_info)?;
    receipt.check(core.identity.name.as_str())?;
    // Clients name either the popped topic or the retry topic itself.
    let stored = if topic.starts_with(RETRY_PREFIX) {
        topic.into()
    } else {
        stored_topic(receipt.topic, topic, group)
    };
    let id = queue as u32;
    let min = core.store.min_queue_offset(&stored, id).unwrap_or(0);
    let max = core.store.max_queue_offset(&stored, id).unwrap_or(0);
    if offset < min || offset > max + end {
        return Err(Failure::new(
            response_code::NO_MESSAGE,
            format!("offset {offset} of {stored}@{queue} is not within {min} and {max}"),
        ));
    }
    let handle = Handle {
        offset: QueueOffset::new(offset.max(0) as u64),
        pop_time: Timestamp::from_millis(receipt.pop_time),
    };
    Ok(Named {
        cell: core.pops.cell(&stored, group, id),
        receipt,
        handle,
    })
}

/// Code 200051, the one that comes for every message: it answers into the outgoing buffer.
pub(super) fn ack(core: &Core, call: &Call<'_>, out: &mut BytesMut) {
    let code = match ack_one(core, call) {
        Ok(()) => {
            if !call.header.is_oneway() {
                let opaque = call.header.opaque;
                ResponseWriter::new(out, opaque, response_code::SUCCESS).finish(None, []);
            }
            response_code::SUCCESS
        }
        Err(failure) => {
            if !call.header.is_oneway() {
                write_failure(out, call.header.opaque, &failure);
            }
            failure.code
        }
    };
    core.rpc
        .record(call.answered(code), call.since.elapsed(), 1);
}

fn ack_one(core: &Core, call: &Call<'_>) -> Result<(), Failure> {
    let mut header: AckMessage<'_> = call.decode()?;
    namespace::join(&call.header.ext, &mut header.topic);
    namespace::join(&call.header.ext, &mut header.consumer_group);
    let named = named(
        core,
        call,
        (&header.topic, &header.consumer_group),
        (header.queue_id, header.offset, &header.extra_info),
        0,
    )?;
    let Some(cell) = &named.cell else {
        return Ok(());
    };
    let done = if named.receipt.is_order() {
        ack_order(core, cell, named.handle)?
    } else {
        let outcome = step(core, cell, |queue, _, out| queue.ack(named.handle, out));
        outcome == AckOutcome::Done
    };
    note_acks(core, cell, u64::from(done));
    Ok(())
}

fn ack_order(core: &Core, cell: &Arc<Cell>, handle: Handle) -> Result<bool, Failure> {
    core.pops.note_order();
    let outcome = step(core, cell, |queue, now, out| {
        queue.ack_order(now, handle, out)
    });
    match outcome {
        OrderAck::Done => Ok(true),
        OrderAck::Stale => Ok(false),
        OrderAck::Illegal => Err(Failure::new(
            response_code::MESSAGE_ILLEGAL,
            format!(
                "offset {} of {}@{} is none of the messages in flight",
                handle.offset.get(),
                cell.place.stored,
                cell.place.queue
            ),
        )),
    }
}

/// Code 200151.
pub(crate) fn batch_ack(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let nothing = || Failure::new(response_code::NO_MESSAGE, "no ack is in the request");
    if call.body.is_empty() {
        return Err(nothing());
    }
    let request = BatchAckRequest::from_json(call.body)?;
    if request.acks.is_empty() {
        return Err(nothing());
    }
    for ack in &request.acks {
        ack_many(core, ack);
    }
    Ok(success())
}

/// Offsets outside the queue are passed over.
fn ack_many(core: &Core, ack: &BatchAck) {
    let Ok(queue) = u32::try_from(ack.queue_id) else {
        return;
    };
    let stored = if ack.topic.starts_with(RETRY_PREFIX) {
        ack.topic.as_str().into()
    } else {
        stored_topic(ack.retry, &ack.topic, &ack.group)
    };
    let Some(cell) = core.pops.cell(&stored, &ack.group, queue) else {
        return;
    };
    let end = core.store.max_queue_offset(&stored, queue).unwrap_or(0);
    let offsets = ack.offsets().take_while(|&offset| offset < end);
    let offsets = offsets.map(|offset| QueueOffset::new(offset as u64));
    let pop_time = Timestamp::from_millis(ack.pop_time);
    let acked = if ack.revive_queue_id == ORDER_REVIVE_QUEUE {
        let handles = offsets.map(|offset| Handle { offset, pop_time });
        handles
            .filter(|&handle| matches!(ack_order(core, &cell, handle), Ok(true)))
            .count()
    } else {
        step(core, &cell, |queue, _, out| {
            queue.ack_batch(offsets, pop_time, out)
        })
    };
    note_acks(core, &cell, acked as u64);
}
