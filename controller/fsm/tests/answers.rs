//! The answers of the Java controller, command by command, and where ours are safer.
//!
//! **Invariant:** each refused command is checked to have changed nothing.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod rig;

use proptest::prelude::*;
use rig::{alter, apply_id, elect, election, facts, group, id, ids, register, three};
use rmq_controller_fsm::{
    AckPolicy, Clean, CleanBrokerData, Command, MasterStanding, Outcome, Settle, Snapshot,
    SnapshotError, State, StoredSnapshot, Trigger, Unclean, apply, config_in_force, settings_of,
};
use rmq_types::{MasterEpoch, SyncStateSetEpoch};

/// The code of the answer; a refusal must leave the state alone.
fn code(state: &mut State, command: &Command) -> i32 {
    let before = state.clone();
    let outcome = apply(state, command);
    if outcome.refusal().is_some() {
        assert_eq!(*state, before, "{outcome:?}");
    }
    state.check().unwrap();
    outcome.code()
}

#[test]
fn an_id_is_applied_once_and_the_first_of_a_group_is_one() {
    let mut state = State::default();
    assert_eq!(state.next_broker_id(&group()), id(1));
    assert_eq!(code(&mut state, &apply_id(2, "x")), 2014);
    assert_eq!(code(&mut state, &apply_id(1, "x")), 0);
    assert_eq!(code(&mut state, &apply_id(1, "x")), 0);
    assert_eq!(code(&mut state, &apply_id(1, "y")), 2014);
    assert_eq!(state.next_broker_id(&group()), id(2));
    assert_eq!(code(&mut state, &apply_id(7, "z")), 0);
    assert_eq!(state.next_broker_id(&group()), id(8));
    // 3 lies below the next id: it may have been somebody's.
    assert_eq!(code(&mut state, &apply_id(3, "w")), 2014);
}

#[test]
fn a_broker_that_comes_back_with_another_address_keeps_its_id() {
    let mut state = three(AckPolicy::AllInSync);
    assert_eq!(code(&mut state, &register(2, "10.0.9.9:10911")), 0);
    let view = state.view(&group()).unwrap();
    assert_eq!(view.members[&id(2)], "10.0.9.9:10911");
    assert_eq!(view.members.len(), 3);
    assert_eq!(code(&mut state, &register(9, "10.0.9.9:10911")), 2010);
}

#[test]
fn a_changed_set_is_fenced_as_in_java() {
    let mut state = three(AckPolicy::AllInSync);
    apply(&mut state, &apply_id(4, "dead"));
    let all = [1, 2, 3];
    assert_eq!(code(&mut state, &alter(1, (0, 2), &[1], &all)), 2000);
    assert_eq!(code(&mut state, &alter(1, (1, 1), &[1], &all)), 2001);
    assert_eq!(code(&mut state, &alter(1, (1, 2), &[1, 99], &all)), 2003);
    assert_eq!(code(&mut state, &alter(1, (1, 2), &[1, 4], &all)), 2006);
    assert_eq!(code(&mut state, &alter(1, (1, 2), &[2, 3], &all)), 2013);
    assert_eq!(code(&mut state, &alter(2, (1, 2), &[2, 3], &all)), 2002);
    assert_eq!(code(&mut state, &alter(1, (1, 2), &all, &all)), 2013);
    let mut other = alter(1, (1, 2), &[1], &all);
    if let Command::AlterSyncStateSet(alter) = &mut other {
        alter.group = "unknown".parse().unwrap();
    }
    assert_eq!(code(&mut state, &other), 2013);
    assert_eq!(code(&mut state, &alter(1, (1, 2), &[1, 3], &all)), 0);
}

#[test]
fn a_renewed_set_moves_its_epoch_on_so_a_lost_proposal_is_fenced() {
    let mut state = three(AckPolicy::AllInSync);
    let mut renew = alter(1, (1, 2), &[1, 2, 3], &[1]);
    if let Command::AlterSyncStateSet(alter) = &mut renew {
        alter.renew = true;
    }
    assert_eq!(code(&mut state, &renew), 0);
    assert_eq!(code(&mut state, &alter(1, (1, 2), &[1], &[1])), 2001);
    let mut other = alter(1, (1, 3), &[1, 2], &[1]);
    if let Command::AlterSyncStateSet(alter) = &mut other {
        alter.renew = true;
    }
    assert_eq!(code(&mut state, &other), 2013);
}

