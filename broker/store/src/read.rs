//! Reading a queue (`DefaultMessageStore.getMessage`): the nine statuses and where to go on.
//!
//! **Invariant:** reads never create a queue, never wait for a writer's disk, and hand out nothing
//! above the confirm offset. The store does not filter by text; the caller's filter sees tags codes.

use std::sync::Arc;

use rmq_types::{CommitLogOffset, Timestamp};

use crate::{
    core::Core,
    error::ReadAtError,
    log::{self, Segment},
    mmap::RecordSlice,
    options::ReadLimits,
    queue::{Queue, unit::Unit},
};

/// What to read.
#[derive(Clone, Copy)]
pub struct ReadRequest<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The queue.
    pub queue_id: u32,
    /// First index wanted; any number.
    pub offset: i64,
    /// Most messages.
    pub max_messages: usize,
    /// Most bytes; one message comes whatever its size.
    pub max_bytes: usize,
    /// Takes or leaves a message by its tags code.
    pub filter: &'a dyn Fn(i64) -> bool,
}

impl std::fmt::Debug for ReadRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "ReadRequest({}@{} from {})",
            self.topic, self.queue_id, self.offset
        )
    }
}

/// How a read went (`GetMessageStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadStatus {
    /// There are messages.
    Found,
    /// The filter left nothing.
    NoMatchedMessage,
    /// The messages asked for were deleted from the log meanwhile.
    MessageWasRemoving,
    /// A hole in the queue's files.
    OffsetFoundNull,
    /// Beyond the end.
    OffsetOverflowBadly,
    /// Exactly at the end.
    OffsetOverflowOne,
    /// Below the first message.
    OffsetTooSmall,
    /// There is no such queue.
    NoMatchedLogicQueue,
    /// The queue never had a message.
    NoMessageInQueue,
}

impl ReadStatus {
    /// Java's name, which stands in remarks.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Found => "FOUND",
            Self::NoMatchedMessage => "NO_MATCHED_MESSAGE",
            Self::MessageWasRemoving => "MESSAGE_WAS_REMOVING",
            Self::OffsetFoundNull => "OFFSET_FOUND_NULL",
            Self::OffsetOverflowBadly => "OFFSET_OVERFLOW_BADLY",
            Self::OffsetOverflowOne => "OFFSET_OVERFLOW_ONE",
            Self::OffsetTooSmall => "OFFSET_TOO_SMALL",
            Self::NoMatchedLogicQueue => "NO_MATCHED_LOGIC_QUEUE",
            Self::NoMessageInQueue => "NO_MESSAGE_IN_QUEUE",
        }
    }
}

/// What came of a read.
#[derive(Clone, Debug)]
pub struct ReadOutcome {
    /// How it went.
    pub status: ReadStatus,
    /// Where to read next.
    pub next: i64,
    /// First index in the queue.
    pub min: i64,
    /// Behind the last index that may be read.
    pub max: i64,
    /// The records.
    pub messages: Vec<RecordSlice>,
    /// Queue index of each record.
    pub queue_offsets: Vec<i64>,
    /// Their bytes.
    pub bytes: usize,
    /// The reader is further behind than 40 % of memory.
    pub cold: bool,
}

impl ReadOutcome {
    fn empty(status: ReadStatus, next: i64, min: i64, max: i64) -> Self {
        Self {
            status,
            next,
            min,
            max,
            messages: Vec::new(),
            queue_offsets: Vec::new(),
            bytes: 0,
            cold: false,
        }
    }
}

/// Entries fetched at a time.
const CHUNK: u64 = 64;

pub(crate) fn read(core: &Core, request: &ReadRequest<'_>) -> ReadOutcome {
    let Some(queue) = core.table.get(request.topic, request.queue_id) else {
        return ReadOutcome::empty(ReadStatus::NoMatchedLogicQueue, 0, 0, 0);
    };
    let limit = core.confirmed();
    let max = queue.visible(limit) as i64;
    let min = match queue.min(&core.table.files, core.chain.min()) {
        Ok(min) => (min as i64).min(max),
        Err(error) => {
            tracing::warn!(topic = request.topic, queue = request.queue_id, %error, "queue unreadable");
            return ReadOutcome::empty(ReadStatus::OffsetFoundNull, request.offset, 0, max);
        }
    };
    let status = match request.offset {
        _ if max == 0 => Some((ReadStatus::NoMessageInQueue, 0)),
        offset if offset < min => Some((ReadStatus::OffsetTooSmall, min)),
        offset if offset == max => Some((ReadStatus::OffsetOverflowOne, offset)),
        offset if offset > max => Some((ReadStatus::OffsetOverflowBadly, max)),
        _ => None,
    };
    match status {
        Some((status, next)) => ReadOutcome::empty(status, next, min, max),
        None => Scan::new(core, request, &queue, limit).run(min, max),
    }
}

/// One walk over a queue's entries.
struct Scan<'a> {
    core: &'a Core,
    limits: ReadLimits,
    request: &'a ReadRequest<'a>,
    queue: &'a Arc<Queue>,
    limit: u64,
    log_end: u64,
    cold_bytes: u64,
    segment: Option<Arc<Segment>>,
    outcome: ReadOutcome,
    /// Log below this offset is gone.
    removed_below: u64,
    removed: bool,
}

