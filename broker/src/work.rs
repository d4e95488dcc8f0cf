//! Requests that may wait for a disk or a peer: run off the io threads, bounded.
//!
//! Full queue and long waits get the answers of Java's fast failure, so that stock clients back off.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmq_protocol::remoting::response_code;
use tokio::{runtime::Handle, sync::Notify};

use crate::answer::Failure;

/// The bounded pool.
#[derive(Debug)]
pub(crate) struct Workers {
    handle: Handle,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queued: AtomicUsize,
    idle: Notify,
}

struct Slot(Arc<Shared>);

impl Drop for Slot {
    fn drop(&mut self) {
        if self.0.queued.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

impl Workers {
    /// Uses the blocking threads of `handle`.
    #[must_use]
    pub(crate) fn new(handle: Handle) -> Self {
        Self {
            handle,
            shared: Arc::default(),
        }
    }

    /// Runs `job` soon; refuses when `max` jobs already wait or run.
    pub(crate) fn run(
        &self,
        max: usize,
        job: impl FnOnce() + Send + 'static,
    ) -> Result<(), Failure> {
        let before = self.shared.queued.fetch_add(1, Ordering::AcqRel);
        let slot = Slot(Arc::clone(&self.shared));
        if before >= max {
            drop(slot);
            return Err(Failure::new(
                response_code::SYSTEM_BUSY,
                "[OVERLOAD]system busy, start flow control for a while",
            ));
        }
        self.handle.spawn_blocking(move || {
            let _slot = slot;
            job();
        });
        Ok(())
    }

    /// The runtime, for handlers that wait for a peer.
    #[must_use]
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Jobs that wait or run.
    #[must_use]
    pub(crate) fn queued(&self) -> usize {
        self.shared.queued.load(Ordering::Acquire)
    }

    /// Waits until no job is left, at most `limit`.
    pub(crate) async fn drain(&self, limit: Duration) {
        let idle = async {
            loop {
                let notified = self.shared.idle.notified();
                if self.queued() == 0 {
                    return;
                }
                notified.await;
            }
        };
        if tokio::time::timeout(limit, idle).await.is_err() {
            tracing::warn!(left = self.queued(), "requests still running at shutdown");
        }
    }
}
