//! What a master takes, acknowledges and proposes.

use rmq_types::SyncStateSetEpoch;

use super::machine::{
    at, epoch, epochs, follow, grow, handshake, id, ids, lease, master, offset, options,
};
use crate::{
    AckRule, LinkId, LinkRefused, Master, MasterAction, MasterOptions, NotWritable, Promotion,
};

fn proposal(master: &mut Master, now: u64) -> Option<(Vec<u64>, bool)> {
    let mut proposals = master
        .tick(at(now))
        .into_iter()
        .filter_map(|action| match action {
            MasterAction::ProposeSet { set, renew, .. } => {
                Some((set.iter().map(|id| id.get()).collect(), renew))
            }
            _ => None,
        });
    proposals.next()
}

#[test]
fn a_master_takes_no_write_before_a_controller_confirmed_it_and_none_after_its_lease() {
    let mut master = master(options(AckRule::Async), &[1]);
    assert_eq!(master.admit(at(0)), Err(NotWritable::NoLease));
    master.heartbeat(at(100), 1);
    assert_eq!(master.admit(at(101)), Err(NotWritable::NoLease));
    master.heartbeat_answered(1, epoch(2), Some(3000));
    assert_eq!(master.admit(at(3099)), Ok(()));
    assert_eq!(master.admit(at(3100)), Err(NotWritable::NoLease));
}

#[test]
fn a_lease_of_another_epoch_is_none_and_a_newer_epoch_ends_the_master() {
    let mut master = master(options(AckRule::Async), &[1]);
    master.heartbeat(at(0), 1);
    master.heartbeat_answered(1, epoch(1), Some(3000));
    assert_eq!(master.admit(at(1)), Err(NotWritable::NoLease));
    lease(&mut master, 10);
    master.heartbeat(at(20), 99);
    master.heartbeat_answered(99, epoch(3), Some(3000));
    assert_eq!(master.admit(at(21)), Err(NotWritable::Deposed));
    grow(&mut master, 500);
    assert_eq!(master.acknowledge(at(21)), offset(80));
}

#[test]
fn nothing_is_acknowledged_without_a_lease_though_everybody_has_it() {
    let mut master = master(options(AckRule::AllInSync), &[1, 2]);
    grow(&mut master, 200);
    follow(&mut master, 0, 2, 200);
    assert_eq!(master.acknowledge(at(0)), offset(80));
    lease(&mut master, 0);
    assert_eq!(master.acknowledge(at(2999)), offset(200));
    grow(&mut master, 300);
    master.acked(at(3000), LinkId(2), offset(300)).unwrap();
    assert_eq!(master.acknowledge(at(3000)), offset(200));
}

#[test]
fn a_full_set_too_small_for_min_in_sync_refuses_writes() {
    let rule = MasterOptions {
        min_in_sync: 2,
        ..options(AckRule::Async)
    };
    let mut master = master(rule, &[1]);
    lease(&mut master, 0);
    let refused = NotWritable::InSyncReplicas { have: 1, need: 2 };
    assert_eq!(master.admit(at(1)), Err(refused));
    assert_eq!(refused.to_string(), "in-sync replicas not enough: 1 of 2");
    master.set_altered(ids(&[1, 2]), SyncStateSetEpoch::new(6));
    assert_eq!(master.admit(at(1)), Ok(()));
}

#[test]
fn messages_of_earlier_epochs_are_acknowledged_only_with_the_epochs_own_beginning() {
    let mut master = master(options(AckRule::Quorum(2)), &[1, 2, 3]);
    lease(&mut master, 0);
    follow(&mut master, 0, 2, 90);
    assert_eq!(master.acknowledge(at(1)), offset(80));
    master.acked(at(1), LinkId(2), offset(100)).unwrap();
    assert_eq!(master.acknowledge(at(1)), offset(100));
}

#[test]
fn a_replica_that_joins_counts_before_and_after_the_controllers_decide() {
    let mut master = master(options(AckRule::AllInSync), &[1]);
    lease(&mut master, 0);
    grow(&mut master, 200);
    assert_eq!(master.acknowledge(at(1)), offset(200));
    follow(&mut master, 1, 2, 200);
    assert_eq!(proposal(&mut master, 2), Some((vec![1, 2], false)));
    grow(&mut master, 300);
    assert_eq!(
        master.acknowledge(at(3)),
        offset(200),
        "2 may be in the set already"
    );
    master.acked(at(4), LinkId(2), offset(300)).unwrap();
    assert_eq!(master.acknowledge(at(4)), offset(300));
    master.set_altered(ids(&[1, 2]), SyncStateSetEpoch::new(6));
    assert_eq!(*master.set(), ids(&[1, 2]));
}

