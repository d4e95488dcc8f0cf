//! Work off the io threads, bounded and ended with the server.
//!
//! **Invariant:** at most [`TASKS_MAX`] run; more are refused, and the caller says "busy". All of them
//! end when this is dropped.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{runtime::Handle, sync::Semaphore, task::JoinSet};

const TASKS_MAX: usize = 8192;

/// See the module.
#[derive(Debug)]
pub(crate) struct Tasks {
    runtime: Handle,
    permits: Arc<Semaphore>,
    running: Mutex<JoinSet<()>>,
}

impl Tasks {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            permits: Arc::new(Semaphore::new(TASKS_MAX)),
            running: Mutex::default(),
        }
    }

    /// Runs `work`; false if too much runs.
    pub(crate) fn run(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return false;
        };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        let work = async move {
            work.await;
            drop(permit);
        };
        running.spawn_on(work, &self.runtime);
        true
    }

    /// Ends everything.
    pub(crate) fn abort(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.abort_all();
    }
}
