//! Threads that do the socket work: each an OS thread with a single-threaded tokio runtime.
//!
//! Invariant: a connection lives on one thread from its first byte to its last. Dropping the
//! threads ends every task on them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::mailbox::Mailbox;

/// Tasks that run between two looks at the sockets.
const EVENT_INTERVAL: u32 = 128;

#[derive(Debug)]
struct Worker {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Where a connection can live: a thread's runtime, and how to wake it from elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) handle: Handle,
    pub(crate) mailbox: Arc<Mailbox>,
}

/// See the module.
#[derive(Debug)]
pub struct IoThreads {
    seats: Vec<Seat>,
    workers: Vec<Worker>,
    next: AtomicUsize,
}

impl IoThreads {
    /// Starts `count` threads called `name-0`, `name-1`, … The error of a count of zero is
    /// [`io::ErrorKind::InvalidInput`].
    pub fn start(count: usize, name: &str) -> io::Result<Self> {
        if count == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "io threads must be at least 1",
            ));
        }
        let mut threads = Self {
            seats: Vec::new(),
            workers: Vec::new(),
            next: AtomicUsize::new(0),
        };
        for index in 0..count {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .event_interval(EVENT_INTERVAL)
                .build()?;
            let mailbox = Arc::new(Mailbox::default());
            let handle = runtime.handle().clone();
            threads.seats.push(Seat {
                handle,
                mailbox: Arc::clone(&mailbox),
            });
            let (stop, stopped) = oneshot::channel::<()>();
            let thread = thread::Builder::new()
                .name(format!("{name}-{index}"))
                .spawn(move || {
                    runtime.block_on(async {
                        tokio::select! {
                            // Both a signal and a dropped sender mean the end.
                            _ = stopped => {}
                            () = mailbox.deliver() => {}
                        }
                    });
                })?;
            threads.workers.push(Worker {
                stop: Some(stop),
                thread: Some(thread),
            });
        }
        Ok(threads)
    }

    /// Number of threads.
    #[must_use]
    pub fn count(&self) -> usize {
        self.seats.len()
    }

    /// All threads, starting with the one whose turn it is.
    pub(crate) fn seats_in_turn(&self) -> Vec<Seat> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let mut seats = self.seats.clone();
        let count = seats.len().max(1);
        seats.rotate_left(first % count);
        seats
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.stop.take();
        }
        for thread in self
            .workers
            .iter_mut()
            .filter_map(|worker| worker.thread.take())
        {
            // Dropped by a task of its own: a thread cannot wait for itself.
            if thread.thread().id() != thread::current().id() && thread.join().is_err() {
                tracing::error!("an io thread ended with a panic");
            }
        }
    }
}
