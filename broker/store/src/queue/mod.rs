//! One consume queue: its counters, its in-memory tail, and its files behind both.
//!
//! Entries `[min, tail_base)` lie in files, `[tail_base, next)` in the tail, encoded as they will be
//! written. **Invariant:** entries are dense and unique: `next` grows by one with each entry, and an
//! entry leaves the tail only after it was written. At rest a queue owns neither file nor mapping.

pub(crate) mod files;
pub(crate) mod load;
pub(crate) mod table;
pub(crate) mod unit;

use std::{
    fs::File,
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use files::{Files, QueueName};
use unit::{UNIT, Unit};

use crate::lock::lock;

/// Bytes of tail an idle queue may keep for its next entries.
const IDLE_TAIL: usize = 8 * UNIT;

/// Missing entries that recovery replaces by blanks; a larger jump is a damaged record.
const BLANKS_MAX: u64 = 1_000_000;

/// A consume queue.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) topic: Arc<str>,
    pub(crate) id: u32,
    serial: u64,
    state: Mutex<State>,
}

/// What changes in a queue.
#[derive(Debug, Default)]
pub(crate) struct State {
    next: u64,
    min: u64,
    /// Start of the log for which `min` was computed.
    min_for: Option<u64>,
    tail_base: u64,
    tail: Vec<u8>,
    /// Where the record of the last entry starts.
    last_offset: Option<u64>,
    dirty: bool,
    gone: bool,
    starts_inside: bool,
}

/// What a queue knew of a record that recovery found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replayed {
    /// It has the entry.
    Known,
    /// It took it.
    Added,
    /// Entries before it are missing.
    Gap,
}

impl Queue {
    pub(crate) fn new(topic: Arc<str>, id: u32, serial: u64, loaded: load::Loaded) -> Self {
        let state = State {
            next: loaded.next,
            min: loaded.min,
            tail_base: loaded.next,
            last_offset: loaded.last_offset,
            ..State::default()
        };
        Self {
            topic,
            id,
            serial,
            state: Mutex::new(state),
        }
    }

