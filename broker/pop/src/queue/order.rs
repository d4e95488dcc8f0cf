//! Groups that consume in order: one batch at a time is in flight of each queue.
//!
//! **Invariant:** nothing behind a batch is given out while one of its messages is un-acked. When
//! all of those are visible again, they, and nothing else, are given out again, in order. The
//! committed offset is the first un-acked message.
//!
//! A message that came `retry_max` times again and was not acked goes to the dead-letter topic, so
//! that it does not block its queue for ever. Retry topics are never read by ordered pops.

use rmq_types::{Moment, QueueOffset, Timestamp};

use super::{
    AckOutcome, Batch, Begin, Bounds, ChangeAsk, ChangeError, Changed, Handle, InFlightMark,
    Nothing, OrderAsk, PopAsk, Popped, Queue,
    pop::{Lock, OrderLock},
};
use crate::{
    action::{Action, Actions, Copied},
    checkpoint::{Checkpoint, MESSAGES_MAX},
    redelivery,
    time::{Invisible, Now},
};

/// What became of an ack of an ordered group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderAck {
    /// The message is acked.
    Done,
    /// The handle is of an earlier pop, or the message was acked before; answered as success.
    Stale,
    /// The message is none of the batch: the caller's fault.
    Illegal,
}

/// A batch as Java keeps it in `consumerOrderInfo.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderState {
    /// The client's attempt.
    pub attempt: Option<String>,
    /// When it was popped.
    pub pop_time: Timestamp,
    /// For how long it is invisible, ms.
    pub invisible_millis: u32,
    /// Its messages.
    pub messages: Vec<OrderMessage>,
    /// The offset behind it.
    pub end: QueueOffset,
}

/// One message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderMessage {
    /// Its offset.
    pub offset: QueueOffset,
    /// Whether it is acked.
    pub acked: bool,
    /// How often it came before.
    pub count: u32,
    /// When it is visible again.
    pub visible_at: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    offset: u64,
    acked: bool,
    count: u32,
    /// Moment milliseconds.
    due: u64,
    visible_at: i64,
    dead_lettering: bool,
}

#[derive(Debug)]
pub(super) struct OrderBatch {
    members: Vec<Member>,
    pop_time: i64,
    invisible: u32,
    attempt: Option<Box<str>>,
    end: u64,
    retry_max: Option<u32>,
    /// Waiting pops were told that it is visible again.
    told: bool,
    failures: u8,
}

impl OrderBatch {
    fn open(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|one| !one.acked)
    }

    pub(super) fn open_count(&self) -> usize {
        self.open().count()
    }

    pub(super) fn first_open(&self) -> Option<u64> {
        self.open().next().map(|one| one.offset)
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn ends_before(&self, end: u64) -> bool {
        self.end <= end
    }

    /// Whether more was given out after this batch, or again, before the process ended.
    pub(super) fn is_older_than(&self, mark: &InFlightMark) -> bool {
        let shown = self.open().map(|one| one.visible_at).max().unwrap_or(0);
        mark.next.get() != self.end || mark.until.millis() > shown
    }

    /// Acks what lies before the committed offset; `true` if nothing is left.
    pub(super) fn ack_before(&mut self, committed: u64) -> bool {
        for one in &mut self.members {
            one.acked |= one.offset < committed;
        }
        self.first_open().is_none()
    }

    /// When the last un-acked message is visible again.
    fn free_at(&self) -> u64 {
        self.open().map(|one| one.due).max().unwrap_or(0)
    }

    pub(super) fn wake_at(&self) -> Option<Moment> {
        (!self.told).then(|| Moment::from_millis(self.free_at()))
    }

    fn member(&mut self, offset: QueueOffset) -> Option<&mut Member> {
        let found = |one: &&mut Member| one.offset == offset.get();
        self.members.iter_mut().find(found)
    }
}