#[test]
fn the_first_election_takes_a_registered_broker_only() {
    let mut state = State::default();
    let mut first = election(AckPolicy::AllInSync, &[]);
    first.trigger = Trigger::Broker(id(7));
    assert_eq!(code(&mut state, &Command::ElectMaster(first.clone())), 2010);
    apply(&mut state, &apply_id(1, "x"));
    assert_eq!(code(&mut state, &Command::ElectMaster(first.clone())), 2010);
    first.trigger = Trigger::Broker(id(1));
    assert_eq!(code(&mut state, &Command::ElectMaster(first)), 0);
    assert_eq!(state.group(&group()).unwrap().master(), Some(id(1)));
}

#[test]
fn a_broker_known_to_have_data_is_the_first_master_instead_of_an_empty_one_that_asks() {
    let mut state = State::default();
    apply(&mut state, &apply_id(1, "x"));
    apply(&mut state, &apply_id(2, "y"));
    let mut first = election(
        AckPolicy::AllInSync,
        &[(1, facts(0, 0)), (2, facts(5, 900))],
    );
    first.trigger = Trigger::Broker(id(1));
    elect(&mut state, first);
    assert_eq!(state.group(&group()).unwrap().master(), Some(id(2)));
}

#[test]
fn a_living_master_stays_unless_it_was_released() {
    let mut state = three(AckPolicy::AllInSync);
    let members = [(1, facts(1, 10)), (2, facts(1, 10)), (3, facts(1, 10))];
    let mut asked = election(AckPolicy::AllInSync, &members);
    asked.standing = MasterStanding::Holding;
    asked.trigger = Trigger::Broker(id(2));
    assert_eq!(code(&mut state, &Command::ElectMaster(asked.clone())), 2011);
    asked.trigger = Trigger::Designated(id(2));
    assert_eq!(code(&mut state, &Command::ElectMaster(asked.clone())), 2012);
    asked.standing = MasterStanding::Released;
    assert_eq!(code(&mut state, &Command::ElectMaster(asked)), 0);
    let group = state.group(&group()).unwrap();
    assert_eq!((group.master(), group.epoch().get()), (Some(id(2)), 2));
    assert_eq!(*group.set(), ids(&[1, 2, 3]));
}

#[test]
fn an_election_for_another_epoch_is_refused_so_a_repeated_one_elects_once() {
    let mut state = three(AckPolicy::AllInSync);
    let mut lost = election(AckPolicy::AllInSync, &[(2, facts(1, 10))]);
    lost.expected_epoch = Some(MasterEpoch::new(1));
    assert_eq!(code(&mut state, &Command::ElectMaster(lost.clone())), 0);
    assert_eq!(code(&mut state, &Command::ElectMaster(lost)), 2000);
}

#[test]
fn logs_are_compared_without_overflow_by_epoch_then_offset_then_priority() {
    let cases = [
        ([facts(i32::MAX, -1), facts(-1, i64::MAX)], 2),
        ([facts(0, i64::MAX), facts(0, -1)], 2),
        ([facts(0, -1), facts(0, i64::MAX)], 3),
        ([facts(0, 0), facts(0, 0)], 2),
    ];
    for (logs, winner) in cases {
        let mut state = three(AckPolicy::AllInSync);
        elect(
            &mut state,
            election(AckPolicy::AllInSync, &[(2, logs[0]), (3, logs[1])]),
        );
        assert_eq!(state.group(&group()).unwrap().master(), Some(id(winner)));
    }
    let mut state = three(AckPolicy::AllInSync);
    let mut preferred = facts(0, 0);
    preferred.priority = 1;
    elect(
        &mut state,
        election(AckPolicy::AllInSync, &[(2, facts(0, 0)), (3, preferred)]),
    );
    assert_eq!(state.group(&group()).unwrap().master(), Some(id(3)));
}

#[test]
fn nobody_outside_the_set_is_elected_without_an_acknowledged_command() {
    let mut state = three(AckPolicy::AllInSync);
    apply(&mut state, &alter(1, (1, 2), &[1, 2], &[1, 2, 3]));
    let outside = [(3, facts(9, 999))];
    let mut asked = election(AckPolicy::AllInSync, &outside);
    asked.trigger = Trigger::Broker(id(3));
    assert_eq!(code(&mut state, &Command::ElectMaster(asked.clone())), 2012);
    assert_eq!(state.group(&group()).unwrap().master(), Some(id(1)));
    let cleared = election(AckPolicy::AllInSync, &outside);
    assert_eq!(code(&mut state, &Command::ElectMaster(cleared)), 2004);
    assert_eq!(state.group(&group()).unwrap().master(), None);
    asked.policy.unclean = Unclean::Acknowledged;
    let outcome = elect(&mut state, asked);
    assert!(matches!(outcome, Outcome::Elected { unclean: true, .. }));
    assert_eq!(*state.group(&group()).unwrap().set(), ids(&[3]));
}

