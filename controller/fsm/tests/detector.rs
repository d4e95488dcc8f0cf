//! When a leader holds a master for lost, and what it lets nobody do until then.
//!
//! **Invariant:** times are given, never read; a test that needs "later" says how much.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod rig;

use proptest::prelude::*;
use rig::{group, id, ids, three};
use rmq_controller_fsm::{
    AckPolicy, Asked, Asking, Command, Detector, Election, ElectionPolicy, MasterStanding, Outcome,
    Settings, State, Trigger, apply,
    detector::{Action, ConnectionId, Heartbeat, LostReason, OurHeartbeat},
    settings_of,
};
use rmq_types::{BrokerId, MasterEpoch, Moment, SyncStateSetEpoch, Timestamp};

/// A leader with its state and three brokers, each on a connection of its own number.
struct Leader {
    state: State,
    detector: Detector,
    sequence: u64,
    settings: Settings,
}

fn at(millis: u64) -> Moment {
    Moment::from_millis(millis)
}

impl Leader {
    fn new(ack: AckPolicy) -> Self {
        let mut state = three(ack);
        let text = match ack {
            AckPolicy::Async => "Async".to_owned(),
            AckPolicy::AllInSync => "AllInSync".to_owned(),
            AckPolicy::Quorum(acks) => format!("Quorum:{acks}"),
        };
        let config = [("replicationAck".to_owned(), text)].into();
        assert_eq!(apply(&mut state, &Command::SetConfig(config)).code(), 0);
        let settings = settings_of(&state);
        Self {
            detector: Detector::lead(settings, at(0), 1, &state),
            state,
            sequence: 0,
            settings,
        }
    }

    fn beat(&mut self, broker: u64, ours: Option<OurHeartbeat>) -> Heartbeat {
        self.sequence += 1;
        let sequence = self.sequence;
        Heartbeat {
            group: group(),
            broker: id(broker),
            connection: ConnectionId(broker),
            epoch: self.state.group(&group()).unwrap().epoch().get(),
            max_offset: 100 + i64::try_from(broker).unwrap(),
            priority: i32::MAX,
            timeout_millis: None,
            ours: ours.map(|ours| OurHeartbeat { sequence, ..ours }),
        }
    }

    /// A heartbeat that is received and confirmed at once; whether it got a lease.
    fn hear(&mut self, now: u64, broker: u64, ours: OurHeartbeat) -> bool {
        let heartbeat = self.beat(broker, Some(ours));
        self.detector.heartbeat(at(now), &self.state, &heartbeat);
        let answer = self.detector.confirm(at(now), &self.state, &heartbeat);
        answer.lease
    }

    fn hear_all(&mut self, now: u64) {
        for broker in 1..=3 {
            self.hear(now, broker, one(0));
        }
    }

    fn tick(&mut self, now: u64) -> Vec<Action> {
        let wall = Timestamp::from_millis(0);
        self.detector.tick(at(now), wall, &self.state)
    }

    fn elections(&mut self, now: u64) -> Vec<Election> {
        let actions = self.tick(now).into_iter();
        let elections = actions.filter_map(|action| match action {
            Action::Elect(election) => Some(election),
            _ => None,
        });
        elections.collect()
    }

    fn hold(&mut self, election: Election) -> Outcome {
        let outcome = apply(&mut self.state, &Command::ElectMaster(election));
        self.detector.decided(&group());
        outcome
    }

    fn ask(&mut self, now: u64, trigger: Trigger) -> Asked {
        let name = group();
        let asking = Asking {
            now: at(now),
            wall: Timestamp::from_millis(0),
            group: &name,
            policy: ElectionPolicy {
                ack: self.settings.ack,
                ..ElectionPolicy::default()
            },
        };
        self.detector.ask(asking, &self.state, trigger)
    }

    fn master(&self) -> Option<BrokerId> {
        self.state.group(&group()).unwrap().master()
    }
}

/// Incarnation 1 that has seen `round`.
fn one(round: u64) -> OurHeartbeat {
    OurHeartbeat {
        incarnation: 1,
        round,
        ..OurHeartbeat::default()
    }
}

const NEW_ROUND: u64 = u64::MAX;

