//! The append path: one short critical section for a whole group of messages.
//!
//! Outside it: checks, CRCs, queue look-ups. Inside: offsets are assigned, records are encoded into
//! pages that were made ready before, queue tails grow. **Invariant:** a record is published before its
//! queue entry, so whoever finds an entry can read its record; and no allocation, system call or wait
//! happens per message. A full file or missing pages are met once per many messages, in [`make_room`].
//!
//! [`make_room`]: Appender::make_room

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
};

use rmq_protocol::message::{body_crc, record, record::Record, sys_flag};
use rmq_types::{CommitLogOffset, QueueOffset, Timestamp, TopicName, limits};
use smallvec::SmallVec;

use crate::{
    core::Core,
    error::AppendError,
    lock::lock,
    log::Segment,
    mmap::Writer,
    options::{Arrival, FlushMode},
    queue::{Queue, table::QUEUES_MAX, unit::Unit},
    storage::{self, DiskAction},
};

/// Bytes that must stay free behind a record (`END_FILE_MIN_BLANK_LENGTH`).
const FILLER_HEAD: u64 = 8;
/// Messages of a group whose bookkeeping needs no heap.
const GROUP: usize = 32;

/// A message to append.
#[derive(Clone, Copy, Debug)]
pub struct Append<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its queue.
    pub queue_id: u32,
    /// What its queue entry carries: the tag's hash, or a delivery time.
    pub tags_code: i64,
    /// The user's flag.
    pub flag: i32,
    /// System flag bits.
    pub sys_flag: i32,
    /// When the producer made it, ms.
    pub born_at: i64,
    /// Who made it.
    pub born_host: SocketAddr,
    /// How often it was handed back.
    pub reconsume_times: i32,
    /// Offset of its half message.
    pub prepared_transaction_offset: i64,
    /// Its body.
    pub body: &'a [u8],
    /// Its properties text.
    pub properties: &'a [u8],
}

/// Where a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Start of its record.
    pub offset: CommitLogOffset,
    /// Behind its record: on the disk once the durable offset is here.
    pub end: CommitLogOffset,
    /// Index in its queue.
    pub queue_offset: QueueOffset,
    /// Time in the record.
    pub stored_at: Timestamp,
    /// Bytes of the record.
    pub bytes: u32,
}

/// What only the holder of the append lock may touch.
#[derive(Debug)]
pub(crate) struct Appender {
    writer: Writer,
    segment: Arc<Segment>,
    /// Store time of the last record.
    pub(crate) last_stored_at: i64,
    /// Queues with new entries since the last round of queue writes.
    pub(crate) dirty: Vec<Arc<Queue>>,
    /// Entries made since then.
    pub(crate) dirty_units: usize,
    /// Messages that may be read once they are on the disk.
    pub(crate) pending: Vec<(Arc<Queue>, Arrival)>,
}

/// A message that passed its checks.
struct Ready {
    queue: Option<Arc<Queue>>,
    crc: i32,
    bytes: u64,
}

impl Appender {
    pub(crate) fn new(segment: Arc<Segment>, writer: Writer, last_stored_at: i64) -> Self {
        Self {
            writer,
            segment,
            last_stored_at,
            dirty: Vec::new(),
            dirty_units: 0,
            pending: Vec::new(),
        }
    }

    /// Offset of the next record.
    pub(crate) fn at(&self) -> u64 {
        self.segment.base + self.writer.at() as u64
    }

    /// Sees to it that `bytes` and a filler can be written at once.
    fn make_room(&mut self, core: &Core, bytes: u64) -> Result<(), AppendError> {
        if bytes + FILLER_HEAD > self.writer.remaining() as u64 {
            self.roll(core)?;
        }
        let needed = self.writer.at() as u64 + bytes + FILLER_HEAD;
        if needed > self.segment.ready() {
            let ahead = needed.max(self.writer.at() as u64 + core.options.prepare_bytes / 8);
            self.segment
                .prepare(self.writer.at() as u64, ahead, &core.disk)
                .map_err(|error| refused(core, &error))?;
        }
        Ok(())
    }

