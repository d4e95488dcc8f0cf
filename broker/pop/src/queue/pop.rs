//! Popping: begin gives the read to do, finish turns what was read into checkpoints.
//!
//! **Invariant:** between begin and finish nothing changes but the lock; a finish whose lock has
//! ended and was taken by another pop is refused, so two pops never give out the same message. A
//! shell that does not finish (its client is gone, its read failed) calls `abandon`, or the lock
//! ends by itself.

use rmq_types::{Moment, QueueOffset, Timestamp, pop::ORDER_REVIVE_QUEUE};

use super::Queue;
use crate::{
    action::{Action, Actions},
    buffer::Place,
    checkpoint::{Checkpoint, Saved},
    time::{Invisible, Now},
};

/// Where a group begins that has no offset of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Init {
    /// At the first message; always so in retry topics.
    Min,
    /// At the last message (`max − 1`, at least 0).
    Max,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub struct PopAsk<'a> {
    /// Most messages wanted from this queue.
    pub max: usize,
    /// For how long they shall be invisible.
    pub invisible: Invisible,
    /// Where a new group begins.
    pub init: Init,
    /// Queue of the revive topic for the records of this pop; the shell goes round them.
    pub revive_queue: u8,
    /// For groups that consume in order.
    pub order: Option<OrderAsk<'a>>,
}

/// What an ordered pop says besides.
#[derive(Clone, Copy, Debug)]
pub struct OrderAsk<'a> {
    /// The client's attempt: the same one may have the same messages again.
    pub attempt: Option<&'a str>,
    /// Redeliveries before a message goes to the dead-letter topic; `None`: never.
    pub retry_max: Option<u32>,
}

/// What the store and the offset table say of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// First offset that is still there.
    pub min: QueueOffset,
    /// The offset after the last.
    pub max: QueueOffset,
    /// The group's offset in the offset table.
    pub stored: Option<QueueOffset>,
    /// Whether message 0 is still in memory: a new group then begins with it, even by `Init::Max`.
    pub first_in_memory: bool,
}

/// Names a pop between begin and finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// The read to do: messages in `[from, until)`, at most `max` that the filter lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOrder {
    /// For the finish.
    pub ticket: Ticket,
    /// First offset to look at.
    pub from: QueueOffset,
    /// Offset at which to stop.
    pub until: Option<QueueOffset>,
    /// Most messages.
    pub max: usize,
}

/// Why a queue gives nothing now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// Another pop is reading it.
    Locked,
    /// All was given out.
    Empty,
    /// Ordered: messages in flight are invisible until then (or until acked).
    OrderBlocked(Moment),
    /// Ordered: messages that failed too often are on their way to the dead-letter topic.
    DeadLettering,
    /// Ordered: messages of unordered pops of the same group are still in flight.
    Unordered,
    /// The limit of messages in flight is reached.
    InFlightFull,
    /// Records cannot be written, and too many checkpoints wait for them.
    BufferFull,
}

/// The answer to a begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Read, then finish.
    Read(ReadOrder),
    /// Go on with another queue.
    Nothing(Nothing),
}

/// What was read.
#[derive(Clone, Copy, Debug)]
pub struct Read<'a> {
    /// Offsets of the messages that the filter let through, ascending.
    pub offsets: &'a [QueueOffset],
    /// Where the next read begins; less than `from` if the queue ends before it.
    pub next: QueueOffset,
}

/// Messages to give out. The text forms of the answer are made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Start offset of their checkpoint.
    pub start: QueueOffset,
    /// When they were popped.
    pub pop_time: Timestamp,
    /// For how long they are invisible, ms.
    pub invisible_millis: u32,
    /// Revive queue of their handles; 999 for ordered pops.
    pub revive_queue: i32,
    /// The messages to give out; the others that were read are not.
    pub messages: Vec<QueueOffset>,
    /// Ordered: messages that were given out before, and how often.
    pub counts: Vec<(QueueOffset, u32)>,
    /// Ordered: the least of all counts.
    pub count_min: u32,
}

/// The answer to a finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Popped {
    /// Give them out.
    Messages(Batch),
    /// Nothing that may be given out, but the position moved: begin again.
    Again,
    /// Nothing.
    Nothing,
}

/// Why a finish is refused; its messages must not be given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FinishError {
    /// The lock ended and another pop has it, or the queue was reset; transient.
    #[error("the pop took longer than its lock of the queue")]
    Stale,
}

#[derive(Debug)]
pub(super) struct Lock {
    ticket: u64,
    ends: Moment,
    from: u64,
    until: Option<u64>,
    max: usize,
    invisible: Invisible,
    revive_queue: u8,
    /// The read is of what a crash left in doubt, not of what is new.
    again: bool,
    pub(super) order: Option<OrderLock>,
}

