//! The checkpoints of one queue: found by offset, by time, and by what holds the commit back.
//!
//! **Invariant:** every message in flight has exactly one live claim: a bit of a range, or a
//! checkpoint of its own in `singles` (its invisible time was changed). While that one is neither
//! saved nor done, the range keeps the bit as `moved`, or a `Superseded` record stays un-acked, so
//! that a crash at any moment leaves a record or the committed offset that speaks for it.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque},
};

use rmq_types::{QueueOffset, Timestamp};

use crate::{
    action::{AckWrite, Action, Actions, CheckpointWrite, RecordKey},
    checkpoint::{Checkpoint, Saved},
};

/// Where a checkpoint is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// By its first offset.
    Range(u64),
    /// By its only message.
    Single(u64),
}

/// A record whose message has a newer claim that is not saved yet.
#[derive(Debug)]
struct Superseded {
    ack: AckWrite,
    revive_offset: u64,
}

#[derive(Debug, Default)]
pub(crate) struct CheckpointBuffer {
    /// Ascending by start, none reaching into the next.
    ranges: VecDeque<Checkpoint>,
    buried: usize,
    singles: BTreeMap<u64, Checkpoint>,
    /// Singles that stand in for nothing and have no record: they hold the commit back.
    loose: BTreeSet<u64>,
    superseded: BTreeMap<u64, Superseded>,
    /// Voided while their record is being written.
    orphans: BTreeMap<(u64, i64), Checkpoint>,
    timers: BinaryHeap<Reverse<(u64, u64)>>,
    timers_max: usize,
    in_flight: usize,
    unsaved: usize,
    /// Records under way.
    writing: usize,
    /// No range that starts before it holds the commit back.
    unblocked: u64,
}

impl CheckpointBuffer {
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(crate) fn unsaved(&self) -> usize {
        self.unsaved
    }

    pub(crate) fn writing(&self) -> usize {
        self.writing
    }

    /// Bytes held, allocations included as far as they can be counted.
    pub(crate) fn bytes(&self) -> usize {
        let one = size_of::<Checkpoint>();
        // A node of the tree is half full at least, but for its own links.
        self.ranges.capacity() * one
            + (self.singles.len() + self.orphans.len()) * 2 * (one + 8)
            + self.superseded.len() * 2 * (size_of::<Superseded>() + 8)
            + self.timers.capacity() * 16
    }

    fn range_index(&self, offset: u64) -> Option<usize> {
        let after = self.ranges.partition_point(|one| one.start <= offset);
        let index = after.checked_sub(1)?;
        (!self.ranges[index].is_buried()).then_some(index)
    }

    pub(crate) fn get(&self, place: Place) -> Option<&Checkpoint> {
        match place {
            Place::Single(offset) => self.singles.get(&offset),
            Place::Range(start) => {
                let one = &self.ranges[self.range_index(start)?];
                (one.start == start).then_some(one)
            }
        }
    }

    pub(crate) fn get_mut(&mut self, place: Place) -> Option<&mut Checkpoint> {
        match place {
            Place::Single(offset) => self.singles.get_mut(&offset),
            Place::Range(start) => {
                let index = self.range_index(start)?;
                let one = &mut self.ranges[index];
                (one.start == start).then_some(one)
            }
        }
    }

    /// The live claim of a message.
    pub(crate) fn claim(&self, offset: u64) -> Option<(Place, u32)> {
        if let Some(single) = self.singles.get(&offset) {
            let open = single.claimed() != 0;
            return open.then_some((Place::Single(offset), 0));
        }
        let range = &self.ranges[self.range_index(offset)?];
        let index = range.index_of(offset)?;
        let open = range.claimed() >> index & 1 == 1;
        open.then_some((Place::Range(range.start), index))
    }

