//! The master of a broker group in one epoch: who follows it, what it may send, take and
//! acknowledge.
//!
//! One [`Master`] lives for one epoch. It is made after the epoch's entry is stored, so nothing it
//! does can be of an epoch that a crash forgets; when the same broker is elected again, a new one is
//! made and every link is closed, so that each replica makes its handshake in the new epoch.
//!
//! **Invariant:** [`Master::acknowledged`] moves only while a lease lasts, never back, and never past
//! what the present set and every set that may replace it hold; nothing of earlier epochs is
//! acknowledged by counting before the epoch's own beginning is held.

use std::collections::{BTreeMap, BTreeSet};

use rmq_types::{BrokerId, CommitLogOffset, MasterEpoch, Moment, SyncStateSetEpoch};

use crate::{
    LinkId,
    ack::AckRule,
    epochs::{EpochStart, Epochs},
    follower::Follower,
    lease::{FenceError, Lease},
    set::SetChange,
};

/// Replicas that may be linked.
pub const FOLLOWERS_MAX: usize = 64;

/// How a master works. Times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MasterOptions {
    /// When a message is acknowledged; see [`AckRule::from_java`].
    pub rule: AckRule,
    /// Fewer members in the set refuse writes (`minInSyncReplicas`).
    pub min_in_sync: usize,
    /// A member that was not caught up for so long leaves the set (`haMaxTimeSlaveNotCatchup`).
    pub lag_time_max: u64,
    /// A member without a link for so long leaves the set.
    pub link_grace: u64,
    /// A replica that was not heard for so long is unlinked (`haHousekeepingInterval`).
    pub idle_max: u64,
    /// A link on which nothing was sent for so long gets a sign of life.
    pub heartbeat: u64,
    /// Largest part of the log in one transfer.
    pub batch_bytes_max: u32,
    /// Bytes under way to one replica.
    pub window_bytes_max: u64,
    /// What the master itself holds counts only once its disk has it.
    pub sync_flush: bool,
}

impl Default for MasterOptions {
    fn default() -> Self {
        Self {
            rule: AckRule::AllInSync,
            min_in_sync: 1,
            lag_time_max: 15_000,
            link_grace: 1000,
            idle_max: 20_000,
            heartbeat: 1000,
            batch_bytes_max: 256 * 1024,
            window_bytes_max: 8 * 1024 * 1024,
            sync_flush: false,
        }
    }
}

/// What an elected broker begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// The broker.
    pub me: BrokerId,
    /// The group's registered brokers: nobody else may follow.
    pub registered: BTreeSet<BrokerId>,
    /// The epoch, whose entry is stored with the end of the log as its start.
    pub epoch: MasterEpoch,
    /// The set that the election left.
    pub set: BTreeSet<BrokerId>,
    /// Its epoch.
    pub set_epoch: SyncStateSetEpoch,
    /// What elections rely on: a master acknowledges by this or a stricter rule.
    pub rule_at_least: AckRule,
}

/// Why a write is not taken. All of them pass: clients try again, here or elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWritable {
    /// No controller confirms that this broker is master.
    #[error("the master has no lease: no controller confirms it")]
    NoLease,
    /// A switchover is under way.
    #[error("writes are fenced for a switchover")]
    Fenced,
    /// Too few replicas.
    #[error("in-sync replicas not enough: {have} of {need}")]
    InSyncReplicas {
        /// Members of the set.
        have: usize,
        /// `minInSyncReplicas`.
        need: usize,
    },
    /// There is a newer epoch.
    #[error("another broker is master")]
    Deposed,
}