impl Queue {
    pub(super) fn begin_order(
        &mut self,
        now: Now,
        ask: &PopAsk<'_>,
        order: OrderAsk<'_>,
        bounds: &Bounds,
        out: &mut Actions,
    ) -> Begin {
        if self.buffer.in_flight() > 0 {
            return Begin::Nothing(Nothing::Unordered);
        }
        if now.steady < self.order_from {
            return Begin::Nothing(Nothing::OrderBlocked(self.order_from));
        }
        let mut lock = OrderLock {
            attempt: order.attempt.map(Into::into),
            same: false,
            retry_max: order.retry_max,
        };
        let Some(batch) = &mut self.order else {
            let from = self.position.unwrap_or(0);
            if from == bounds.max.get() || ask.max == 0 {
                return Begin::Nothing(Nothing::Empty);
            }
            let max = ask.max.min(MESSAGES_MAX);
            return Begin::Read(self.take_lock(now, ask, (from, None), max, Some(lock)));
        };
        batch.retry_max = order.retry_max;
        lock.same = order.attempt.is_some() && order.attempt == batch.attempt.as_deref();
        let free_at = Moment::from_millis(batch.free_at());
        if !lock.same && now.steady < free_at {
            return Begin::Nothing(Nothing::OrderBlocked(free_at));
        }
        if !lock.same {
            self.tick_order(now, out);
        }
        let open = || self.order.iter().flat_map(OrderBatch::open);
        if open().any(|one| one.dead_lettering) {
            return Begin::Nothing(Nothing::DeadLettering);
        }
        let from = open().map(|one| one.offset).min().unwrap_or(0);
        let until = open().map(|one| one.offset + 1).max().unwrap_or(0);
        // Acked messages in between are read too, and left out by the finish.
        let max = usize::try_from(until - from).unwrap_or(usize::MAX);
        Begin::Read(self.take_lock(now, ask, (from, Some(until)), max, Some(lock)))
    }

    /// Whether [`Queue::begin_order`] would read; `new`: there are messages behind the position.
    pub(super) fn is_order_ready(&self, now: Now, order: OrderAsk<'_>, new: bool) -> bool {
        if self.buffer.in_flight() > 0 || now.steady < self.order_from {
            return false;
        }
        let Some(batch) = &self.order else { return new };
        let same = order.attempt.is_some() && order.attempt == batch.attempt.as_deref();
        let free = same || now.steady.millis() >= batch.free_at();
        let spent = |one: &Member| {
            one.dead_lettering || !same && order.retry_max.is_some_and(|max| one.count >= max)
        };
        free && !batch.open().any(spent)
    }

    pub(super) fn finish_order(
        &mut self,
        now: Now,
        lock: &Lock,
        offsets: &[u64],
        next: u64,
        out: &mut Actions,
    ) -> Popped {
        let Some(order) = &lock.order else {
            return Popped::Nothing;
        };
        let old_time = self.order.as_ref().map_or(0, |batch| batch.pop_time);
        let pop_time = self.pop_time(now).millis().max(old_time.saturating_add(1));
        self.last_pop_time = self.last_pop_time.max(pop_time);
        self.mark_buffered(Timestamp::from_millis(pop_time), lock.invisible());
        let mut batch = match self.order.take() {
            Some(mut batch) => {
                for one in &mut batch.members {
                    let gone = one.offset < next && !offsets.contains(&one.offset);
                    one.acked |= gone;
                    one.count += u32::from(!one.acked && !order.same && one.offset < next);
                }
                batch.members.retain(|one| !one.acked);
                batch
            }
            None => self.first_batch(lock, offsets, next),
        };
        if batch.members.is_empty() {
            self.advance_commit(out);
            let moved = self.position > Some(lock.from());
            return if moved {
                Popped::Again
            } else {
                Popped::Nothing
            };
        }
        let invisible = lock.invisible();
        for one in &mut batch.members {
            one.due = now.steady.plus_millis(invisible.millis().into()).millis();
            one.visible_at = pop_time + i64::from(invisible.millis());
        }
        batch.pop_time = pop_time;
        batch.invisible = invisible.millis();
        batch.attempt.clone_from(&order.attempt);
        batch.retry_max = order.retry_max;
        batch.told = false;
        let given: Vec<Member> = batch
            .members
            .iter()
            .filter(|one| one.offset < next)
            .copied()
            .collect();
        self.order = Some(batch);
        self.advance_commit(out);
        handed_out(&given, pop_time, invisible)
    }

