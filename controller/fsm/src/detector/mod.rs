//! Who is alive, and whether a master still has the right to take writes, as the leader sees it.
//!
//! Not replicated: a new leader makes a new [`Detector`], whose timers all begin then. A change of
//! leader can therefore delay an election and never hastens one.
//!
//! **Invariant:** an election that ends an epoch is proposed only when that epoch's master can have
//! no lease: it was silent for longer than a lease lasts, or it proved its end (it closed its
//! connection after fencing itself, or was started anew), or it said that it is fenced; and from the
//! moment of that judgement on no heartbeat of the epoch is confirmed. Only milliseconds of this
//! process' own clock are compared; the lease is shorter than the silence, and counts from a
//! heartbeat's *sending*, which is before its receipt here.
//!
//! # How a shell drives it
//!
//! - On becoming leader, once the first entry of the term is applied: [`Detector::lead`]. Earlier
//!   leaders' proposals are by then in the state or lost.
//! - For each heartbeat: [`Detector::heartbeat`] with the time of receipt; then, once a round of
//!   messages that *began after the receipt* has shown a majority that still follows (one round
//!   serves all heartbeats that wait), [`Detector::confirm`] says what to answer.
//! - For each connection that the *peer* closed: [`Detector::closed`]. One that this side closed, or
//!   that timed out, proves nothing.
//! - Every 50 ms, and after each heartbeat of a group whose master is lost: [`Detector::tick`];
//!   perform the returned actions in order. An [`Action::Elect`] is proposed to the log;
//!   whatever became of it goes to [`Detector::decided`].
//! - On losing leadership: drop it.

mod watch;

use std::collections::{BTreeMap, BTreeSet};

use rmq_types::{BrokerId, BrokerName, MasterEpoch, Moment, SyncStateSetEpoch, Timestamp};

use crate::{
    command::{Election, ElectionPolicy, MasterStanding, Settle, Trigger},
    config::Settings,
    state::State,
};
use watch::Watch;

/// A connection of a broker, numbered by the shell and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// What a broker says of itself every 500 ms (request 904).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Its group.
    pub group: BrokerName,
    /// Its id.
    pub broker: BrokerId,
    /// The connection it came over.
    pub connection: ConnectionId,
    /// Epoch of the last entry of its log; −1 if it did not say.
    pub epoch: i32,
    /// End of its log; −1 if it did not say.
    pub max_offset: i64,
    /// Smaller is preferred among equal logs.
    pub priority: i32,
    /// Silence after which it is not alive, in milliseconds, if it said.
    pub timeout_millis: Option<u64>,
    /// What only brokers of this project say.
    pub ours: Option<OurHeartbeat>,
}

/// The part of a heartbeat that Java brokers do not send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OurHeartbeat {
    /// Another number after each start of the process.
    pub incarnation: u64,
    /// Counts the heartbeats of an incarnation, so that one that was overtaken is known.
    pub sequence: u64,
    /// The last [`Answer::round`] or [`Action::AskReports`] it has seen.
    pub round: u64,
    /// It takes no writes and will take none before a heartbeat that it sent after the fence's end
    /// was confirmed.
    pub fenced: bool,
    /// As master: every member of the set of this epoch holds what earlier epochs acknowledged.
    pub settled: Option<(MasterEpoch, SyncStateSetEpoch)>,
    /// It is said to be master of this epoch and cannot go on: it was started anew since.
    pub declined: Option<MasterEpoch>,
    /// See [`crate::ReplicaFacts::may_lack`].
    pub may_lack: bool,
}

/// What to answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The group's epoch as the leader knows it.
    pub epoch: MasterEpoch,
    /// The sender is master and may take writes until a lease after its sending of the heartbeat.
    pub lease: bool,
    /// To be repeated in the next heartbeat.
    pub round: u64,
}

/// What the shell must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask these brokers for a heartbeat at once, telling them the round.
    AskReports {
        /// The group.
        group: BrokerName,
        /// Its living members.
        brokers: BTreeSet<BrokerId>,
        /// The round.
        round: u64,
    },
    /// Propose this election to the log.
    Elect(Election),
    /// Propose this to the log; whatever became of it goes to [`Detector::settle_decided`].
    Settle(Settle),
    /// For the log of events: the master of this epoch is lost.
    MasterLost {
        /// The group.
        group: BrokerName,
        /// The epoch that ends.
        epoch: MasterEpoch,
        /// Why.
        reason: LostReason,
    },
}

/// Why a master is held for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostReason {
    /// No heartbeat for the whole detection time.
    Silence,
    /// It closed its connection, which it does after it stopped taking writes.
    Closed,
    /// Its process was started anew.
    Restarted,
}

/// When and with which rules an election is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The time.
    pub now: Moment,
    /// The time for the history.
    pub wall: Timestamp,
    /// The group.
    pub group: &'a BrokerName,
    /// The rules.
    pub policy: ElectionPolicy,
}

/// What to do about an election that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Propose it.
    Propose(Election),
    /// Ask again at this moment, or after the next heartbeat of the group.
    Wait(Moment),
}

/// The leader's view of all groups.
#[derive(Clone, Debug)]
pub struct Detector {
    settings: Settings,
    round: u64,
    groups: BTreeMap<BrokerName, Watch>,
}

