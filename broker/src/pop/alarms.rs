//! What is due when: queues that have something to do, pops whose wait is over. One thread, which
//! sleeps until the next of them.
//!
//! **Invariant:** at rest there is no alarm and the thread sleeps without end. An alarm looks at its
//! queue; one too many costs a look.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use rmq_pop::Queue;
use rmq_types::Moment;

use super::{Cell, step};
use crate::core::{Core, lock};

#[derive(Debug)]
struct Alarm {
    at: u64,
    number: u64,
    cell: Arc<Cell>,
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Alarm {}
impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[derive(Debug, Default)]
struct State {
    heap: BinaryHeap<Reverse<Alarm>>,
    last: u64,
    /// Until when the thread sleeps; 0 while it works.
    sleeps_until: u64,
    stop: bool,
}

/// The alarms.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    state: Mutex<State>,
    wake: Condvar,
}

impl Alarms {
    /// Looks at a queue at `at`.
    pub(super) fn set(&self, cell: &Arc<Cell>, at: u64) {
        let mut state = lock(&self.state);
        state.last += 1;
        let number = state.last;
        let cell = Arc::clone(cell);
        state.heap.push(Reverse(Alarm { at, number, cell }));
        self.notify(&state, at);
    }

    /// A pop waits until `deadline`.
    pub(crate) fn note_deadline(&self, deadline: Moment) {
        let state = lock(&self.state);
        self.notify(&state, deadline.millis());
    }

    fn notify(&self, state: &State, at: u64) {
        if at < state.sleeps_until {
            self.wake.notify_one();
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        lock(&self.state).stop = true;
        self.wake.notify_all();
    }

    /// Sleeps until something is due; `None`: stop.
    fn wait(&self, core: &Core) -> Option<Vec<Arc<Cell>>> {
        let mut state = lock(&self.state);
        loop {
            if state.stop {
                return None;
            }
            let now = core.pops.now(core).steady.millis();
            let first = state.heap.peek().map_or(u64::MAX, |Reverse(one)| one.at);
            let deadline = core.pops.waits.next_deadline();
            let deadline = deadline.map_or(u64::MAX, Moment::millis);
            let next = first.min(deadline);
            if next <= now {
                let mut due = Vec::new();
                while state.heap.peek().is_some_and(|Reverse(one)| one.at <= now) {
                    due.extend(state.heap.pop().map(|Reverse(one)| one.cell));
                }
                state.sleeps_until = 0;
                return Some(due);
            }
            state.sleeps_until = next;
            state = if next == u64::MAX {
                self.wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner)
            } else {
                let limit = Duration::from_millis(next - now);
                let woken = self.wake.wait_timeout(state, limit);
                woken.unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }
}

/// The thread.
pub(crate) fn run(core: &Core) {
    while let Some(due) = core.pops.alarms.wait(core) {
        for cell in due {
            cell.disarm();
            step(core, &cell, Queue::tick);
        }
        let now = core.pops.now(core).steady;
        for held in core.pops.waits.expire(now) {
            crate::handler::pop::answer_now(core, held);
        }
    }
}
