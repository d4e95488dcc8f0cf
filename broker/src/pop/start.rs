//! Bringing back what was in flight, and the last writes of a stop.
//!
//! **Invariant:** records are given to their queues before any pop is served, each once and in the
//! order of their revive queue; the former marks stay in place until all of them count again.

use std::{collections::BTreeMap, sync::Arc};

use rmq_pop::{
    Actions, InFlightMark, Invisible, Now, Queue, Recovery, ReviveQueue, SavedCheckpoint,
};
use rmq_protocol::{
    message::{
        Record,
        properties::{self, names},
    },
    pop::{AckRecord, BatchAckRecord, CheckpointRecord, ReviveRecord},
};
use rmq_store::{ReadRequest, ReadStatus};
use rmq_types::{QueueOffset, Timestamp, pop::REVIVE_GROUP};

use super::{
    Cell, Place,
    marks::Former,
    orders::Saved,
    revive,
    step::{Carried, carry_out, locked},
};
use crate::{
    core::{Core, lock},
    metadata::LoadError,
};

/// Records of one read.
const BATCH: usize = 64;

/// What was found so far. What the queues ask for is carried out when every record was read: an
/// offset of the revive group that moved earlier would pass over the others.
#[derive(Default)]
struct Recovered {
    cells: BTreeMap<(String, String, u32), Arc<Cell>>,
    asked: Vec<(Arc<Cell>, Actions)>,
}

impl Recovered {
    fn event<R>(
        &mut self,
        core: &Core,
        cell: &Arc<Cell>,
        event: impl FnOnce(&mut Queue, Now, &mut Actions) -> R,
    ) -> R {
        let mut out = Actions::new();
        let result = locked(core, cell, &mut out, event);
        if !out.is_empty() {
            self.asked.push((Arc::clone(cell), out));
        }
        result
    }
}

/// Brings back every queue. Not on an io thread; no request is served yet.
pub(crate) fn recover(core: &Core) -> Result<(), LoadError> {
    let mut cells = Recovered::default();
    for (number, noted) in core.pops.revive.queues() {
        let topic = core.pops.revive.topic();
        let stored = core.offsets.committed(topic, REVIVE_GROUP, number.into());
        let stored = stored.and_then(|offset| u64::try_from(offset).ok());
        let from = ReviveQueue::from_java_offset(stored.map(QueueOffset::new));
        *lock(noted) = ReviveQueue::new(from);
        recover_queue(core, number, from, &mut cells);
    }
    let marks = core.pops.marks.take_former();
    let orders = core.pops.load_orders()?;
    for former in &marks {
        let place = (former.stored.as_str(), former.group.as_str(), former.queue);
        cell_at(core, place, &mut cells);
    }
    for (topic, group, queue, _) in &orders {
        cell_at(core, (topic, group, *queue), &mut cells);
    }
    finish(core, cells, &marks, orders);
    if let Err(error) = core.pops.marks.adopt() {
        tracing::warn!(%error, "marks of messages in flight stay those of the last start");
    }
    Ok(())
}

/// The cell of a queue whose topic and group are still there.
fn cell_at(
    core: &Core,
    (stored, group, queue): (&str, &str, u32),
    cells: &mut Recovered,
) -> Option<Arc<Cell>> {
    let key = (stored.to_owned(), group.to_owned(), queue);
    if let Some(known) = cells.cells.get(&key) {
        return Some(Arc::clone(known));
    }
    if !core.topics.contains(stored) || !core.groups.contains(group) {
        return None;
    }
    let place = Place::of_stored(stored, group, queue)?;
    let pops = &core.pops;
    let cell = pops.cells.get_or_make(place, pops.options, &pops.marks);
    cells.cells.insert(key, Arc::clone(&cell));
    Some(cell)
}