impl Detector {
    /// A new leader's detector: every timer begins at `now`. `term` is the leader's; rounds of
    /// reports are numbered above those of earlier terms.
    #[must_use]
    pub fn lead(settings: Settings, now: Moment, term: u64, state: &State) -> Self {
        let mut detector = Self {
            settings,
            round: (term << 32) | 1,
            groups: BTreeMap::new(),
        };
        for (name, group) in state.groups() {
            let watch = watch(&mut detector.groups, name);
            watch.follow(now, group, &detector.settings);
        }
        detector
    }

    /// Changed settings hold from now on.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// A heartbeat came. Heartbeats of brokers that are not registered change nothing.
    pub fn heartbeat(&mut self, now: Moment, state: &State, heartbeat: &Heartbeat) {
        let Some(group) = state.group(&heartbeat.group) else {
            return;
        };
        if !group.replicas().contains_key(&heartbeat.broker) {
            return;
        }
        let watch = watch(&mut self.groups, &heartbeat.group);
        watch.follow(now, group, &self.settings);
        watch.heartbeat(now, group, &self.settings, heartbeat);
    }

    /// What to answer to a heartbeat whose sender's leader was confirmed after the receipt.
    /// `received` is the moment that was given to [`Detector::heartbeat`].
    pub fn confirm(&mut self, received: Moment, state: &State, heartbeat: &Heartbeat) -> Answer {
        let round = self.round;
        let Some(group) = state.group(&heartbeat.group) else {
            return Answer {
                epoch: MasterEpoch::default(),
                lease: false,
                round,
            };
        };
        let watch = watch(&mut self.groups, &heartbeat.group);
        Answer {
            epoch: group.epoch(),
            lease: watch.confirm(received, group, &self.settings, heartbeat),
            round,
        }
    }

    /// A connection was closed by its peer.
    pub fn closed(&mut self, now: Moment, state: &State, connection: ConnectionId) {
        for (name, watch) in &mut self.groups {
            if let Some(group) = state.group(name) {
                watch.follow(now, group, &self.settings);
                watch.closed(now, group, &self.settings, connection);
            }
        }
    }

    /// A proposed settling of the group was applied, or will never be.
    pub fn settle_decided(&mut self, group: &BrokerName) {
        if let Some(watch) = self.groups.get_mut(group) {
            watch.settle_decided();
        }
    }

    /// What is due.
    pub fn tick(&mut self, now: Moment, wall: Timestamp, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        self.groups.retain(|name, _| state.group(name).is_some());
        for (name, group) in state.groups() {
            let watch = watch(&mut self.groups, name);
            watch.follow(now, group, &self.settings);
            let step = watch::Step {
                now,
                wall,
                name,
                group,
                settings: &self.settings,
            };
            watch.tick(&step, &mut self.round, &mut actions);
        }
        actions
    }

    /// A proposed election of the group was applied, or will never be.
    pub fn decided(&mut self, group: &BrokerName) {
        if let Some(watch) = self.groups.get_mut(group) {
            watch.decided();
        }
    }

    /// Who is alive, for [`crate::AlterSyncStateSet`], [`crate::CleanBrokerData`] and queries. A
    /// master counts until it is held for lost.
    #[must_use]
    pub fn alive(&self, now: Moment, state: &State, group: &BrokerName) -> BTreeSet<BrokerId> {
        let Some(known) = state.group(group) else {
            return BTreeSet::new();
        };
        let watch = self.groups.get(group);
        let mut alive: BTreeSet<BrokerId> = watch
            .map(|watch| watch.alive(now).into_keys().collect())
            .unwrap_or_default();
        if let Some(master) = known.master() {
            if watch.is_none_or(|watch| watch.counts_as_alive(known)) {
                alive.insert(master);
            } else {
                alive.remove(&master);
            }
        }
        alive
    }

    /// The election that somebody asks for (request 1002), with everything stamped.
    ///
    /// To replace a living master its lease must run out first, or the master must say that it is
    /// fenced: until then the answer is [`Asked::Wait`] and no heartbeat of it is confirmed. Ask
    /// again then; [`Detector::keep`] gives it up. After [`Asked::Propose`] call
    /// [`Detector::decided`] with whatever became of it.
    pub fn ask(&mut self, moment: Asking<'_>, state: &State, trigger: Trigger) -> Asked {
        let Some(known) = state.group(moment.group) else {
            // Refused by the state machine, with the right code.
            let election = watch::election(moment, BTreeMap::new(), MasterStanding::Lost, trigger);
            return Asked::Propose(election);
        };
        let watch = watch(&mut self.groups, moment.group);
        watch.follow(moment.now, known, &self.settings);
        watch.asked(moment, known, &mut self.round, trigger)
    }

    /// The master keeps its right after all.
    pub fn keep(&mut self, group: &BrokerName) {
        if let Some(watch) = self.groups.get_mut(group) {
            watch.keep();
        }
    }
}

fn watch<'a>(groups: &'a mut BTreeMap<BrokerName, Watch>, name: &BrokerName) -> &'a mut Watch {
    groups.entry(name.clone()).or_insert_with(Watch::new)
}
