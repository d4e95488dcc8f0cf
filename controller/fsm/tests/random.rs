//! Random commands: what always holds.
//!
//! **Invariant:** every sequence is applied by two controllers, one of which is replaced by its own
//! snapshot half way; both must agree on every outcome and end in the same state.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod rig;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rig::{id, ids};
use rmq_controller_fsm::{
    AckPolicy, AlterSyncStateSet, ApplyBrokerId, Clean, CleanBrokerData, Command, Election,
    ElectionPolicy, MasterStanding, Outcome, RegisterBroker, ReplicaFacts, Settle, Snapshot, State,
    StoredSnapshot, Trigger, Unclean, apply,
};
use rmq_types::{BrokerId, BrokerName, MasterEpoch, SyncStateSetEpoch, Timestamp};

fn group() -> impl Strategy<Value = BrokerName> {
    (0..2_u8).prop_map(|n| BrokerName::parse(["a", "b"][usize::from(n)]).unwrap())
}

fn broker() -> impl Strategy<Value = BrokerId> {
    (0..6_u64).prop_map(id)
}

fn brokers() -> impl Strategy<Value = BTreeSet<BrokerId>> {
    prop::collection::vec(0..6_u64, 0..5).prop_map(|raw| ids(&raw))
}

fn ack() -> impl Strategy<Value = AckPolicy> {
    prop_oneof![
        Just(AckPolicy::Async),
        Just(AckPolicy::AllInSync),
        (1..4_u32).prop_map(AckPolicy::Quorum),
    ]
}

fn one_in(n: u8) -> impl Strategy<Value = bool> {
    (0..n).prop_map(|drawn| drawn == 0)
}

fn facts() -> impl Strategy<Value = ReplicaFacts> {
    (0..4, 0..5_i64, 0..3, one_in(4), one_in(6)).prop_map(
        |(epoch, max_offset, priority, stale, may_lack)| ReplicaFacts {
            epoch,
            max_offset,
            priority,
            fresh: !stale,
            may_lack,
        },
    )
}