#[test]
fn a_silent_master_is_lost_after_the_detection_time_and_not_before() {
    let mut leader = Leader::new(AckPolicy::AllInSync);
    leader.hear_all(1000);
    leader.hear(5900, 2, one(0));
    leader.hear(5900, 3, one(0));
    assert_eq!(leader.tick(6000), []);
    let actions = leader.tick(6001);
    let lost = Action::MasterLost {
        group: group(),
        epoch: MasterEpoch::new(1),
        reason: LostReason::Silence,
    };
    assert_eq!(actions[0], lost);
    let Some(Action::Elect(election)) = actions.last() else {
        panic!("no election in {actions:?}");
    };
    assert_eq!(leader.hold(election.clone()).code(), 0);
    // 3 has the longer log.
    assert_eq!(leader.master(), Some(id(3)));
    assert_eq!(leader.tick(6002), []);
}

#[test]
fn a_new_leader_starts_every_timer_afresh() {
    let mut leader = Leader::new(AckPolicy::AllInSync);
    leader.hear_all(1000);
    leader.detector = Detector::lead(leader.settings, at(5000), 2, &leader.state);
    for broker in 2..=3 {
        leader.hear(9000, broker, one(0));
    }
    assert_eq!(leader.elections(10_000), []);
    assert_eq!(leader.elections(10_001).len(), 1);
}

#[test]
fn a_new_leader_counts_nobody_as_dead_whom_it_had_no_time_to_hear() {
    let mut leader = Leader::new(AckPolicy::AllInSync);
    assert_eq!(leader.elections(4999), []);
    assert!(
        leader
            .detector
            .alive(at(4999), &leader.state, &group())
            .contains(&id(1))
    );
}

#[test]
fn a_closed_connection_ends_the_epoch_at_once_unless_acknowledgement_is_asynchronous() {
    for (ack, grace) in [
        (AckPolicy::AllInSync, 0),
        (AckPolicy::Quorum(2), 0),
        (AckPolicy::Async, 300),
    ] {
        let mut leader = Leader::new(ack);
        leader.hear_all(1000);
        leader
            .detector
            .closed(at(1100), &leader.state, ConnectionId(1));
        if grace > 0 {
            assert_eq!(leader.tick(1100 + grace - 1), [], "{ack:?}");
        }
        let actions = leader.tick(1100 + grace);
        let reason = actions.iter().find_map(|action| match action {
            Action::MasterLost { reason, .. } => Some(*reason),
            _ => None,
        });
        assert_eq!(reason, Some(LostReason::Closed), "{ack:?}");
    }
}

#[test]
fn a_master_that_comes_back_within_the_grace_keeps_its_epoch() {
    let mut leader = Leader::new(AckPolicy::Async);
    leader.hear_all(1000);
    leader
        .detector
        .closed(at(1100), &leader.state, ConnectionId(1));
    assert!(leader.hear(1200, 1, one(0)));
    assert_eq!(leader.tick(2000), []);
    assert!(leader.hear(2000, 1, one(0)));
}

#[test]
fn a_java_master_that_closes_its_connection_proves_nothing() {
    let mut leader = Leader::new(AckPolicy::AllInSync);
    let heartbeat = leader.beat(1, None);
    leader
        .detector
        .heartbeat(at(1000), &leader.state, &heartbeat);
    leader.hear(1000, 2, one(0));
    leader
        .detector
        .closed(at(1100), &leader.state, ConnectionId(1));
    assert_eq!(leader.tick(2000), []);
}

#[test]
fn the_death_of_a_replica_elects_nobody() {
    let mut leader = Leader::new(AckPolicy::AllInSync);
    leader.hear_all(1000);
    leader
        .detector
        .closed(at(1100), &leader.state, ConnectionId(2));
    for second in 2..60 {
        leader.hear(second * 1000, 1, one(0));
        assert_eq!(leader.tick(second * 1000), []);
    }
    let alive = leader.detector.alive(at(60_000), &leader.state, &group());
    assert_eq!(alive, ids(&[1]));
}

#[test]
fn a_master_started_anew_does_not_go_on_in_its_old_epoch() {
    let mut leader = Leader::new(AckPolicy::AllInSync);
    leader.hear_all(1000);
    let again = OurHeartbeat {
        incarnation: 2,
        ..OurHeartbeat::default()
    };
    assert!(!leader.hear(1500, 1, again));
    let election = leader.elections(1501).pop().unwrap();
    leader.hold(election);
    assert_eq!(leader.master(), Some(id(3)));
}

