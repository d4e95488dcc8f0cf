//! A master's view of one replica: its link, its acknowledgements, how long it was not caught up.
//!
//! **Invariant:** an acknowledgement counts only over the link whose handshake this master made in
//! this epoch; `sent` is never below `acked` and never more than a window above it, so a slow
//! replica costs a number, not a buffer.

use rmq_types::{CommitLogOffset, Moment};

use crate::LinkId;

/// One replica.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    /// The present link; none when it is gone.
    pub(crate) link: Option<LinkId>,
    /// Never a member of the set.
    pub(crate) learner: bool,
    /// An empty replica asked to begin with the newest file.
    pub(crate) from_last_file: bool,
    /// Up to where it has the log, said over the present link or an earlier one of this epoch.
    pub(crate) acked: Option<CommitLogOffset>,
    /// Whether it said so over the present link.
    pub(crate) in_transfer: bool,
    /// What was sent to it.
    pub(crate) sent: CommitLogOffset,
    /// Where an empty replica was begun with.
    pub(crate) base: CommitLogOffset,
    pub(crate) heard_at: Moment,
    pub(crate) sent_at: Moment,
    pub(crate) lost_at: Option<Moment>,
    /// When it last had all that there was.
    pub(crate) caught_up_at: Moment,
    /// The end of the log at a moment; once it is acknowledged, the replica was caught up then.
    mark: (CommitLogOffset, Moment),
}

impl Follower {
    pub(crate) fn new(now: Moment, link: LinkId, learner: bool, end: CommitLogOffset) -> Self {
        Self {
            link: Some(link),
            learner,
            from_last_file: false,
            acked: None,
            in_transfer: false,
            sent: CommitLogOffset::default(),
            base: CommitLogOffset::default(),
            heard_at: now,
            sent_at: now,
            lost_at: None,
            caught_up_at: now,
            mark: (end, now),
        }
    }

    /// A new handshake over another link. What was acknowledged earlier does not count until it is
    /// said again: the replica may have lost it.
    pub(crate) fn relinked(&mut self, now: Moment, link: LinkId, learner: bool) {
        self.link = Some(link);
        self.learner = learner;
        self.acked = None;
        self.in_transfer = false;
        self.base = CommitLogOffset::default();
        self.heard_at = now;
        self.sent_at = now;
        self.lost_at = None;
    }

    pub(crate) fn acked(&mut self, now: Moment, offset: CommitLogOffset, end: CommitLogOffset) {
        self.heard_at = now;
        if !self.in_transfer {
            self.in_transfer = true;
            self.sent = offset;
        }
        self.acked = Some(offset);
        self.sent = self.sent.max(offset);
        if offset >= end {
            self.caught_up_at = now;
        } else if offset >= self.mark.0 {
            self.caught_up_at = self.caught_up_at.max(self.mark.1);
        }
        if offset >= self.mark.0 {
            self.mark = (end, now);
        }
    }

    pub(crate) fn unlinked(&mut self, now: Moment) {
        self.link = None;
        self.in_transfer = false;
        self.lost_at = Some(now);
    }
}