#[test]
fn a_replica_that_may_lack_bytes_is_not_elected() {
    let mut state = three(AckPolicy::AllInSync);
    let mut lacking = facts(1, 900);
    lacking.may_lack = true;
    elect(
        &mut state,
        election(AckPolicy::AllInSync, &[(2, lacking), (3, facts(1, 800))]),
    );
    let group = state.group(&group()).unwrap();
    assert_eq!(group.master(), Some(id(3)));
    assert_eq!(*group.set(), ids(&[3]));
}

#[test]
fn after_an_election_the_set_is_the_living_part_and_the_master_alone_when_asynchronous() {
    for (ack, set) in [
        (AckPolicy::AllInSync, ids(&[2, 3])),
        (AckPolicy::Quorum(2), ids(&[2, 3])),
        (AckPolicy::Async, ids(&[2])),
    ] {
        let mut state = three(ack);
        elect(
            &mut state,
            election(ack, &[(2, facts(1, 20)), (3, facts(1, 10))]),
        );
        assert_eq!(*state.group(&group()).unwrap().set(), set, "{ack:?}");
    }
}

#[test]
fn with_a_quorum_one_of_three_alone_cannot_know_that_it_holds_everything() {
    let quorum = AckPolicy::Quorum(2);
    let mut state = three(quorum);
    assert_eq!(
        elect(&mut state, election(quorum, &[(3, facts(1, 10))])).code(),
        2004
    );
    let mut stale = facts(1, 10);
    stale.fresh = false;
    assert_eq!(
        elect(
            &mut state,
            election(quorum, &[(2, stale), (3, facts(1, 9))])
        )
        .code(),
        2012
    );
    assert_eq!(
        elect(
            &mut state,
            election(quorum, &[(2, facts(1, 10)), (3, facts(1, 9))])
        )
        .code(),
        0
    );
    assert_eq!(state.group(&group()).unwrap().master(), Some(id(2)));
}

#[test]
fn a_second_failure_elects_the_third_only_once_the_second_master_had_settled() {
    let quorum = AckPolicy::Quorum(2);
    let second = [(2, facts(1, 20)), (3, facts(1, 10))];
    let third = [(3, facts(1, 10))];
    let mut state = three(quorum);
    elect(&mut state, election(quorum, &second));
    let mut unsettled = state.clone();
    assert_eq!(elect(&mut unsettled, election(quorum, &third)).code(), 2004);
    let settle = Command::Settle(Settle {
        group: group(),
        master: id(2),
        master_epoch: MasterEpoch::new(2),
        set_epoch: SyncStateSetEpoch::new(3),
    });
    assert_eq!(code(&mut state, &settle), 0);
    assert_eq!(elect(&mut state, election(quorum, &third)).code(), 0);
    assert_eq!(state.group(&group()).unwrap().master(), Some(id(3)));
}

#[test]
fn a_designated_replica_that_lags_is_refused_where_a_quorum_acknowledges() {
    let quorum = AckPolicy::Quorum(2);
    let mut state = three(quorum);
    let members = [(1, facts(1, 20)), (2, facts(1, 20)), (3, facts(1, 10))];
    let mut asked = election(quorum, &members);
    asked.standing = MasterStanding::Released;
    asked.trigger = Trigger::Designated(id(3));
    assert_eq!(code(&mut state, &Command::ElectMaster(asked.clone())), 2012);
    asked.trigger = Trigger::Designated(id(2));
    assert_eq!(code(&mut state, &Command::ElectMaster(asked)), 0);
}

fn clean(state: &mut State, what: Clean, living: &[u64]) -> i32 {
    let command = Command::CleanBrokerData(CleanBrokerData {
        group: group(),
        what,
        alive: ids(living),
    });
    code(state, &command)
}

