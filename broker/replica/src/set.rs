//! Changes of the SyncStateSet, as the master wants them and the controllers decide them.
//!
//! **Invariant:** a set that was proposed and whose fate is not known counts like the present one
//! until the set's epoch has moved past it, for a lost answer may have been a yes. Only members whose
//! leaving loses nothing are proposed to leave, only replicas that hold all that is acknowledged to
//! join, and nothing is proposed without a lease.

use std::collections::BTreeSet;

use rmq_types::{BrokerId, MasterEpoch, Moment, SyncStateSetEpoch};

use crate::{LinkId, ack::AckRule, follower::Follower, master::Master};

/// Proposals of one set epoch whose fate is not known.
const POSSIBLE_MAX: usize = 4;
/// An answer that did not come for so long will not come.
const ANSWER_MILLIS_MAX: u64 = 5_000;
/// After a refusal the same is not asked for at once.
const RETRY_MILLIS: u64 = 500;

/// What the shell must do after [`Master::tick`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterAction {
    /// Ask the controllers for this set (1001); tell the machine the answer with
    /// [`Master::set_altered`], [`Master::set_refused`] or, in doubt, [`Master::set_unknown`].
    ProposeSet {
        /// The wanted set.
        set: BTreeSet<BrokerId>,
        /// The epoch of the set that it replaces.
        set_epoch: SyncStateSetEpoch,
        /// The set is the present one: only its epoch is to move on, so that lost proposals can
        /// never be accepted. Our controllers do that; a Java one refuses.
        renew: bool,
    },
    /// Ask the controllers which set is in force (1004), for [`Master::set_learned`].
    LearnSet,
    /// Close this link: its replica is silent.
    Close(LinkId),
}

/// The present set and those that may replace it.
#[derive(Clone, Debug)]
pub(crate) struct SetChange {
    current: BTreeSet<BrokerId>,
    epoch: SyncStateSetEpoch,
    possible: Vec<BTreeSet<BrokerId>>,
    /// When this master began.
    began: Moment,
    /// Since when an answer is awaited, and whether its refusal takes a possible set back.
    asked: Option<(Moment, bool)>,
    /// Some proposal's answer was lost.
    in_doubt: bool,
    quiet_until: Moment,
}

impl SetChange {
    pub(crate) fn new(set: BTreeSet<BrokerId>, epoch: SyncStateSetEpoch, now: Moment) -> Self {
        Self {
            current: set,
            epoch,
            possible: Vec::new(),
            began: now,
            asked: None,
            in_doubt: false,
            quiet_until: now,
        }
    }

    /// Every set that is or may be in force.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &BTreeSet<BrokerId>> {
        std::iter::once(&self.current).chain(&self.possible)
    }

    /// Members of the smallest set that may be in force.
    pub(crate) fn least_members(&self) -> usize {
        self.sets().map(BTreeSet::len).min().unwrap_or(0)
    }

    fn learn(&mut self, set: BTreeSet<BrokerId>, epoch: SyncStateSetEpoch) {
        if epoch > self.epoch {
            self.current = set;
            self.epoch = epoch;
            self.possible.clear();
            self.asked = None;
            self.in_doubt = false;
        }
    }
}

impl Master {
    /// The present set.
    #[must_use]
    pub fn set(&self) -> &BTreeSet<BrokerId> {
        &self.change.current
    }

    /// Its epoch.
    #[must_use]
    pub fn set_epoch(&self) -> SyncStateSetEpoch {
        self.change.epoch
    }

    /// The proposal was accepted, or a notice or a query says what is in force.
    pub fn set_altered(&mut self, set: BTreeSet<BrokerId>, epoch: SyncStateSetEpoch) {
        self.change.learn(set, epoch);
    }

    /// The controllers say which set is in force in which master epoch.
    pub fn set_learned(
        &mut self,
        master_epoch: MasterEpoch,
        set: BTreeSet<BrokerId>,
        set_epoch: SyncStateSetEpoch,
    ) {
        self.observe_epoch(master_epoch);
        if master_epoch == self.epoch.epoch {
            self.change.learn(set, set_epoch);
        }
    }

    /// The proposal was refused by the state machine: it will not be applied.
    pub fn set_refused(&mut self, now: Moment) {
        let change = &mut self.change;
        let asked = change.asked.take();
        change.quiet_until = now.plus_millis(RETRY_MILLIS);
        // Unless the answer to an earlier one was lost, which may be the same proposal.
        if !change.in_doubt && asked.is_some_and(|(_, takes_back)| takes_back) {
            change.possible.pop();
        }
    }

