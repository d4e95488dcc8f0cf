//! Recovery: the state of a queue from its records, its committed offset and its mark.
//!
//! Records are given in the order of their revive queue, each once: first those from the revive
//! queue's committed offset on, before `recovered`; later ones (that a Java broker's timer
//! delivers) at any time.
//!
//! **Invariant:** of two claims of one message the later pop wins. What lies between the committed
//! offset and the mark and in no record may have been given out: it stays invisible until the
//! mark's time, and acks of its handles count; what is left then is read again from its queue, as
//! if it had never been given out. Without a mark it is read again at once.

use rmq_types::{Moment, QueueOffset, Timestamp};

use super::Queue;
use crate::{
    action::Actions,
    buffer::Place,
    checkpoint::{Checkpoint, MESSAGES_MAX, Saved},
    time::{Invisible, Now},
};

/// A `ck` record as it was read.
#[derive(Clone, Copy, Debug)]
pub struct SavedCheckpoint<'a> {
    /// First offset.
    pub start: QueueOffset,
    /// When its messages were popped.
    pub pop_time: Timestamp,
    /// For how long they are invisible.
    pub invisible: Invisible,
    /// The revive queue.
    pub revive_queue: u8,
    /// Where the record stands in it.
    pub revive_offset: QueueOffset,
    /// The messages, ascending, at most 32, and whether each still needs redelivery.
    pub messages: &'a [(QueueOffset, bool)],
}

/// What may be in flight without a record. A shell keeps the newest one of each queue where a
/// killed process does not lose it (a mapped file; 24 bytes), before the pop's answer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightMark {
    /// Messages before this offset may have been given out.
    pub next: QueueOffset,
    /// The last of them is visible again then.
    pub until: Timestamp,
    /// Longest invisible time among them, ms: no wait after a crash is longer.
    pub span_millis: u32,
}

/// What a queue begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The group's offset in the offset table.
    pub committed: Option<QueueOffset>,
    /// The mark of the process before.
    pub mark: Option<InFlightMark>,
    /// Whether the group consumes in order: then a mark makes its pops wait.
    pub ordered: bool,
}

#[derive(Debug, Default)]
pub(super) struct MarkState {
    until: i64,
    span: u32,
    /// As `until` and `span`, of records that were begun at once: they count while one is under
    /// way only.
    written_until: i64,
    written_span: u32,
    /// The mark of the process before, while an ordered group waits for its time.
    former: Option<InFlightMark>,
}

/// Stretches of offsets that were given out before a crash, ascending by their start.
#[derive(Debug, Default)]
pub(super) struct Ahead(Vec<(u64, u64)>);

impl Ahead {
    pub(super) fn add(&mut self, start: u64, end: u64) {
        let at = self.0.partition_point(|&(other, _)| other < start);
        let joins = at.checked_sub(1).is_some_and(|before| {
            let before = self.0.get_mut(before).filter(|one| one.1 >= start);
            before.map(|one| one.1 = one.1.max(end)).is_some()
        });
        if !joins {
            self.0.insert(at, (start, end));
        }
    }

    /// The first stretch.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.0.first().copied()
    }

    /// Where `position` goes on, as [`Ahead::skip`] finds it.
    pub(super) fn behind(&self, position: u64) -> u64 {
        let reached = self.0.iter().take_while(|one| one.0 <= position);
        reached.fold(position, |at, &(_, end)| at.max(end))
    }

    /// How many offsets there are.
    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(|&(start, end)| end - start).sum()
    }

    /// Offsets before `end` are done with.
    pub(super) fn drop_before(&mut self, end: u64) {
        self.0.retain(|one| one.1 > end);
        for one in &mut self.0 {
            one.0 = one.0.max(end);
        }
    }

    /// The first offset at or behind `position` that was not given out, and how far it goes on.
    pub(super) fn skip(&mut self, mut position: u64) -> (u64, Option<u64>) {
        let mut passed = 0;
        for &(start, end) in &self.0 {
            if start > position {
                break;
            }
            position = position.max(end);
            passed += 1;
        }
        self.0.drain(..passed);
        (position, self.0.first().map(|&(start, _)| start))
    }

    /// Nothing from `end` on counts any more.
    pub(super) fn cut(&mut self, end: u64) {
        self.0.retain(|&(start, _)| start < end);
        for one in &mut self.0 {
            one.1 = one.1.min(end);
        }
    }
}

