//! What one group has read of one queue of one topic: the machine.
//!
//! A shell keeps one [`Queue`] for each (group, stored topic, queue), behind a lock of its own, and
//! calls it with events; the crate's documentation shows how. Retry topics are queues like any
//! other.
//!
//! **Invariant:** every message below the committed offset is acked, copied on, dropped on
//! purpose, or held by a record of the revive topic; every message between the committed offset
//! and the position is one of these or has a claim in memory. Nothing is given out twice before
//! its invisible time is over.

mod ack;
mod order;
mod pop;
mod recover;
mod tick;

use rmq_types::{Moment, QueueOffset, Timestamp};

pub use ack::{AckOutcome, ChangeAsk, ChangeError, Changed, Handle};
pub use order::{OrderAck, OrderMessage, OrderState};
pub use pop::{
    Batch, Begin, Bounds, FinishError, Init, Nothing, OrderAsk, PopAsk, Popped, Read, ReadOrder,
    Ticket,
};
pub use recover::{InFlightMark, Recovery, SavedCheckpoint};

use crate::{
    action::{Action, Actions, RecordKey},
    buffer::CheckpointBuffer,
    options::Options,
    time::Now,
};
use order::OrderBatch;

/// How long a record that could not be written waits, ms.
const WRITE_AGAIN_MILLIS: u64 = 1000;

/// The state of one (group, stored topic, queue).
#[derive(Debug)]
pub struct Queue {
    options: Options,
    /// The next offset to read; `None` until the first pop.
    position: Option<u64>,
    committed: u64,
    buffer: CheckpointBuffer,
    /// What lies ahead of the position and was given out before a crash: not read again.
    ahead: recover::Ahead,
    /// What lies behind the position and may not have reached anybody before a crash: it is read
    /// again, first of all.
    again: recover::Ahead,
    order: Option<OrderBatch>,
    /// Ordered pops wait until then: what they had in flight before a crash is not known.
    order_from: Moment,
    /// Whoever waits is still to be told that this wait is over.
    order_wake: Option<Moment>,
    lock: Option<pop::Lock>,
    tickets: u64,
    /// Greatest pop time given out.
    last_pop_time: i64,
    /// Least pop time to give out: handles from before a reset never match again.
    pop_time_floor: i64,
    mark: recover::MarkState,
}

/// Figures of one queue for statistics and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueFigures {
    /// Messages given out and neither acked nor copied on.
    pub in_flight: usize,
    /// Checkpoints that no record holds.
    pub buffered: usize,
    /// The group's offset.
    pub committed: QueueOffset,
    /// The next offset to give out; messages from here on are available.
    pub position: QueueOffset,
    /// Messages before the position that are available too: what a crash left in doubt.
    pub again: u64,
    /// Bytes that the state takes, without the struct itself.
    pub bytes: usize,
}

