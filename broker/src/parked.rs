//! Sends that wait for their flush (`SYNC_FLUSH`): answered in groups when the disk has them.
//!
//! **Invariant:** a reply of success leaves only once the durable offset has passed its message.
//! Bounded: beyond the limit sends are refused before they are appended.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmq_net::Connection;
use rmq_types::{CommitLogOffset, Timestamp};

use crate::handler::send::SendReply;

/// The replies of one group of sends of one connection.
#[derive(Debug)]
pub struct ParkedGroup {
    /// Durable from here on.
    pub end: CommitLogOffset,
    /// When it is answered with "flush timed out".
    pub deadline: Timestamp,
    /// Who waits.
    pub conn: Arc<Connection>,
    /// What to answer.
    pub replies: Vec<SendReply>,
}

/// Groups in the order of their log offsets, nearly: appends of two threads may swap.
#[derive(Debug, Default)]
pub struct Parked {
    groups: Mutex<VecDeque<ParkedGroup>>,
}

impl Parked {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ParkedGroup>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a group wait.
    pub fn park(&self, group: ParkedGroup) {
        self.lock().push_back(group);
    }

    /// Takes the groups that are durable. One that stands behind a later offset waits for the next
    /// flush, which that offset brings.
    #[must_use]
    pub fn take_durable(&self, upto: CommitLogOffset) -> Vec<ParkedGroup> {
        self.take_while(|group| group.end <= upto)
    }

    /// Takes the groups whose time is up.
    #[must_use]
    pub fn take_expired(&self, now: Timestamp) -> Vec<ParkedGroup> {
        self.take_while(|group| group.deadline <= now)
    }

    fn take_while(&self, ready: impl Fn(&ParkedGroup) -> bool) -> Vec<ParkedGroup> {
        let mut groups = self.lock();
        let count = groups.iter().take_while(|group| ready(group)).count();
        groups.drain(..count).collect()
    }

    /// Takes everything.
    #[must_use]
    pub fn drain(&self) -> Vec<ParkedGroup> {
        self.lock().drain(..).collect()
    }

    /// Number of replies that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().iter().map(|group| group.replies.len()).sum()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}