#[derive(Debug)]
pub(super) struct OrderLock {
    pub(super) attempt: Option<Box<str>>,
    pub(super) same: bool,
    pub(super) retry_max: Option<u32>,
}

impl Queue {
    /// Begins a pop.
    pub fn begin_pop(
        &mut self,
        now: Now,
        ask: &PopAsk<'_>,
        bounds: &Bounds,
        out: &mut Actions,
    ) -> Begin {
        if self.is_locked(now) {
            return Begin::Nothing(Nothing::Locked);
        }
        self.lock = None;
        self.place(ask.init, bounds, out);
        if let Some(order) = ask.order {
            return self.begin_order(now, ask, order, bounds, out);
        }
        self.order_to_checkpoint(now, out);
        if self.buffer.in_flight() >= self.options.in_flight_max {
            return Begin::Nothing(Nothing::InFlightFull);
        }
        if self.buffer.unsaved() >= 2 * self.options.buffered_max {
            return Begin::Nothing(Nothing::BufferFull);
        }
        let room = self.options.in_flight_max - self.buffer.in_flight();
        let max = ask.max.min(room);
        if let Some((start, end)) = self.again.first().filter(|_| max > 0) {
            let read = self.take_lock(now, ask, (start, Some(end)), max, None);
            self.lock.iter_mut().for_each(|lock| lock.again = true);
            return Begin::Read(read);
        }
        let (from, until) = self.skip_ahead(out);
        if from == bounds.max.get() || max == 0 {
            return Begin::Nothing(Nothing::Empty);
        }
        Begin::Read(self.take_lock(now, ask, (from, until), max, None))
    }

    pub(super) fn take_lock(
        &mut self,
        now: Now,
        ask: &PopAsk<'_>,
        (from, until): (u64, Option<u64>),
        max: usize,
        order: Option<OrderLock>,
    ) -> ReadOrder {
        self.tickets += 1;
        self.lock = Some(Lock {
            ticket: self.tickets,
            ends: now.steady.plus_millis(self.options.lock_millis),
            from,
            until,
            max,
            invisible: ask.invisible,
            revive_queue: ask.revive_queue,
            again: false,
            order,
        });
        ReadOrder {
            ticket: Ticket(self.tickets),
            from: QueueOffset::new(from),
            until: until.map(QueueOffset::new),
            max,
        }
    }

    /// Gives the position its first value, and moves it over what is gone or was consumed
    /// elsewhere (a pull client of the same group).
    pub(super) fn place(&mut self, init: Init, bounds: &Bounds, out: &mut Actions) {
        let (min, max) = (bounds.min.get(), bounds.max.get());
        let stored = bounds.stored.map(QueueOffset::get);
        let position = if let Some(position) = self.position {
            position.max(stored.unwrap_or(0))
        } else {
            let first = stored.unwrap_or(match init {
                Init::Max if !(min == 0 && bounds.first_in_memory) => max.saturating_sub(1),
                _ => min,
            });
            self.committed = first;
            if stored.is_none() {
                out.push(Action::Commit(QueueOffset::new(first)));
            }
            first
        };
        self.position = Some(position.max(min));
        self.advance_commit(out);
    }

    /// What was given out before a crash is not read again.
    pub(super) fn skip_ahead(&mut self, out: &mut Actions) -> (u64, Option<u64>) {
        let (position, until) = self.ahead.skip(self.position.unwrap_or(0));
        self.position = Some(position);
        self.advance_commit(out);
        (position, until)
    }

    /// Whether another pop is reading it.
    #[must_use]
    pub fn is_locked(&self, now: Now) -> bool {
        self.lock
            .as_ref()
            .is_some_and(|lock| now.steady < lock.ends)
    }

    /// Whether a pop that begins now would read something; nothing changes. A filter may leave out
    /// what it reads.
    #[must_use]
    pub fn is_ready(&self, now: Now, bounds: &Bounds, order: Option<OrderAsk<'_>>) -> bool {
        let known = self.position.or(bounds.stored.map(QueueOffset::get));
        let from = known.unwrap_or(0).max(bounds.min.get());
        if let Some(order) = order {
            return self.is_order_ready(now, order, from != bounds.max.get());
        }
        let room = self.buffer.in_flight() < self.options.in_flight_max
            && self.buffer.unsaved() < 2 * self.options.buffered_max;
        room && (self.again.first().is_some() || self.ahead.behind(from) != bounds.max.get())
    }

    /// Ends a pop without messages: the read failed or nobody waits for it.
    pub fn abandon(&mut self, ticket: Ticket) {
        if self
            .lock
            .as_ref()
            .is_some_and(|lock| lock.ticket == ticket.0)
        {
            self.lock = None;
        }
    }

