//! What time does: checkpoints that stayed long enough are written, messages whose time is over
//! are sent on.
//!
//! **Invariant:** a message is sent on only when its steady due time has passed and nobody acked
//! it; one copy at a time is under way for it. A tick begins a bounded number of actions; when
//! more is due, `wake_at` says so at once.

use rmq_types::{QueueOffset, Timestamp};

use super::Queue;
use crate::{
    action::{Action, Actions, Copied, Redelivery},
    buffer::Place,
    checkpoint::{Saved, bits},
    redelivery,
    time::Now,
};

impl Queue {
    /// Does what is due; call it at [`Queue::wake_at`], or at any time.
    pub fn tick(&mut self, now: Now, out: &mut Actions) {
        let first = out.len();
        while out.len() - first < self.options.tick_actions_max {
            let Some(place) = self.buffer.fired(now.steady.millis()) else {
                break;
            };
            self.fire(now, place, out);
        }
        self.tick_order(now, out);
        if self.order_wake.take_if(|at| *at <= now.steady).is_some() {
            out.push(Action::Wake);
        }
        self.advance_commit(out);
    }

    /// Begins a record for every checkpoint that only memory holds: the process is about to end.
    pub fn save_all(&mut self, out: &mut Actions) {
        for place in self.buffer.unsaved_places() {
            let write = self.buffer.begin_write(place);
            out.extend(write.map(|write| Action::WriteCheckpoint(Box::new(write))));
        }
    }

    fn fire(&mut self, now: Now, place: Place, out: &mut Actions) {
        let Some(one) = self.buffer.get_mut(place) else {
            return;
        };
        if now.steady.millis() < one.due {
            let due = one.due;
            let write = self.buffer.begin_write(place);
            out.extend(write.map(|write| Action::WriteCheckpoint(Box::new(write))));
            self.buffer.arm(place, due);
            return;
        }
        let mask = one.claimed() & !one.sent;
        if one.any_handle {
            let offsets: Vec<u64> = one.offsets(mask).collect();
            for offset in offsets {
                self.again.add(offset, offset + 1);
            }
            self.buffer.finish(place, mask, out);
            out.push(Action::Wake);
            return;
        }
        one.sent |= mask;
        let pop_time = Timestamp::from_millis(one.pop_time);
        for index in bits(mask) {
            out.push(Action::Redeliver(Redelivery {
                offset: QueueOffset::new(one.offset_of(index)),
                pop_time,
            }));
        }
    }

    /// How a redelivery went. A message that was acked meanwhile has a copy too many; that is all.
    pub fn redelivered(
        &mut self,
        now: Now,
        message: Redelivery,
        copied: Copied,
        out: &mut Actions,
    ) {
        let Some((place, index)) = self.buffer.claim(message.offset.get()) else {
            return;
        };
        let Some(one) = self.buffer.get_mut(place) else {
            return;
        };
        if one.pop_time != message.pop_time.millis() || one.sent >> index & 1 == 0 {
            return;
        }
        match copied {
            Copied::Done | Copied::Gone => self.buffer.finish(place, 1 << index, out),
            Copied::Failed => {
                one.sent &= !(1 << index);
                let wait = redelivery::again_after_millis(one.failures);
                // Several of a checkpoint fail together: that is one failure.
                if one.due <= now.steady.millis() {
                    one.failures = one.failures.saturating_add(1);
                    one.due = now.steady.plus_millis(wait).millis();
                }
                // One that only memory holds is written now: it may not hold the commit back.
                let at = match one.saved {
                    Saved::No => now.steady.millis(),
                    Saved::Writing | Saved::Yes => one.due,
                };
                self.buffer.arm(place, at);
            }
        }
        self.advance_commit(out);
    }
}