#[test]
fn a_refused_proposal_counts_no_more_but_one_whose_answer_was_lost_counts_until_it_is_fenced() {
    let mut master = master(options(AckRule::AllInSync), &[1]);
    lease(&mut master, 0);
    follow(&mut master, 1, 2, 100);
    proposal(&mut master, 2).unwrap();
    master.set_refused(at(3));
    grow(&mut master, 200);
    assert_eq!(master.acknowledge(at(4)), offset(200));
    // Now the answer is lost, and the replica with it.
    master.acked(at(5), LinkId(2), offset(200)).unwrap();
    assert_eq!(proposal(&mut master, 600), Some((vec![1, 2], false)));
    master.set_unknown(at(601));
    master.unlinked(at(602), LinkId(2));
    grow(&mut master, 300);
    lease(&mut master, 2000);
    assert_eq!(master.acknowledge(at(2000)), offset(200));
    // Nothing else is wanted than the present set: its epoch is moved on.
    let asked = proposal(&mut master, 2001);
    assert!(asked.is_some(), "the epoch of the set must move on");
    master.set_altered(ids(&[1]), SyncStateSetEpoch::new(6));
    assert_eq!(master.acknowledge(at(2002)), offset(300));
}

#[test]
fn an_answer_that_does_not_come_is_asked_about() {
    let mut master = master(options(AckRule::AllInSync), &[1]);
    lease(&mut master, 0);
    follow(&mut master, 1, 2, 100);
    proposal(&mut master, 2).unwrap();
    for now in [2500, 5000, 7500] {
        lease(&mut master, now);
    }
    assert!(master.tick(at(5003)).is_empty());
    assert!(master.tick(at(5504)).contains(&MasterAction::LearnSet));
}

#[test]
fn a_member_without_a_link_leaves_after_the_grace_and_a_slow_one_after_the_lag_time() {
    let mut master = master(options(AckRule::AllInSync), &[1, 2, 3]);
    follow(&mut master, 0, 2, 100);
    follow(&mut master, 0, 3, 100);
    lease(&mut master, 0);
    assert_eq!(proposal(&mut master, 1), None);
    master.unlinked(at(100), LinkId(2));
    assert_eq!(proposal(&mut master, 1100), None);
    assert_eq!(proposal(&mut master, 1101), Some((vec![1, 3], false)));
    master.set_altered(ids(&[1, 3]), SyncStateSetEpoch::new(6));
    grow(&mut master, 1000);
    for now in [3000, 6000, 9000, 12_000, 15_000] {
        master
            .acked(at(now), LinkId(3), offset(100 + now / 1000))
            .unwrap();
        lease(&mut master, now);
        assert_eq!(proposal(&mut master, now), None, "at {now}");
    }
    master.acked(at(17_000), LinkId(3), offset(200)).unwrap();
    assert_eq!(proposal(&mut master, 17_001), Some((vec![1], false)));
}

#[test]
fn a_member_that_never_made_a_handshake_in_this_epoch_leaves() {
    let mut master = master(options(AckRule::AllInSync), &[1, 2, 3]);
    follow(&mut master, 0, 3, 100);
    lease(&mut master, 0);
    assert_eq!(proposal(&mut master, 1000), None);
    assert_eq!(proposal(&mut master, 1001), Some((vec![1, 3], false)));
}

#[test]
fn a_set_is_not_shrunk_to_members_that_do_not_hold_what_was_acknowledged() {
    let mut master = master(options(AckRule::Quorum(2)), &[1, 2, 3]);
    lease(&mut master, 0);
    grow(&mut master, 500);
    follow(&mut master, 0, 2, 500);
    follow(&mut master, 0, 3, 200);
    assert_eq!(master.acknowledge(at(1)), offset(500));
    master.unlinked(at(2), LinkId(2));
    assert_eq!(
        proposal(&mut master, 1500),
        None,
        "3 alone would not hold it"
    );
    master.acked(at(1501), LinkId(3), offset(500)).unwrap();
    assert_eq!(proposal(&mut master, 1502), Some((vec![1, 3], false)));
}

#[test]
fn a_member_that_comes_back_with_less_than_it_acknowledged_leaves_the_set() {
    let mut master = master(options(AckRule::AllInSync), &[1, 2, 3]);
    lease(&mut master, 0);
    grow(&mut master, 500);
    follow(&mut master, 0, 2, 500);
    follow(&mut master, 0, 3, 500);
    assert_eq!(master.acknowledge(at(1)), offset(500));
    follow(&mut master, 2, 3, 300);
    assert_eq!(proposal(&mut master, 3), Some((vec![1, 2], false)));
    assert_eq!(master.acknowledge(at(3)), offset(500));
}