/// Why a replica is refused: close the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkRefused {
    /// It is not registered in this group.
    #[error("broker {0} is not registered in this group")]
    Stranger(BrokerId),
    /// It claims to be this broker.
    #[error("the replica presents this master's own id")]
    Myself,
    /// It follows an older epoch and must learn of this one first.
    #[error("the replica follows epoch {0}")]
    OldEpoch(MasterEpoch),
    /// It knows a newer epoch: this master is none any more.
    #[error("the replica knows epoch {0}")]
    NewerEpoch(MasterEpoch),
    /// Too many replicas.
    #[error("{FOLLOWERS_MAX} replicas are linked")]
    TooMany,
    /// The link is not the replica's present one.
    #[error("the link made no handshake")]
    NoHandshake,
    /// It acknowledges what this master does not have.
    #[error("the replica acknowledges {acked}, the log ends at {end}")]
    Beyond {
        /// What it said.
        acked: CommitLogOffset,
        /// The end of the log.
        end: CommitLogOffset,
    },
    /// What it needs next is not in the log any more.
    #[error("the log begins at {min}, the replica needs {needs}")]
    Deleted {
        /// What it needs.
        needs: CommitLogOffset,
        /// The beginning of the log.
        min: CommitLogOffset,
    },
}

/// A replica's handshake. `group` was compared by the shell, which knows who dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaHandshake {
    /// Its id.
    pub broker: BrokerId,
    /// The epoch it follows; a Java replica does not say.
    pub epoch: Option<MasterEpoch>,
    /// It never enters the set.
    pub learner: bool,
    /// An empty replica begins with the newest file.
    pub from_last_file: bool,
}

/// A part of the log to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Its first byte.
    pub offset: CommitLogOffset,
    /// Bytes; 0 for a sign of life.
    pub bytes: u32,
    /// Its epoch.
    pub epoch: EpochStart,
    /// What the set holds.
    pub confirm: CommitLogOffset,
}

/// A heartbeat's part that this machine fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatStamp {
    /// Writes are fenced.
    pub fenced: bool,
    /// The set holds everything that earlier epochs acknowledged.
    pub settled: Option<(MasterEpoch, SyncStateSetEpoch)>,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Master {
    pub(crate) options: MasterOptions,
    pub(crate) rule: AckRule,
    pub(crate) me: BrokerId,
    pub(crate) registered: BTreeSet<BrokerId>,
    pub(crate) epochs: Epochs,
    pub(crate) epoch: EpochStart,
    pub(crate) change: SetChange,
    pub(crate) followers: BTreeMap<BrokerId, Follower>,
    pub(crate) lease: Lease,
    pub(crate) log_min: CommitLogOffset,
    pub(crate) log_end: CommitLogOffset,
    pub(crate) last_file: CommitLogOffset,
    flushed: CommitLogOffset,
    acknowledged: CommitLogOffset,
    deposed: bool,
}

