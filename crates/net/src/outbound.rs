//! The bounded buffer through which other threads send on a connection, and its life phase.
//!
//! Invariant: bytes here plus bytes the connection's task has taken but not yet written never
//! exceed the bound; the sender that would pass it closes the connection instead. It does no IO.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use bytes::BytesMut;

use crate::SendError;
use crate::mailbox::Mailbox;

/// Largest buffer kept by an idle connection.
const KEPT_BYTES_MAX: usize = 4 * 1024;
/// Up to here bytes are copied out, beyond it the buffer itself changes hands.
const COPIED_BYTES_MAX: usize = 64 * 1024;

/// How far a connection is on its way to its end; it only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Reads and writes.
    Open,
    /// Does not read; replies leave.
    Paused,
    /// Does not read, takes no new replies; closes when all have left.
    Draining,
    /// To be closed at once.
    Closed,
}

struct State {
    bytes: BytesMut,
    taken: usize,
    waker: Option<Waker>,
    /// The task is blocked on the socket: a new reply changes nothing for it.
    blocked: bool,
    phase: Phase,
}

/// See the module.
pub(crate) struct Outbound {
    state: Mutex<State>,
    bytes_max: usize,
    /// Of the io thread the connection lives on; without one its task is woken directly.
    mailbox: Option<Arc<Mailbox>>,
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Outbound")
            .field("waiting", &(state.bytes.len() + state.taken))
            .field("phase", &state.phase)
            .finish_non_exhaustive()
    }
}

impl Outbound {
    pub(crate) fn new(bytes_max: usize, mailbox: Option<Arc<Mailbox>>) -> Self {
        let state = State {
            bytes: BytesMut::new(),
            taken: 0,
            waker: None,
            blocked: false,
            phase: Phase::Open,
        };
        Self {
            state: Mutex::new(state),
            bytes_max,
            mailbox,
        }
    }

    fn wake(&self, waker: Option<Waker>) {
        match (waker, &self.mailbox) {
            (Some(waker), Some(mailbox)) => mailbox.wake(waker),
            (Some(waker), None) => waker.wake(),
            (None, _) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends what `write` writes, and wakes the task if it sleeps.
    pub(crate) fn push(&self, write: impl FnOnce(&mut BytesMut)) -> Result<(), SendError> {
        let mut state = self.lock();
        if state.phase >= Phase::Draining {
            return Err(SendError::Closed);
        }
        write(&mut state.bytes);
        let full = state.bytes.len() + state.taken > self.bytes_max;
        if full {
            state.bytes = BytesMut::new();
            state.phase = Phase::Closed;
        }
        let waker = if full || !state.blocked {
            state.waker.take()
        } else {
            None
        };
        drop(state);
        self.wake(waker);
        if full {
            Err(SendError::Full {
                bytes_max: self.bytes_max,
            })
        } else {
            Ok(())
        }
    }

    /// Moves on to `phase` unless it is there already, and wakes the task.
    pub(crate) fn advance(&self, phase: Phase) {
        let mut state = self.lock();
        if state.phase >= phase {
            return;
        }
        state.phase = phase;
        let waker = state.waker.take();
        drop(state);
        self.wake(waker);
    }

    pub(crate) fn phase(&self) -> Phase {
        self.lock().phase
    }

    /// Of the task: `unsent` is what it has taken and not written yet. An empty `unsent` is filled
    /// with what waits; otherwise the task is taken to be blocked on its socket.
    pub(crate) fn collect(&self, cx: &Context<'_>, unsent: &mut BytesMut) -> Phase {
        let mut state = self.lock();
        state.blocked = !unsent.is_empty();
        if unsent.is_empty() && !state.bytes.is_empty() {
            take(&mut state.bytes, unsent);
        }
        state.taken = unsent.len();
        if !state
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            state.waker = Some(cx.waker().clone());
        }
        state.phase
    }
}

fn take(waiting: &mut BytesMut, unsent: &mut BytesMut) {
    if waiting.len() > COPIED_BYTES_MAX {
        *unsent = std::mem::take(waiting);
        return;
    }
    unsent.extend_from_slice(waiting);
    if waiting.capacity() > KEPT_BYTES_MAX {
        *waiting = BytesMut::new();
    } else {
        waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn push(outbound: &Outbound, bytes: &[u8]) -> Result<(), SendError> {
        outbound.push(|buf| buf.extend_from_slice(bytes))
    }

    #[test]
    fn many_sends_wake_a_sleeping_task_once() {
        let outbound = Outbound::new(1024, None);
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut unsent = BytesMut::new();
        outbound.collect(&Context::from_waker(&waker), &mut unsent);
        for _ in 0..3 {
            push(&outbound, b"abc").unwrap();
        }
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        outbound.collect(&Context::from_waker(&waker), &mut unsent);
        assert_eq!(&unsent[..], b"abcabcabc");
    }

    #[test]
    fn a_task_blocked_on_its_socket_is_woken_by_close_but_not_by_sends() {
        let outbound = Outbound::new(1024, None);
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut unsent = BytesMut::from(&b"rest"[..]);
        outbound.collect(&Context::from_waker(&waker), &mut unsent);
        push(&outbound, b"abc").unwrap();
        assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
        outbound.advance(Phase::Closed);
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn bytes_taken_but_not_written_count_against_the_bound() {
        let outbound = Outbound::new(10, None);
        let waker = Waker::noop();
        let mut unsent = BytesMut::new();
        push(&outbound, b"12345678").unwrap();
        outbound.collect(&Context::from_waker(waker), &mut unsent);
        push(&outbound, b"12").unwrap();
        assert_eq!(
            push(&outbound, b"3"),
            Err(SendError::Full { bytes_max: 10 })
        );
        assert_eq!(outbound.phase(), Phase::Closed);
        assert_eq!(push(&outbound, b"3"), Err(SendError::Closed));
    }

    /// Bytes of memory that the buffer itself holds.
    fn held(outbound: &Outbound) -> usize {
        outbound.lock().bytes.capacity()
    }

    #[test]
    fn the_sender_that_passes_the_bound_frees_what_waits() {
        let outbound = Outbound::new(1 << 20, None);
        let reply = vec![7; 100_000];
        let mut sent = 0;
        while push(&outbound, &reply).is_ok() {
            sent += reply.len();
            assert!(sent <= 1 << 20, "never more than the bound");
            assert!(held(&outbound) <= 4 << 20, "growth doubles, no more");
        }
        assert!(sent > (1 << 20) - reply.len());
        assert_eq!((outbound.phase(), held(&outbound)), (Phase::Closed, 0));
    }

    #[test]
    fn a_burst_that_was_taken_leaves_no_large_buffer_behind() {
        let outbound = Outbound::new(32 << 20, None);
        let cx = Context::from_waker(Waker::noop());
        for burst in [8 << 20, 100_000, COPIED_BYTES_MAX, 10_000, 100] {
            push(&outbound, &vec![1; burst]).unwrap();
            let mut unsent = BytesMut::new();
            outbound.collect(&cx, &mut unsent);
            assert_eq!(unsent.len(), burst);
            assert!(held(&outbound) <= KEPT_BYTES_MAX, "after {burst}");
        }
    }

    #[test]
    fn phases_never_go_back() {
        let outbound = Outbound::new(10, None);
        outbound.advance(Phase::Draining);
        outbound.advance(Phase::Paused);
        assert_eq!(outbound.phase(), Phase::Draining);
        assert_eq!(push(&outbound, b"1"), Err(SendError::Closed));
    }
}
