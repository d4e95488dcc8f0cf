//! A replica of a broker group: what it cuts, stores, appends and acknowledges, in which order.
//!
//! **Invariant:** one action is under way at a time, and the next one is given only after the shell
//! said that the last one is *durable*: the log is cut on the disk before the epochs are, the epochs
//! are stored before bytes of a new epoch are appended, and nothing is acknowledged before all of it.
//! A stale tail can so never come back after a crash. The machine follows one master of one epoch
//! and never one of an older epoch.

use rmq_types::{BrokerId, CommitLogOffset, MasterEpoch, Moment};

use crate::{
    LinkId,
    epochs::{EpochStart, Epochs},
    master::Transfer,
};

/// How a replica works. Times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaOptions {
    /// A master that was not heard for so long is dialled anew.
    pub idle_max: u64,
    /// A link on which nothing was said for so long gets an acknowledgement.
    pub heartbeat: u64,
    /// Acknowledge what the disk has, not what was appended.
    pub sync_flush: bool,
}

impl Default for ReplicaOptions {
    fn default() -> Self {
        Self {
            idle_max: 20_000,
            heartbeat: 1000,
            sync_flush: false,
        }
    }
}

/// What the shell must do, and then report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaAction {
    /// Make the log end at `to` on the disk, with all that was derived from it (queues, index, timer
    /// references); then store `epochs`; then report [`Replica::cut_done`].
    Cut {
        /// The new end.
        to: CommitLogOffset,
        /// The epochs that are left, with those of the master up to there.
        epochs: Epochs,
        /// Acknowledged messages go: somebody acknowledged that with an unclean election, or two
        /// failures met. Worth an alarm.
        loses_confirmed: bool,
    },
    /// Store `epochs` on the disk, then report [`Replica::epochs_stored`].
    StoreEpochs(Epochs),
    /// Append the body of the transfer that was handed in, then report [`Replica::appended`].
    Append {
        /// Where it begins: the end of the log, or the beginning of an empty one.
        at: CommitLogOffset,
        /// Its bytes.
        bytes: u32,
    },
    /// Tell the master.
    Acknowledge(CommitLogOffset),
    /// Close the link and dial again.
    Close,
}

/// Why a link cannot go on: close it. `NoCommonHistory` needs somebody to look; the rest passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    /// The two logs agree nowhere: this one is of another group, or both were cut too far.
    #[error("this log and the master's have no epoch in common")]
    NoCommonHistory,
    /// The epochs of the master end before the epoch that is followed, or their order is wrong.
    #[error("the master's epochs end with {found:?}, epoch {wanted} is followed")]
    Epochs {
        /// The newest of them.
        found: Option<MasterEpoch>,
        /// The epoch that is followed.
        wanted: MasterEpoch,
    },
    /// Bytes that do not follow the end of the log.
    #[error("bytes at {found}, the log ends at {end}")]
    Gap {
        /// Where they belong.
        found: CommitLogOffset,
        /// The end of the log.
        end: CommitLogOffset,
    },
    /// The link is not the present one, or this was not its turn.
    #[error("not expected now")]
    OutOfTurn,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Unlinked,
    AwaitHandshake,
    Cutting {
        to: CommitLogOffset,
    },
    Streaming,
    /// Epochs are being stored; what to append after it.
    Storing {
        then: Option<(CommitLogOffset, u32)>,
    },
    Appending {
        end: CommitLogOffset,
    },
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Replica {
    options: ReplicaOptions,
    following: Option<(BrokerId, MasterEpoch)>,
    link: Option<LinkId>,
    phase: Phase,
    epochs: Epochs,
    master_epochs: Epochs,
    end: CommitLogOffset,
    durable: CommitLogOffset,
    confirmed: CommitLogOffset,
    /// The newest confirm offset of the master that is followed.
    told: CommitLogOffset,
    heard_at: Moment,
    said_at: Moment,
    said: CommitLogOffset,
}

impl Replica {
    /// With the log and the epochs that were found on the disk. `confirmed` is what was stored as
    /// acknowledged, for reads only.
    #[must_use]
    pub fn new(
        options: ReplicaOptions,
        mut epochs: Epochs,
        end: CommitLogOffset,
        confirmed: CommitLogOffset,
    ) -> Self {
        epochs.normalise(end);
        Self {
            options,
            following: None,
            link: None,
            phase: Phase::Unlinked,
            epochs,
            master_epochs: Epochs::default(),
            end,
            durable: end,
            confirmed: confirmed.min(end),
            told: CommitLogOffset::default(),
            heard_at: Moment::default(),
            said_at: Moment::default(),
            said: CommitLogOffset::default(),
        }
    }