    fn first_batch(&mut self, lock: &Lock, offsets: &[u64], next: u64) -> OrderBatch {
        let last = offsets.last().map_or(lock.from(), |&last| last + 1);
        let full = offsets.len() >= lock.max();
        let end = if full { last } else { next.max(last) };
        self.position = Some(end);
        let member = |&offset: &u64| Member {
            offset,
            acked: false,
            count: 0,
            due: 0,
            visible_at: 0,
            dead_lettering: false,
        };
        OrderBatch {
            members: offsets.iter().map(member).collect(),
            pop_time: 0,
            invisible: 0,
            attempt: None,
            end,
            retry_max: None,
            told: false,
            failures: 0,
        }
    }

    /// Acks a message by a handle of an ordered pop.
    pub fn ack_order(&mut self, now: Now, handle: Handle, out: &mut Actions) -> OrderAck {
        let Some(batch) = &mut self.order else {
            return match self.ack(handle, out) {
                AckOutcome::Done => OrderAck::Done,
                AckOutcome::Stale => OrderAck::Stale,
            };
        };
        if handle.offset.get() < self.committed || handle.pop_time.millis() != batch.pop_time {
            return OrderAck::Stale;
        }
        let Some(member) = batch.member(handle.offset) else {
            return OrderAck::Illegal;
        };
        if member.acked {
            return OrderAck::Stale;
        }
        member.acked = true;
        self.order_moved(now, out);
        OrderAck::Done
    }

    /// A message of the batch is done with.
    fn order_moved(&mut self, now: Now, out: &mut Actions) {
        self.order = self
            .order
            .take()
            .filter(|batch| batch.first_open().is_some());
        self.advance_commit(out);
        let free_at = self.order.as_ref().map_or(0, OrderBatch::free_at);
        if now.steady.millis() >= free_at {
            out.push(Action::Wake);
        }
    }

    /// Changes when a message of an ordered pop is visible again; its handle stays the same.
    pub fn change_order(
        &mut self,
        now: Now,
        ask: ChangeAsk,
        out: &mut Actions,
    ) -> Result<Changed, ChangeError> {
        let not_in_flight = ChangeError::NotInFlight {
            offset: ask.handle.offset,
        };
        let Some(batch) = &mut self.order else {
            return self.change_invisible(now, ask, out);
        };
        let pop_time = batch.pop_time;
        let member = batch.member(ask.handle.offset).filter(|one| !one.acked);
        let member = member.ok_or(not_in_flight)?;
        if ask.handle.pop_time.millis() != pop_time || member.dead_lettering {
            return Err(not_in_flight);
        }
        let wait = ask.invisible.millis();
        member.due = now.steady.plus_millis(wait.into()).millis();
        member.visible_at = now.wall.plus_millis(wait.into()).millis();
        let shown = (member.visible_at - pop_time).clamp(0, u32::MAX.into());
        batch.told = false;
        self.mark_buffered(now.wall, ask.invisible);
        Ok(Changed {
            pop_time: ask.handle.pop_time,
            invisible_millis: shown as u32,
            revive_queue: Lock::order_revive_queue(),
            record: None,
        })
    }

    /// Tells waiting pops when the batch is visible again; sends on what failed too often.
    pub(super) fn tick_order(&mut self, now: Now, out: &mut Actions) {
        let Some(batch) = &mut self.order else {
            return;
        };
        if now.steady.millis() < batch.free_at() {
            return;
        }
        let max = batch.retry_max;
        for one in batch.members.iter_mut().filter(|one| !one.acked) {
            let spent = max.is_some_and(|max| one.count >= max);
            if spent && !one.dead_lettering {
                one.dead_lettering = true;
                out.push(Action::DeadLetter(QueueOffset::new(one.offset)));
            }
        }
        if !batch.told {
            batch.told = true;
            out.push(Action::Wake);
        }
    }

