//! An event of a queue, and carrying out what follows from it.
//!
//! **Invariant:** under the queue's lock the offset table, the mark and the alarm are brought up to
//! date, so they never go back behind another thread's; everything else happens after the lock is
//! free, in the order that was asked. No answer leaves before the mark that it depends on is kept.

use std::sync::Arc;

use rmq_pop::{Action, Actions, Now, Queue, RecordKey};
use rmq_types::{Moment, QueueOffset};

use super::{
    Cell,
    cell::State,
    copies,
    marks::Kept,
    revive::{self, Recorded},
};
use crate::{core::Core, handler};

/// How long a committed offset may be ahead of the one that a killed process leaves, ms.
const KEEP_AFTER_MILLIS: u64 = 100;

thread_local! {
    static SPARE: std::cell::Cell<Actions> = const { std::cell::Cell::new(Vec::new()) };
}

/// What became of the records that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    failed: Vec<RecordKey>,
}

impl Carried {
    /// Whether a record could not be written.
    pub(crate) fn has_failed(&self, key: RecordKey) -> bool {
        self.failed.contains(&key)
    }
}

/// Gives an event to a queue and carries out what follows.
pub(crate) fn step<R>(
    core: &Core,
    cell: &Arc<Cell>,
    event: impl FnOnce(&mut Queue, Now, &mut Actions) -> R,
) -> R {
    step_on(core, cell, event).0
}

/// As [`step`]; also says how records went.
pub(crate) fn step_on<R>(
    core: &Core,
    cell: &Arc<Cell>,
    event: impl FnOnce(&mut Queue, Now, &mut Actions) -> R,
) -> (R, Carried) {
    let mut out = SPARE.take();
    let result = locked(core, cell, &mut out, event);
    let mut carried = Carried::default();
    if !out.is_empty() {
        carry_out(core, cell, &mut out, &mut carried);
    }
    SPARE.set(out);
    (result, carried)
}

/// The event alone; what follows is in `out`.
pub(super) fn locked<R>(
    core: &Core,
    cell: &Arc<Cell>,
    out: &mut Actions,
    event: impl FnOnce(&mut Queue, Now, &mut Actions) -> R,
) -> R {
    let now = core.pops.now(core);
    let first = out.len();
    let mut state = cell.lock();
    let result = event(&mut state.queue, now, out);
    if state.gone {
        return result;
    }
    let commits = out[first..].iter().rev();
    let last = commits.filter_map(|action| match action {
        Action::Commit(offset) => Some(*offset),
        _ => None,
    });
    if let Some(offset) = last.into_iter().next() {
        commit(core, cell, offset);
    }
    keep(core, cell, &mut state, now);
    result
}

fn commit(core: &Core, cell: &Cell, offset: QueueOffset) {
    let place = &cell.place;
    core.offsets.commit(
        place.stored.as_str(),
        place.group.as_str(),
        place.queue as i32,
        offset.get() as i64,
    );
}

/// Keeps the mark if it changed, and sets the alarm.
fn keep(core: &Core, cell: &Arc<Cell>, state: &mut State, now: Now) {
    let queue = &state.queue;
    let steady = now.steady.millis();
    let mut at = queue.wake_at().map_or(u64::MAX, Moment::millis);
    if let Some(slot) = cell.slot {
        let wanted = Kept {
            committed: queue.committed().map(QueueOffset::get),
            mark: queue.mark(),
            ordered: queue.is_ordered(),
        };
        if wanted != state.kept {
            // A mark is kept before the answer leaves. An offset, and that there is no mark any more,
            // are kept soon: until then a kill brings back what was acked a moment ago.
            let soon = state.written_at + KEEP_AFTER_MILLIS;
            let more = wanted.mark.is_some() && wanted.mark != state.kept.mark;
            if more || steady >= soon {
                core.pops.marks.write(slot, &wanted);
                state.kept = wanted;
                state.written_at = steady;
            } else {
                at = at.min(soon);
            }
        }
    }
    if at != u64::MAX && cell.arms(at) {
        core.pops.alarms.set(cell, at);
    }
}

pub(super) fn carry_out(core: &Core, cell: &Arc<Cell>, out: &mut Actions, carried: &mut Carried) {
    let mut more = Actions::new();
    while !out.is_empty() {
        let copies: Vec<copies::Copy> = out.iter().filter_map(copies::Copy::of).collect();
        if !copies.is_empty() {
            copies::make(core, cell, &copies, &mut more);
        }
        for action in out.drain(..) {
            match action {
                Action::WriteCheckpoint(write) => {
                    let key = write.key;
                    match revive::write_checkpoint(core, cell, &write) {
                        Recorded::At(at) => locked(core, cell, &mut more, |queue, _, out| {
                            queue.record_written(key, at, out);
                        }),
                        Recorded::Later => {}
                        Recorded::Failed => {
                            carried.failed.push(key);
                            locked(core, cell, &mut more, |queue, now, out| {
                                queue.record_failed(now, key, out);
                            });
                        }
                    }
                }
                Action::WriteAcks(write) => revive::write_acks(core, cell, &write),
                Action::Resolved {
                    revive_queue,
                    revive_offset,
                } => revive::resolved(core, revive_queue, revive_offset),
                Action::Wake => wake(core, cell),
                // Done already: under the lock, or all together above.
                Action::Commit(_) | Action::Redeliver(_) | Action::DeadLetter(_) => {}
            }
        }
        std::mem::swap(out, &mut more);
    }
}

/// Wakes a pop that waits for this queue.
pub(super) fn wake(core: &Core, cell: &Cell) {
    let place = &cell.place;
    let queue = (!place.kind.is_retry()).then_some(place.queue);
    let woken = core
        .pops
        .waits
        .wake(place.topic.as_str(), place.group.as_str(), queue);
    handler::pop::serve_woken(core, woken);
}

/// What is in flight of a queue is void: its topic or group is gone.
pub(super) fn void(core: &Core, cell: &Arc<Cell>) {
    if let Some(slot) = cell.slot {
        core.pops.marks.free(slot);
    }
    let mut out = Actions::new();
    {
        let mut state = cell.lock();
        state.gone = true;
        state.queue.deleted(&mut out);
    }
    carry_out(core, cell, &mut out, &mut Carried::default());
}
