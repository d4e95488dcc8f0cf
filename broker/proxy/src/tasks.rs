//! Tasks that outlive the call that began them, in one set.
//!
//! **Invariant:** no task outlives [`Tasks::end`].

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    set: Mutex<JoinSet<()>>,
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.lock();
        while set.try_join_next().is_some() {}
        set.spawn(task);
    }

    /// Waits for all tasks, and ends those that are still there after `patience`.
    pub(crate) async fn end(&self, patience: Duration) {
        let mut set = std::mem::take(&mut *self.lock());
        let all = async { while set.join_next().await.is_some() {} };
        if timeout(patience, all).await.is_err() {
            set.shutdown().await;
        }
    }
}
