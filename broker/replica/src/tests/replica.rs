//! What a replica does, in which order.

use super::machine::{at, epoch, epochs, id, offset};
use crate::{EpochStart, FollowError, LinkId, Replica, ReplicaAction, ReplicaOptions, Transfer};

const LINK: LinkId = LinkId(1);

/// A replica that follows broker 1 in epoch 3, with its handshake sent.
fn replica(entries: &[(i32, u64)], end: u64) -> Replica {
    let epochs = epochs(entries);
    let mut replica = Replica::new(ReplicaOptions::default(), epochs, offset(end), offset(end));
    assert!(!replica.wants_link());
    replica.follow(id(1), epoch(3));
    assert!(replica.wants_link());
    replica.linked(at(0), LINK);
    replica
}

fn transfer(from: u64, bytes: u32, of: (i32, u64), confirm: u64) -> Transfer {
    Transfer {
        offset: offset(from),
        bytes,
        epoch: EpochStart {
            epoch: epoch(of.0),
            start: offset(of.1),
        },
        confirm: offset(confirm),
    }
}

#[test]
fn a_stale_tail_is_cut_on_the_disk_before_anything_is_said() {
    let mut replica = replica(&[(1, 0), (2, 100)], 150);
    let master = epochs(&[(1, 0), (3, 120)]);
    let action = replica.handshake(at(1), LINK, master, offset(200)).unwrap();
    let cut = epochs(&[(1, 0)]);
    let wanted = ReplicaAction::Cut {
        to: offset(100),
        epochs: cut.clone(),
        loses_confirmed: true,
    };
    assert_eq!(action, wanted);
    assert!(replica.is_busy());
    let early = replica.transfer(at(2), LINK, transfer(100, 20, (1, 0), 0));
    assert_eq!(early, Err(FollowError::OutOfTurn));
    assert_eq!(
        replica.tick(at(5000)),
        None,
        "nothing is said while the log is cut"
    );
    let next = replica.cut_done(at(2), cut).unwrap();
    assert_eq!(next, Some(ReplicaAction::Acknowledge(offset(100))));
    assert_eq!(replica.position(), (replica.epochs().last(), offset(100)));
}

#[test]
fn an_epoch_is_stored_before_its_bytes_are_appended_and_before_its_start_is_acknowledged() {
    let mut replica = replica(&[(1, 0)], 100);
    let master = epochs(&[(1, 0), (3, 120)]);
    let said = replica.handshake(at(1), LINK, master, offset(200)).unwrap();
    assert_eq!(said, ReplicaAction::Acknowledge(offset(100)));
    let append = replica
        .transfer(at(2), LINK, transfer(100, 20, (1, 0), 90))
        .unwrap();
    let wanted = ReplicaAction::Append {
        at: offset(100),
        bytes: 20,
    };
    assert_eq!(append, Some(wanted));
    let stored = epochs(&[(1, 0), (3, 120)]);
    let store = replica.appended(at(3)).unwrap();
    assert_eq!(store, Some(ReplicaAction::StoreEpochs(stored.clone())));
    assert!(!replica.holds_everything());
    let said = replica.epochs_stored(at(4), stored).unwrap();
    assert_eq!(said, Some(ReplicaAction::Acknowledge(offset(120))));
    assert!(replica.holds_everything());
    assert_eq!(replica.confirmed(), offset(100));
}

#[test]
fn an_epoch_without_bytes_of_an_old_master_goes_with_the_handshake() {
    // It was elected in epoch 2, wrote nothing, and lost to epoch 3 at the same place.
    let mut replica = replica(&[(1, 0), (2, 100)], 100);
    let master = epochs(&[(1, 0), (3, 100)]);
    let action = replica
        .handshake(at(1), LINK, master.clone(), offset(100))
        .unwrap();
    assert_eq!(action, ReplicaAction::StoreEpochs(master.clone()));
    let said = replica.epochs_stored(at(2), master).unwrap();
    assert_eq!(said, Some(ReplicaAction::Acknowledge(offset(100))));
}

#[test]
fn logs_without_a_common_epoch_are_left_alone() {
    let mut replica = replica(&[(1, 0), (2, 90)], 150);
    let refused = replica.handshake(at(1), LINK, epochs(&[(3, 100)]), offset(200));
    assert_eq!(refused, Err(FollowError::NoCommonHistory));
}

#[test]
fn a_master_whose_epochs_end_elsewhere_is_not_followed() {
    for list in [&[(1, 0), (2, 100)][..], &[(1, 0), (4, 100)], &[]] {
        let mut replica = replica(&[(1, 0)], 100);
        let refused = replica.handshake(at(1), LINK, epochs(list), offset(200));
        assert!(
            matches!(refused, Err(FollowError::Epochs { .. })),
            "{list:?}"
        );
    }
}

#[test]
fn bytes_that_leave_a_gap_or_come_again_are_refused() {
    let mut replica = replica(&[(1, 0)], 100);
    let master = epochs(&[(1, 0), (3, 120)]);
    replica.handshake(at(1), LINK, master, offset(200)).unwrap();
    for from in [90, 101, 0] {
        let refused = replica.transfer(at(2), LINK, transfer(from, 5, (1, 0), 0));
        assert!(matches!(refused, Err(FollowError::Gap { .. })), "{from}");
    }
    let wrong = replica.transfer(at(2), LINK, transfer(100, 5, (2, 50), 0));
    assert!(matches!(wrong, Err(FollowError::Epochs { .. })));
}