    /// How a dead letter went.
    pub fn dead_lettered(
        &mut self,
        now: Now,
        offset: QueueOffset,
        copied: Copied,
        out: &mut Actions,
    ) {
        let Some(batch) = &mut self.order else {
            return;
        };
        let failures = batch.failures;
        let Some(member) = batch.member(offset).filter(|one| one.dead_lettering) else {
            return;
        };
        member.dead_lettering = false;
        match copied {
            Copied::Done | Copied::Gone => {
                member.acked = true;
                self.order_moved(now, out);
            }
            Copied::Failed => {
                let wait = redelivery::again_after_millis(failures);
                member.due = now.steady.plus_millis(wait).millis();
                batch.failures = failures.saturating_add(1);
                batch.told = false;
            }
        }
    }

    /// A group that consumed in order now pops without: its batch becomes a checkpoint.
    pub(super) fn order_to_checkpoint(&mut self, now: Now, out: &mut Actions) {
        let Some(batch) = self.order.take() else {
            return;
        };
        let offsets: Vec<u64> = batch.open().map(|one| one.offset).collect();
        let due = batch.free_at().max(now.steady.millis());
        for part in Checkpoint::split(&offsets) {
            if let Some(mut one) = Checkpoint::new(part) {
                let start = one.start;
                one.pop_time = batch.pop_time;
                one.invisible = batch.invisible;
                one.due = due;
                self.adopt(one, start, Moment::from_millis(due));
            }
        }
        self.advance_commit(out);
    }

    /// The batch in flight, to be kept in the group's file.
    #[must_use]
    pub fn order_state(&self) -> Option<OrderState> {
        let batch = self.order.as_ref()?;
        let message = |one: &Member| OrderMessage {
            offset: QueueOffset::new(one.offset),
            acked: one.acked,
            count: one.count,
            visible_at: Timestamp::from_millis(one.visible_at),
        };
        Some(OrderState {
            attempt: batch.attempt.as_deref().map(str::to_owned),
            pop_time: Timestamp::from_millis(batch.pop_time),
            invisible_millis: batch.invisible,
            messages: batch.members.iter().map(message).collect(),
            end: QueueOffset::new(batch.end),
        })
    }

    /// Takes the batch of a former process; before `recovered`.
    pub fn recover_order(&mut self, now: Now, state: &OrderState) {
        let longest = crate::time::INVISIBLE_MAX_MILLIS;
        let member = |one: &OrderMessage| {
            let span = one
                .visible_at
                .since(state.pop_time)
                .clamp(0, longest.into()) as u32;
            let began = one.visible_at.plus_millis(-i64::from(span));
            Member {
                offset: one.offset.get(),
                acked: one.acked,
                count: one.count,
                due: now.remaining(began, span).millis(),
                visible_at: one.visible_at.millis(),
                dead_lettering: false,
            }
        };
        let mut members: Vec<Member> = state.messages.iter().map(member).collect();
        members.sort_by_key(|one| one.offset);
        members.dedup_by_key(|one| one.offset);
        members.truncate(MESSAGES_MAX);
        let last = members.last().map_or(0, |one| one.offset + 1);
        if members.iter().all(|one| one.acked) {
            return;
        }
        self.order = Some(OrderBatch {
            members,
            pop_time: state.pop_time.millis(),
            invisible: state.invisible_millis,
            attempt: state.attempt.as_deref().map(Into::into),
            end: state.end.get().max(last),
            retry_max: None,
            told: false,
            failures: 0,
        });
    }
}

/// What the consumer gets of an ordered batch.
fn handed_out(given: &[Member], pop_time: i64, invisible: Invisible) -> Popped {
    let Some(first) = given.first() else {
        return Popped::Nothing;
    };
    let again = given.iter().filter(|one| one.count > 0);
    Popped::Messages(Batch {
        start: QueueOffset::new(first.offset),
        pop_time: Timestamp::from_millis(pop_time),
        invisible_millis: invisible.millis(),
        revive_queue: Lock::order_revive_queue(),
        messages: given
            .iter()
            .map(|one| QueueOffset::new(one.offset))
            .collect(),
        counts: again
            .map(|one| (QueueOffset::new(one.offset), one.count))
            .collect(),
        count_min: given.iter().map(|one| one.count).min().unwrap_or(0),
    })
}
