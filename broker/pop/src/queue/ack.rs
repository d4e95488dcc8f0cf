//! Acks and changes of invisible time of unordered groups.
//!
//! **Invariant:** a handle counts only for the claim that gave it: the same offset and the same
//! pop time. An ack of anything else (twice, late, forged, from before a reset or a change)
//! changes nothing and is no error for the client, as in Java.

use rmq_types::{QueueOffset, Timestamp};

use super::Queue;
use crate::{
    action::{Action, Actions, RecordKey},
    buffer::Place,
    checkpoint::{Checkpoint, Saved},
    time::{Invisible, Now},
};

/// What a handle says of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The message.
    pub offset: QueueOffset,
    /// When it was popped.
    pub pop_time: Timestamp,
}

/// What became of an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOutcome {
    /// The message will not come again.
    Done,
    /// No such message is in flight by this handle; answered as success.
    Stale,
}

/// A change of invisible time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeAsk {
    /// The message.
    pub handle: Handle,
    /// Its new invisible time, counted from now.
    pub invisible: Invisible,
}

/// What the new handle is made of; its start offset is the message's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// New pop time.
    pub pop_time: Timestamp,
    /// New invisible time, ms.
    pub invisible_millis: u32,
    /// Revive queue.
    pub revive_queue: i32,
    /// The record that has to be written before the client is answered: until then only an older
    /// record, with an earlier time, speaks for the message. If it fails, so does the change.
    pub record: Option<RecordKey>,
}

/// Why an invisible time was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The handle is old or forged, or its time is over: the caller's fault.
    #[error("message {} is not in flight by this handle", offset.get())]
    NotInFlight {
        /// The message.
        offset: QueueOffset,
    },
    /// The record of its last change is being written: transient.
    #[error("message {} is being changed", offset.get())]
    Busy {
        /// The message.
        offset: QueueOffset,
    },
}

impl Queue {
    /// Acks one message.
    pub fn ack(&mut self, handle: Handle, out: &mut Actions) -> AckOutcome {
        let outcome = self.ack_claim(handle, out);
        self.advance_commit(out);
        outcome
    }

    /// Acks several messages of one pop, as a batch ack does; gives how many were in flight.
    /// Offsets that are none of the pop's are skipped.
    pub fn ack_batch(
        &mut self,
        offsets: impl IntoIterator<Item = QueueOffset>,
        pop_time: Timestamp,
        out: &mut Actions,
    ) -> usize {
        // Bits of the same range are marked together: one record for all of them.
        let mut range: Option<(Place, u32)> = None;
        let mut acked = 0;
        for offset in offsets {
            let Some((place, index)) = self.given(Handle { offset, pop_time }) else {
                continue;
            };
            acked += 1;
            match &mut range {
                Some((same, mask)) if *same == place => *mask |= 1 << index,
                other => {
                    if let Some((place, mask)) = other.replace((place, 1 << index)) {
                        self.buffer.finish(place, mask, out);
                    }
                }
            }
        }
        if let Some((place, mask)) = range {
            self.buffer.finish(place, mask, out);
        }
        self.advance_commit(out);
        acked
    }

    fn ack_claim(&mut self, handle: Handle, out: &mut Actions) -> AckOutcome {
        let Some((place, index)) = self.given(handle) else {
            return AckOutcome::Stale;
        };
        self.buffer.finish(place, 1 << index, out);
        AckOutcome::Done
    }

    /// The claim that gave this handle.
    pub(super) fn given(&self, handle: Handle) -> Option<(Place, u32)> {
        let (place, index) = self.buffer.claim(handle.offset.get())?;
        let one = self.buffer.get(place)?;
        one.gave(handle.pop_time).then_some((place, index))
    }

    /// Changes the invisible time of one message: a new checkpoint stands for it, the old one is
    /// done with as soon as the new one is at least as safe.
    pub fn change_invisible(
        &mut self,
        now: Now,
        ask: ChangeAsk,
        out: &mut Actions,
    ) -> Result<Changed, ChangeError> {
        let offset = ask.handle.offset;
        let not_in_flight = ChangeError::NotInFlight { offset };
        let (place, index) = self.given(ask.handle).ok_or(not_in_flight)?;
        let old = self.buffer.get(place).ok_or(not_in_flight)?;
        if old.sent >> index & 1 == 1 {
            return Err(not_in_flight);
        }
        if matches!(place, Place::Single(_)) && old.saved == Saved::Writing {
            return Err(ChangeError::Busy { offset });
        }
        let (old_saved, old_due, revive_queue) = (old.saved, old.due, old.revive_queue);
        let old_time = old.pop_time.max(ask.handle.pop_time.millis());
        let wall = self.pop_time(now).millis().max(old_time.saturating_add(1));
        self.last_pop_time = self.last_pop_time.max(wall);
        let mut new = Checkpoint::new(&[offset.get()]).ok_or(not_in_flight)?;
        new.pop_time = wall;
        new.invisible = ask.invisible.millis();
        new.due = now.steady.plus_millis(new.invisible.into()).millis();
        new.revive_queue = revive_queue;
        match place {
            Place::Range(start) => self.buffer.mark_moved(start, index),
            Place::Single(offset) if old_saved == Saved::Yes => self.buffer.supersede(offset),
            Place::Single(_) => {}
        }
        let single = Place::Single(offset.get());
        let mut record = None;
        // An old record would bring the message back too early after a crash.
        let timer = if old_saved != Saved::No && new.due > old_due {
            let write = new.write(offset.get(), true);
            record = Some(write.key);
            out.push(Action::WriteCheckpoint(Box::new(write)));
            new.due
        } else {
            self.keep_timer(now, &mut new, single, out)
        };
        self.mark_new(new.saved, Timestamp::from_millis(wall), ask.invisible);
        self.buffer.put_single(offset.get(), new);
        self.buffer.arm(single, timer);
        Ok(Changed {
            pop_time: Timestamp::from_millis(wall),
            invisible_millis: ask.invisible.millis(),
            revive_queue: revive_queue.into(),
            record,
        })
    }
}