#[test]
fn a_lost_master_gets_no_lease_and_cannot_alter_its_set() {
    let mut leader = Leader::new(AckPolicy::AllInSync);
    leader.hear_all(1000);
    leader.hear(6000, 2, one(0));
    assert!(!leader.hear(6001, 1, one(0)), "it was silent for too long");
    let alive = leader.detector.alive(at(6001), &leader.state, &group());
    assert!(!alive.contains(&id(1)));
}

#[test]
fn with_a_quorum_an_election_waits_for_reports_made_after_the_masters_end() {
    let mut leader = Leader::new(AckPolicy::Quorum(2));
    leader.hear_all(1000);
    leader
        .detector
        .closed(at(1100), &leader.state, ConnectionId(1));
    let actions = leader.tick(1101);
    let Some(Action::AskReports { brokers, round, .. }) = actions.get(1) else {
        panic!("nobody was asked: {actions:?}");
    };
    assert_eq!(*brokers, ids(&[2, 3]));
    let round = *round;
    assert_eq!(leader.tick(1102), []);
    // What was on the way already says nothing about the end.
    leader.hear(1110, 2, one(round - 1));
    leader.hear(1110, 3, one(round));
    assert_eq!(leader.elections(1111), []);
    leader.hear(1120, 2, one(round));
    let election = leader.elections(1121).pop().unwrap();
    assert_eq!(leader.hold(election).code(), 0);
    assert_eq!(leader.master(), Some(id(3)));
}

#[test]
fn where_nobody_can_be_elected_the_group_loses_its_master_once_and_gets_one_when_somebody_comes() {
    let mut leader = Leader::new(AckPolicy::Quorum(2));
    leader.hear(1000, 1, one(0));
    leader
        .detector
        .closed(at(1100), &leader.state, ConnectionId(1));
    assert_eq!(leader.elections(1101), []);
    let election = leader.elections(1600).pop().unwrap();
    assert_eq!(leader.hold(election).code(), 2004);
    for millis in 1601..1700 {
        assert_eq!(leader.elections(millis), []);
    }
    leader.hear(2000, 2, one(NEW_ROUND));
    assert_eq!(leader.elections(2001), []);
    leader.hear(2002, 3, one(NEW_ROUND));
    let election = leader.elections(2003).pop().unwrap();
    assert_eq!(leader.hold(election).code(), 0);
}

#[test]
fn a_living_master_is_replaced_only_after_its_lease_or_its_fence() {
    let mut leader = Leader::new(AckPolicy::AllInSync);
    leader.hear_all(1000);
    let Asked::Wait(until) = leader.ask(1100, Trigger::Designated(id(2))) else {
        panic!("elected beside a lease");
    };
    assert!(until > at(1000 + leader.settings.lease_millis));
    assert!(
        !leader.hear(1500, 1, one(0)),
        "a lease was granted while it was taken"
    );
    assert!(matches!(
        leader.ask(4000, Trigger::Designated(id(2))),
        Asked::Wait(_)
    ));
    leader.hear_all(4001);
    // What was said before the lease ended may miss what was acknowledged with it.
    let asked = leader.ask(4002, Trigger::Designated(id(2)));
    assert!(matches!(asked, Asked::Wait(_)));
    for broker in 1..=3 {
        leader.hear(4010, broker, one(NEW_ROUND));
    }
    let Asked::Propose(election) = leader.ask(4500, Trigger::Designated(id(2))) else {
        panic!("the lease is over");
    };
    assert_eq!(election.standing, MasterStanding::Released);
    assert_eq!(leader.hold(election).code(), 0);
    assert_eq!(leader.master(), Some(id(2)));
}

#[test]
fn a_fenced_master_is_replaced_at_once() {
    let mut leader = Leader::new(AckPolicy::Quorum(2));
    leader.hear_all(1000);
    let fenced = OurHeartbeat {
        fenced: true,
        ..one(0)
    };
    leader.hear(1050, 1, fenced);
    assert!(matches!(
        leader.ask(1100, Trigger::Designated(id(3))),
        Asked::Wait(_)
    ));
    leader.tick(1101);
    for broker in 1..=3 {
        let fenced = broker == 1;
        leader.hear(
            1110,
            broker,
            OurHeartbeat {
                fenced,
                ..one(NEW_ROUND)
            },
        );
    }
    let Asked::Propose(election) = leader.ask(1111, Trigger::Designated(id(3))) else {
        panic!("the master is fenced and all have reported");
    };
    assert_eq!(leader.hold(election).code(), 0);
    assert_eq!(leader.master(), Some(id(3)));
}

