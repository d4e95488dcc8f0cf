//! Short ways to write commands for the tests of this crate.
//!
//! **Invariant:** nothing here decides anything; it only fills in what a test does not care about.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};

use rmq_controller_fsm::{
    AckPolicy, AlterSyncStateSet, ApplyBrokerId, Command, Election, ElectionPolicy, MasterStanding,
    Outcome, RegisterBroker, ReplicaFacts, State, Trigger, Unclean, apply,
};
use rmq_types::{BrokerId, BrokerName, ClusterName, MasterEpoch, SyncStateSetEpoch, Timestamp};

pub(crate) fn id(raw: u64) -> BrokerId {
    BrokerId::new(raw)
}

pub(crate) fn ids(raw: &[u64]) -> BTreeSet<BrokerId> {
    raw.iter().copied().map(BrokerId::new).collect()
}

pub(crate) fn group() -> BrokerName {
    BrokerName::parse("g").expect("a name")
}

pub(crate) fn cluster() -> ClusterName {
    ClusterName::parse("c").expect("a name")
}

pub(crate) fn apply_id(broker: u64, check_code: &str) -> Command {
    Command::ApplyBrokerId(ApplyBrokerId {
        cluster: cluster(),
        group: group(),
        broker: id(broker),
        check_code: check_code.to_owned(),
    })
}

pub(crate) fn register(broker: u64, address: &str) -> Command {
    Command::RegisterBroker(RegisterBroker {
        cluster: cluster(),
        group: group(),
        broker: id(broker),
        address: address.to_owned(),
        master_alive: true,
    })
}

/// A replica that said `(epoch, offset)` just now.
pub(crate) fn facts(epoch: i32, max_offset: i64) -> ReplicaFacts {
    ReplicaFacts {
        epoch,
        max_offset,
        priority: i32::MAX,
        fresh: true,
        may_lack: false,
    }
}

pub(crate) fn alive(members: &[(u64, ReplicaFacts)]) -> BTreeMap<BrokerId, ReplicaFacts> {
    members
        .iter()
        .map(|(raw, facts)| (id(*raw), *facts))
        .collect()
}

pub(crate) fn election(ack: AckPolicy, members: &[(u64, ReplicaFacts)]) -> Election {
    Election {
        group: group(),
        trigger: Trigger::Leader,
        expected_epoch: None,
        standing: MasterStanding::Lost,
        alive: alive(members),
        policy: ElectionPolicy {
            ack,
            unclean: Unclean::Forbidden,
        },
        at: Timestamp::from_millis(1),
    }
}

pub(crate) fn elect(state: &mut State, election: Election) -> Outcome {
    apply(state, &Command::ElectMaster(election))
}

pub(crate) fn alter(master: u64, epochs: (i32, i32), set: &[u64], alive: &[u64]) -> Command {
    Command::AlterSyncStateSet(AlterSyncStateSet {
        group: group(),
        master: id(master),
        master_epoch: MasterEpoch::new(epochs.0),
        set: ids(set),
        set_epoch: SyncStateSetEpoch::new(epochs.1),
        renew: false,
        alive: ids(alive),
    })
}

/// A group of three with master 1 in epoch 1 and everybody in the set (set epoch 2).
pub(crate) fn three(ack: AckPolicy) -> State {
    let mut state = State::default();
    for broker in 1..=3 {
        let address = format!("10.0.0.{broker}:10911");
        apply(&mut state, &apply_id(broker, &format!("{address};1")));
        apply(&mut state, &register(broker, &address));
    }
    let mut first = election(ack, &[]);
    first.trigger = Trigger::Broker(id(1));
    assert_eq!(elect(&mut state, first).code(), 0);
    let all = [1, 2, 3];
    assert_eq!(apply(&mut state, &alter(1, (1, 1), &all, &all)).code(), 0);
    state
}
