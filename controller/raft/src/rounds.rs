//! Rounds in which a majority shows the leader that it still follows; one serves all who wait.
//!
//! **Invariant:** whoever waits is answered by a round that began after it asked. At most
//! [`WAITING_MAX`] wait; more are refused at once.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

use crate::types::Raft;

const WAITING_MAX: usize = 16_384;
/// A round that takes longer shows nothing: a lease of masters is 3 s.
const ROUND_MAX: Duration = Duration::from_secs(1);

/// No majority showed that this controller leads. Passes, or another one leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotConfirmed {
    /// It does not lead, or not any more.
    #[error("this controller does not lead")]
    NotLeader,
    /// A majority did not answer in time.
    #[error("no majority of the controllers answered")]
    NoMajority,
    /// Too many wait.
    #[error("too many requests wait for a majority")]
    Busy,
}

/// Who waits for a round.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    waiting: Mutex<Vec<oneshot::Sender<Result<(), NotConfirmed>>>>,
    wake: Notify,
}

impl Rounds {
    fn waiting(&self) -> MutexGuard<'_, Vec<oneshot::Sender<Result<(), NotConfirmed>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a round that begins from now on.
    pub(crate) async fn next(&self) -> Result<(), NotConfirmed> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            if waiting.len() >= WAITING_MAX {
                return Err(NotConfirmed::Busy);
            }
            waiting.push(sender);
        }
        self.wake.notify_one();
        receiver.await.unwrap_or(Err(NotConfirmed::NotLeader))
    }

    /// Holds rounds as long as somebody waits.
    pub(crate) async fn hold(&self, raft: &Raft) {
        loop {
            self.wake.notified().await;
            let waiting = std::mem::take(&mut *self.waiting());
            if waiting.is_empty() {
                continue;
            }
            let result = round(raft).await;
            for sender in waiting {
                // Whoever gave up does not need it.
                let _ = sender.send(result);
            }
        }
    }
}

async fn round(raft: &Raft) -> Result<(), NotConfirmed> {
    use openraft::error::{CheckIsLeaderError, RaftError};
    match timeout(ROUND_MAX, raft.ensure_linearizable()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(RaftError::APIError(CheckIsLeaderError::QuorumNotEnough(_)))) | Err(_) => {
            Err(NotConfirmed::NoMajority)
        }
        Ok(Err(_)) => Err(NotConfirmed::NotLeader),
    }
}
