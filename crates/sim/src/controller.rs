//! A controller: the consensus, the state machine, and the detector while it leads. What the shell
//! of the real controller does, without its sockets.
//!
//! **Invariant:** a heartbeat is confirmed only by a round that began after its receipt; a detector
//! lives from the first applied entry of a term until leadership ends.

use std::collections::BTreeMap;

use rmq_controller_fsm::{
    AckPolicy, AlterSyncStateSet, Asked, Asking, Command, Detector, ElectionPolicy, GroupView,
    Outcome, State, Trigger, Unclean, apply,
    detector::{Action, ConnectionId, Heartbeat},
    settings_of,
};
use rmq_types::{BrokerId, BrokerName, Moment, Timestamp};

use crate::{
    bug::Bug,
    net::Node,
    quorum::{Entry, Quorum},
    rng::Rng,
};

/// The answer to a heartbeat.
#[derive(Clone, Debug)]
pub(crate) struct HeartbeatAnswer {
    pub(crate) sequence: u64,
    pub(crate) lease_millis: Option<u64>,
    pub(crate) round: u64,
    pub(crate) view: GroupView,
}

/// The answer to a proposed set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SetAnswer {
    Altered,
    Refused,
}

/// What a controller sends to brokers.
#[derive(Clone, Debug)]
pub(crate) enum FromController {
    Heartbeat(HeartbeatAnswer),
    Set(SetAnswer),
    ReportNow(u64),
}

#[derive(Clone, Debug)]
struct Waiting {
    heartbeat: Heartbeat,
    received: Moment,
    round: u64,
    from: Node,
}

#[derive(Clone, Debug)]
pub(crate) struct Controller {
    pub(crate) quorum: Quorum,
    pub(crate) state: State,
    applied: usize,
    detector: Option<(u64, Detector)>,
    waiting: Vec<Waiting>,
    /// Proposals of this leader by index, and whom to answer.
    asked: BTreeMap<usize, Option<Node>>,
}

impl Controller {
    pub(crate) fn new(me: usize, log: Vec<Entry>, rng: &mut Rng) -> Self {
        let mut controller = Self {
            quorum: Quorum::new(me, log, rng),
            state: State::default(),
            applied: 0,
            detector: None,
            waiting: Vec::new(),
            asked: BTreeMap::new(),
        };
        controller.apply(Moment::default());
        controller
    }

    pub(crate) fn restarted(&mut self, now: u64, rng: &mut Rng) {
        self.quorum.restarted(now, rng);
        self.detector = None;
        self.waiting.clear();
        self.asked.clear();
    }

    /// Applies what is committed; answers to those who asked.
    pub(crate) fn apply(&mut self, now: Moment) -> Vec<(Node, FromController)> {
        let mut answers = Vec::new();
        while self.applied < self.quorum.committed {
            let entry = self.quorum.log[self.applied].clone();
            let outcome = entry.command.as_ref().map(|c| apply(&mut self.state, c));
            self.state
                .check()
                .expect("the state's rules hold after every command");
            if let (Some(command), Some((_, detector))) = (&entry.command, &mut self.detector)
                && let Command::ElectMaster(election) = command
            {
                detector.decided(&election.group);
            }
            if let (Some(Command::Settle(settle)), Some((_, detector))) =
                (&entry.command, &mut self.detector)
            {
                detector.settle_decided(&settle.group);
            }
            let asked = self.asked.remove(&self.applied).flatten();
            if let (Some(to), Some(outcome)) = (asked, outcome) {
                let answer = match outcome {
                    Outcome::SetAltered { .. } => SetAnswer::Altered,
                    _ => SetAnswer::Refused,
                };
                answers.push((to, FromController::Set(answer)));
            }
            self.applied += 1;
            if self.quorum.leads() && entry.term == self.quorum.term && self.detector.is_none() {
                let settings = settings_of(&self.state);
                let detector = Detector::lead(settings, now, entry.term, &self.state);
                self.detector = Some((entry.term, detector));
            }
        }
        let term = self.quorum.term;
        let leads = self.quorum.leads();
        if self
            .detector
            .as_ref()
            .is_some_and(|(led, _)| !leads || *led != term)
        {
            self.detector = None;
            self.waiting.clear();
            self.asked.clear();
        }
        answers
    }