    /// Follow this master. An older epoch than the one that is followed changes nothing; another one
    /// closes the link.
    pub fn follow(&mut self, master: BrokerId, epoch: MasterEpoch) -> Vec<ReplicaAction> {
        let newer = self.following.is_none_or(|(_, followed)| epoch > followed);
        if !newer {
            return Vec::new();
        }
        self.following = Some((master, epoch));
        let linked = self.link.take().is_some();
        self.drop_link();
        linked.then_some(ReplicaAction::Close).into_iter().collect()
    }

    /// Whom and which epoch it follows.
    #[must_use]
    pub fn following(&self) -> Option<(BrokerId, MasterEpoch)> {
        self.following
    }

    /// Epoch and end of the log, for heartbeats and elections.
    #[must_use]
    pub fn position(&self) -> (Option<EpochStart>, CommitLogOffset) {
        (self.epochs.last(), self.end)
    }

    /// The epochs of its log.
    #[must_use]
    pub fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// Up to where clients may read.
    #[must_use]
    pub fn confirmed(&self) -> CommitLogOffset {
        self.confirmed
    }

    /// Whether it holds everything that its master had and knew to be acknowledged when it began: a
    /// replica that lost bytes may be elected again from here on.
    #[must_use]
    pub fn holds_everything(&self) -> bool {
        let last = self.epochs.last().map(|last| last.epoch);
        let followed = self.following.map(|(_, epoch)| epoch);
        self.is_streaming() && followed.is_some() && last == followed && self.end >= self.told
    }

