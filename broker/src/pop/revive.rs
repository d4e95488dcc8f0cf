//! The records of the revive topic: written, noted, and up to where they are done with.
//!
//! **Invariant:** a record is appended and noted under one lock of its revive queue, so the offset
//! of the revive group never passes a record that is not noted yet. With `SYNC_FLUSH` a record
//! counts as written when it is on the disk.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use rmq_pop::{AckWrite, CheckpointWrite, RecordKey, ReviveQueue};
use rmq_protocol::{
    message::properties::{self, names},
    pop::{
        ACK_TAG, AckRecord, BATCH_ACK_TAG, BatchAckRecord, CHECKPOINT_LEAD_MILLIS, CHECKPOINT_TAG,
        CheckpointRecord,
    },
};
use rmq_store::{Append, AppendError, Appended};
use rmq_types::{
    ClusterName, CommitLogOffset, QueueOffset,
    pop::{REVIVE_GROUP, REVIVE_QUEUES, revive_topic},
};

use super::{Cell, step};
use crate::{
    config::FlushDiskType,
    core::{Core, lock},
};

/// How the writing of a checkpoint went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// It stands there.
    At(QueueOffset),
    /// It is in the log; the flush will say.
    Later,
    /// It does not.
    Failed,
}

/// A record that waits for its flush.
#[derive(Debug)]
struct Pending {
    end: CommitLogOffset,
    cell: Arc<Cell>,
    key: RecordKey,
    at: QueueOffset,
}

/// The revive topic of this broker.
#[derive(Debug)]
pub(crate) struct Revive {
    topic: String,
    queues: Vec<Mutex<ReviveQueue>>,
    /// Bounded by the machine: at twice its limit of unsaved checkpoints a queue gives nothing.
    pending: Mutex<VecDeque<Pending>>,
}

impl Revive {
    pub(super) fn new(cluster: &ClusterName) -> Self {
        let queues = (0..REVIVE_QUEUES).map(|_| Mutex::default());
        Self {
            topic: revive_topic(cluster.as_str()),
            queues: queues.collect(),
            pending: Mutex::default(),
        }
    }

    /// Its name.
    pub(super) fn topic(&self) -> &str {
        &self.topic
    }

    /// Its queues.
    pub(super) fn queues(&self) -> impl Iterator<Item = (u8, &Mutex<ReviveQueue>)> {
        (0..).zip(&self.queues)
    }

    pub(super) fn queue(&self, number: u8) -> Option<&Mutex<ReviveQueue>> {
        self.queues.get(usize::from(number))
    }

    /// Records not done with, by queue.
    pub(crate) fn lags(&self) -> impl Iterator<Item = (u8, usize)> {
        self.queues()
            .map(|(number, queue)| (number, lock(queue).lag()))
    }
}

pub(super) fn write_checkpoint(core: &Core, cell: &Arc<Cell>, write: &CheckpointWrite) -> Recorded {
    let record = checkpoint_record(core, cell, write);
    let deliver_at = record.revive_time().saturating_sub(CHECKPOINT_LEAD_MILLIS);
    let message = (CHECKPOINT_TAG, record.key(), deliver_at, record.to_json());
    match append(core, write.revive_queue, &message, 1) {
        Ok(appended) => {
            let at = appended.queue_offset;
            core.pops.counters.checkpoints_written.add(1);
            if core.settings.get().flush_disk_type != FlushDiskType::Sync {
                return Recorded::At(at);
            }
            let (end, cell, key) = (appended.end, Arc::clone(cell), write.key);
            let pending = Pending { end, cell, key, at };
            lock(&core.pops.revive.pending).push_back(pending);
            // The flush may have passed before.
            durable(core, core.store.durable_offset());
            Recorded::Later
        }
        Err(error) => {
            let place = &cell.place;
            tracing::warn!(topic = %place.stored, group = %place.group, queue = place.queue, %error,
                "a checkpoint was not written and will be tried again");
            Recorded::Failed
        }
    }
}