impl Queue {
    /// Takes a checkpoint record. Gives how many `Resolved` actions will come for it; the revive
    /// queue has to know, and none means that the record is done with.
    pub fn recover_checkpoint(
        &mut self,
        now: Now,
        saved: &SavedCheckpoint<'_>,
        out: &mut Actions,
    ) -> u32 {
        let start = saved.start.get();
        let list = &saved.messages[..saved.messages.len().min(MESSAGES_MAX)];
        let known = |offset: u64| self.buffer.knows(offset, start, saved.pop_time);
        if list.iter().any(|&(offset, _)| known(offset.get())) {
            return 0;
        }
        let offsets: Vec<u64> = list.iter().map(|(offset, _)| offset.get()).collect();
        if let Some(&last) = offsets.last() {
            self.ahead.add(start.min(last), last + 1);
        }
        let mut open = 0;
        for (index, &(offset, needed)) in list.iter().enumerate() {
            if needed && self.takes_over(offset.get(), saved.pop_time, out) {
                open |= 1 << index;
            }
        }
        let Some(mut one) = Checkpoint::new(&offsets) else {
            return 0;
        };
        one.done = one.all() & !open;
        if one.is_complete() {
            return 0;
        }
        one.start_saved(now, saved);
        let due = Moment::from_millis(one.due);
        let parts = self.adopt(one, saved.start.get(), due);
        self.advance_commit(out);
        parts
    }

    /// Whether a claim of this pop time is the newest of the message; ends an older one.
    fn takes_over(&mut self, offset: u64, pop_time: Timestamp, out: &mut Actions) -> bool {
        let Some((place, index)) = self.buffer.claim(offset) else {
            return true;
        };
        let older = |one: &Checkpoint| one.pop_time < pop_time.millis();
        if !self.buffer.get(place).is_some_and(older) {
            return false;
        }
        self.buffer.finish(place, 1 << index, out);
        true
    }

    /// Keeps a checkpoint as a range if it fits between the others, or else message by message; it
    /// is looked at when it is due, or at `look` before.
    pub(super) fn adopt(&mut self, one: Checkpoint, start: u64, look: Moment) -> u32 {
        let due = one.due.min(look.millis());
        let range = Place::Range(one.start);
        let one = if one.count() > 1 {
            match self.buffer.insert_range(one) {
                Ok(()) => {
                    self.buffer.arm(range, due);
                    return 1;
                }
                Err(one) => *one,
            }
        } else {
            one
        };
        let mut parts = 0;
        for offset in one.offsets(one.open()) {
            let part = Checkpoint::part(start, offset).or_else(|| Checkpoint::new(&[offset]));
            let Some(mut part) = part else { continue };
            part.take_times(&one);
            self.buffer.put_loose(offset, part);
            self.buffer.arm(Place::Single(offset), due);
            parts += 1;
        }
        parts
    }

    /// Takes an ack record.
    pub fn recover_acks(
        &mut self,
        start: QueueOffset,
        pop_time: Timestamp,
        offsets: impl IntoIterator<Item = QueueOffset>,
        out: &mut Actions,
    ) {
        for offset in offsets {
            let Some((place, index)) = self.buffer.claim(offset.get()) else {
                continue;
            };
            let Some(one) = self.buffer.get_mut(place) else {
                continue;
            };
            if one.start == start.get() && one.gave(pop_time) {
                one.recorded |= 1 << index;
                self.buffer.finish(place, 1 << index, out);
            }
        }
        self.advance_commit(out);
    }

    /// Every record was given; reading begins at the committed offset, or behind what is claimed.
    pub fn recovered(&mut self, now: Now, with: Recovery, out: &mut Actions) {
        let Some(committed) = with.committed.map(QueueOffset::get) else {
            return;
        };
        self.committed = committed;
        self.check_order(committed, with.mark);
        let behind_order = self.order.as_ref().map_or(0, super::order::OrderBatch::end);
        self.position = Some(committed.max(behind_order));
        if let Some(mark) = with.mark {
            if with.ordered {
                if self.order.is_none() && mark.next.get() > committed {
                    self.order_from = now.remaining(mark.began(), mark.span_millis);
                    self.order_wake = Some(self.order_from);
                    self.mark.former = Some(mark);
                }
            } else {
                self.doubt(now, committed, mark);
            }
        }
        self.skip_ahead(out);
    }

    /// Drops a batch that is older than the offset or the mark: the mark's wait stands for it.
    fn check_order(&mut self, committed: u64, mark: Option<InFlightMark>) {
        if let Some(batch) = &mut self.order {
            let newer = mark.is_some_and(|mark| batch.is_older_than(&mark));
            if batch.ack_before(committed) || newer {
                self.order = None;
            }
        }
    }

