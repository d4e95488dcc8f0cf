//! The disk of a broker: a log of records, its epochs, and what a power cut leaves of them.
//!
//! **Invariant:** what was synced survives everything; what was only written survives the end of a
//! process and, from the last sync on, any part of it survives a power cut.

use rmq_replica::Epochs;
use rmq_types::CommitLogOffset;

use crate::rng::Rng;

/// Bytes of every record.
pub(crate) const RECORD_BYTES: u64 = 10;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) message: u64,
    pub(crate) epoch: i32,
}

/// What a broker keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    records: Vec<Record>,
    /// Records in the log as the process sees it. Behind it lies what a cut in memory only leaves.
    used: usize,
    synced: usize,
    pub(crate) epochs: Epochs,
    pub(crate) confirmed: CommitLogOffset,
    pub(crate) may_lack: bool,
}

impl Disk {
    pub(crate) fn end(&self) -> CommitLogOffset {
        CommitLogOffset::new(self.used as u64 * RECORD_BYTES)
    }

    pub(crate) fn append(&mut self, record: Record) {
        if let Some(place) = self.records.get_mut(self.used) {
            *place = record;
        } else {
            self.records.push(record);
        }
        self.used += 1;
    }

    pub(crate) fn read(&self, from: CommitLogOffset, bytes: u32) -> Vec<Record> {
        let from = (from.get() / RECORD_BYTES) as usize;
        let to = from + (u64::from(bytes) / RECORD_BYTES) as usize;
        let records = self.log().get(from..to);
        records.map(<[Record]>::to_vec).unwrap_or_default()
    }

    pub(crate) fn log(&self) -> &[Record] {
        self.records.get(..self.used).unwrap_or_default()
    }

    pub(crate) fn sync(&mut self) {
        self.synced = self.used;
    }

    /// Makes the log end here, on the disk or, as a planted bug, in memory only.
    pub(crate) fn cut(&mut self, end: CommitLogOffset, durably: bool) {
        self.used = self.used.min((end.get() / RECORD_BYTES) as usize);
        self.synced = self.synced.min(self.used);
        if durably {
            self.records.truncate(self.used);
        }
    }

    /// The process ends; the computer goes on.
    pub(crate) fn process_ends(&mut self) {
        self.used = self.records.len();
        self.epochs.normalise(self.end());
    }

    /// The computer loses its power.
    pub(crate) fn power_lost(&mut self, rng: &mut Rng) {
        let kept = rng.between(
            self.synced as u64,
            self.records.len().max(self.synced) as u64,
        );
        self.records.truncate(kept as usize);
        self.synced = self.records.len();
        self.process_ends();
        self.may_lack = true;
    }
}