    pub(crate) fn heartbeat(&mut self, now: Moment, from: Node, heartbeat: Heartbeat) {
        let Some((_, detector)) = &mut self.detector else {
            return;
        };
        detector.heartbeat(now, &self.state, &heartbeat);
        self.waiting.push(Waiting {
            heartbeat,
            received: now,
            round: self.quorum.next_round(),
            from,
        });
    }

    /// Answers to heartbeats that a round confirmed.
    pub(crate) fn confirm(&mut self, group: &BrokerName) -> Vec<(Node, FromController)> {
        let confirmed = self.quorum.confirmed_round();
        let Some((_, detector)) = &mut self.detector else {
            return Vec::new();
        };
        let Some(view) = self.state.view(group) else {
            return Vec::new();
        };
        let lease_millis = settings_of(&self.state).lease_millis;
        let mut answers = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.round > confirmed {
                self.waiting.push(waiting);
                continue;
            }
            let answer = detector.confirm(waiting.received, &self.state, &waiting.heartbeat);
            let sequence = waiting.heartbeat.ours.map_or(0, |ours| ours.sequence);
            answers.push((
                waiting.from,
                FromController::Heartbeat(HeartbeatAnswer {
                    sequence,
                    lease_millis: answer.lease.then_some(lease_millis),
                    round: answer.round,
                    view: view.clone(),
                }),
            ));
        }
        answers
    }

    pub(crate) fn closed(&mut self, now: Moment, connection: ConnectionId) {
        if let Some((_, detector)) = &mut self.detector {
            detector.closed(now, &self.state, connection);
        }
    }

    /// A master asks for a set. Who does not lead refuses at once.
    pub(crate) fn alter(
        &mut self,
        now: Moment,
        from: Node,
        mut command: AlterSyncStateSet,
    ) -> Option<FromController> {
        let Some((_, detector)) = &self.detector else {
            return Some(FromController::Set(SetAnswer::Refused));
        };
        command.alive = detector.alive(now, &self.state, &command.group);
        let index = self
            .quorum
            .propose(Some(Command::AlterSyncStateSet(command)));
        self.asked.insert(index, Some(from));
        None
    }

    /// Elects `target` once the present master may be replaced. `true` if it was proposed or given
    /// up.
    pub(crate) fn switch_over(
        &mut self,
        now: Moment,
        group: &BrokerName,
        target: BrokerId,
        give_up: bool,
    ) -> bool {
        let Some((_, detector)) = &mut self.detector else {
            return false;
        };
        if give_up {
            detector.keep(group);
            return true;
        }
        let asking = Asking {
            now,
            wall: Timestamp::from_millis(0),
            group,
            policy: ElectionPolicy {
                ack: settings_of(&self.state).ack,
                ..ElectionPolicy::default()
            },
        };
        match detector.ask(asking, &self.state, Trigger::Designated(target)) {
            Asked::Wait(_) => false,
            Asked::Propose(election) => {
                let index = self.quorum.propose(Some(Command::ElectMaster(election)));
                self.asked.insert(index, None);
                true
            }
        }
    }

    /// What the detector wants; messages to brokers.
    pub(crate) fn tick(&mut self, now: Moment, bug: Option<Bug>) -> Vec<(Node, FromController)> {
        let Some((_, detector)) = &mut self.detector else {
            return Vec::new();
        };
        let mut messages = Vec::new();
        for action in detector.tick(now, Timestamp::from_millis(0), &self.state) {
            match action {
                Action::AskReports { brokers, round, .. } => {
                    let to = brokers.iter().map(|id| crate::node_of(*id));
                    messages.extend(to.map(|to| (to, FromController::ReportNow(round))));
                }
                Action::Elect(mut election) => {
                    match bug {
                        Some(Bug::ElectOutsideSet) => {
                            election.policy.unclean = Unclean::Acknowledged;
                        }
                        Some(Bug::ResetSetOnElection) => election.policy.ack = AckPolicy::Async,
                        _ => {}
                    }
                    let index = self.quorum.propose(Some(Command::ElectMaster(election)));
                    self.asked.insert(index, None);
                }
                Action::Settle(settle) => {
                    let index = self.quorum.propose(Some(Command::Settle(settle)));
                    self.asked.insert(index, None);
                }
                Action::MasterLost { .. } => {}
            }
        }
        messages
    }
}
