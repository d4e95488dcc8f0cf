//! Sends that wait for their flush (`SYNC_FLUSH`): answered in groups when the disk has them.
//!
//! **Invariant:** a reply of success leaves only once the durable offset has passed its message.
//! Bounded: beyond the limit sends are refused before they are appended.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use rmq_net::Connection;
use rmq_types::{CommitLogOffset, Timestamp};

use crate::handler::send::SendReply;

/// The replies of one group of sends of one connection.
#[derive(Debug)]
pub(crate) struct ParkedGroup {
    /// Durable from here on.
    pub end: CommitLogOffset,
    /// When its sends were read from the connection.
    pub since: Instant,
    /// When it is answered with "flush timed out".
    pub deadline: Timestamp,
    /// Who waits.
    pub conn: Arc<Connection>,
    /// What to answer.
    pub replies: Vec<SendReply>,
}

/// Groups in the order of their log offsets, nearly: appends of two threads may swap.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    waiting: Mutex<Waiting>,
}

/// Every send asks how many wait, so the count is kept beside the groups and not walked.
#[derive(Debug, Default)]
struct Waiting {
    groups: VecDeque<ParkedGroup>,
    replies: usize,
}

impl Waiting {
    fn take_front(&mut self, count: usize) -> Vec<ParkedGroup> {
        let taken: Vec<ParkedGroup> = self.groups.drain(..count).collect();
        self.replies -= taken.iter().map(|group| group.replies.len()).sum::<usize>();
        taken
    }
}

impl Parked {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a group wait.
    pub(crate) fn park(&self, group: ParkedGroup) {
        let mut waiting = self.lock();
        waiting.replies += group.replies.len();
        waiting.groups.push_back(group);
    }

    /// Takes the groups that are durable. One that stands behind a later offset waits for the next
    /// flush, which that offset brings.
    #[must_use]
    pub(crate) fn take_durable(&self, upto: CommitLogOffset) -> Vec<ParkedGroup> {
        self.take_while(|group| group.end <= upto)
    }

    /// Takes the groups whose time is up.
    #[must_use]
    pub(crate) fn take_expired(&self, now: Timestamp) -> Vec<ParkedGroup> {
        self.take_while(|group| group.deadline <= now)
    }

    fn take_while(&self, ready: impl Fn(&ParkedGroup) -> bool) -> Vec<ParkedGroup> {
        let mut waiting = self.lock();
        let count = waiting
            .groups
            .iter()
            .take_while(|group| ready(group))
            .count();
        waiting.take_front(count)
    }

    /// Takes everything.
    #[must_use]
    pub(crate) fn drain(&self) -> Vec<ParkedGroup> {
        let mut waiting = self.lock();
        let count = waiting.groups.len();
        waiting.take_front(count)
    }

    /// Number of replies that wait.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.lock().replies
    }
}