#[test]
fn learners_and_replicas_that_lag_do_not_join() {
    let mut master = master(options(AckRule::AllInSync), &[1]);
    lease(&mut master, 0);
    grow(&mut master, 500);
    master.acknowledge(at(1));
    let learner = crate::ReplicaHandshake {
        learner: true,
        ..handshake(2)
    };
    master.linked(at(1), LinkId(2), learner).unwrap();
    master.acked(at(1), LinkId(2), offset(500)).unwrap();
    follow(&mut master, 1, 3, 499);
    assert_eq!(proposal(&mut master, 2), None);
    master.acked(at(3), LinkId(3), offset(500)).unwrap();
    assert_eq!(proposal(&mut master, 4), Some((vec![1, 3], false)));
}

#[test]
fn strangers_old_and_newer_epochs_and_false_acknowledgements_are_refused() {
    let mut master = master(options(AckRule::AllInSync), &[1, 2]);
    let mut link = |broker, of: Option<i32>| {
        let handshake = crate::ReplicaHandshake {
            epoch: of.map(epoch),
            ..handshake(broker)
        };
        master.linked(at(0), LinkId(broker), handshake)
    };
    assert_eq!(link(9, Some(2)), Err(LinkRefused::Stranger(id(9))));
    assert_eq!(link(1, Some(2)), Err(LinkRefused::Myself));
    assert_eq!(link(2, Some(1)), Err(LinkRefused::OldEpoch(epoch(1))));
    assert_eq!(
        link(3, None),
        Ok(None),
        "a Java replica does not say its epoch"
    );
    assert_eq!(link(2, Some(2)), Ok(None));
    let unknown = master.acked(at(0), LinkId(77), offset(1));
    assert_eq!(unknown, Err(LinkRefused::NoHandshake));
    let beyond = master.acked(at(0), LinkId(2), offset(101));
    assert!(matches!(beyond, Err(LinkRefused::Beyond { .. })));
    assert!(!master.is_deposed());
    let newer = crate::ReplicaHandshake {
        epoch: Some(epoch(3)),
        ..handshake(2)
    };
    let refused = master.linked(at(0), LinkId(8), newer);
    assert_eq!(refused, Err(LinkRefused::NewerEpoch(epoch(3))));
    assert!(master.is_deposed());
}

#[test]
fn a_second_link_of_a_replica_replaces_the_first_whose_words_count_no_more() {
    let mut master = master(options(AckRule::AllInSync), &[1, 2]);
    follow(&mut master, 0, 2, 100);
    let earlier = master.linked(at(1), LinkId(20), handshake(2));
    assert_eq!(earlier, Ok(Some(LinkId(2))));
    assert!(master.acked(at(2), LinkId(2), offset(100)).is_err());
    master.unlinked(at(2), LinkId(2));
    assert!(master.acked(at(2), LinkId(20), offset(100)).is_ok());
}

#[test]
fn transfers_stay_in_their_epoch_their_batch_and_their_window() {
    let rule = MasterOptions {
        batch_bytes_max: 60,
        window_bytes_max: 150,
        ..options(AckRule::Async)
    };
    let mut master = master(rule, &[1]);
    grow(&mut master, 1000);
    master.linked(at(0), LinkId(2), handshake(2)).unwrap();
    assert_eq!(
        master.next_transfer(at(0), LinkId(2)),
        Ok(None),
        "nothing before its offset"
    );
    master.acked(at(0), LinkId(2), offset(70)).unwrap();
    let mut sent = Vec::new();
    while let Some(transfer) = master.next_transfer(at(0), LinkId(2)).unwrap() {
        sent.push((
            transfer.offset.get(),
            transfer.bytes,
            transfer.epoch.epoch.get(),
        ));
    }
    assert_eq!(sent, [(70, 30, 1), (100, 60, 2), (160, 60, 2)]);
    master.acked(at(1), LinkId(2), offset(160)).unwrap();
    let next = master.next_transfer(at(1), LinkId(2)).unwrap().unwrap();
    assert_eq!((next.offset, next.bytes), (offset(220), 60));
}