impl Queue {
    /// A queue that nothing is known of; [`Queue::recovered`] gives it its offset, or the first
    /// pop takes it from its bounds.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            position: None,
            committed: 0,
            buffer: CheckpointBuffer::default(),
            ahead: recover::Ahead::default(),
            again: recover::Ahead::default(),
            order: None,
            order_from: Moment::default(),
            order_wake: None,
            lock: None,
            tickets: 0,
            last_pop_time: 0,
            pop_time_floor: 0,
            mark: recover::MarkState::default(),
        }
    }

    /// When [`Queue::tick`] has something to do next, as far as is known now.
    #[must_use]
    pub fn wake_at(&self) -> Option<Moment> {
        let timer = self.buffer.next_timer().map(Moment::from_millis);
        let order = self.order.as_ref().and_then(OrderBatch::wake_at);
        [timer, order, self.order_wake].into_iter().flatten().min()
    }

    /// The figures.
    #[must_use]
    pub fn figures(&self) -> QueueFigures {
        let order = self.order.as_ref().map_or(0, OrderBatch::open_count);
        QueueFigures {
            in_flight: self.buffer.in_flight() + order,
            buffered: self.buffer.unsaved(),
            committed: QueueOffset::new(self.committed),
            position: QueueOffset::new(self.position.unwrap_or(self.committed)),
            again: self.again.len(),
            bytes: self.buffer.bytes(),
        }
    }

    /// The group's offset; `None` before the first pop of a queue that nothing is known of.
    #[must_use]
    pub fn committed(&self) -> Option<QueueOffset> {
        self.position.map(|_| QueueOffset::new(self.committed))
    }

    /// Whether a batch of an ordered pop is in flight.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.order.is_some()
    }

    /// Whether forgetting this state loses nothing but the position: nothing is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let figures = self.figures();
        figures.in_flight == 0 && figures.buffered == 0 && figures.again == 0 && self.lock.is_none()
    }

    /// Where a peek reads: the next offset to give out, without any change of state.
    #[must_use]
    pub fn peek_from(&self, bounds: &Bounds) -> QueueOffset {
        let open = self.order.as_ref().and_then(OrderBatch::first_open);
        let known = open
            .or(self.position)
            .or(bounds.stored.map(QueueOffset::get));
        let from = known.unwrap_or_else(|| bounds.min.get());
        QueueOffset::new(from.max(bounds.min.get()))
    }

    /// The record of a checkpoint is durable, at this offset of its revive queue.
    pub fn record_written(&mut self, key: RecordKey, at: QueueOffset, out: &mut Actions) {
        self.buffer.written(key, at.get(), out);
        self.advance_commit(out);
    }

    /// The record of a checkpoint could not be written; it is tried again after a second.
    pub fn record_failed(&mut self, now: Now, key: RecordKey, out: &mut Actions) {
        let again = now.steady.plus_millis(WRITE_AGAIN_MILLIS).millis();
        self.mark_failed();
        self.buffer.not_written(key, again, out);
        self.advance_commit(out);
    }

    /// The group's offset was reset: whatever is in flight is forgotten, its records are acked,
    /// its handles are void, a pop that is under way is refused, and reading goes on at `to`.
    pub fn reset(&mut self, to: QueueOffset, out: &mut Actions) {
        self.forget(out);
        self.position = Some(to.get());
        self.committed = to.get();
        out.push(Action::Commit(to));
        out.push(Action::Wake);
    }

    /// The topic or the group was deleted: as a reset, but without an offset. A topic of the same
    /// name begins anew; records of the old one are acked, so that they never speak for it.
    pub fn deleted(&mut self, out: &mut Actions) {
        self.forget(out);
        self.position = None;
        self.committed = 0;
        out.push(Action::Wake);
    }

    fn forget(&mut self, out: &mut Actions) {
        self.buffer.void_from(0, out);
        self.order = None;
        self.order_from = Moment::default();
        self.order_wake = None;
        self.lock = None;
        self.ahead.cut(0);
        self.again.cut(0);
        self.pop_time_floor = self.last_pop_time.saturating_add(1);
        self.mark = recover::MarkState::default();
    }

    /// Commits as far as nothing that only memory holds lies behind.
    fn advance_commit(&mut self, out: &mut Actions) {
        let Some(position) = self.position else {
            return;
        };
        let blocked = self.buffer.first_blocked();
        let open = self.order.as_ref().and_then(OrderBatch::first_open);
        let again = self.again.first().map(|(start, _)| start);
        let point = [blocked, open, again]
            .into_iter()
            .flatten()
            .fold(position, u64::min);
        if point > self.committed {
            self.committed = point;
            out.push(Action::Commit(QueueOffset::new(point)));
        }
    }

    fn pop_time(&mut self, now: Now) -> Timestamp {
        let time = now.wall.millis().max(self.pop_time_floor);
        self.last_pop_time = self.last_pop_time.max(time);
        Timestamp::from_millis(time)
    }

    /// Whether new checkpoints are better written at once.
    fn is_crowded(&self) -> bool {
        self.buffer.unsaved() >= self.options.buffered_max
    }
}