impl<'a> Scan<'a> {
    fn new(
        core: &'a Core,
        request: &'a ReadRequest<'a>,
        queue: &'a Arc<Queue>,
        limit: u64,
    ) -> Self {
        Self {
            core,
            limits: core.tuned.get().read_limits,
            request,
            queue,
            limit,
            log_end: core.end(),
            cold_bytes: core.options.memory_bytes / 100 * 40,
            segment: None,
            outcome: ReadOutcome::empty(ReadStatus::NoMatchedMessage, request.offset, 0, 0),
            removed_below: 0,
            removed: false,
        }
    }

    fn run(mut self, min: i64, max: i64) -> ReadOutcome {
        self.outcome.min = min;
        self.outcome.max = max;
        let units_max = (self.limits.filter_bytes / crate::queue::unit::UNIT)
            .max(self.request.max_messages) as u64;
        let start = self.request.offset as u64;
        let mut at = start;
        let mut units = Vec::with_capacity(CHUNK as usize);
        'chunks: while at < max as u64 && at - start < units_max {
            units.clear();
            let want = CHUNK.min(units_max - (at - start)).min(max as u64 - at);
            let read = self
                .queue
                .units(&self.core.table.files, at, want, self.limit, &mut units);
            if let Err(error) = read {
                tracing::warn!(topic = self.request.topic, %error, "queue unreadable");
            }
            if units.is_empty() {
                if at == start {
                    let file = self.core.table.files.file_units();
                    let next = ((at / file + 1) * file).min(max as u64);
                    self.outcome.status = ReadStatus::OffsetFoundNull;
                    self.outcome.next = next as i64;
                    return self.outcome;
                }
                break;
            }
            for unit in &units {
                if !self.take(unit, at) {
                    break 'chunks;
                }
                at += 1;
            }
        }
        self.outcome.next = at as i64;
        if !self.outcome.messages.is_empty() {
            self.outcome.status = ReadStatus::Found;
        } else if self.removed {
            self.outcome.status = ReadStatus::MessageWasRemoving;
        }
        self.outcome
    }

    /// Looks at one entry; `false` if the answer is full before it.
    fn take(&mut self, unit: &Unit, index: u64) -> bool {
        if self.request.max_messages == 0 {
            return false;
        }
        let size = unit.size as usize;
        let behind = self.log_end.saturating_sub(unit.offset);
        if unit.is_blank() {
            return true;
        }
        if self.is_full(size, behind > self.cold_bytes) {
            return false;
        }
        if unit.offset < self.removed_below || !(self.request.filter)(unit.tags_code) {
            return true;
        }
        if let Some(record) = self.record(unit) {
            self.outcome.bytes += size;
            self.outcome.messages.push(record);
            self.outcome.queue_offsets.push(index as i64);
            self.outcome.cold = behind > self.cold_bytes;
        } else {
            self.removed = true;
            if unit.offset < self.core.chain.min() {
                let segment = self.core.chain.segment_bytes();
                self.removed_below = (unit.offset / segment + 1) * segment;
            }
        }
        true
    }

    fn record(&mut self, unit: &Unit) -> Option<RecordSlice> {
        let holds = |segment: &Arc<Segment>| (segment.base..segment.end()).contains(&unit.offset);
        if !self.segment.as_ref().is_some_and(holds) {
            self.segment = self.core.chain.find(unit.offset);
        }
        let segment = self.segment.as_ref()?;
        let record = log::record_in(segment, unit.offset).ok()?;
        (record.len() == unit.size as usize).then_some(record)
    }

    fn is_full(&self, size: usize, cold: bool) -> bool {
        let (count, bytes) = (self.outcome.messages.len(), self.outcome.bytes);
        if count == 0 {
            return false;
        }
        let limits = &self.limits;
        let (most, most_bytes) = if cold {
            (limits.disk_messages, limits.disk_bytes)
        } else {
            (limits.memory_messages, limits.memory_bytes)
        };
        count >= self.request.max_messages.min(most)
            || bytes + size > self.request.max_bytes.min(most_bytes)
    }
}

/// Which of the messages around a time is meant (`BoundaryType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// The first one stored at or after the time; behind the last if there is none.
    Lower,
    /// The last one stored at or before the time; the first if there is none.
    Upper,
}

/// Store time of the message at `index` of a queue.
pub(crate) fn time_of(core: &Core, queue: &Queue, index: u64) -> Option<Timestamp> {
    let unit = queue.unit(&core.table.files, index).ok().flatten()?;
    if unit.is_blank() {
        return None;
    }
    stored_at(core, unit.offset).ok()
}

/// Store time of the record at `offset`.
pub(crate) fn stored_at(core: &Core, offset: u64) -> Result<Timestamp, ReadAtError> {
    let none = ReadAtError::NoRecord(CommitLogOffset::new(offset));
    let slice = core.chain.record_at(offset)?;
    let record = rmq_protocol::message::Record::decode(&slice)
        .map_err(|_| none)?
        .0;
    Ok(Timestamp::from_millis(record.stored_at))
}

/// Index in a queue for a time.
pub(crate) fn offset_by_time(
    core: &Core,
    queue: &Queue,
    time: Timestamp,
    boundary: Boundary,
) -> u64 {
    let max = queue.visible(core.confirmed());
    let min = queue
        .min(&core.table.files, core.chain.min())
        .unwrap_or(0)
        .min(max);
    let before = |index: u64| {
        time_of(core, queue, index).is_none_or(|stored| match boundary {
            Boundary::Lower => stored < time,
            Boundary::Upper => stored <= time,
        })
    };
    let (mut low, mut high) = (min, max);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    match boundary {
        Boundary::Lower => low,
        Boundary::Upper => low.saturating_sub(1).max(min),
    }
}
