//! Where each epoch begins in a commit log, and how far two logs agree.
//!
//! **Invariant:** epochs rise strictly and their starts never fall; no entry begins after the end of
//! the log that it describes. Nothing is written here: a list that changed is stored by the shell
//! before anything that follows from it is said to anybody.

use rmq_types::{CommitLogOffset, MasterEpoch};

/// Entries that are kept; older ones belong to messages that were deleted long ago.
pub const EPOCHS_MAX: usize = 65_536;

/// The beginning of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    /// The epoch.
    pub epoch: MasterEpoch,
    /// Its first byte.
    pub start: CommitLogOffset,
}

/// Why an entry cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("epoch {epoch} at {start} cannot follow epoch {last} at {last_start}")]
pub struct EpochOrderError {
    epoch: MasterEpoch,
    start: CommitLogOffset,
    last: MasterEpoch,
    last_start: CommitLogOffset,
}

/// The epochs of one log, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Epochs(Vec<EpochStart>);

impl Epochs {
    /// From stored entries.
    pub fn from_entries(
        entries: impl IntoIterator<Item = EpochStart>,
    ) -> Result<Self, EpochOrderError> {
        let mut epochs = Self::default();
        for entry in entries {
            epochs.push(entry)?;
        }
        Ok(epochs)
    }

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[EpochStart] {
        &self.0
    }

    /// The newest epoch.
    #[must_use]
    pub fn last(&self) -> Option<EpochStart> {
        self.0.last().copied()
    }

    /// Adds an epoch after the others. The same entry again changes nothing.
    pub fn push(&mut self, entry: EpochStart) -> Result<(), EpochOrderError> {
        if let Some(last) = self.last() {
            if last == entry {
                return Ok(());
            }
            if entry.epoch <= last.epoch || entry.start < last.start {
                return Err(EpochOrderError {
                    epoch: entry.epoch,
                    start: entry.start,
                    last: last.epoch,
                    last_start: last.start,
                });
            }
        }
        if self.0.len() >= EPOCHS_MAX {
            self.0.remove(0);
        }
        self.0.push(entry);
        Ok(())
    }

    /// Forgets epochs that begin at or after `end`, the end of a log that was cut there.
    pub fn cut(&mut self, end: CommitLogOffset) {
        self.0.retain(|entry| entry.start < end);
    }

    /// Forgets epochs that begin after the end of the log, which a crash may leave behind: an entry
    /// is stored before the bytes of its epoch, and a log is cut before its entries.
    pub fn normalise(&mut self, end: CommitLogOffset) {
        self.0.retain(|entry| entry.start <= end);
    }

    /// The epoch of the byte at `offset`, and where the part of the log that is of one epoch ends.
    #[must_use]
    pub fn at(
        &self,
        offset: CommitLogOffset,
        log_end: CommitLogOffset,
    ) -> Option<(EpochStart, CommitLogOffset)> {
        let after = self.0.partition_point(|entry| entry.start <= offset);
        let entry = *self.0.get(after.checked_sub(1)?)?;
        let next = self.0.get(after).map_or(log_end, |next| next.start);
        Some((entry, next.min(log_end)))
    }

    fn end_of(&self, index: usize, log_end: CommitLogOffset) -> CommitLogOffset {
        let next = self.0.get(index + 1);
        next.map_or(log_end, |next| next.start.min(log_end))
    }

