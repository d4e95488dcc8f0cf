//! Short ways to build machines for the tests.

use std::collections::BTreeSet;

use rmq_types::{BrokerId, CommitLogOffset, MasterEpoch, Moment, SyncStateSetEpoch};

use crate::{
    AckRule, EpochStart, Epochs, LinkId, Master, MasterOptions, Promotion, ReplicaHandshake,
};

pub(super) fn at(millis: u64) -> Moment {
    Moment::from_millis(millis)
}

pub(super) fn offset(raw: u64) -> CommitLogOffset {
    CommitLogOffset::new(raw)
}

pub(super) fn id(raw: u64) -> BrokerId {
    BrokerId::new(raw)
}

pub(super) fn ids(raw: &[u64]) -> BTreeSet<BrokerId> {
    raw.iter().copied().map(BrokerId::new).collect()
}

pub(super) fn epoch(raw: i32) -> MasterEpoch {
    MasterEpoch::new(raw)
}

pub(super) fn epochs(entries: &[(i32, u64)]) -> Epochs {
    let entries = entries.iter().map(|(epoch, start)| EpochStart {
        epoch: MasterEpoch::new(*epoch),
        start: CommitLogOffset::new(*start),
    });
    Epochs::from_entries(entries).unwrap()
}

pub(super) fn options(rule: AckRule) -> MasterOptions {
    MasterOptions {
        rule,
        ..MasterOptions::default()
    }
}

/// Broker 1 as master of epoch 2 that begins at 100, set epoch 5, of the brokers 1 to 4.
pub(super) fn master(options: MasterOptions, set: &[u64]) -> Master {
    let promotion = Promotion {
        me: id(1),
        registered: ids(&[1, 2, 3, 4]),
        epoch: epoch(2),
        set: ids(set),
        set_epoch: SyncStateSetEpoch::new(5),
        rule_at_least: AckRule::Async,
    };
    let epochs = epochs(&[(1, 0), (2, 100)]);
    Master::promote(options, promotion, epochs, offset(80), at(0)).unwrap()
}

/// Gives a lease that was asked for at `now`, under a number that rises with the time.
pub(super) fn lease(master: &mut Master, now: u64) {
    master.heartbeat(at(now), now + 1);
    master.heartbeat_answered(now + 1, epoch(2), Some(3000));
}

pub(super) fn handshake(broker: u64) -> ReplicaHandshake {
    ReplicaHandshake {
        broker: id(broker),
        epoch: Some(epoch(2)),
        learner: false,
        from_last_file: false,
    }
}

/// Links a broker over the link of its own number and lets it acknowledge.
pub(super) fn follow(master: &mut Master, now: u64, broker: u64, acked: u64) {
    master
        .linked(at(now), LinkId(broker), handshake(broker))
        .unwrap();
    master
        .acked(at(now), LinkId(broker), offset(acked))
        .unwrap();
}

pub(super) fn grow(master: &mut Master, end: u64) {
    master.log(offset(0), offset(0), offset(end));
}