    /// Keeps claims for what may have been given out without a record.
    fn doubt(&mut self, now: Now, committed: u64, mark: InFlightMark) {
        let next = mark.next.get();
        let most = self.options.in_flight_max as u64;
        let mut at = committed.max(next.saturating_sub(most));
        let due = now.remaining(mark.began(), mark.span_millis).millis();
        let mut list = Vec::new();
        while at < next {
            let cover = self.buffer.covered(at);
            if let Some((_, end)) = cover.filter(|(start, _)| *start <= at) {
                at = end;
                continue;
            }
            let stop = cover.map_or(next, |(start, _)| start.min(next));
            let stop = stop.min(at + MESSAGES_MAX as u64);
            let offsets: Vec<u64> = (at..stop).collect();
            at = stop;
            let Some(mut one) = Checkpoint::new(&offsets) else {
                break;
            };
            one.pop_time = mark.began().millis();
            one.invisible = mark.span_millis;
            one.due = due;
            one.any_handle = true;
            list.push(one);
        }
        let starts: Vec<u64> = list.iter().map(|one| one.start).collect();
        self.ahead
            .add(committed.max(next.saturating_sub(most)), next);
        self.mark_buffered(mark.began(), Invisible::longest(mark.span_millis));
        self.buffer.extend_ranges(list);
        for start in starts {
            self.buffer.arm(Place::Range(start), due);
        }
    }

    /// Remembers for the mark that something is in flight which no record holds.
    pub(super) fn mark_buffered(&mut self, pop_time: Timestamp, invisible: Invisible) {
        let until = pop_time.plus_millis(invisible.millis().into()).millis();
        if self.buffer.unsaved() == 0 && self.order.is_none() {
            self.mark = MarkState::default();
        }
        self.mark.former = None;
        self.mark.until = self.mark.until.max(until);
        self.mark.span = self.mark.span.max(invisible.millis());
    }

    /// As [`Queue::mark_buffered`], of a checkpoint whose record may be under way already.
    pub(super) fn mark_new(&mut self, saved: Saved, pop_time: Timestamp, invisible: Invisible) {
        if saved == Saved::No {
            self.mark_buffered(pop_time, invisible);
            return;
        }
        if self.buffer.writing() == 0 {
            (self.mark.written_until, self.mark.written_span) = (0, 0);
        }
        let until = pop_time.plus_millis(invisible.millis().into()).millis();
        self.mark.written_until = self.mark.written_until.max(until);
        self.mark.written_span = self.mark.written_span.max(invisible.millis());
    }

    /// A record that was begun at once failed: what it was to hold is in memory only.
    pub(super) fn mark_failed(&mut self) {
        self.mark.until = self.mark.until.max(self.mark.written_until);
        self.mark.span = self.mark.span.max(self.mark.written_span);
    }

    /// The mark to keep now; `None` when every message in flight has its record.
    #[must_use]
    pub fn mark(&self) -> Option<InFlightMark> {
        if self.buffer.unsaved() == 0 && self.order.is_none() {
            return self.mark.former;
        }
        let (mut until, mut span) = (self.mark.until, self.mark.span);
        if self.buffer.writing() > 0 {
            until = until.max(self.mark.written_until);
            span = span.max(self.mark.written_span);
        }
        Some(InFlightMark {
            next: QueueOffset::new(self.position?),
            until: Timestamp::from_millis(until),
            span_millis: span,
        })
    }
}

impl InFlightMark {
    fn began(self) -> Timestamp {
        self.until.plus_millis(-i64::from(self.span_millis))
    }
}

impl Checkpoint {
    fn start_saved(&mut self, now: Now, saved: &SavedCheckpoint<'_>) {
        self.pop_time = saved.pop_time.millis();
        self.invisible = saved.invisible.millis();
        self.due = now.remaining(saved.pop_time, self.invisible).millis();
        self.revive_queue = saved.revive_queue;
        self.revive_offset = saved.revive_offset.get();
        self.saved = Saved::Yes;
        self.recorded = self.done;
    }

    fn take_times(&mut self, from: &Self) {
        self.pop_time = from.pop_time;
        self.invisible = from.invisible;
        self.due = from.due;
        self.revive_queue = from.revive_queue;
        self.revive_offset = from.revive_offset;
        self.saved = from.saved;
        self.any_handle = from.any_handle;
    }
}