fn checkpoint_record(core: &Core, cell: &Cell, write: &CheckpointWrite) -> CheckpointRecord {
    let start = write.start.get();
    let diff = |offset: &QueueOffset| i32::try_from(offset.get() - start).unwrap_or(i32::MAX);
    CheckpointRecord {
        bit_map: write.done_bits as i32,
        broker_name: Some(core.identity.name.to_string()),
        group: cell.place.group.to_string(),
        offset_diffs: Some(write.messages.iter().map(diff).collect()),
        invisible_time: write.invisible_millis.into(),
        count: write.messages.len() as i8,
        pop_time: write.pop_time.millis(),
        queue_id: cell.place.queue as i32,
        revive_offset: 0,
        put_again: None,
        start_offset: start as i64,
        suspended: false,
        topic: cell.place.stored.to_string(),
    }
}

pub(super) fn write_acks(core: &Core, cell: &Cell, write: &AckWrite) {
    let place = &cell.place;
    let deliver_at = write.pop_time.plus_millis(write.invisible_millis.into());
    let broker_name = Some(core.identity.name.to_string());
    let group = place.group.to_string();
    let topic = place.stored.to_string();
    let (pop_time, queue_id) = (write.pop_time.millis(), place.queue as i32);
    let start_offset = write.start.get() as i64;
    let (tag, key, body) = if let [one] = *write.messages.as_slice() {
        let record = AckRecord {
            ack_offset: one.get() as i64,
            broker_name,
            group,
            pop_time,
            queue_id,
            start_offset,
            topic,
        };
        (ACK_TAG, record.key(), record.to_json())
    } else {
        let record = BatchAckRecord {
            ack_offset: -1,
            ack_offsets: write.messages.iter().map(|one| one.get() as i64).collect(),
            broker_name,
            group,
            pop_time,
            queue_id,
            start_offset,
            topic,
        };
        (BATCH_ACK_TAG, record.key(), record.to_json())
    };
    let message = (tag, key, deliver_at.millis(), body);
    match append(core, write.revive_queue, &message, 0) {
        Ok(_) => core.pops.counters.acks_written.add(1),
        Err(error) => {
            tracing::warn!(topic = %place.stored, group = %place.group, queue = place.queue, %error,
                "an ack was not written: after a restart its message may come again");
        }
    }
}

/// Appends a record and notes it.
fn append(
    core: &Core,
    queue: u8,
    (tag, key, deliver_at, body): &(&str, String, i64, Vec<u8>),
    parts: u32,
) -> Result<Appended, AppendError> {
    let mut text = Vec::with_capacity(128 + key.len());
    properties::push(&mut text, names::UNIQ_KEY, key.as_bytes());
    properties::push(&mut text, names::TAGS, tag.as_bytes());
    properties::push(&mut text, names::WAIT, b"false");
    let deliver_at = deliver_at.to_string();
    properties::push(&mut text, names::TIMER_DELIVER_MS, deliver_at.as_bytes());
    let host: SocketAddr = core.identity.address;
    let revive = &core.pops.revive;
    let message = Append {
        topic: revive.topic(),
        queue_id: queue.into(),
        tags_code: properties::tags_code(&text),
        flag: 0,
        sys_flag: 0,
        born_at: core.now().millis(),
        born_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body,
        properties: &text,
    };
    let Some(noted) = revive.queue(queue) else {
        return core.store.append_one(&message);
    };
    let mut noted = lock(noted);
    let appended = core.store.append_one(&message)?;
    noted.note(appended.queue_offset, parts);
    Ok(appended)
}

/// A record is done with.
pub(super) fn resolved(core: &Core, queue: u8, at: QueueOffset) {
    let revive = &core.pops.revive;
    let Some(noted) = revive.queue(queue) else {
        return;
    };
    let mut noted = lock(noted);
    noted.resolved(at);
    advance(core, queue, &mut noted);
}

/// Commits what the revive queue is done with.
pub(super) fn advance(core: &Core, queue: u8, noted: &mut ReviveQueue) {
    if noted.advance().is_some()
        && let Some(offset) = noted.java_offset()
    {
        let topic = core.pops.revive.topic();
        core.offsets
            .commit(topic, REVIVE_GROUP, queue.into(), offset.get() as i64);
    }
}

/// The log is on the disk below `upto`: records below count as written.
pub(crate) fn durable(core: &Core, upto: CommitLogOffset) {
    loop {
        let Some(one) = ({
            let mut pending = lock(&core.pops.revive.pending);
            let ready = pending.front().is_some_and(|one| one.end <= upto);
            if ready { pending.pop_front() } else { None }
        }) else {
            return;
        };
        step(core, &one.cell, |queue, _, out| {
            queue.record_written(one.key, one.at, out);
        });
    }
}