    /// Whether an action is under way that must be reported before the machine may be dropped.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(
            self.phase,
            Phase::Cutting { .. } | Phase::Storing { .. } | Phase::Appending { .. }
        )
    }

    /// Whether a master may read on from it: no action is under way.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        matches!(self.phase, Phase::Streaming)
    }

    /// A link to the master is there and the handshake was sent over it.
    pub fn linked(&mut self, now: Moment, link: LinkId) {
        self.link = Some(link);
        self.told = CommitLogOffset::new(u64::MAX);
        self.phase = Phase::AwaitHandshake;
        self.heard_at = now;
        self.said_at = now;
    }

    /// The link is gone. Actions that are under way are finished and reported all the same.
    pub fn unlinked(&mut self, link: LinkId) {
        if self.link == Some(link) {
            self.link = None;
            self.drop_link();
        }
    }

    fn drop_link(&mut self) {
        if matches!(self.phase, Phase::AwaitHandshake | Phase::Streaming) {
            self.phase = Phase::Unlinked;
        }
    }

    /// Whether a new link may be made: none is there and nothing is under way.
    #[must_use]
    pub fn wants_link(&self) -> bool {
        self.link.is_none() && self.phase == Phase::Unlinked && self.following.is_some()
    }

    /// The master's answer to the handshake.
    pub fn handshake(
        &mut self,
        now: Moment,
        link: LinkId,
        master_epochs: Epochs,
        master_end: CommitLogOffset,
    ) -> Result<ReplicaAction, FollowError> {
        if self.link != Some(link) || self.phase != Phase::AwaitHandshake {
            return Err(FollowError::OutOfTurn);
        }
        self.heard_at = now;
        let wanted = self.following.ok_or(FollowError::OutOfTurn)?.1;
        let found = master_epochs.last().map(|last| last.epoch);
        if found != Some(wanted) {
            return Err(FollowError::Epochs { found, wanted });
        }
        let empty = self.end == CommitLogOffset::default();
        let to = if empty {
            self.end
        } else {
            self.epochs
                .common_end(self.end, &master_epochs, master_end)
                .ok_or(FollowError::NoCommonHistory)?
        };
        self.master_epochs = master_epochs;
        // Epochs that begin where the logs part are the master's, not ours.
        let mut epochs = self.epochs.clone();
        epochs.cut(to);
        Self::extend(&mut epochs, &self.master_epochs, to);
        if to == self.end {
            return Ok(self.store(now, epochs, None));
        }
        self.phase = Phase::Cutting { to };
        Ok(ReplicaAction::Cut {
            to,
            epochs,
            loses_confirmed: to < self.confirmed,
        })
    }

    /// Adds the master's epochs that begin at or before `end`.
    fn extend(epochs: &mut Epochs, master: &Epochs, end: CommitLogOffset) {
        let last = epochs.last().map(|last| last.epoch);
        let newer = master
            .entries()
            .iter()
            .filter(|entry| entry.start <= end && Some(entry.epoch) > last);
        for entry in newer {
            // The master's list is in order, and so is ours before it.
            let _ = epochs.push(*entry);
        }
    }

    /// Takes over the epochs of the master that begin at or before `end`, then goes on.
    fn adopt(
        &mut self,
        now: Moment,
        end: CommitLogOffset,
        then: Option<(CommitLogOffset, u32)>,
    ) -> ReplicaAction {
        let mut epochs = self.epochs.clone();
        Self::extend(&mut epochs, &self.master_epochs, end);
        self.store(now, epochs, then)
    }

    fn store(
        &mut self,
        now: Moment,
        epochs: Epochs,
        then: Option<(CommitLogOffset, u32)>,
    ) -> ReplicaAction {
        if epochs == self.epochs {
            return self.go_on(now, then);
        }
        self.phase = Phase::Storing { then };
        ReplicaAction::StoreEpochs(epochs)
    }

    fn go_on(&mut self, now: Moment, then: Option<(CommitLogOffset, u32)>) -> ReplicaAction {
        if let Some((at, bytes)) = then {
            self.phase = Phase::Appending {
                end: at.advance(u64::from(bytes)),
            };
            return ReplicaAction::Append { at, bytes };
        }
        self.phase = Phase::Streaming;
        self.say(now)
    }

    fn say(&mut self, now: Moment) -> ReplicaAction {
        self.said_at = now;
        self.said = if self.options.sync_flush {
            self.durable
        } else {
            self.end
        };
        ReplicaAction::Acknowledge(self.said)
    }

    /// The log ends at `to` on the disk and `epochs` are stored, as [`ReplicaAction::Cut`] said.
    pub fn cut_done(
        &mut self,
        now: Moment,
        epochs: Epochs,
    ) -> Result<Option<ReplicaAction>, FollowError> {
        let Phase::Cutting { to } = self.phase else {
            return Err(FollowError::OutOfTurn);
        };
        self.end = to;
        self.durable = to;
        self.confirmed = self.confirmed.min(to);
        self.epochs = epochs;
        if self.link.is_none() {
            self.phase = Phase::Unlinked;
            return Ok(None);
        }
        Ok(Some(self.go_on(now, None)))
    }

    /// The epochs of [`ReplicaAction::StoreEpochs`] are on the disk.
    pub fn epochs_stored(
        &mut self,
        now: Moment,
        epochs: Epochs,
    ) -> Result<Option<ReplicaAction>, FollowError> {
        let Phase::Storing { then } = self.phase else {
            return Err(FollowError::OutOfTurn);
        };
        self.epochs = epochs;
        if self.link.is_none() {
            self.phase = Phase::Unlinked;
            return Ok(None);
        }
        Ok(Some(self.go_on(now, then)))
    }

    /// A part of the log came. At most one is handled at a time; the next one is handed in when
    /// [`Replica::is_streaming`] again.
    pub fn transfer(
        &mut self,
        now: Moment,
        link: LinkId,
        transfer: Transfer,
    ) -> Result<Option<ReplicaAction>, FollowError> {
        if self.link != Some(link) || self.phase != Phase::Streaming {
            return Err(FollowError::OutOfTurn);
        }
        self.heard_at = now;
        let empty = self.end == CommitLogOffset::default();
        if transfer.bytes > 0 && transfer.offset != self.end && !empty {
            return Err(FollowError::Gap {
                found: transfer.offset,
                end: self.end,
            });
        }
        self.told = transfer.confirm;
        self.confirmed = self.confirmed.max(transfer.confirm.min(self.end));
        if transfer.bytes == 0 {
            return Ok(None);
        }
        let wrong = FollowError::Epochs {
            found: Some(transfer.epoch.epoch),
            wanted: self
                .following
                .map_or_else(MasterEpoch::default, |(_, epoch)| epoch),
        };
        self.master_epochs_know(transfer.epoch).ok_or(wrong)?;
        // The first bytes of an empty log may lie anywhere.
        let then = (transfer.offset, transfer.bytes);
        Ok(Some(self.adopt(now, transfer.offset, Some(then))))
    }

    fn master_epochs_know(&mut self, epoch: EpochStart) -> Option<()> {
        if self.master_epochs.entries().contains(&epoch) {
            return Some(());
        }
        self.master_epochs.push(epoch).ok()
    }

    /// The bytes of [`ReplicaAction::Append`] are in the log.
    pub fn appended(&mut self, now: Moment) -> Result<Option<ReplicaAction>, FollowError> {
        let Phase::Appending { end } = self.phase else {
            return Err(FollowError::OutOfTurn);
        };
        self.end = end;
        if self.link.is_none() {
            self.phase = Phase::Unlinked;
            return Ok(None);
        }
        // The next epoch may begin just here: its entry is stored before the end is acknowledged.
        Ok(Some(self.adopt(now, end, None)))
    }

    /// The disk has the log up to here.
    pub fn flushed(&mut self, now: Moment, offset: CommitLogOffset) -> Option<ReplicaAction> {
        self.durable = self.durable.max(offset.min(self.end));
        let news = self.options.sync_flush && self.is_streaming() && self.durable > self.said;
        news.then(|| self.say(now))
    }

    /// What is due.
    pub fn tick(&mut self, now: Moment) -> Option<ReplicaAction> {
        self.link?;
        if now.since(self.heard_at) > self.options.idle_max {
            self.link = None;
            self.drop_link();
            return Some(ReplicaAction::Close);
        }
        let quiet = now.since(self.said_at) >= self.options.heartbeat;
        (quiet && self.is_streaming()).then(|| self.say(now))
    }
}