fn recover_queue(core: &Core, number: u8, from: QueueOffset, cells: &mut Recovered) {
    let topic = core.pops.revive.topic();
    let mut at = from.get() as i64;
    loop {
        let outcome = core.store.read(&ReadRequest {
            topic,
            queue_id: number.into(),
            offset: at,
            max_messages: BATCH,
            max_bytes: 4 << 20,
            filter: &|_| true,
        });
        for (slice, &offset) in outcome.messages.iter().zip(&outcome.queue_offsets) {
            let at = QueueOffset::new(offset as u64);
            let parts = recover_record(core, slice, (number, at), cells);
            if let Some(noted) = core.pops.revive.queue(number) {
                lock(noted).note(at, parts);
            }
        }
        // A gap is passed; the end is not.
        let ends = matches!(
            outcome.status,
            ReadStatus::OffsetOverflowOne
                | ReadStatus::OffsetOverflowBadly
                | ReadStatus::NoMatchedLogicQueue
                | ReadStatus::NoMessageInQueue
        );
        if ends || outcome.next <= at {
            break;
        }
        at = outcome.next;
    }
}

/// Gives a record to its queue; says how many parts of it are open.
fn recover_record(
    core: &Core,
    slice: &[u8],
    (number, at): (u8, QueueOffset),
    cells: &mut Recovered,
) -> u32 {
    let Ok((record, _)) = Record::decode(slice) else {
        tracing::error!(revive_queue = number, offset = %at.get(), "a revive record is torn");
        return 0;
    };
    let tag = properties::get_str(record.properties, names::TAGS).unwrap_or_default();
    match ReviveRecord::decode(tag, record.body) {
        Ok(ReviveRecord::Checkpoint(checkpoint)) => {
            recover_checkpoint(core, &checkpoint, (number, at), cells)
        }
        Ok(ReviveRecord::Ack(ack)) => {
            recover_acks(core, &of_one(ack), cells);
            0
        }
        Ok(ReviveRecord::BatchAck(acks)) => {
            recover_acks(core, &acks, cells);
            0
        }
        Err(error) => {
            tracing::error!(revive_queue = number, offset = %at.get(), %error, "a revive record is passed over");
            0
        }
    }
}

fn of_one(ack: AckRecord) -> BatchAckRecord {
    BatchAckRecord {
        ack_offset: -1,
        ack_offsets: vec![ack.ack_offset],
        broker_name: ack.broker_name,
        group: ack.group,
        pop_time: ack.pop_time,
        queue_id: ack.queue_id,
        start_offset: ack.start_offset,
        topic: ack.topic,
    }
}

fn recover_checkpoint(
    core: &Core,
    record: &CheckpointRecord,
    (number, at): (u8, QueueOffset),
    cells: &mut Recovered,
) -> u32 {
    let (Ok(queue), Ok(start)) = (
        u32::try_from(record.queue_id),
        u64::try_from(record.start_offset),
    ) else {
        return 0;
    };
    let messages = match record.messages() {
        Ok(messages) => messages,
        Err(error) => {
            tracing::error!(%error, "a checkpoint is passed over");
            return 0;
        }
    };
    let messages: Vec<(QueueOffset, bool)> = messages
        .into_iter()
        .map(|(offset, open)| (QueueOffset::new(offset), open))
        .collect();
    let invisible = Invisible::of_change(record.invisible_time.max(0));
    let Ok(invisible) = invisible else { return 0 };
    let Some(cell) = cell_at(core, (&record.topic, &record.group, queue), cells) else {
        return 0;
    };
    let saved = SavedCheckpoint {
        start: QueueOffset::new(start),
        pop_time: Timestamp::from_millis(record.pop_time),
        invisible,
        revive_queue: number,
        revive_offset: at,
        messages: &messages,
    };
    cells.event(core, &cell, |queue, now, out| {
        queue.recover_checkpoint(now, &saved, out)
    })
}

