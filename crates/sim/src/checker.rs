//! What clients saw, and whether the cluster kept its word.
//!
//! **Invariant:** a message that was acknowledged at a place of the log is there on every later
//! master; no write is taken by a master of an older epoch after one of a newer epoch took one.

use std::collections::BTreeMap;

use crate::{disk::Record, net::Node};

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An acknowledged message is not where it was acknowledged.
    Lost {
        /// Milliseconds from the start.
        at: u64,
        /// The index of its record.
        place: usize,
        /// Who should have it.
        master: Node,
    },
    /// Two masters took writes.
    TwoMasters {
        /// Milliseconds from the start.
        at: u64,
        /// The older epoch, which took a write after the newer one.
        old: i32,
        /// The newer epoch.
        new: i32,
    },
    /// Nobody took writes although everything worked again.
    NotWritable {
        /// Milliseconds from the start.
        at: u64,
    },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Checker {
    /// Asynchronous acknowledgement promises nothing about the log.
    pub(crate) nothing_promised: bool,
    acknowledged: BTreeMap<usize, u64>,
    newest_epoch: i32,
    pub(crate) last_acknowledged_at: u64,
    pub(crate) acknowledged_count: u64,
    pub(crate) promotions: u64,
    pub(crate) violation: Option<Violation>,
}

impl Checker {
    pub(crate) fn new(nothing_promised: bool) -> Self {
        Self {
            nothing_promised,
            ..Self::default()
        }
    }

    fn fail(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    /// A master took a write.
    pub(crate) fn taken(&mut self, at: u64, epoch: i32) {
        if epoch < self.newest_epoch {
            self.fail(Violation::TwoMasters {
                at,
                old: epoch,
                new: self.newest_epoch,
            });
        }
        self.newest_epoch = self.newest_epoch.max(epoch);
    }

    /// A master acknowledged the message of the record at `place`.
    pub(crate) fn acknowledged(&mut self, at: u64, master: Node, place: usize, message: u64) {
        self.last_acknowledged_at = at;
        self.acknowledged_count += 1;
        let known = *self.acknowledged.entry(place).or_insert(message);
        if known != message && !self.nothing_promised {
            self.fail(Violation::Lost { at, place, master });
        }
    }

    /// A broker became master of an epoch with this log. One that learns of its election when there
    /// is a newer epoch already can do no harm: it gets no lease.
    pub(crate) fn promoted(&mut self, at: u64, master: Node, epoch: i32, log: &[Record]) {
        if epoch < self.newest_epoch {
            return;
        }
        self.promotions += 1;
        let has = |place: usize, message: u64| log.get(place).is_some_and(|r| r.message == message);
        let lost = self
            .acknowledged
            .iter()
            .find(|(place, message)| !has(**place, **message));
        if let Some((place, _)) = lost.filter(|_| !self.nothing_promised) {
            let place = *place;
            self.fail(Violation::Lost { at, place, master });
        }
    }

    /// Everything has worked for a while.
    pub(crate) fn calm(&mut self, at: u64, calm_since: u64) {
        if self.last_acknowledged_at < calm_since {
            self.fail(Violation::NotWritable { at });
        }
    }
}