    /// The first offset at or after `from` that a claim covers, and where that cover ends.
    pub(crate) fn covered(&self, from: u64) -> Option<(u64, u64)> {
        let single = self.singles.range(from..).next();
        let single = single.map(|(&offset, _)| (offset, offset + 1));
        let around = self.ranges.partition_point(|one| one.start <= from);
        let range = self
            .ranges
            .range(around.saturating_sub(1)..)
            .find(|one| !one.is_buried() && one.last() >= from)
            .map(|one| (one.start.max(from), one.last() + 1));
        match (single, range) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn count_in(&mut self, one: &Checkpoint) {
        self.in_flight += one.claimed().count_ones() as usize;
        self.unsaved += usize::from(one.saved != Saved::Yes && !one.is_complete());
        self.writing += usize::from(one.saved == Saved::Writing);
    }

    /// Keeps a range behind all others.
    pub(crate) fn push_range(&mut self, one: Checkpoint) {
        self.count_in(&one);
        self.ranges.push_back(one);
    }

    /// Keeps a range anywhere; gives it back if it would reach into another.
    pub(crate) fn insert_range(&mut self, one: Checkpoint) -> Result<(), Box<Checkpoint>> {
        if self.buried > 0 {
            self.ranges.retain(|one| !one.is_buried());
            self.buried = 0;
        }
        let at = self
            .ranges
            .partition_point(|other| other.start <= one.start);
        let before = at.checked_sub(1).and_then(|at| self.ranges.get(at));
        let apart = before.is_none_or(|other| other.start < one.start && other.last() < one.start)
            && self
                .ranges
                .get(at)
                .is_none_or(|next| one.last() < next.start);
        if !apart {
            return Err(Box::new(one));
        }
        self.count_in(&one);
        self.unblocked = self.unblocked.min(one.start);
        self.ranges.insert(at, one);
        Ok(())
    }

    /// Keeps a checkpoint of one message; the caller has seen to the claim it replaces.
    pub(crate) fn put_single(&mut self, offset: u64, one: Checkpoint) {
        self.count_in(&one);
        if let Some(old) = self.singles.insert(offset, one) {
            self.in_flight -= old.claimed().count_ones() as usize;
            self.unsaved -= usize::from(old.saved != Saved::Yes && !old.is_complete());
        }
    }

    /// Keeps a checkpoint of one message that nothing else speaks for.
    pub(crate) fn put_loose(&mut self, offset: u64, one: Checkpoint) {
        if one.saved != Saved::Yes {
            self.loose.insert(offset);
        }
        self.put_single(offset, one);
    }

    /// Keeps many ranges made at recovery; none of their messages has a claim.
    pub(crate) fn extend_ranges(&mut self, list: Vec<Checkpoint>) {
        for one in &list {
            self.count_in(one);
        }
        self.ranges.extend(list);
        self.ranges.make_contiguous().sort_by_key(|one| one.start);
        self.unblocked = 0;
    }

    /// The range gives the message to a checkpoint of its own.
    pub(crate) fn mark_moved(&mut self, start: u64, index: u32) {
        if let Some(range) = self.get_mut(Place::Range(start)) {
            range.moved |= 1 << index;
            self.in_flight -= 1;
        }
    }

    /// The record of a saved single stays un-acked until the next claim of its message is saved.
    pub(crate) fn supersede(&mut self, offset: u64) {
        let Some(single) = self.singles.get_mut(&offset) else {
            return;
        };
        let revive_offset = single.revive_offset;
        let before = single.done;
        single.done = single.all();
        if let Some(ack) = single.write_acks() {
            self.superseded
                .insert(offset, Superseded { ack, revive_offset });
        }
        single.done = before;
    }

    /// Marks messages as done, and settles what follows from it.
    pub(crate) fn finish(&mut self, place: Place, mask: u32, out: &mut Actions) {
        let Some(one) = self.get_mut(place) else {
            return;
        };
        let fresh = mask & one.claimed();
        one.done |= fresh;
        let closed = fresh != 0 && one.is_complete() && one.saved != Saved::Yes;
        self.in_flight -= fresh.count_ones() as usize;
        self.unsaved -= usize::from(closed);
        self.settle(place, out);
    }

    /// Writes acks that no record knows of; takes a complete checkpoint out.
    pub(crate) fn settle(&mut self, place: Place, out: &mut Actions) {
        let Some(one) = self.get_mut(place) else {
            return;
        };
        if one.saved == Saved::Yes {
            out.extend(
                one.write_acks()
                    .map(|acks| Action::WriteAcks(Box::new(acks))),
            );
        }
        let (complete, saved) = (one.is_complete(), one.saved);
        let (revive_queue, revive_offset) = (one.revive_queue, one.revive_offset);
        if let Place::Single(offset) = place
            && (complete || saved == Saved::Yes)
        {
            self.release(offset, out);
        }
        if !complete || saved == Saved::Writing {
            return;
        }
        if saved == Saved::Yes {
            out.push(resolved(revive_queue, revive_offset));
        }
        self.remove(place);
    }

    /// What a single stood in for is done with.
    fn release(&mut self, offset: u64, out: &mut Actions) {
        self.loose.remove(&offset);
        if let Some(old) = self.superseded.remove(&offset) {
            let queue = old.ack.revive_queue;
            out.push(Action::WriteAcks(Box::new(old.ack)));
            out.push(resolved(queue, old.revive_offset));
        }
        let Some(at) = self.range_index(offset) else {
            return;
        };
        let range = &mut self.ranges[at];
        let bit = range.index_of(offset).map_or(0, |index| 1 << index) & range.moved;
        if bit == 0 {
            return;
        }
        range.moved &= !bit;
        range.done |= bit;
        let closed = range.is_complete() && range.saved != Saved::Yes;
        let start = range.start;
        self.unsaved -= usize::from(closed);
        self.settle(Place::Range(start), out);
    }

    fn remove(&mut self, place: Place) {
        match place {
            Place::Single(offset) => {
                self.singles.remove(&offset);
            }
            Place::Range(start) => {
                let Some(index) = self.range_index(start) else {
                    return;
                };
                self.ranges[index].bury();
                self.buried += 1;
                while self.ranges.front().is_some_and(Checkpoint::is_buried) {
                    self.ranges.pop_front();
                    self.buried -= 1;
                }
                if self.buried > self.ranges.len() / 4 + 16 {
                    self.ranges.retain(|one| !one.is_buried());
                    self.buried = 0;
                    if self.ranges.capacity() > 4 * self.ranges.len() + 64 {
                        self.ranges.shrink_to(2 * self.ranges.len());
                    }
                }
            }
        }
    }

    /// The record to write of a checkpoint that only memory holds.
    pub(crate) fn begin_write(&mut self, place: Place) -> Option<CheckpointWrite> {
        let one = self.get_mut(place)?;
        if one.saved != Saved::No || one.is_complete() || one.any_handle {
            return None;
        }
        let (at, single) = match place {
            Place::Range(start) => (start, false),
            Place::Single(offset) => (offset, true),
        };
        let write = one.write(at, single);
        self.writing += 1;
        Some(write)
    }

    /// The checkpoints that only memory holds and that a record could hold.
    pub(crate) fn unsaved_places(&self) -> Vec<Place> {
        let wanted = |one: &Checkpoint| {
            one.saved == Saved::No && !one.any_handle && !one.is_buried() && !one.is_complete()
        };
        let ranges = self.ranges.iter().filter(|one| wanted(one));
        let singles = self.singles.iter().filter(|(_, one)| wanted(one));
        ranges
            .map(|one| Place::Range(one.start))
            .chain(singles.map(|(&offset, _)| Place::Single(offset)))
            .collect()
    }

    /// The record of a checkpoint was written at `revive_offset`.
    pub(crate) fn written(&mut self, key: RecordKey, revive_offset: u64, out: &mut Actions) {
        self.writing = self.writing.saturating_sub(1);
        let place = place_of(key);
        if let Some(one) = self.get_mut(place)
            && one.saved == Saved::Writing
            && one.pop_time == key.pop_time
        {
            one.saved = Saved::Yes;
            one.revive_offset = revive_offset;
            let open = !one.is_complete();
            self.unsaved -= usize::from(open);
            self.settle(place, out);
            return;
        }
        if let Some(mut orphan) = self.orphans.remove(&(key.start, key.pop_time)) {
            out.extend(
                orphan
                    .write_acks()
                    .map(|acks| Action::WriteAcks(Box::new(acks))),
            );
        }
        out.push(resolved(key.revive_queue, revive_offset));
    }

    /// The record of a checkpoint could not be written; it is tried again at `again`.
    pub(crate) fn not_written(&mut self, key: RecordKey, again: u64, out: &mut Actions) {
        self.writing = self.writing.saturating_sub(1);
        let place = place_of(key);
        if let Some(one) = self.get_mut(place)
            && one.saved == Saved::Writing
            && one.pop_time == key.pop_time
        {
            one.saved = Saved::No;
            self.settle(place, out);
            self.arm(place, again);
        } else {
            self.orphans.remove(&(key.start, key.pop_time));
        }
    }

    /// Forgets every message in flight from `from` on; their records are acked.
    pub(crate) fn void_from(&mut self, from: u64, out: &mut Actions) {
        let singles: Vec<u64> = self
            .singles
            .range(from..)
            .map(|(&offset, _)| offset)
            .collect();
        for offset in singles {
            self.finish(Place::Single(offset), 1, out);
            if let Some(orphan) = self.singles.remove(&offset) {
                self.orphans.insert((orphan.start, orphan.pop_time), orphan);
            }
        }
        while let Some(last) = self.ranges.back() {
            if last.is_buried() {
                self.buried -= usize::from(self.ranges.pop_back().is_some());
                continue;
            }
            if last.last() < from {
                break;
            }
            let start = last.start;
            let mask = (0..last.count()).filter(|&index| last.offset_of(index) >= from);
            let mask = mask.fold(0, |mask, index| mask | 1 << index);
            self.finish(Place::Range(start), mask, out);
            if start < from {
                break;
            }
            // A complete one is gone unless its record is being written.
            if self.ranges.back().is_some_and(|one| one.start == start)
                && let Some(orphan) = self.ranges.pop_back()
            {
                if orphan.is_buried() {
                    self.buried -= 1;
                } else {
                    self.orphans.insert((orphan.start, orphan.pop_time), orphan);
                }
            }
        }
        self.unblocked = self.unblocked.min(from);
        if self.ranges.is_empty() && self.singles.is_empty() {
            self.timers.clear();
        }
    }

    /// The first message that only memory holds: the commit may not pass it.
    pub(crate) fn first_blocked(&mut self) -> Option<u64> {
        let loose = self.loose.first().copied();
        match (self.first_blocked_range(), loose) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn first_blocked_range(&mut self) -> Option<u64> {
        let from = self
            .ranges
            .partition_point(|one| one.start < self.unblocked);
        for one in self.ranges.range(from..) {
            self.unblocked = one.start;
            if one.saved != Saved::Yes && !one.is_complete() {
                return Some(one.offset_of(one.open().trailing_zeros()));
            }
        }
        self.unblocked = self.ranges.back().map_or(0, |last| last.start + 1);
        None
    }

    /// Sets a time at which to look at a checkpoint.
    pub(crate) fn arm(&mut self, place: Place, at: u64) {
        let key = match place {
            Place::Range(start) => start << 1,
            Place::Single(offset) => offset << 1 | 1,
        };
        self.timers.push(Reverse((at, key)));
        if self.timers.len() > self.timers_max.max(64) {
            let mut timers = std::mem::take(&mut self.timers);
            timers.retain(|Reverse((_, key))| self.get(place_of_timer(*key)).is_some());
            self.timers_max = timers.len() + timers.len() / 2;
            self.timers = timers;
        }
    }

    /// The next time at which [`CheckpointBuffer::fired`] may give something.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes a checkpoint whose time has come.
    pub(crate) fn fired(&mut self, steady: u64) -> Option<Place> {
        while self.next_timer()? <= steady {
            let Reverse((_, key)) = self.timers.pop()?;
            let place = place_of_timer(key);
            if self.get(place).is_some() {
                return Some(place);
            }
        }
        None
    }

    /// Whether the checkpoint of this record that holds the message is already kept.
    pub(crate) fn knows(&self, offset: u64, start: u64, pop_time: Timestamp) -> bool {
        let same = |one: &Checkpoint| one.start == start && one.pop_time == pop_time.millis();
        let range = self.range_index(offset).map(|index| &self.ranges[index]);
        range.is_some_and(|one| same(one) && one.index_of(offset).is_some())
            || self.singles.get(&offset).is_some_and(same)
            || self.orphans.contains_key(&(start, pop_time.millis()))
    }
}

fn place_of(key: RecordKey) -> Place {
    if key.single {
        Place::Single(key.at)
    } else {
        Place::Range(key.at)
    }
}

fn place_of_timer(key: u64) -> Place {
    if key & 1 == 1 {
        Place::Single(key >> 1)
    } else {
        Place::Range(key >> 1)
    }
}

pub(crate) fn resolved(revive_queue: u8, revive_offset: u64) -> Action {
    Action::Resolved {
        revive_queue,
        revive_offset: QueueOffset::new(revive_offset),
    }
}