    /// Ends the file with a filler and goes on in the next one.
    fn roll(&mut self, core: &Core) -> Result<(), AppendError> {
        let remaining = self.writer.remaining();
        let head = remaining.min(FILLER_HEAD as usize);
        let at = self.writer.at() as u64;
        self.segment
            .prepare(at, at + head as u64, &core.disk)
            .map_err(|error| refused(core, &error))?;
        let (next, writer) = core
            .next_segment(self.segment.end())
            .map_err(|error| refused(core, &error))?;
        if remaining > 0 {
            let mut filler = [0; FILLER_HEAD as usize];
            filler[..4].copy_from_slice(&(remaining as i32).to_be_bytes());
            filler[4..].copy_from_slice(&record::MAGIC_FILLER.to_be_bytes());
            if let Some(room) = self.writer.room(head) {
                room.copy_from_slice(&filler[..head]);
            }
            self.writer.advance(remaining);
        }
        self.commit(core)?;
        core.log_end.store(next.base, Ordering::Release);
        self.segment = next;
        self.writer = writer;
        core.wake_preparer();
        Ok(())
    }

    fn append_one(
        &mut self,
        core: &Core,
        message: &Append<'_>,
        ready: &mut Ready,
        now: Timestamp,
    ) -> Result<Appended, AppendError> {
        self.make_room(core, ready.bytes)?;
        let offset = self.at();
        let mut record = Record {
            body_crc: ready.crc,
            queue_id: message.queue_id as i32,
            flag: message.flag,
            queue_offset: 0,
            physical_offset: offset as i64,
            sys_flag: message.sys_flag,
            born_at: message.born_at,
            born_host: message.born_host,
            stored_at: now.millis(),
            store_host: core.options.store_host,
            reconsume_times: message.reconsume_times,
            prepared_transaction_offset: message.prepared_transaction_offset,
            body: message.body,
            topic: message.topic,
            properties: message.properties,
        };
        let appended = Appended {
            offset: CommitLogOffset::new(offset),
            end: CommitLogOffset::new(offset + ready.bytes),
            queue_offset: QueueOffset::new(0),
            stored_at: now,
            bytes: ready.bytes as u32,
        };
        if !sys_flag::enters_queue(message.sys_flag) {
            self.write(&record, ready.bytes)?;
            return Ok(appended);
        }
        let queue = ready
            .queue
            .get_or_insert_with(|| core.table.get_or_create(message.topic, message.queue_id));
        if queue.is_gone() {
            // Its topic was deleted since it was looked up.
            *queue = core.table.get_or_create(message.topic, message.queue_id);
        }
        // As recovery would: a delayed message is due by the time in its own record.
        let special = core.options.tags_code_of.as_ref();
        let tags_code = special
            .and_then(|code| code(&record))
            .unwrap_or(message.tags_code);
        let Some(appending) = queue.begin() else {
            return Err(AppendError::TopicDeleted);
        };
        let index = appending.index();
        record.queue_offset = index as i64;
        self.write(&record, ready.bytes)?;
        let unit = Unit {
            offset,
            size: ready.bytes as u32,
            tags_code,
        };
        if appending.push(unit) {
            self.dirty.push(Arc::clone(queue));
        }
        self.dirty_units += 1;
        Ok(Appended {
            queue_offset: QueueOffset::new(index),
            ..appended
        })
    }

    /// Lets readers see what was written. After an error nothing more is appended: queues may have
    /// entries of records that the log does not have, which no reader is given, since none is
    /// confirmed.
    fn commit(&mut self, core: &Core) -> Result<(), AppendError> {
        let committed = core
            .disk
            .before(DiskAction::WriteLog)
            .and_then(|()| self.writer.commit());
        committed.map_err(|error| {
            let reason = format!("commit log write failed: {error}");
            core.poison(&reason);
            AppendError::Poisoned(reason)
        })
    }

    /// Encodes into the room that was made.
    fn write(&mut self, record: &Record<'_>, bytes: u64) -> Result<(), AppendError> {
        let segment = self.segment.len();
        let too_long = AppendError::RecordTooLong {
            bytes: bytes as usize,
            segment,
        };
        let room = self.writer.room(bytes as usize).ok_or(too_long)?;
        record
            .encode_into(room)
            .map_err(|_| AppendError::RecordTooLong {
                bytes: bytes as usize,
                segment,
            })?;
        self.writer.advance(bytes as usize);
        Ok(())
    }
}

fn refused(core: &Core, error: &std::io::Error) -> AppendError {
    if storage::is_full(error) {
        core.note_full();
        AppendError::DiskFull
    } else {
        AppendError::Allocate(error.to_string())
    }
}

