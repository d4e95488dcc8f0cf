//! The watch over one group.
//!
//! **Invariant:** a phase is left for `Lost` or `Releasing` at a moment after which no heartbeat of
//! the epoch is confirmed; `Lost` ends only with the epoch. `granted_until` is never before the end
//! of a lease that the present master may hold.

use std::collections::BTreeMap;

use rmq_types::{BrokerId, BrokerName, MasterEpoch, Moment, Timestamp};

use super::{Action, Asked, Asking, ConnectionId, Heartbeat, LostReason, OurHeartbeat};
use crate::{
    command::{
        AckPolicy, Election, ElectionPolicy, MasterStanding, ReplicaFacts, Settle, Trigger, Unclean,
    },
    config::Settings,
    elect::{Decision, decide},
    state::BrokerGroup,
};

/// How long an election waits for reports of members that are alive and have not sent theirs.
const REPORTS_WAIT_MILLIS: u64 = 400;
/// A Java broker does not repeat rounds; what it says is taken to be no older than this.
const JAVA_REPORT_AGE_MAX_MILLIS: u64 = 2000;
/// A master whose replacement does not come about gets its right back after this time.
const RELEASE_MAX_MILLIS: u64 = 10_000;

#[derive(Clone, Debug)]
struct Member {
    heard_at: Moment,
    connection: ConnectionId,
    timeout_millis: u64,
    epoch: i32,
    max_offset: i64,
    priority: i32,
    ours: Option<OurHeartbeat>,
    connected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Holding,
    /// It closed its connection; lost at `lost_at` unless it comes back.
    Closing {
        lost_at: Moment,
    },
    /// Its right to write is being taken. Until its last lease has `lapsed` it still acknowledges
    /// what it took, so reports of others made before that may miss acknowledged messages.
    Releasing {
        since: Moment,
        lapsed: bool,
    },
    Lost {
        since: Moment,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Watch {
    members: BTreeMap<BrokerId, Member>,
    /// Whose epoch is watched; none before the first look.
    epoch: Option<(MasterEpoch, Option<BrokerId>)>,
    phase: Phase,
    heard_at: Moment,
    granted_until: Moment,
    /// The incarnation that has held a lease of the epoch.
    incarnation: Option<u64>,
    /// An election was proposed and its result is not known: nobody gets a lease until it is, and
    /// no second one is proposed.
    proposed: bool,
    /// The same of a settling, which is in nobody's way.
    settling: bool,
    /// Reports of this round were made after nobody could acknowledge any more; its beginning.
    round: Option<(u64, Moment)>,
    asked: bool,
    newly_lost: Option<LostReason>,
}

/// The arguments of a tick.
pub(super) struct Step<'a> {
    pub(super) now: Moment,
    pub(super) wall: Timestamp,
    pub(super) name: &'a BrokerName,
    pub(super) group: &'a BrokerGroup,
    pub(super) settings: &'a Settings,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            members: BTreeMap::new(),
            epoch: None,
            phase: Phase::Holding,
            heard_at: Moment::default(),
            granted_until: Moment::default(),
            incarnation: None,
            proposed: false,
            settling: false,
            round: None,
            asked: false,
            newly_lost: None,
        }
    }

    fn master(&self) -> Option<BrokerId> {
        self.epoch.and_then(|(_, master)| master)
    }

    /// Begins a new watch when the epoch is another one.
    pub(super) fn follow(&mut self, now: Moment, group: &BrokerGroup, settings: &Settings) {
        let epoch = Some((group.epoch(), group.master()));
        if epoch == self.epoch {
            return;
        }
        // An epoch that was there before this leader may have a lease of an earlier leader's.
        let earlier = self.epoch.is_none();
        let lease = if earlier { settings.lease_millis } else { 0 };
        self.epoch = epoch;
        self.phase = Phase::Holding;
        self.heard_at = now;
        self.granted_until = now.plus_millis(lease);
        self.incarnation = None;
        self.proposed = false;
        self.settling = false;
        self.round = None;
        self.asked = false;
        self.newly_lost = None;
    }

    fn begin_round(&mut self, now: Moment, round: &mut u64) {
        *round += 1;
        self.round = Some((*round, now));
        self.asked = false;
    }

    pub(super) fn heartbeat(
        &mut self,
        now: Moment,
        group: &BrokerGroup,
        settings: &Settings,
        heartbeat: &Heartbeat,
    ) {
        if let (Some(known), Some(new)) = (self.members.get(&heartbeat.broker), heartbeat.ours)
            && let Some(old) = known.ours
            && old.incarnation == new.incarnation
            && old.sequence >= new.sequence
        {
            return;
        }
        let timeout = heartbeat.timeout_millis;
        let timeout = timeout.unwrap_or(settings.replica_timeout_millis);
        self.members.insert(
            heartbeat.broker,
            Member {
                heard_at: now,
                connection: heartbeat.connection,
                timeout_millis: timeout.clamp(100, 120_000),
                epoch: heartbeat.epoch,
                max_offset: heartbeat.max_offset,
                priority: heartbeat.priority,
                ours: heartbeat.ours,
                connected: true,
            },
        );
        if Some(heartbeat.broker) == group.master() {
            self.master_heard(now, settings, heartbeat);
        }
    }

    fn master_heard(&mut self, now: Moment, settings: &Settings, heartbeat: &Heartbeat) {
        if matches!(self.phase, Phase::Lost { .. }) {
            return;
        }
        if let Some(ours) = heartbeat.ours {
            let known = *self.incarnation.get_or_insert(ours.incarnation);
            let declined = ours.declined.is_some() && ours.declined == self.epoch.map(|e| e.0);
            if known != ours.incarnation || declined {
                // The process that had the lease is gone, and its memory with it.
                self.lose(now, LostReason::Restarted);
                return;
            }
        }
        if now > self.heard_at.plus_millis(settings.detect_millis) {
            // It was silent for so long that it counts as lost, whoever looks first.
            self.lose(now, LostReason::Silence);
            return;
        }
        self.heard_at = now;
        if matches!(self.phase, Phase::Closing { .. }) {
            self.phase = Phase::Holding;
        }
    }

    pub(super) fn confirm(
        &mut self,
        received: Moment,
        group: &BrokerGroup,
        settings: &Settings,
        heartbeat: &Heartbeat,
    ) -> bool {
        let ours = heartbeat.ours.map(|ours| ours.incarnation);
        let is_master = group.master() == Some(heartbeat.broker)
            && self.epoch == Some((group.epoch(), group.master()));
        let granted = is_master
            && self.phase == Phase::Holding
            && (ours.is_none() || ours == self.incarnation);
        if granted {
            let until = received.plus_millis(settings.lease_millis);
            self.granted_until = self.granted_until.max(until);
        }
        granted
    }

    pub(super) fn closed(
        &mut self,
        now: Moment,
        group: &BrokerGroup,
        settings: &Settings,
        connection: ConnectionId,
    ) {
        let Some((id, member)) = self
            .members
            .iter_mut()
            .find(|(_, member)| member.connection == connection && member.connected)
        else {
            return;
        };
        member.connected = false;
        let fences = member.ours.is_some();
        // A Java master does not fence itself before it closes: only silence ends its epoch.
        if Some(*id) != group.master() || !fences || self.phase != Phase::Holding {
            return;
        }
        let lost_at = match group.ack() {
            AckPolicy::Async => now.plus_millis(settings.grace_millis),
            AckPolicy::Quorum(_) | AckPolicy::AllInSync => now,
        };
        self.phase = Phase::Closing { lost_at };
        if lost_at <= now {
            self.lose(now, LostReason::Closed);
        }
    }

    fn lose(&mut self, now: Moment, reason: LostReason) {
        self.phase = Phase::Lost { since: now };
        self.round = None;
        self.newly_lost = Some(reason);
        if let (Some(master), LostReason::Silence) = (self.master(), reason) {
            self.members.remove(&master);
        }
    }

    pub(super) fn decided(&mut self) {
        self.proposed = false;
        self.keep();
    }

    pub(super) fn settle_decided(&mut self) {
        self.settling = false;
    }

    pub(super) fn keep(&mut self) {
        if matches!(self.phase, Phase::Releasing { .. }) && !self.proposed {
            self.phase = Phase::Holding;
            self.round = None;
        }
    }

    /// The election that somebody asked for, once it may be held.
    pub(super) fn asked(
        &mut self,
        asking: Asking<'_>,
        group: &BrokerGroup,
        round: &mut u64,
        trigger: Trigger,
    ) -> Asked {
        let now = asking.now;
        if self.proposed {
            return Asked::Wait(now.plus_millis(20));
        }
        let replaces = match trigger {
            Trigger::Designated(id) => group.master().is_some_and(|master| master != id),
            Trigger::Leader | Trigger::Broker(_) => false,
        };
        if replaces && matches!(self.phase, Phase::Holding | Phase::Closing { .. }) {
            self.phase = Phase::Releasing {
                since: now,
                lapsed: false,
            };
            self.begin_round(now, round);
        }
        self.lapse(now, round);
        let standing = self.standing(group);
        let alive = self.alive(now);
        let opened = self.round.map_or(now, |(_, since)| since);
        let awaited = alive.values().any(|facts| !facts.fresh);
        let patient = now.since(opened) < REPORTS_WAIT_MILLIS;
        if replaces && standing == MasterStanding::Holding {
            return Asked::Wait(self.granted_until.plus_millis(1).max(now.plus_millis(1)));
        }
        if replaces && awaited && patient {
            return Asked::Wait(now.plus_millis(20));
        }
        let election = election(asking, alive, standing, trigger).expecting(group.epoch());
        if replaces && decide(group, &election).is_err() {
            // Whoever is wanted may be catching up: hear them all again, until the release ends.
            if !awaited {
                self.begin_round(now, round);
            }
            if matches!(self.phase, Phase::Releasing { .. }) {
                return Asked::Wait(now.plus_millis(20));
            }
        }
        self.proposed = true;
        Asked::Propose(election)
    }

    /// Notes that the last lease of a master that is released is over: reports count from here.
    fn lapse(&mut self, now: Moment, round: &mut u64) {
        if let Phase::Releasing {
            since,
            lapsed: false,
        } = self.phase
            && now > self.granted_until
        {
            self.phase = Phase::Releasing {
                since,
                lapsed: true,
            };
            self.begin_round(now, round);
        }
    }

    /// The master can take no write and gets no lease: its last one is over, or it said since the
    /// release began that it is fenced. It may then still acknowledge what it took before; its own
    /// report covers that, and whoever follows it must reach it.
    fn released(&self) -> bool {
        let Phase::Releasing { lapsed, .. } = self.phase else {
            return false;
        };
        let master = self.master().and_then(|id| self.members.get(&id));
        let said = master.and_then(|master| master.ours);
        let round = self.round.map_or(u64::MAX, |(round, _)| round);
        lapsed || said.is_some_and(|ours| ours.fenced && ours.round >= round)
    }

    fn standing(&self, group: &BrokerGroup) -> MasterStanding {
        if group.master().is_none() {
            return MasterStanding::Lost;
        }
        match self.phase {
            Phase::Lost { .. } => MasterStanding::Lost,
            _ if self.released() => MasterStanding::Released,
            _ => MasterStanding::Holding,
        }
    }

    pub(super) fn counts_as_alive(&self, group: &BrokerGroup) -> bool {
        self.epoch != Some((group.epoch(), group.master()))
            || !matches!(self.phase, Phase::Lost { .. })
    }

    pub(super) fn alive(&self, now: Moment) -> BTreeMap<BrokerId, ReplicaFacts> {
        let round = self.round;
        let living = self.members.iter().filter(|(_, member)| {
            let until = member.heard_at.plus_millis(member.timeout_millis);
            member.connected && now <= until
        });
        living
            .map(|(id, member)| (*id, member.facts(round)))
            .collect()
    }

    pub(super) fn tick(&mut self, step: &Step<'_>, round: &mut u64, actions: &mut Vec<Action>) {
        self.pass_time(step);
        self.lapse(step.now, round);
        if let Some(reason) = self.newly_lost.take() {
            actions.push(Action::MasterLost {
                group: step.name.clone(),
                epoch: step.group.epoch(),
                reason,
            });
        }
        self.settle(step, actions);
        let headless = self.master().is_none() && step.group.epoch() > MasterEpoch::default();
        let open = match self.phase {
            Phase::Lost { since } => Some(since),
            Phase::Holding if headless => Some(self.heard_at),
            Phase::Releasing { .. } => None,
            Phase::Holding | Phase::Closing { .. } => return,
        };
        if self.round.is_none() {
            self.begin_round(step.now, round);
        }
        let alive = self.alive(step.now);
        self.ask_reports(step, &alive, actions);
        if let Some(since) = open {
            self.propose(step, since, alive, actions);
        }
    }

    fn pass_time(&mut self, step: &Step<'_>) {
        let now = step.now;
        let silent = now > self.heard_at.plus_millis(step.settings.detect_millis);
        match self.phase {
            Phase::Lost { .. } => {}
            _ if self.master().is_some() && silent => self.lose(now, LostReason::Silence),
            Phase::Closing { lost_at } if now >= lost_at => self.lose(now, LostReason::Closed),
            Phase::Releasing { since, .. } if now > since.plus_millis(RELEASE_MAX_MILLIS) => {
                self.keep();
            }
            _ => {}
        }
    }

    fn settle(&mut self, step: &Step<'_>, actions: &mut Vec<Action>) {
        let Some(master) = step.group.master().filter(|_| !self.settling) else {
            return;
        };
        let said = self.members.get(&master).and_then(|member| member.ours);
        let said = said.and_then(|ours| ours.settled);
        let of_now = Some((step.group.epoch(), step.group.set_epoch()));
        if self.phase == Phase::Holding && step.group.unsettled().is_some() && said == of_now {
            self.settling = true;
            actions.push(Action::Settle(Settle {
                group: step.name.clone(),
                master,
                master_epoch: step.group.epoch(),
                set_epoch: step.group.set_epoch(),
            }));
        }
    }

    fn ask_reports(
        &mut self,
        step: &Step<'_>,
        alive: &BTreeMap<BrokerId, ReplicaFacts>,
        actions: &mut Vec<Action>,
    ) {
        let Some((round, _)) = self.round.filter(|_| !self.asked && !alive.is_empty()) else {
            return;
        };
        self.asked = true;
        actions.push(Action::AskReports {
            group: step.name.clone(),
            brokers: alive.keys().copied().collect(),
            round,
        });
    }

    fn propose(
        &mut self,
        step: &Step<'_>,
        since: Moment,
        alive: BTreeMap<BrokerId, ReplicaFacts>,
        actions: &mut Vec<Action>,
    ) {
        if self.proposed {
            return;
        }
        // Whoever is alive may have the longer log, so all of them are heard, but not for ever.
        let all_heard = alive.values().all(|facts| facts.fresh);
        let waited = step.now.since(since) >= REPORTS_WAIT_MILLIS;
        let by_quorum = matches!(step.group.ack(), AckPolicy::Quorum(_));
        let by_quorum = by_quorum || step.group.unsettled().is_some();
        let asking = Asking {
            now: step.now,
            wall: step.wall,
            group: step.name,
            policy: ElectionPolicy {
                ack: step.settings.ack,
                unclean: Unclean::Forbidden,
            },
        };
        let election = election(asking, alive, MasterStanding::Lost, Trigger::Leader)
            .expecting(step.group.epoch());
        let due = match decide(step.group, &election) {
            Ok(Decision::Elect { .. }) => all_heard || waited || !by_quorum,
            Ok(Decision::Clear) => waited,
            Ok(Decision::Stay) | Err(_) => false,
        };
        if due {
            self.proposed = true;
            actions.push(Action::Elect(election));
        }
    }
}

/// An election that ends no particular epoch yet.
pub(super) fn election(
    asking: Asking<'_>,
    alive: BTreeMap<BrokerId, ReplicaFacts>,
    standing: MasterStanding,
    trigger: Trigger,
) -> Election {
    Election {
        group: asking.group.clone(),
        trigger,
        expected_epoch: None,
        standing,
        alive,
        policy: asking.policy,
        at: asking.wall,
    }
}

impl Election {
    fn expecting(mut self, epoch: MasterEpoch) -> Self {
        self.expected_epoch = Some(epoch);
        self
    }
}

impl Member {
    fn facts(&self, round: Option<(u64, Moment)>) -> ReplicaFacts {
        let fresh = round.is_some_and(|(round, since)| match self.ours {
            Some(ours) => ours.round >= round,
            None => self.heard_at.since(since) >= JAVA_REPORT_AGE_MAX_MILLIS,
        });
        let may_lack = self.ours.is_some_and(|ours| ours.may_lack);
        ReplicaFacts {
            epoch: self.epoch,
            max_offset: self.max_offset,
            priority: self.priority,
            fresh,
            may_lack,
        }
    }
}
