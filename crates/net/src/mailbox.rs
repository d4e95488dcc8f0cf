//! Waking connections of an io thread from other threads, many at the price of one.
//!
//! Waking a task of another thread's runtime costs a system call each. So the tasks to be woken are
//! put on the thread's list, and only the first one rings; the thread then wakes them itself.
//! Invariant: a waker on the list is woken as long as the thread runs; the list is never longer than
//! the thread has connections, as a connection leaves its waker once until it runs again.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};

#[derive(Debug, Default)]
struct State {
    /// Connections with something to send.
    list: Vec<Waker>,
    /// Of the thread, while it waits for the list to fill.
    bell: Option<Waker>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    owner: OnceLock<ThreadId>,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes a task of the thread, sooner or later.
    pub(crate) fn wake(&self, waker: Waker) {
        if self.owner.get() == Some(&thread::current().id()) {
            waker.wake();
            return;
        }
        let mut state = self.lock();
        let bell = if state.list.is_empty() {
            state.bell.take()
        } else {
            None
        };
        state.list.push(waker);
        drop(state);
        if let Some(bell) = bell {
            bell.wake();
        }
    }

    /// Of the thread itself: wakes whatever is put on the list, for ever.
    pub(crate) async fn deliver(&self) {
        self.owner.get_or_init(|| thread::current().id());
        let mut list = Vec::new();
        poll_fn(|cx| {
            let mut state = self.lock();
            std::mem::swap(&mut state.list, &mut list);
            state.bell = Some(cx.waker().clone());
            drop(state);
            list.drain(..).for_each(Waker::wake);
            Poll::<()>::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn many_wakes_from_elsewhere_ring_once_and_reach_every_task() {
        let (mailbox, bell, task) = (Mailbox::default(), Arc::default(), Arc::default());
        let (ring, waker): (Waker, Waker) = (
            Arc::<Count>::clone(&bell).into(),
            Arc::<Count>::clone(&task).into(),
        );
        let mut deliver = pin!(mailbox.deliver());
        let mut cx = Context::from_waker(&ring);
        for round in 1..4 {
            assert!(deliver.as_mut().poll(&mut cx).is_pending());
            thread::scope(|scope| {
                scope.spawn(|| (0..5).for_each(|_| mailbox.wake(waker.clone())));
            });
            assert_eq!(bell.0.load(Ordering::SeqCst), round);
            assert!(deliver.as_mut().poll(&mut cx).is_pending());
            assert_eq!(task.0.load(Ordering::SeqCst), 5 * round);
        }
    }

    #[test]
    fn the_thread_itself_wakes_without_the_list() {
        let (mailbox, task) = (Mailbox::default(), Arc::default());
        let waker: Waker = Arc::<Count>::clone(&task).into();
        let mut deliver = pin!(mailbox.deliver());
        assert!(
            deliver
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        mailbox.wake(waker);
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
    }
}