#[test]
fn a_quiet_link_gets_a_sign_of_life_and_a_silent_one_is_closed() {
    let mut master = master(options(AckRule::Async), &[1]);
    follow(&mut master, 0, 2, 100);
    assert_eq!(master.next_transfer(at(999), LinkId(2)), Ok(None));
    let sign = master.next_transfer(at(1000), LinkId(2)).unwrap().unwrap();
    assert_eq!((sign.offset, sign.bytes), (offset(100), 0));
    assert_eq!(master.next_transfer(at(1001), LinkId(2)), Ok(None));
    assert_eq!(master.tick(at(20_000)), []);
    assert_eq!(master.tick(at(20_001)), [MasterAction::Close(LinkId(2))]);
}

#[test]
fn an_empty_replica_begins_with_the_log_or_with_its_newest_file() {
    for (from_last_file, begin) in [(false, 40), (true, 90)] {
        let mut master = master(options(AckRule::Async), &[1]);
        master.log(offset(40), offset(90), offset(200));
        let handshake = crate::ReplicaHandshake {
            from_last_file,
            ..handshake(2)
        };
        master.linked(at(0), LinkId(2), handshake).unwrap();
        master.acked(at(0), LinkId(2), offset(0)).unwrap();
        let first = master.next_transfer(at(0), LinkId(2)).unwrap().unwrap();
        assert_eq!(first.offset, offset(begin));
    }
    let mut master = master(options(AckRule::Async), &[1]);
    master.log(offset(40), offset(90), offset(200));
    follow(&mut master, 0, 2, 30);
    let next = master.next_transfer(at(0), LinkId(2));
    assert!(matches!(next, Err(LinkRefused::Deleted { .. })));
}

#[test]
fn a_fence_stops_new_writes_and_lets_taken_ones_be_acknowledged() {
    let mut master = master(options(AckRule::AllInSync), &[1, 2]);
    lease(&mut master, 0);
    follow(&mut master, 0, 2, 100);
    grow(&mut master, 300);
    assert!(master.fence(at(10), "op", epoch(1), 5000).is_err());
    assert_eq!(master.fence(at(10), "op", epoch(2), 5000), Ok(offset(300)));
    assert_eq!(master.admit(at(11)), Err(NotWritable::Fenced));
    assert!(master.heartbeat(at(12), 13).fenced);
    master.acked(at(13), LinkId(2), offset(300)).unwrap();
    assert_eq!(master.acknowledge(at(14)), offset(300));
    lease(&mut master, 2000);
    lease(&mut master, 4900);
    assert_eq!(
        master.admit(at(5011)),
        Err(NotWritable::Fenced),
        "it may be replaced already"
    );
    lease(&mut master, 5020);
    assert_eq!(master.admit(at(5021)), Ok(()));
}

#[test]
fn a_set_is_settled_once_every_member_reached_the_epochs_beginning() {
    let mut master = master(options(AckRule::Quorum(2)), &[1, 2, 3]);
    follow(&mut master, 0, 2, 100);
    assert_eq!(master.heartbeat(at(1), 1).settled, None);
    follow(&mut master, 2, 3, 99);
    assert_eq!(master.heartbeat(at(3), 2).settled, None);
    master.acked(at(4), LinkId(3), offset(100)).unwrap();
    let settled = Some((epoch(2), SyncStateSetEpoch::new(5)));
    assert_eq!(master.heartbeat(at(5), 3).settled, settled);
}

#[test]
fn a_masters_own_copy_counts_from_its_disk_when_it_flushes_synchronously() {
    let rule = MasterOptions {
        sync_flush: true,
        ..options(AckRule::AllInSync)
    };
    let mut master = master(rule, &[1, 2]);
    lease(&mut master, 0);
    grow(&mut master, 300);
    follow(&mut master, 0, 2, 300);
    assert_eq!(master.acknowledge(at(1)), offset(100));
    master.flushed(offset(250));
    assert_eq!(master.acknowledge(at(1)), offset(250));
}

#[test]
fn nobody_is_promoted_without_the_epochs_entry_and_the_stricter_rule_holds() {
    let promotion = Promotion {
        me: id(1),
        registered: ids(&[1, 2]),
        epoch: epoch(2),
        set: ids(&[1, 2]),
        set_epoch: SyncStateSetEpoch::new(5),
        rule_at_least: AckRule::AllInSync,
    };
    let rule = options(AckRule::Async);
    let without = Master::promote(rule, promotion.clone(), epochs(&[(1, 0)]), offset(0), at(0));
    assert!(without.is_none());
    let with = epochs(&[(1, 0), (2, 0)]);
    let mut master = Master::promote(rule, promotion, with, offset(0), at(0)).unwrap();
    lease(&mut master, 0);
    grow(&mut master, 10);
    assert_eq!(master.acknowledge(at(1)), offset(0));
}