fn election() -> impl Strategy<Value = Command> {
    let trigger = prop_oneof![
        Just(Trigger::Leader),
        broker().prop_map(Trigger::Broker),
        broker().prop_map(Trigger::Designated),
    ];
    let standing = prop_oneof![
        Just(MasterStanding::Lost),
        Just(MasterStanding::Holding),
        Just(MasterStanding::Released),
    ];
    let alive = prop::collection::vec((broker(), facts()), 0..5);
    let expected = prop::option::of(0..6_i32);
    let policy = (ack(), one_in(5));
    (group(), trigger, standing, alive, expected, policy).prop_map(
        |(group, trigger, standing, alive, expected, (ack, acknowledged))| {
            Command::ElectMaster(Election {
                group,
                trigger,
                expected_epoch: expected.map(MasterEpoch::new),
                standing,
                alive: alive.into_iter().collect::<BTreeMap<_, _>>(),
                policy: ElectionPolicy {
                    ack,
                    unclean: if acknowledged {
                        Unclean::Acknowledged
                    } else {
                        Unclean::Forbidden
                    },
                },
                at: Timestamp::from_millis(0),
            })
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    let cluster = rig::cluster();
    let cluster2 = cluster.clone();
    prop_oneof![
        4 => (group(), broker(), 0..3_u8).prop_map(move |(group, broker, code)| {
            Command::ApplyBrokerId(ApplyBrokerId {
                cluster: cluster.clone(),
                group,
                broker,
                check_code: format!("h:{code};1"),
            })
        }),
        1 => (group(), broker(), any::<bool>()).prop_map(move |(group, broker, master_alive)| {
            Command::RegisterBroker(RegisterBroker {
                cluster: cluster2.clone(),
                group,
                broker,
                address: format!("h{broker}:1"),
                master_alive,
            })
        }),
        4 => (group(), broker(), 0..6, brokers(), 0..9, brokers()).prop_map(
            |(group, master, epoch, set, set_epoch, alive)| {
                Command::AlterSyncStateSet(AlterSyncStateSet {
                    group,
                    master,
                    master_epoch: MasterEpoch::new(epoch),
                    renew: alive.len() == 1,
                    alive: alive.union(&set).copied().collect(),
                    set,
                    set_epoch: SyncStateSetEpoch::new(set_epoch),
                })
            }
        ),
        4 => election(),
        1 => (group(), broker(), 0..6, 0..9).prop_map(|(group, master, epoch, set_epoch)| {
            Command::Settle(Settle {
                group,
                master,
                master_epoch: MasterEpoch::new(epoch),
                set_epoch: SyncStateSetEpoch::new(set_epoch),
            })
        }),
        1 => (group(), brokers(), brokers(), 0..4_u8).prop_map(|(group, ids, alive, what)| {
            Command::CleanBrokerData(CleanBrokerData {
                group,
                what: match what {
                    0 => Clean::Group,
                    1 => Clean::GroupEvenAlive,
                    _ => Clean::Ids(ids),
                },
                alive,
            })
        }),
    ]
}

/// What was seen of a group, to compare later states with.
#[derive(Default)]
struct Seen {
    masters: BTreeMap<(u64, MasterEpoch), Option<BrokerId>>,
    owners: BTreeMap<(BrokerName, BrokerId), String>,
    lives: BTreeMap<BrokerName, u64>,
}

impl Seen {
    fn after(&mut self, before: &State, command: &Command, outcome: &Outcome, state: &State) {
        if let (Command::ApplyBrokerId(command), Outcome::IdApplied { .. }) = (command, outcome) {
            let key = (command.group.clone(), command.broker);
            let owner = self
                .owners
                .entry(key)
                .or_insert_with(|| command.check_code.clone());
            assert_eq!(*owner, command.check_code, "an id went to two brokers");
        }
        for name in [
            BrokerName::parse("a").unwrap(),
            BrokerName::parse("b").unwrap(),
        ] {
            let (was, is) = (before.group(&name), state.group(&name));
            let life = self.lives.entry(name.clone()).or_default();
            let Some(is) = is else {
                *life += u64::from(was.is_some());
                continue;
            };
            let number = *life * 2 + u64::from(name.as_str() == "b");
            let master = self
                .masters
                .entry((number, is.epoch()))
                .or_insert(is.master());
            assert_eq!(*master, is.master(), "two masters in one epoch");
            if let Some(was) = was {
                assert!(is.epoch() >= was.epoch() && is.set_epoch() >= was.set_epoch());
                let changed = was.set() != is.set() && was.set_epoch() == is.set_epoch();
                let cleaned = matches!(command, Command::CleanBrokerData(_));
                assert!(!changed || cleaned, "a set changed within its epoch");
                if let (Command::ElectMaster(election), Outcome::Elected { unclean, .. }) =
                    (command, outcome)
                    && election.group == name
                {
                    let holding = election.standing == MasterStanding::Holding;
                    assert!(!holding || was.master().is_none(), "replaced while it held");
                    let winner = is.master().unwrap();
                    let electors = was
                        .unsettled()
                        .map(|u| u.members.clone())
                        .unwrap_or_default();
                    let first = was.epoch() == MasterEpoch::default();
                    let member = was.set().contains(&winner) || electors.contains(&winner);
                    assert!(member || first || *unclean, "elected from outside");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_sequence_of_commands_keeps_the_invariants_and_gives_the_same_state_everywhere(
        commands in prop::collection::vec(command(), 1..120),
    ) {
        let mut state = State::default();
        let mut other = State::default();
        let mut seen = Seen::default();
        let half = commands.len() / 2;
        for (at, command) in commands.iter().enumerate() {
            if at == half {
                let bytes = serde_json::to_vec(&Snapshot::of(&other)).unwrap();
                let stored: StoredSnapshot = serde_json::from_slice(&bytes).unwrap();
                other = stored.into_state().unwrap();
            }
            let before = state.clone();
            let outcome = apply(&mut state, command);
            prop_assert_eq!(&outcome, &apply(&mut other, command));
            if outcome.refusal().is_some() {
                prop_assert_eq!(&state, &before);
            }
            prop_assert_eq!(state.check(), Ok(()));
            seen.after(&before, command, &outcome, &state);
            let logged = serde_json::to_vec(command).unwrap();
            let read: Command = serde_json::from_slice(&logged).unwrap();
            prop_assert_eq!(&read, command);
        }
        prop_assert_eq!(state, other);
    }
}
