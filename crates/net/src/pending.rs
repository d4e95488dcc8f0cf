//! Calls that wait for an answer on one connection, matched by opaque.
//!
//! Invariant: at most `max` entries; every entry leaves by its answer, by its caller giving up, or
//! by the connection's end. It sends nothing itself.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmq_protocol::remoting::Command;
use tokio::sync::oneshot;

#[derive(Debug, Default)]
struct State {
    calls: HashMap<i32, oneshot::Sender<Command>>,
    next_opaque: i32,
    closed: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Pending {
    state: Mutex<State>,
    max: usize,
}

/// Why a call was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Full,
    Closed,
}

/// One waiting call; dropping it forgets the call.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    pending: &'a Pending,
    pub(crate) opaque: i32,
    pub(crate) answer: oneshot::Receiver<Command>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.pending.lock().calls.remove(&self.opaque);
    }
}

impl Pending {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            state: Mutex::new(State::default()),
            max,
        }
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a call under an opaque that no waiting call has.
    pub(crate) fn begin(&self) -> Result<Ticket<'_>, Refused> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        if state.calls.len() >= self.max {
            return Err(Refused::Full);
        }
        let mut opaque = state.next_opaque;
        while state.calls.contains_key(&opaque) {
            opaque = opaque.wrapping_add(1) & i32::MAX;
        }
        state.next_opaque = opaque.wrapping_add(1) & i32::MAX;
        let (sender, answer) = oneshot::channel();
        state.calls.insert(opaque, sender);
        Ok(Ticket {
            pending: self,
            opaque,
            answer,
        })
    }

    /// True if a call waits under this opaque.
    pub(crate) fn waits(&self, opaque: i32) -> bool {
        self.lock().calls.contains_key(&opaque)
    }

    /// Hands an answer to its call; an answer nobody waits for is dropped.
    pub(crate) fn complete(&self, answer: Command) {
        let sender = self.lock().calls.remove(&answer.opaque);
        if let Some(sender) = sender {
            // The caller may have given up this moment: then nobody needs the answer.
            let _ = sender.send(answer);
        }
    }

    /// Fails every waiting call, and all later ones.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        drop(calls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reaches_the_call_with_its_opaque_only() {
        let pending = Pending::new(8);
        let mut first = pending.begin().unwrap();
        let mut second = pending.begin().unwrap();
        assert_ne!(first.opaque, second.opaque);
        pending.complete(Command::response(second.opaque, 7));
        assert_eq!(second.answer.try_recv().unwrap().code, 7);
        assert!(first.answer.try_recv().is_err());
    }

    #[test]
    fn calls_beyond_the_bound_are_refused_until_one_gives_up() {
        let pending = Pending::new(1);
        let ticket = pending.begin().unwrap();
        assert_eq!(pending.begin().unwrap_err(), Refused::Full);
        drop(ticket);
        assert!(pending.begin().is_ok());
    }

    #[test]
    fn opaques_wrap_without_going_negative_or_colliding() {
        let pending = Pending::new(8);
        let zero = pending.begin().unwrap();
        assert_eq!(zero.opaque, 0);
        pending.lock().next_opaque = i32::MAX;
        let last = pending.begin().unwrap();
        assert_eq!(last.opaque, i32::MAX);
        let wrapped = pending.begin().unwrap();
        assert_eq!(wrapped.opaque, 1);
    }

    #[test]
    fn closing_fails_the_waiting_and_the_later_calls() {
        let pending = Pending::new(8);
        let mut ticket = pending.begin().unwrap();
        pending.close();
        assert!(ticket.answer.try_recv().is_err());
        assert_eq!(pending.begin().unwrap_err(), Refused::Closed);
    }
}