    /// Ends a pop with what was read.
    pub fn finish_pop(
        &mut self,
        now: Now,
        ticket: Ticket,
        read: &Read<'_>,
        out: &mut Actions,
    ) -> Result<Popped, FinishError> {
        let Some(lock) = self.lock.take_if(|lock| lock.ticket == ticket.0) else {
            return Err(FinishError::Stale);
        };
        let next = read.next.get();
        if read.offsets.is_empty() && next < lock.from {
            // The queue ends before the position: it was cut, or deleted and made again.
            self.truncated(next, out);
            return Ok(Popped::Again);
        }
        let inside =
            |offset: &u64| *offset >= lock.from && lock.until.is_none_or(|end| *offset < end);
        let offsets: Vec<u64> = read
            .offsets
            .iter()
            .map(|offset| offset.get())
            .filter(inside)
            .take(lock.max)
            .collect();
        if lock.order.is_some() {
            return Ok(self.finish_order(now, &lock, &offsets, next, out));
        }
        let cut = offsets.len() < read.offsets.len();
        let last = offsets.last().map_or(lock.from, |&last| last + 1);
        let end = if cut { last } else { next.max(last) };
        let end = lock.until.map_or(end, |until| end.min(until));
        if lock.again {
            self.again.drop_before(end);
        } else {
            self.position = Some(end);
        }
        let Some(&start) = offsets.first() else {
            let moved = end > lock.from;
            self.advance_commit(out);
            return Ok(if moved {
                Popped::Again
            } else {
                Popped::Nothing
            });
        };
        let pop_time = self.pop_time(now);
        for part in Checkpoint::split(&offsets) {
            self.keep(now, (part, pop_time), &lock, out);
        }
        self.advance_commit(out);
        Ok(Popped::Messages(Batch {
            start: QueueOffset::new(start),
            pop_time,
            invisible_millis: lock.invisible.millis(),
            revive_queue: lock.revive_queue.into(),
            messages: offsets.into_iter().map(QueueOffset::new).collect(),
            counts: Vec::new(),
            count_min: 0,
        }))
    }

    /// Keeps a new range; it is written at once when memory is crowded or its time is long.
    fn keep(
        &mut self,
        now: Now,
        (offsets, pop_time): (&[u64], Timestamp),
        lock: &Lock,
        out: &mut Actions,
    ) {
        let Some(mut one) = Checkpoint::new(offsets) else {
            return;
        };
        one.pop_time = pop_time.millis();
        one.invisible = lock.invisible.millis();
        one.due = now.steady.plus_millis(one.invisible.into()).millis();
        one.revive_queue = lock.revive_queue;
        // What lies between claims from before a crash does not go behind them.
        if lock.again || lock.until.is_some() {
            let start = one.start;
            self.mark_buffered(pop_time, lock.invisible);
            self.adopt(one, start, now.steady.plus_millis(self.options.stay_millis));
            return;
        }
        let place = Place::Range(one.start);
        let timer = self.keep_timer(now, &mut one, place, out);
        self.mark_new(one.saved, pop_time, lock.invisible);
        self.buffer.push_range(one);
        self.buffer.arm(place, timer);
    }

    /// Writes a new checkpoint at once if it has to be; gives the time at which to look at it.
    pub(super) fn keep_timer(
        &self,
        now: Now,
        one: &mut Checkpoint,
        place: Place,
        out: &mut Actions,
    ) -> u64 {
        let long = one.invisible > self.options.buffer_invisible_millis;
        if one.saved == Saved::No && !long && !self.is_crowded() {
            return now
                .steady
                .plus_millis(self.options.stay_millis)
                .millis()
                .min(one.due);
        }
        let (at, single) = match place {
            Place::Range(start) => (start, false),
            Place::Single(offset) => (offset, true),
        };
        out.push(Action::WriteCheckpoint(Box::new(one.write(at, single))));
        one.due
    }

    /// The queue has no message from `end` on: claims on such are void.
    fn truncated(&mut self, end: u64, out: &mut Actions) {
        self.buffer.void_from(end, out);
        self.order = self.order.take().filter(|batch| batch.ends_before(end));
        self.ahead.cut(end);
        self.again.cut(end);
        self.pop_time_floor = self.last_pop_time.saturating_add(1);
        self.position = Some(end);
        if self.committed > end {
            self.committed = end;
            out.push(Action::Commit(QueueOffset::new(end)));
        }
        self.advance_commit(out);
    }
}

impl Lock {
    pub(super) fn invisible(&self) -> Invisible {
        self.invisible
    }

    pub(super) fn from(&self) -> u64 {
        self.from
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    pub(super) const fn order_revive_queue() -> i32 {
        ORDER_REVIVE_QUEUE
    }
}