    pub(crate) fn name(&self) -> QueueName<'_> {
        QueueName {
            topic: &self.topic,
            queue_id: self.id,
            serial: self.serial,
        }
    }

    /// Locks the queue for an append; `None` once it was deleted.
    pub(crate) fn begin(&self) -> Option<Appending<'_>> {
        let state = lock(&self.state);
        (!state.gone).then_some(Appending { state })
    }

    /// Index behind the last entry.
    pub(crate) fn next(&self) -> u64 {
        lock(&self.state).next
    }

    /// Where the last entry's record starts.
    pub(crate) fn last_offset(&self) -> Option<u64> {
        lock(&self.state).last_offset
    }

    /// Index behind the last entry whose record ends at or below `limit`.
    pub(crate) fn visible(&self, limit: u64) -> u64 {
        let state = lock(&self.state);
        state.tail_base + state.below(limit) as u64
    }

    /// Whether the queue was deleted.
    pub(crate) fn is_gone(&self) -> bool {
        lock(&self.state).gone
    }

    /// Takes the queue out of use, for good.
    pub(crate) fn mark_gone(&self) {
        let mut state = lock(&self.state);
        state.gone = true;
        state.tail = Vec::new();
    }

    /// Reads entries from `first` on, at most `count`, those below `limit` only. Fewer come back at
    /// the end of a file or of the queue; none at a gap.
    pub(crate) fn units(
        &self,
        files: &Files,
        first: u64,
        count: u64,
        limit: u64,
        out: &mut Vec<Unit>,
    ) -> io::Result<()> {
        let in_files = {
            let state = lock(&self.state);
            if first >= state.tail_base {
                let skip = (first - state.tail_base) as usize;
                let visible = state.below(limit);
                let units = state.tail.chunks_exact(UNIT).take(visible).skip(skip);
                out.extend(units.take(count as usize).filter_map(Unit::decode));
                return Ok(());
            }
            (state.tail_base - first).min(count)
        };
        files.read(self.name(), first, in_files, out)?;
        Ok(())
    }

    /// One entry.
    pub(crate) fn unit(&self, files: &Files, index: u64) -> io::Result<Option<Unit>> {
        {
            let state = lock(&self.state);
            if index >= state.next {
                return Ok(None);
            }
            if let Some(at) = index.checked_sub(state.tail_base) {
                return Ok(state.tail.get(at as usize * UNIT..).and_then(Unit::decode));
            }
        }
        files.unit(self.name(), index)
    }

    /// Index of the first entry whose record is still in a log that starts at `log_min`.
    pub(crate) fn min(&self, files: &Files, log_min: u64) -> io::Result<u64> {
        let (mut low, mut high) = {
            let state = lock(&self.state);
            if state.min_for == Some(log_min) || state.min >= state.next {
                return Ok(state.min);
            }
            (state.min, state.next)
        };
        let there = |index| -> io::Result<bool> {
            let unit = self.unit(files, index)?;
            Ok(unit.is_some_and(|unit| !unit.is_blank() && unit.offset >= log_min))
        };
        if there(low)? {
            high = low;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if there(middle)? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let mut state = lock(&self.state);
        state.min = state.min.max(low.min(state.next));
        state.min_for = Some(log_min);
        Ok(state.min)
    }

    /// Writes the entries whose records end at or below `limit` to their files and gives those back.
    pub(crate) fn flush(&self, files: &Files, limit: u64) -> io::Result<Vec<File>> {
        let (first, bytes, starts_inside) = {
            let state = lock(&self.state);
            let bytes = state.below(limit) * UNIT;
            if bytes == 0 || state.gone {
                return Ok(Vec::new());
            }
            (
                state.tail_base,
                state.tail[..bytes].to_vec(),
                state.starts_inside,
            )
        };
        if starts_inside {
            files.fill_before(self.name(), first)?;
        }
        let written = files.write(self.name(), first, &bytes)?;
        let mut state = lock(&self.state);
        state.starts_inside = false;
        state.tail.drain(..bytes.len());
        state.tail_base += (bytes.len() / UNIT) as u64;
        if state.tail.capacity() > IDLE_TAIL {
            state.tail.shrink_to(IDLE_TAIL);
        }
        Ok(written)
    }

    /// Whether entries wait to be written.
    pub(crate) fn has_tail(&self) -> bool {
        !lock(&self.state).tail.is_empty()
    }

    /// Starts a new round of [`Appending::became_dirty`].
    pub(crate) fn clear_dirty(&self) {
        lock(&self.state).dirty = false;
    }

    /// Takes over what recovery found: a record that states index `index` of this queue. With
    /// `force`, missing entries are given up.
    pub(crate) fn replay(
        &self,
        files: &Files,
        index: u64,
        unit: Unit,
        force: bool,
    ) -> io::Result<Replayed> {
        let mut state = lock(&self.state);
        if index < state.next {
            if state.last_offset.is_some_and(|last| unit.offset <= last) {
                return Ok(Replayed::Known);
            }
            if index > 0 {
                return Ok(state.fill_blank(index, unit));
            }
            // The topic was deleted and made again: a later record has the first index.
            drop(state);
            self.restart(files, 0)?;
            state = lock(&self.state);
        } else if index > state.next {
            let missing = index - state.next;
            if state.last_offset.is_none() {
                drop(state);
                self.restart(files, index)?;
                state = lock(&self.state);
            } else if !force {
                return Ok(Replayed::Gap);
            } else if missing > BLANKS_MAX {
                tracing::error!(topic = %self.topic, queue = self.id, index, "record out of reach");
                return Ok(Replayed::Known);
            }
            while state.next < index {
                state.push(Unit::BLANK);
            }
        }
        state.push(unit);
        Ok(Replayed::Added)
    }

    /// Drops all entries; the next one gets `index`.
    fn restart(&self, files: &Files, index: u64) -> io::Result<()> {
        files.cut(self.name(), 0)?;
        let mut state = lock(&self.state);
        *state = State {
            next: index,
            min: index,
            tail_base: index,
            starts_inside: !index.is_multiple_of(files.file_units()),
            dirty: state.dirty,
            ..State::default()
        };
        Ok(())
    }
}

impl State {
    fn push(&mut self, unit: Unit) {
        self.tail.extend_from_slice(&unit.encode());
        self.next += 1;
        self.last_offset = self.last_offset.max(Some(unit.offset));
    }

    /// Puts an entry where recovery had put a blank, if it waits in the tail.
    fn fill_blank(&mut self, index: u64, unit: Unit) -> Replayed {
        let at = index
            .checked_sub(self.tail_base)
            .map(|skip| skip as usize * UNIT);
        let slot = at.and_then(|at| self.tail.get_mut(at..at + UNIT));
        match slot {
            Some(slot) if Unit::decode(slot).is_some_and(|found| found.is_blank()) => {
                slot.copy_from_slice(&unit.encode());
                self.last_offset = self.last_offset.max(Some(unit.offset));
                Replayed::Added
            }
            _ => Replayed::Known,
        }
    }

    /// Entries of the tail whose records end at or below `limit`.
    fn below(&self, limit: u64) -> usize {
        let count = self.tail.len() / UNIT;
        let end = |index: usize| {
            self.tail
                .get(index * UNIT..)
                .and_then(Unit::decode)
                .map_or(
                    u64::MAX,
                    |unit| {
                        if unit.is_blank() { 0 } else { unit.end() }
                    },
                )
        };
        if count == 0 || end(count - 1) <= limit {
            return count;
        }
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if end(middle) <= limit {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// A queue locked for one entry.
pub(crate) struct Appending<'a> {
    state: MutexGuard<'a, State>,
}

impl Appending<'_> {
    /// Index the entry will have.
    pub(crate) fn index(&self) -> u64 {
        self.state.next
    }

    /// Adds the entry; `true` if the queue had none waiting since the last round.
    pub(crate) fn push(mut self, unit: Unit) -> bool {
        self.state.push(unit);
        !std::mem::replace(&mut self.state.dirty, true)
    }
}