/// Checks one message and does what needs no lock.
fn check(core: &Core, message: &Append<'_>, last: Option<&Ready>) -> Result<Ready, AppendError> {
    let max = core.tuned.message_bytes_max();
    if message.body.len() > max {
        return Err(AppendError::BodyTooLong {
            bytes: message.body.len(),
            max,
        });
    }
    let max = limits::PROPERTIES_BYTES_MAX;
    if message.properties.len() > max {
        return Err(AppendError::PropertiesTooLong {
            bytes: message.properties.len(),
            max,
        });
    }
    if message.properties.last() == Some(&0) {
        return Err(AppendError::PropertiesTorn);
    }
    if message.queue_id >= QUEUES_MAX {
        return Err(AppendError::QueueId(message.queue_id));
    }
    let same = last
        .and_then(|last| last.queue.as_ref())
        .filter(|queue| queue.id == message.queue_id && *queue.topic == *message.topic);
    let queue = match same {
        Some(queue) => Some(Arc::clone(queue)),
        None => core.table.get(message.topic, message.queue_id),
    };
    if queue.is_none() {
        TopicName::check(message.topic).map_err(AppendError::Topic)?;
    }
    let hosts = [message.born_host, core.options.store_host];
    let wide = hosts.iter().filter(|host| host.is_ipv6()).count() * 12;
    let version = usize::from(message.topic.len() > record::V1_TOPIC_BYTES_MAX);
    let bytes = record::RECORD_BYTES_MIN
        + wide
        + version
        + message.topic.len()
        + message.body.len()
        + message.properties.len();
    let segment = core.chain.segment_bytes();
    if bytes as u64 + FILLER_HEAD > segment {
        return Err(AppendError::RecordTooLong { bytes, segment });
    }
    Ok(Ready {
        queue,
        crc: body_crc(message.body),
        bytes: bytes as u64,
    })
}

/// Appends a group; `results` gets one answer per message, in order.
pub(crate) fn append(
    core: &Core,
    group: &[Append<'_>],
    results: &mut Vec<Result<Appended, AppendError>>,
) {
    results.clear();
    results.reserve(group.len());
    if let Some(refusal) = core.refusal() {
        results.extend(group.iter().map(|_| Err(refusal.clone())));
        return;
    }
    let mut checked: SmallVec<[Result<Ready, AppendError>; GROUP]> = SmallVec::new();
    for message in group {
        let last = checked.last().and_then(|last| last.as_ref().ok());
        checked.push(check(core, message, last));
    }
    let sync = core.options.flush == FlushMode::Sync;
    let end = {
        let mut appender = lock(&core.appender);
        let now = core.clock.now();
        for (message, ready) in group.iter().zip(checked.iter_mut()) {
            let answer = match ready {
                Err(error) => Err(error.clone()),
                Ok(ready) => match core.refusal() {
                    Some(refusal) => Err(refusal),
                    None => appender.append_one(core, message, ready, now),
                },
            };
            if let (
                true,
                Ok(appended),
                Ok(Ready {
                    queue: Some(queue), ..
                }),
            ) = (sync, &answer, &*ready)
                && sys_flag::enters_queue(message.sys_flag)
            {
                let arrival = Arrival {
                    queue_offset: appended.queue_offset,
                    tags_code: message.tags_code,
                };
                appender.pending.push((Arc::clone(queue), arrival));
            }
            results.push(answer);
        }
        if let Err(error) = appender.commit(core) {
            for result in results.iter_mut().filter(|result| result.is_ok()) {
                *result = Err(error.clone());
            }
            return;
        }
        appender.last_stored_at = now.millis();
        core.last_stored_at.store(now.millis(), Ordering::Relaxed);
        let end = appender.at();
        core.log_end.store(end, Ordering::Release);
        end
    };
    core.appended(end);
    if !sync {
        tell_arrivals(core, group, results);
    }
}

/// Tells the listener of a group's messages, a call for each run of one queue.
fn tell_arrivals(core: &Core, group: &[Append<'_>], results: &[Result<Appended, AppendError>]) {
    let mut run: SmallVec<[Arrival; GROUP]> = SmallVec::new();
    let mut of: Option<(&str, u32)> = None;
    for (message, result) in group.iter().zip(results) {
        let Ok(appended) = result else { continue };
        if !sys_flag::enters_queue(message.sys_flag) {
            continue;
        }
        let queue = (message.topic, message.queue_id);
        if of != Some(queue) {
            if let Some((topic, id)) = of {
                core.listener.arrived(topic, id, &run);
            }
            run.clear();
            of = Some(queue);
        }
        run.push(Arrival {
            queue_offset: appended.queue_offset,
            tags_code: message.tags_code,
        });
    }
    if let Some((topic, id)) = of {
        core.listener.arrived(topic, id, &run);
    }
}
