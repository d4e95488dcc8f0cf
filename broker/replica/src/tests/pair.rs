//! A master and a replica against each other, over links that break and processes that end.

use proptest::prelude::*;
use rmq_types::CommitLogOffset;

use super::machine::{at, epoch, handshake, id, lease, master, offset, options};
use crate::{AckRule, Epochs, LinkId, Master, Replica, ReplicaAction, ReplicaOptions, Transfer};

/// The replica's side of the world: a disk that is written at once.
struct Other {
    replica: Replica,
    /// The epoch of each byte of its log.
    log: Vec<i32>,
    epochs: Epochs,
}

impl Other {
    fn perform(&mut self, master: &mut Master, link: LinkId, now: u64, first: ReplicaAction) {
        let mut next = Some(first);
        while let Some(action) = next.take() {
            next = match action {
                ReplicaAction::Cut { to, epochs, .. } => {
                    self.log.truncate(to.get() as usize);
                    self.epochs = epochs.clone();
                    self.replica.cut_done(at(now), epochs).unwrap()
                }
                ReplicaAction::StoreEpochs(epochs) => {
                    self.epochs = epochs.clone();
                    self.replica.epochs_stored(at(now), epochs).unwrap()
                }
                ReplicaAction::Append { at: from, bytes } => {
                    assert_eq!(from.get() as usize, self.log.len());
                    let last = self.epochs.last().unwrap().epoch.get();
                    self.log.extend(std::iter::repeat_n(last, bytes as usize));
                    self.replica.appended(at(now)).unwrap()
                }
                ReplicaAction::Acknowledge(offset) => {
                    assert!(offset.get() as usize <= self.log.len());
                    master.acked(at(now), link, offset).unwrap();
                    None
                }
                ReplicaAction::Close => None,
            };
        }
    }

    fn receive(&mut self, master: &mut Master, link: LinkId, now: u64, transfer: Transfer) {
        let action = self.replica.transfer(at(now), link, transfer).unwrap();
        if let Some(action) = action {
            self.perform(master, link, now, action);
        }
    }

    /// The process ends and starts; `lost` unsynced bytes are gone.
    fn restart(&mut self, lost: usize) {
        let left = self.log.len().saturating_sub(lost);
        self.log.truncate(left);
        let end = offset(left as u64);
        self.replica = Replica::new(
            ReplicaOptions::default(),
            self.epochs.clone(),
            end,
            CommitLogOffset::default(),
        );
        self.epochs = self.replica.epochs().clone();
        self.replica.follow(id(1), epoch(2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever breaks, the replica ends with the master's bytes, and nothing was acknowledged that
    /// it did not have.
    #[test]
    fn a_replica_ends_with_the_masters_log_over_any_breaks(
        stale in 0_usize..150,
        stale_epoch in prop_oneof![Just(1), Just(7)],
        steps in prop::collection::vec((0..10_u8, 1..40_usize), 1..80),
    ) {
        let mut master = master(options(AckRule::AllInSync), &[1, 2]);
        let mut log: Vec<i32> = vec![1; 100];
        // The replica's own past: part of epoch 1, perhaps a tail of an epoch that lost.
        let own = if stale_epoch == 7 && stale > 60 { vec![(1, 0), (7, 60)] } else { vec![(1, 0)] };
        let mut other = Other {
            replica: Replica::new(
                ReplicaOptions::default(), Epochs::default(), offset(0), offset(0),
            ),
            log: (0..stale).map(|n| if n >= 60 && own.len() > 1 { 7 } else { 1 }).collect(),
            epochs: super::machine::epochs(&own),
        };
        other.restart(0);
        let mut link = LinkId(0);
        let mut acknowledged = 0;
        for (n, (what, size)) in steps.iter().chain(&[(9, 1); 3]).enumerate() {
            let now = n as u64 * 100;
            lease(&mut master, now);
            match what {
                0..=3 => {
                    log.extend(std::iter::repeat_n(2, *size));
                    master.log(offset(0), offset(0), offset(log.len() as u64));
                }
                4 => {
                    master.unlinked(at(now), link);
                    other.replica.unlinked(link);
                }
                5 => {
                    other.restart(if acknowledged == 0 { *size } else { 0 });
                    master.unlinked(at(now), link);
                }
                _ => {
                    if other.replica.wants_link() {
                        link = LinkId(now + 1);
                        master.linked(at(now), link, handshake(2)).unwrap();
                        other.replica.linked(at(now), link);
                        let (list, end) = (master.epochs().clone(), master.log_end());
                        let action = other.replica.handshake(at(now), link, list, end).unwrap();
                        other.perform(&mut master, link, now, action);
                    }
                    let mut rounds = if *what == 9 { usize::MAX } else { *size };
                    while let Some(transfer) = master.next_transfer(at(now), link).unwrap() {
                        other.receive(&mut master, link, now, transfer);
                        rounds -= 1;
                        if rounds == 0 || transfer.bytes == 0 {
                            break;
                        }
                    }
                }
            }
            let confirmed = master.acknowledge(at(now)).get();
            if confirmed > 80 {
                prop_assert!(confirmed as usize <= other.log.len());
                prop_assert!(confirmed >= acknowledged);
                acknowledged = confirmed;
            }
            let common = other.log.len().min(log.len());
            if other.replica.is_streaming() {
                prop_assert_eq!(&other.log[..common], &log[..common]);
            }
        }
        prop_assert_eq!(&other.log, &log);
        prop_assert_eq!(&other.epochs, master.epochs());
        prop_assert_eq!(master.acknowledge(at(100_000)).get() as usize <= log.len(), true);
    }
}