    /// Up to where this log, which ends at `end`, holds the same bytes as another with its epochs
    /// and end: the lesser end of the newest epoch that both began at the same place.
    #[must_use]
    pub fn common_end(
        &self,
        end: CommitLogOffset,
        other: &Self,
        other_end: CommitLogOffset,
    ) -> Option<CommitLogOffset> {
        let mut theirs = other.0.len();
        let mut ours = self.0.len();
        while let (Some(i), Some(j)) = (ours.checked_sub(1), theirs.checked_sub(1)) {
            let (own, their) = (self.0.get(i)?, other.0.get(j)?);
            match own.epoch.cmp(&their.epoch) {
                std::cmp::Ordering::Greater => ours = i,
                std::cmp::Ordering::Less => theirs = j,
                std::cmp::Ordering::Equal if own.start == their.start => {
                    return Some(self.end_of(i, end).min(other.end_of(j, other_end)));
                }
                std::cmp::Ordering::Equal => (ours, theirs) = (i, j),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, u64)]) -> Epochs {
        let entries = entries.iter().map(|(epoch, start)| EpochStart {
            epoch: MasterEpoch::new(*epoch),
            start: CommitLogOffset::new(*start),
        });
        Epochs::from_entries(entries).unwrap()
    }

    fn common(a: &[(i32, u64)], a_end: u64, b: &[(i32, u64)], b_end: u64) -> Option<u64> {
        let (a, b) = (epochs(a), epochs(b));
        let (a_end, b_end) = (CommitLogOffset::new(a_end), CommitLogOffset::new(b_end));
        let point = a.common_end(a_end, &b, b_end);
        assert_eq!(
            point,
            b.common_end(b_end, &a, a_end),
            "it is the same seen from both"
        );
        point.map(CommitLogOffset::get)
    }

    #[test]
    fn logs_agree_up_to_the_lesser_end_of_their_newest_common_epoch() {
        assert_eq!(common(&[(1, 0)], 100, &[(1, 0)], 80), Some(80));
        // The tail of an old master is not the new one's.
        assert_eq!(common(&[(1, 0)], 150, &[(1, 0), (2, 100)], 200), Some(100));
        assert_eq!(
            common(&[(1, 0), (2, 100)], 150, &[(1, 0), (3, 100)], 200),
            Some(100)
        );
        assert_eq!(
            common(&[(1, 0), (2, 90)], 150, &[(1, 0), (3, 100)], 200),
            Some(90)
        );
        assert_eq!(common(&[(1, 0), (2, 90)], 150, &[(2, 100)], 200), None);
        assert_eq!(common(&[], 150, &[(2, 100)], 200), None);
    }

    #[test]
    fn the_same_epoch_with_another_start_is_no_agreement() {
        assert_eq!(
            common(&[(1, 0), (2, 90)], 150, &[(1, 0), (2, 100)], 200),
            Some(90)
        );
    }

    #[test]
    fn a_list_is_cut_with_its_log_and_keeps_no_entry_beyond_its_end() {
        let mut list = epochs(&[(1, 0), (2, 100), (3, 100), (4, 150)]);
        list.normalise(CommitLogOffset::new(120));
        assert_eq!(list, epochs(&[(1, 0), (2, 100), (3, 100)]));
        list.cut(CommitLogOffset::new(100));
        assert_eq!(list, epochs(&[(1, 0)]));
    }

    #[test]
    fn a_byte_knows_its_epoch_and_where_the_epoch_ends() {
        let list = epochs(&[(1, 10), (2, 100), (3, 100), (4, 150)]);
        let at = |offset| {
            let found = list.at(CommitLogOffset::new(offset), CommitLogOffset::new(180));
            found.map(|(entry, end)| (entry.epoch.get(), end.get()))
        };
        assert_eq!(at(9), None);
        assert_eq!(at(10), Some((1, 100)));
        assert_eq!(at(100), Some((3, 150)));
        assert_eq!(at(179), Some((4, 180)));
    }

    #[test]
    fn epochs_that_do_not_rise_are_refused_and_a_repeated_one_is_not() {
        let mut list = epochs(&[(1, 0), (2, 100)]);
        let entry = |epoch, start| EpochStart {
            epoch: MasterEpoch::new(epoch),
            start: CommitLogOffset::new(start),
        };
        assert_eq!(list.push(entry(2, 100)), Ok(()));
        assert!(list.push(entry(2, 120)).is_err());
        assert!(list.push(entry(1, 120)).is_err());
        assert!(list.push(entry(3, 99)).is_err());
        assert_eq!(list.entries().len(), 2);
    }
}