#[test]
fn cleaning_refuses_the_living_and_the_last_that_hold_the_messages() {
    let mut state = three(AckPolicy::AllInSync);
    assert_eq!(clean(&mut state, Clean::Group, &[]), 2009);
    assert_eq!(clean(&mut state, Clean::Ids(ids(&[2])), &[2]), 2009);
    // Still in the set: the master takes it out first.
    assert_eq!(clean(&mut state, Clean::Ids(ids(&[2])), &[]), 2009);
    apply(&mut state, &alter(1, (1, 2), &[1, 3], &[1, 3]));
    assert_eq!(clean(&mut state, Clean::Ids(ids(&[2])), &[1, 3]), 0);
    assert_eq!(code(&mut state, &apply_id(2, "again")), 2014);
    elect(&mut state, election(AckPolicy::AllInSync, &[]));
    assert_eq!(clean(&mut state, Clean::Ids(ids(&[1, 3])), &[]), 0);
    assert!(state.group(&group()).is_none());
    assert_eq!(state.next_broker_id(&group()), id(4));
    assert_eq!(code(&mut state, &apply_id(1, "stranger")), 2014);
    assert_eq!(code(&mut state, &apply_id(4, "new")), 0);
}

#[test]
fn cleaning_members_of_a_headless_set_does_not_make_a_loss_electable() {
    let quorum = AckPolicy::Quorum(2);
    let mut state = three(quorum);
    elect(&mut state, election(quorum, &[]));
    assert_eq!(clean(&mut state, Clean::Ids(ids(&[1])), &[]), 0);
    // Two of three had to be heard; after one was cleaned both of the others must be.
    assert_eq!(
        elect(&mut state, election(quorum, &[(3, facts(1, 9))])).code(),
        2012
    );
    assert_eq!(clean(&mut state, Clean::Ids(ids(&[2])), &[]), 2009);
    let both = [(2, facts(1, 10)), (3, facts(1, 9))];
    assert_eq!(elect(&mut state, election(quorum, &both)).code(), 0);
}

#[test]
fn configuration_is_a_closed_list_and_a_lease_ends_before_detection() {
    let mut state = State::default();
    let mut set = |pairs: &[(&str, &str)]| {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        code(
            &mut state,
            &Command::SetConfig(pairs.iter().map(own).collect()),
        )
    };
    assert_eq!(set(&[("configStorePath", "/etc/passwd")]), 16);
    assert_eq!(set(&[("whatever", "1")]), 29);
    assert_eq!(set(&[("masterLeaseMillis", "4500")]), 29);
    assert_eq!(set(&[("masterLeaseMillis", "soon")]), 29);
    assert_eq!(
        set(&[
            ("masterLeaseMillis", "1000"),
            ("masterDetectMillis", "1999")
        ]),
        29
    );
    assert_eq!(
        set(&[
            ("masterLeaseMillis", "1000"),
            ("masterDetectMillis", "2000")
        ]),
        0
    );
    assert_eq!(set(&[("replicationAck", "Quorum:2")]), 0);
    assert_eq!(set(&[("replicationAck", "Quorum:1")]), 29);
    assert_eq!(settings_of(&state).detect_millis, 2000);
    assert_eq!(settings_of(&state).ack, AckPolicy::Quorum(2));
    assert_eq!(config_in_force(&state)["enableElectUncleanMaster"], "false");
}

#[test]
fn a_snapshot_gives_the_same_state_and_other_versions_or_broken_states_are_refused() {
    let mut state = three(AckPolicy::Quorum(2));
    elect(
        &mut state,
        election(AckPolicy::Quorum(2), &[(2, facts(1, 1)), (3, facts(1, 1))]),
    );
    let bytes = serde_json::to_vec(&Snapshot::of(&state)).unwrap();
    let stored: StoredSnapshot = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(stored.into_state(), Ok(state));
    let text = String::from_utf8(bytes).unwrap();
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
    let stored: StoredSnapshot = serde_json::from_str(&newer).unwrap();
    assert_eq!(stored.into_state(), Err(SnapshotError::Version(2)));
    let broken = text.replacen("\"master\":2", "\"master\":1", 1);
    assert_ne!(text, broken);
    let stored: StoredSnapshot = serde_json::from_str(&broken).unwrap();
    assert!(matches!(stored.into_state(), Err(SnapshotError::Broken(_))));
}

#[test]
fn unknown_brokers_in_an_election_are_nobody() {
    let mut state = three(AckPolicy::AllInSync);
    let outcome = elect(
        &mut state,
        election(AckPolicy::AllInSync, &[(99, facts(9, 9))]),
    );
    assert_eq!(outcome.code(), 2004);
}

proptest! {
    #[test]
    fn electors_meet_every_acknowledgement(members in 1_usize..9, acks in 1_u32..9) {
        let ack = AckPolicy::Quorum(acks);
        let needed = ack.electors_needed(members);
        let holders = members.min(acks as usize);
        prop_assert!(needed + holders > members);
        prop_assert!(needed >= 1 && needed <= members);
    }
}