fn recover_acks(core: &Core, record: &BatchAckRecord, cells: &mut Recovered) {
    let (Ok(queue), Ok(start)) = (
        u32::try_from(record.queue_id),
        u64::try_from(record.start_offset),
    ) else {
        return;
    };
    let Some(cell) = cell_at(core, (&record.topic, &record.group, queue), cells) else {
        return;
    };
    let offsets = record.ack_offsets.iter();
    let offsets = offsets.filter_map(|&offset| u64::try_from(offset).ok().map(QueueOffset::new));
    cells.event(core, &cell, |queue, _, out| {
        let pop_time = Timestamp::from_millis(record.pop_time);
        queue.recover_acks(QueueOffset::new(start), pop_time, offsets, out);
    });
}

/// Every record was given: offsets, marks and ordered batches complete the picture.
fn finish(core: &Core, mut found: Recovered, marks: &[Former], orders: Vec<Saved>) {
    let mut orders: BTreeMap<_, _> = orders
        .into_iter()
        .map(|(topic, group, queue, state)| ((topic, group, queue), state))
        .collect();
    let cells = std::mem::take(&mut found.cells);
    let count = cells.len();
    for (key, cell) in cells {
        let (topic, group, queue) = (&key.0, &key.1, key.2);
        let same = |one: &&Former| {
            (one.stored.as_str(), one.group.as_str(), one.queue)
                == (topic.as_str(), group.as_str(), queue)
        };
        let kept = marks
            .iter()
            .find(same)
            .map(|one| one.kept)
            .unwrap_or_default();
        let (reset, stored) = core.offsets.reset_pending(topic, group, queue as i32);
        let stored = stored.and_then(|offset| u64::try_from(offset).ok());
        // The table is some seconds old after a kill; a reset that nobody took counts over both.
        let committed = match (stored, kept.committed) {
            (Some(one), Some(other)) if !reset => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        let ordered_group = core.groups.get(group);
        let ordered_group = ordered_group.is_some_and(|config| config.consume_message_orderly);
        let recovery = Recovery {
            committed: committed.map(QueueOffset::new),
            mark: kept.mark.filter(|mark: &InFlightMark| mark.next.get() > 0),
            ordered: kept.ordered || ordered_group,
        };
        let order = orders.remove(&key);
        found.event(core, &cell, |machine, now, out| {
            if let Some(order) = &order {
                machine.recover_order(now, order);
            }
            machine.recovered(now, recovery, out);
        });
        if let Some(committed) = committed.filter(|_| !reset) {
            core.offsets
                .commit(topic, group, queue as i32, committed as i64);
        }
    }
    for (cell, mut out) in found.asked {
        carry_out(core, &cell, &mut out, &mut Carried::default());
    }
    for (number, noted) in core.pops.revive.queues() {
        revive::advance(core, number, &mut lock(noted));
    }
    if count > 0 {
        let (in_flight, _, bytes) = core.pops.totals();
        tracing::info!(
            queues = count,
            in_flight,
            bytes,
            "messages in flight are back"
        );
    }
}

/// Writes what only memory holds; a later start needs no mark then.
pub(crate) fn close(core: &Core) {
    let pops = &core.pops;
    let mut left = 0;
    for cell in pops.cells.all() {
        let mut out = Actions::new();
        locked(core, &cell, &mut out, |queue, _, out| queue.save_all(out));
        carry_out(core, &cell, &mut out, &mut Carried::default());
    }
    if core.store.flush().is_ok() {
        revive::durable(core, core.store.durable_offset());
    }
    for cell in pops.cells.all() {
        let state = cell.lock();
        left += usize::from(state.queue.mark().is_some());
    }
    pops.note_order();
    if let Err(error) = pops.flush_orders() {
        tracing::warn!(%error, "the batches of ordered groups were not written");
        left += 1;
    }
    if left == 0
        && let Err(error) = pops.marks.remove()
    {
        tracing::warn!(%error, "the file of marks was not removed");
    }
}
