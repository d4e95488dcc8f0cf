//! The answers of pops, written straight into the outgoing buffer.
//!
//! Records of the popped topic go out as they lie in the log: the client makes their handles from
//! the texts of the header. **Invariant:** a record whose handle the header cannot say (of a retry
//! topic, or popped at another time than the header's) carries its handle itself, in `POP_CK`.

use bytes::BytesMut;
use rmq_protocol::{
    message::{
        Record,
        properties::{self, names},
    },
    pop::{
        ReceiptHandle, push_message_offsets, push_order_count, push_queue_order_count,
        push_start_offset,
    },
    remoting::{ResponseWriter, response_code},
};
use rmq_store::RecordSlice;
use rmq_types::{QueueOffset, Timestamp, pop::PopTopic};

use crate::{
    core::Core,
    pop::{Taken, TakenBatch, Wish, WishKind},
};

/// A record as it goes out.
enum Part<'a> {
    AsStored(&'a RecordSlice),
    Again(Vec<u8>),
}

impl AsRef<[u8]> for Part<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::AsStored(slice) => slice,
            Self::Again(bytes) => bytes,
        }
    }
}

/// The answer with messages.
pub(super) fn messages(core: &Core, opaque: i32, wish: &Wish, taken: &Taken, out: &mut BytesMut) {
    let first = taken.batches.first().map(|one| &one.batch);
    let pop_time = first.map_or(Timestamp::default(), |batch| batch.pop_time);
    let revive_queue = first.map_or(i32::from(taken.revive_queue), |batch| batch.revive_queue);
    let (mut starts, mut offsets, mut counts) = (String::new(), String::new(), String::new());
    for one in &taken.batches {
        let (batch, queue) = (&one.batch, one.queue as i32);
        push_start_offset(&mut starts, one.topic, queue, batch.start.get() as i64);
        let list = batch.messages.iter().map(|offset| offset.get() as i64);
        push_message_offsets(&mut offsets, one.topic, queue, list);
        if wish.order {
            for (offset, count) in &batch.counts {
                let count = i32::try_from(*count).unwrap_or(i32::MAX);
                push_order_count(&mut counts, one.topic, queue, offset.get() as i64, count);
            }
            let least = i32::try_from(batch.count_min).unwrap_or(i32::MAX);
            push_queue_order_count(&mut counts, one.topic, queue, least);
        }
    }
    let invisible = match wish.kind {
        WishKind::Pop { invisible, .. } => i64::from(invisible.millis()),
        WishKind::Notification => 0,
    };
    out.reserve(taken.bytes + 512);
    let mut writer = ResponseWriter::new(out, opaque, response_code::SUCCESS);
    writer
        .number("invisibleTime", invisible)
        .text("msgOffsetInfo", &offsets);
    if wish.order {
        writer.text("orderCountInfo", &counts);
    }
    writer
        .number("popTime", pop_time.millis())
        .number("restNum", taken.rest)
        .number("reviveQid", revive_queue.into())
        .text("startOffsetInfo", &starts);
    let parts: Vec<Part<'_>> = taken
        .batches
        .iter()
        .flat_map(|one| {
            let plain = one.topic == PopTopic::Normal && one.batch.pop_time == pop_time;
            let records = one.records.iter().zip(&one.batch.messages);
            records.map(move |(record, offset)| {
                if plain {
                    return Part::AsStored(record);
                }
                let again = with_handle(core, wish, one, (record, *offset));
                again.map_or(Part::AsStored(record), Part::Again)
            })
        })
        .collect();
    writer.finish(Some(taken.status.name()), parts.iter().map(AsRef::as_ref));
}

/// The record with its handle in it, and under the topic that was popped.
fn with_handle(
    core: &Core,
    wish: &Wish,
    of: &TakenBatch,
    (slice, offset): (&[u8], QueueOffset),
) -> Option<Vec<u8>> {
    let (record, _) = Record::decode(slice).ok()?;
    let handle = ReceiptHandle {
        start_offset: of.batch.start.get() as i64,
        pop_time: of.batch.pop_time.millis(),
        invisible_time: of.batch.invisible_millis.into(),
        revive_queue_id: of.batch.revive_queue,
        topic: of.topic,
        broker_name: core.identity.name.as_str().into(),
        queue_id: of.queue as i32,
        queue_offset: Some(offset.get() as i64),
        commit_log_offset: None,
    };
    let text = properties::with(
        record.properties,
        names::POP_CK,
        handle.to_string().as_bytes(),
    );
    let again = Record {
        topic: &wish.topic.topic_name,
        properties: &text,
        ..record
    };
    let mut bytes = vec![0; again.encoded_len()];
    let length = again.encode_into(&mut bytes).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

/// The answer of a peek.
pub(super) fn peeked(
    now: Timestamp,
    records: &[RecordSlice],
    rest: i64,
    opaque: i32,
    out: &mut BytesMut,
) {
    let code = if records.is_empty() {
        response_code::PULL_NOT_FOUND
    } else {
        response_code::SUCCESS
    };
    let mut writer = ResponseWriter::new(out, opaque, code);
    writer
        .number("invisibleTime", 0)
        .number("popTime", now.millis())
        .number("restNum", rest)
        .number("reviveQid", 0);
    writer.finish(None, records.iter().map(|record| &**record));
}

/// The answer of a notification.
pub(super) fn notification(opaque: i32, (has_msg, polling_full): (bool, bool), out: &mut BytesMut) {
    let flag = |value| if value { "true" } else { "false" };
    let mut writer = ResponseWriter::new(out, opaque, response_code::SUCCESS);
    writer
        .text("hasMsg", flag(has_msg))
        .text("pollingFull", flag(polling_full));
    writer.finish(None, []);
}