#[test]
fn a_change_that_is_given_up_gives_the_master_its_lease_back() {
    let mut leader = Leader::new(AckPolicy::AllInSync);
    leader.hear_all(1000);
    leader.ask(1100, Trigger::Designated(id(2)));
    assert!(!leader.hear(1200, 1, one(0)));
    leader.detector.keep(&group());
    assert!(leader.hear(1300, 1, one(0)));
}

#[test]
fn a_master_that_says_its_set_is_settled_has_it_recorded_once() {
    let quorum = AckPolicy::Quorum(2);
    let mut leader = Leader::new(quorum);
    leader.hear_all(1000);
    leader
        .detector
        .closed(at(1100), &leader.state, ConnectionId(1));
    leader.tick(1101);
    leader.hear(1102, 2, one(NEW_ROUND));
    leader.hear(1102, 3, one(NEW_ROUND));
    let election = leader.elections(1103).pop().unwrap();
    leader.hold(election);
    let settled = OurHeartbeat {
        settled: Some((MasterEpoch::new(2), SyncStateSetEpoch::new(3))),
        ..one(0)
    };
    leader.hear(1200, 3, settled);
    let actions = leader.tick(1201);
    let [Action::Settle(settle)] = actions.as_slice() else {
        panic!("not settled: {actions:?}");
    };
    let outcome = apply(&mut leader.state, &Command::Settle(settle.clone()));
    assert_eq!(outcome.code(), 0);
    leader.detector.settle_decided(&group());
    assert_eq!(leader.tick(1202), []);
}

#[test]
fn heartbeats_of_strangers_and_overtaken_ones_change_nothing() {
    let mut leader = Leader::new(AckPolicy::AllInSync);
    leader.hear_all(1000);
    assert!(!leader.hear(1001, 99, one(0)));
    let old = leader.beat(2, Some(one(0)));
    leader.hear(1002, 2, one(0));
    leader
        .detector
        .closed(at(1003), &leader.state, ConnectionId(2));
    leader.detector.heartbeat(at(1004), &leader.state, &old);
    let alive = leader.detector.alive(at(1004), &leader.state, &group());
    assert_eq!(alive, ids(&[1, 3]));
}

proptest! {
    /// The pair of clocks that must never let two masters write: a lease counts from the sending,
    /// an election from the receipt.
    #[test]
    fn no_election_is_proposed_while_a_granted_lease_lasts(
        events in prop::collection::vec((1_u64..1500, 0..6_u8, 0_u64..400), 1..60),
    ) {
        let mut leader = Leader::new(AckPolicy::AllInSync);
        let mut now = 0;
        let mut lease_until = leader.settings.lease_millis;
        for (pause, what, delay) in events {
            now += pause;
            match what {
                // A heartbeat that was under way for a while; its sender counts from the sending.
                0..=2 => {
                    let sent = now.saturating_sub(delay);
                    if leader.hear(now, 1, one(0)) {
                        lease_until = lease_until.max(sent + leader.settings.lease_millis);
                    }
                    leader.hear(now, 2, one(NEW_ROUND));
                }
                3 => { leader.ask(now, Trigger::Designated(id(2))); }
                4 => leader.detector.keep(&group()),
                _ => { leader.hear(now, 3, one(NEW_ROUND)); }
            }
            let proposed = leader.elections(now);
            let asked = match leader.ask(now, Trigger::Broker(id(3))) {
                Asked::Propose(election) if election.standing != MasterStanding::Holding => {
                    Some(election)
                }
                _ => None,
            };
            if let Some(election) = proposed.into_iter().chain(asked).next() {
                prop_assert!(now > lease_until, "at {now} beside a lease until {lease_until}");
                prop_assert_eq!(election.expected_epoch, Some(MasterEpoch::new(1)));
                return Ok(());
            }
        }
    }
}