#[test]
fn an_empty_replica_takes_a_log_that_begins_anywhere() {
    let mut replica = replica(&[], 0);
    let master = epochs(&[(1, 0), (3, 120)]);
    let action = replica
        .handshake(at(1), LINK, master.clone(), offset(200))
        .unwrap();
    let first = epochs(&[(1, 0)]);
    assert_eq!(action, ReplicaAction::StoreEpochs(first.clone()));
    let said = replica.epochs_stored(at(2), first).unwrap();
    assert_eq!(said, Some(ReplicaAction::Acknowledge(offset(0))));
    let store = replica
        .transfer(at(3), LINK, transfer(130, 20, (3, 120), 0))
        .unwrap();
    assert_eq!(store, Some(ReplicaAction::StoreEpochs(master.clone())));
    let append = replica.epochs_stored(at(4), master).unwrap();
    let wanted = ReplicaAction::Append {
        at: offset(130),
        bytes: 20,
    };
    assert_eq!(append, Some(wanted));
    let said = replica.appended(at(5)).unwrap();
    assert_eq!(said, Some(ReplicaAction::Acknowledge(offset(150))));
}

#[test]
fn what_may_be_read_never_passes_the_replicas_own_end_nor_goes_back() {
    let mut replica = replica(&[(1, 0), (3, 50)], 100);
    let master = epochs(&[(1, 0), (3, 50)]);
    replica.handshake(at(1), LINK, master, offset(200)).unwrap();
    replica
        .transfer(at(2), LINK, transfer(100, 0, (3, 50), 180))
        .unwrap();
    assert_eq!(replica.confirmed(), offset(100));
    replica
        .transfer(at(2), LINK, transfer(100, 0, (3, 50), 60))
        .unwrap();
    assert_eq!(replica.confirmed(), offset(100));
}

#[test]
fn an_action_is_finished_though_its_link_is_gone() {
    let mut replica = replica(&[(1, 0), (2, 100)], 150);
    let master = epochs(&[(1, 0), (3, 100)]);
    replica.handshake(at(1), LINK, master, offset(200)).unwrap();
    replica.unlinked(LINK);
    assert!(!replica.wants_link(), "the cut is under way");
    replica.follow(id(2), epoch(4));
    assert_eq!(
        replica.cut_done(at(2), epochs(&[(1, 0), (3, 100)])),
        Ok(None)
    );
    assert!(replica.wants_link());
    assert_eq!(replica.following(), Some((id(2), epoch(4))));
}

#[test]
fn an_older_master_is_not_followed_and_a_newer_one_closes_the_link() {
    let mut replica = replica(&[(1, 0)], 100);
    assert_eq!(replica.follow(id(2), epoch(2)), []);
    assert_eq!(replica.follow(id(2), epoch(3)), []);
    assert_eq!(replica.following(), Some((id(1), epoch(3))));
    assert_eq!(replica.follow(id(2), epoch(4)), [ReplicaAction::Close]);
}

#[test]
fn a_quiet_replica_says_its_offset_and_a_silent_master_is_dialled_anew() {
    let mut replica = replica(&[(1, 0), (3, 50)], 100);
    replica
        .handshake(at(0), LINK, epochs(&[(1, 0), (3, 50)]), offset(100))
        .unwrap();
    assert_eq!(replica.tick(at(999)), None);
    assert_eq!(
        replica.tick(at(1000)),
        Some(ReplicaAction::Acknowledge(offset(100)))
    );
    assert_eq!(replica.tick(at(20_001)), Some(ReplicaAction::Close));
    assert!(replica.wants_link());
}

#[test]
fn with_synchronous_flush_only_what_the_disk_has_is_acknowledged() {
    let options = ReplicaOptions {
        sync_flush: true,
        ..ReplicaOptions::default()
    };
    let list = epochs(&[(1, 0), (3, 50)]);
    let mut replica = Replica::new(options, list.clone(), offset(100), offset(0));
    replica.follow(id(1), epoch(3));
    replica.linked(at(0), LINK);
    replica.handshake(at(0), LINK, list, offset(200)).unwrap();
    replica
        .transfer(at(1), LINK, transfer(100, 50, (3, 50), 0))
        .unwrap();
    assert_eq!(
        replica.appended(at(2)),
        Ok(Some(ReplicaAction::Acknowledge(offset(100))))
    );
    let said = replica.flushed(at(3), offset(130));
    assert_eq!(said, Some(ReplicaAction::Acknowledge(offset(130))));
    assert_eq!(replica.flushed(at(4), offset(130)), None);
}

#[test]
fn entries_beyond_the_end_that_a_crash_left_are_forgotten_at_the_start() {
    let options = ReplicaOptions::default();
    let list = epochs(&[(1, 0), (2, 100), (3, 150)]);
    let replica = Replica::new(options, list, offset(120), offset(500));
    assert_eq!(*replica.epochs(), epochs(&[(1, 0), (2, 100)]));
    assert_eq!(replica.confirmed(), offset(120));
}