    /// The answer to the proposal was lost.
    pub fn set_unknown(&mut self, now: Moment) {
        self.change.asked = None;
        self.change.in_doubt = true;
        self.change.quiet_until = now.plus_millis(RETRY_MILLIS);
    }

    /// New brokers of the group may follow.
    pub fn registered(&mut self, registered: BTreeSet<BrokerId>) {
        self.registered = registered;
    }

    /// What earlier epochs acknowledged is on every member, and no change is in doubt.
    pub(crate) fn settled(&self) -> Option<(MasterEpoch, SyncStateSetEpoch)> {
        let all = self.change.current.iter();
        let mut others = all.filter(|id| **id != self.me);
        let start = self.epoch.start;
        let settled = self.change.possible.is_empty()
            && others.all(|id| self.followers.get(id).and_then(|f| f.acked) >= Some(start));
        settled.then_some((self.epoch.epoch, self.change.epoch))
    }

    /// What is due.
    pub fn tick(&mut self, now: Moment) -> Vec<MasterAction> {
        let mut actions = Vec::new();
        for follower in self.followers.values_mut() {
            if let Some(link) = follower.link
                && now.since(follower.heard_at) > self.options.idle_max
            {
                follower.unlinked(now);
                actions.push(MasterAction::Close(link));
            }
        }
        if self.is_deposed() || !self.lease.holds(now) || now < self.change.quiet_until {
            return actions;
        }
        if let Some((asked, _)) = self.change.asked {
            if now.since(asked) <= ANSWER_MILLIS_MAX {
                return actions;
            }
            self.set_unknown(now);
            return actions;
        }
        if self.change.in_doubt {
            actions.push(MasterAction::LearnSet);
        }
        actions.extend(self.propose(now));
        actions
    }

    fn propose(&mut self, now: Moment) -> Option<MasterAction> {
        let wanted = self.wanted(now);
        let renew = wanted == self.change.current;
        if renew && !self.change.in_doubt {
            return None;
        }
        if !renew {
            let possible = &mut self.change.possible;
            // The last one is the one that a refusal takes back.
            possible.retain(|set| *set != wanted);
            if possible.len() >= POSSIBLE_MAX {
                return None;
            }
            possible.push(wanted.clone());
        }
        self.change.asked = Some((now, !renew));
        Some(MasterAction::ProposeSet {
            set: wanted,
            set_epoch: self.change.epoch,
            renew,
        })
    }

    /// The set as it should be now.
    fn wanted(&self, now: Moment) -> BTreeSet<BrokerId> {
        let current = &self.change.current;
        let stays = |id: &BrokerId| *id == self.me || !self.leaves(now, *id);
        let mut wanted: BTreeSet<BrokerId> = current.iter().copied().filter(stays).collect();
        if wanted.len() < current.len() && !self.loses_nothing(&wanted) {
            wanted.clone_from(current);
        }
        let joins = self.followers.iter().filter(|(id, follower)| {
            !current.contains(*id) && self.registered.contains(*id) && self.joins(follower)
        });
        wanted.extend(joins.map(|(id, _)| *id));
        wanted
    }

    fn leaves(&self, now: Moment, id: BrokerId) -> bool {
        let Some(follower) = self.followers.get(&id) else {
            // Since the election it made no handshake.
            return now.since(self.change.began) > self.options.link_grace;
        };
        let unlinked = follower.lost_at;
        let gone = unlinked.is_some_and(|at| now.since(at) > self.options.link_grace);
        let lags = now.since(follower.caught_up_at) > self.options.lag_time_max;
        gone || lags || follower.learner || self.lost_bytes(follower)
    }

    /// Too few members hold what was acknowledged, and this one is among those who do not: after its
    /// handshake it said less than before.
    fn lost_bytes(&self, follower: &Follower) -> bool {
        let acknowledged = self.acknowledged();
        let lacks = follower.in_transfer && follower.acked < Some(acknowledged);
        lacks && acknowledged > self.epoch.start && self.held() < acknowledged
    }

    fn joins(&self, follower: &Follower) -> bool {
        let acked = follower.acked.filter(|_| follower.in_transfer);
        !follower.learner
            && acked.is_some_and(|acked| acked >= self.acknowledged() && acked >= self.epoch.start)
    }

    /// Enough of those who would stay hold everything that was acknowledged.
    fn loses_nothing(&self, staying: &BTreeSet<BrokerId>) -> bool {
        if self.rule == AckRule::Async {
            return true;
        }
        let held = self.rule.held(staying, self.me, |id| self.position(id));
        held >= self.acknowledged() && held >= self.epoch.start
    }
}