impl Master {
    /// The master that an election made. `epochs` ends with the entry of the new epoch, stored.
    /// `confirmed` is what this broker knew to be acknowledged while it was a replica.
    #[must_use]
    pub fn promote(
        options: MasterOptions,
        promotion: Promotion,
        epochs: Epochs,
        confirmed: CommitLogOffset,
        now: Moment,
    ) -> Option<Self> {
        let epoch = epochs.last().filter(|last| last.epoch == promotion.epoch)?;
        Some(Self {
            rule: options.rule.at_least(promotion.rule_at_least),
            options,
            me: promotion.me,
            registered: promotion.registered,
            epoch,
            change: SetChange::new(promotion.set, promotion.set_epoch, now),
            followers: BTreeMap::new(),
            lease: Lease::default(),
            log_min: CommitLogOffset::default(),
            log_end: epoch.start,
            last_file: CommitLogOffset::default(),
            flushed: epoch.start,
            acknowledged: confirmed.min(epoch.start),
            deposed: false,
            epochs,
        })
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> MasterEpoch {
        self.epoch.epoch
    }

    /// The heartbeat of that number leaves now. Numbers rise while the process lives, over all its
    /// epochs and roles.
    pub fn heartbeat(&mut self, now: Moment, sequence: u64) -> HeartbeatStamp {
        self.lease.sent(now, sequence);
        HeartbeatStamp {
            fenced: self.lease.fenced(now),
            settled: self.settled(),
        }
    }

    /// A controller answered the heartbeat of that number. `lease_millis` is set if it granted a
    /// lease.
    pub fn heartbeat_answered(
        &mut self,
        sequence: u64,
        epoch: MasterEpoch,
        lease_millis: Option<u64>,
    ) {
        self.observe_epoch(epoch);
        if let Some(millis) = lease_millis.filter(|_| epoch == self.epoch.epoch) {
            self.lease.granted(sequence, millis);
        }
    }

    /// An epoch is known from anybody; a newer one ends this master.
    pub fn observe_epoch(&mut self, epoch: MasterEpoch) {
        self.deposed |= epoch > self.epoch.epoch;
    }

    /// Gives up for good: before the process ends or a connection to the controllers is closed.
    pub fn resign(&mut self) {
        self.deposed = true;
    }

    /// Whether it gave up or was replaced.
    #[must_use]
    pub fn is_deposed(&self) -> bool {
        self.deposed
    }

    /// Refuses writes until `millis` from now; 0 lifts the operation's fence. Writes that were taken
    /// are still acknowledged. Gives the end of the log, past which nothing is taken.
    pub fn fence(
        &mut self,
        now: Moment,
        operation: &str,
        epoch: MasterEpoch,
        millis: u64,
    ) -> Result<CommitLogOffset, FenceError> {
        if epoch != self.epoch.epoch {
            return Err(FenceError::OtherEpoch);
        }
        self.lease.fence(now, operation, millis)?;
        Ok(self.log_end)
    }

    /// When the lease ends.
    #[must_use]
    pub fn lease_until(&self) -> Option<Moment> {
        self.lease.until()
    }

    /// Whether a write may be taken now. Asked for each group of writes before it is appended.
    pub fn admit(&self, now: Moment) -> Result<(), NotWritable> {
        if self.deposed {
            return Err(NotWritable::Deposed);
        }
        if !self.lease.holds(now) {
            return Err(NotWritable::NoLease);
        }
        if !self.lease.writes(now) {
            return Err(NotWritable::Fenced);
        }
        let (have, need) = (self.change.least_members(), self.options.min_in_sync);
        if have < need {
            return Err(NotWritable::InSyncReplicas { have, need });
        }
        Ok(())
    }

    /// The log ends here now, and begins there; its newest file begins at `last_file`.
    pub fn log(&mut self, min: CommitLogOffset, last_file: CommitLogOffset, end: CommitLogOffset) {
        self.log_min = min;
        self.last_file = last_file;
        self.log_end = self.log_end.max(end);
    }

    /// The disk has the log up to here.
    pub fn flushed(&mut self, offset: CommitLogOffset) {
        self.flushed = self.flushed.max(offset);
    }

    /// Up to where messages may be acknowledged and read. Moves only with a lease.
    pub fn acknowledge(&mut self, now: Moment) -> CommitLogOffset {
        if self.deposed || !self.lease.holds(now) {
            return self.acknowledged;
        }
        let held = self.held();
        if held >= self.epoch.start {
            self.acknowledged = self.acknowledged.max(held);
        }
        self.acknowledged
    }

    /// What [`Master::acknowledge`] last gave: the ConfirmOffset.
    #[must_use]
    pub fn acknowledged(&self) -> CommitLogOffset {
        self.acknowledged
    }

    pub(crate) fn held(&self) -> CommitLogOffset {
        let sets = self.change.sets();
        let held = sets.map(|set| self.rule.held(set, self.me, |id| self.position(id)));
        held.min().unwrap_or_default()
    }

    /// How far a member's log is known to reach in this epoch.
    pub(crate) fn position(&self, id: BrokerId) -> CommitLogOffset {
        if id == self.me {
            return if self.options.sync_flush {
                self.flushed
            } else {
                self.log_end
            };
        }
        let follower = self.followers.get(&id);
        follower.and_then(|f| f.acked).unwrap_or_default()
    }

    /// A replica made its handshake over a link. Answer it with [`Master::epochs`] and the end of the
    /// log; a link that is refused is closed. An earlier link of the same replica is returned, to be
    /// closed too.
    pub fn linked(
        &mut self,
        now: Moment,
        link: LinkId,
        handshake: ReplicaHandshake,
    ) -> Result<Option<LinkId>, LinkRefused> {
        let broker = handshake.broker;
        if broker == self.me {
            return Err(LinkRefused::Myself);
        }
        if !self.registered.contains(&broker) {
            return Err(LinkRefused::Stranger(broker));
        }
        match handshake.epoch {
            Some(epoch) if epoch < self.epoch.epoch => return Err(LinkRefused::OldEpoch(epoch)),
            Some(epoch) if epoch > self.epoch.epoch => {
                self.observe_epoch(epoch);
                return Err(LinkRefused::NewerEpoch(epoch));
            }
            _ => {}
        }
        if !self.followers.contains_key(&broker) && self.followers.len() >= FOLLOWERS_MAX {
            return Err(LinkRefused::TooMany);
        }
        let end = self.log_end;
        let follower = self
            .followers
            .entry(broker)
            .or_insert_with(|| Follower::new(now, link, handshake.learner, end));
        let earlier = follower.link.filter(|earlier| *earlier != link);
        follower.relinked(now, link, handshake.learner);
        follower.from_last_file = handshake.from_last_file;
        Ok(earlier)
    }

    /// The epochs that a handshake is answered with.
    #[must_use]
    pub fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// The end of the log.
    #[must_use]
    pub fn log_end(&self) -> CommitLogOffset {
        self.log_end
    }

    /// A replica acknowledges everything below `offset` over its link.
    pub fn acked(
        &mut self,
        now: Moment,
        link: LinkId,
        offset: CommitLogOffset,
    ) -> Result<(), LinkRefused> {
        let end = self.log_end;
        let follower = self.by_link(link).ok_or(LinkRefused::NoHandshake)?;
        if offset > end {
            return Err(LinkRefused::Beyond { acked: offset, end });
        }
        follower.acked(now, offset, end);
        Ok(())
    }

    /// A link is gone.
    pub fn unlinked(&mut self, now: Moment, link: LinkId) {
        if let Some(follower) = self.by_link(link) {
            follower.unlinked(now);
        }
    }

    fn by_link(&mut self, link: LinkId) -> Option<&mut Follower> {
        let mut followers = self.followers.values_mut();
        followers.find(|follower| follower.link == Some(link))
    }

    /// What to send next over a link; nothing while its window is full or there is nothing new. The
    /// caller sends it: asked again, the machine goes on after it.
    pub fn next_transfer(
        &mut self,
        now: Moment,
        link: LinkId,
    ) -> Result<Option<Transfer>, LinkRefused> {
        let (min, end, last_file) = (self.log_min, self.log_end, self.last_file);
        let (confirm, options, epoch) = (self.acknowledged, self.options, self.epoch);
        let follower = self.by_link(link).ok_or(LinkRefused::NoHandshake)?;
        let (Some(acked), true) = (follower.acked, follower.in_transfer) else {
            return Ok(None);
        };
        // An empty replica begins where the log does, or with its newest file.
        let empty = acked == CommitLogOffset::default() && follower.sent == acked;
        if empty && end > min {
            let begin = if follower.from_last_file {
                last_file
            } else {
                min
            };
            follower.sent = begin.max(min);
            follower.base = follower.sent;
        }
        let from = follower.sent;
        if from < min {
            return Err(LinkRefused::Deleted { needs: from, min });
        }
        let under_way = from.get().saturating_sub(acked.max(follower.base).get());
        let window = options.window_bytes_max.saturating_sub(under_way);
        let quiet = now.since(follower.sent_at) >= options.heartbeat;
        if from >= end || window == 0 {
            if quiet {
                follower.sent_at = now;
            }
            return Ok(quiet.then_some(Transfer {
                offset: from,
                bytes: 0,
                epoch,
                confirm,
            }));
        }
        follower.sent_at = now;
        let (epoch, epoch_end) = self.epochs.at(from, end).unwrap_or((epoch, end));
        let bytes = epoch_end.get() - from.get();
        let bytes = bytes.min(window).min(u64::from(options.batch_bytes_max));
        // Bounded by a u32 above.
        let bytes = bytes as u32;
        if let Some(follower) = self.by_link(link) {
            follower.sent = from.advance(u64::from(bytes));
        }
        Ok(Some(Transfer {
            offset: from,
            bytes,
            epoch,
            confirm,
        }))
    }
}
