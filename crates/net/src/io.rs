//! Threads that do the socket work: each an OS thread with a single-threaded tokio runtime.
//!
//! Invariant: a connection lives on one thread from its first byte to its last. Dropping the
//! threads ends every task on them.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Tasks that run between two looks at the sockets.
const EVENT_INTERVAL: u32 = 128;

#[derive(Debug)]
struct Worker {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// See the module.
#[derive(Debug)]
pub struct IoThreads {
    handles: Vec<Handle>,
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
            handles: Vec::new(),
            workers: Vec::new(),
            next: AtomicUsize::new(0),
        };
        for index in 0..count {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .event_interval(EVENT_INTERVAL)
                .build()?;
            threads.handles.push(runtime.handle().clone());
            let (stop, stopped) = oneshot::channel::<()>();
            let thread = thread::Builder::new()
                .name(format!("{name}-{index}"))
                .spawn(move || {
                    // Both a signal and a dropped sender mean the end.
                    let _ = runtime.block_on(stopped);
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
        self.handles.len()
    }

    /// All runtimes, starting with the one whose turn it is.
    pub(crate) fn handles_in_turn(&self) -> Vec<Handle> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let mut handles = self.handles.clone();
        let count = handles.len().max(1);
        handles.rotate_left(first % count);
        handles
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
