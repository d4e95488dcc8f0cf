//! One checkpoint: the messages of one pop from one queue, a bit for each.
//!
//! **Invariant:** a checkpoint has 1 to 32 messages, ascending; a bit that is `done` stays done.
//! 72 bytes, and 128 more when its messages do not follow each other (a filter left some out).

use rmq_types::{QueueOffset, Timestamp};

use crate::action::{AckWrite, CheckpointWrite, RecordKey};

/// Most messages of one checkpoint.
pub(crate) const MESSAGES_MAX: usize = rmq_types::pop::POP_MESSAGES_MAX;

/// Whether a record in the revive topic holds the checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    /// Only memory holds it.
    No,
    /// Its record is being written.
    Writing,
    /// A record holds it.
    Yes,
}

#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) start: u64,
    /// Milliseconds since the epoch.
    pub(crate) pop_time: i64,
    /// Moment milliseconds.
    pub(crate) due: u64,
    /// Valid when saved.
    pub(crate) revive_offset: u64,
    diffs: Option<Box<[u32; MESSAGES_MAX]>>,
    pub(crate) invisible: u32,
    /// Acked, redelivered, gone, or voided.
    pub(crate) done: u32,
    /// The part of `done` that records know of.
    pub(crate) recorded: u32,
    /// A redelivery is under way.
    pub(crate) sent: u32,
    /// A checkpoint of its own stands for the message until that one is saved or done.
    pub(crate) moved: u32,
    count: u8,
    pub(crate) revive_queue: u8,
    pub(crate) saved: Saved,
    pub(crate) failures: u8,
    /// Made from a mark: the pop times of its handles are not known.
    pub(crate) any_handle: bool,
}

impl Checkpoint {
    /// Of ascending offsets, at most 32 of them and less than 2^32 apart; `None` of no offset.
    pub(crate) fn new(offsets: &[u64]) -> Option<Self> {
        let (&start, &last) = (offsets.first()?, offsets.last()?);
        let count = offsets.len().min(MESSAGES_MAX);
        let gaps = last - start != offsets.len() as u64 - 1;
        let diffs = gaps.then(|| {
            let mut diffs = [0; MESSAGES_MAX];
            for (diff, offset) in diffs.iter_mut().zip(offsets) {
                *diff = (offset - start) as u32;
            }
            Box::new(diffs)
        });
        Some(Self {
            start,
            pop_time: 0,
            due: 0,
            revive_offset: 0,
            diffs,
            invisible: 0,
            done: 0,
            recorded: 0,
            sent: 0,
            moved: 0,
            count: count as u8,
            revive_queue: 0,
            saved: Saved::No,
            failures: 0,
            any_handle: false,
        })
    }

    /// Of one message of a record that began at `start`.
    pub(crate) fn part(start: u64, offset: u64) -> Option<Self> {
        let diff = u32::try_from(offset.checked_sub(start)?).ok()?;
        let mut one = Self::new(&[offset])?;
        if diff > 0 {
            let mut diffs = [0; MESSAGES_MAX];
            diffs[0] = diff;
            one.start = start;
            one.diffs = Some(Box::new(diffs));
        }
        Some(one)
    }

    /// Splits offsets of one read into what fits one checkpoint each.
    pub(crate) fn split(offsets: &[u64]) -> impl Iterator<Item = &[u64]> {
        let mut rest = offsets;
        std::iter::from_fn(move || {
            let first = *rest.first()?;
            let far = rest
                .iter()
                .take(MESSAGES_MAX)
                .take_while(|&&offset| i32::try_from(offset - first).is_ok());
            let (head, tail) = rest.split_at(far.count());
            rest = tail;
            Some(head)
        })
    }

    pub(crate) fn count(&self) -> u32 {
        self.count.into()
    }

    pub(crate) fn all(&self) -> u32 {
        u32::MAX.checked_shr(32 - self.count()).unwrap_or(0)
    }

    /// Bits that still wait for an ack, moved ones included.
    pub(crate) fn open(&self) -> u32 {
        self.all() & !self.done
    }

    /// Bits for which this checkpoint itself speaks.
    pub(crate) fn claimed(&self) -> u32 {
        self.open() & !self.moved
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.open() == 0
    }

    pub(crate) fn offset_of(&self, index: u32) -> u64 {
        let diff = match &self.diffs {
            Some(diffs) => diffs.get(index as usize).copied().unwrap_or(0),
            None => index,
        };
        self.start + u64::from(diff)
    }

    pub(crate) fn index_of(&self, offset: u64) -> Option<u32> {
        let diff = u32::try_from(offset.checked_sub(self.start)?).ok()?;
        match &self.diffs {
            None => (diff < self.count()).then_some(diff),
            Some(diffs) => diffs[..usize::from(self.count)]
                .binary_search(&diff)
                .ok()
                .map(|index| index as u32),
        }
    }

    pub(crate) fn last(&self) -> u64 {
        self.offset_of(self.count().saturating_sub(1))
    }

    /// Whether a handle with this pop time is one of this checkpoint.
    pub(crate) fn gave(&self, pop_time: Timestamp) -> bool {
        self.any_handle || self.pop_time == pop_time.millis()
    }

    /// Marks the slot of a checkpoint that is done with; only its start stays.
    pub(crate) fn bury(&mut self) {
        self.count = 0;
        self.diffs = None;
    }

    pub(crate) fn is_buried(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn offsets(&self, mask: u32) -> impl Iterator<Item = u64> {
        bits(mask).map(|index| self.offset_of(index))
    }

    pub(crate) fn write(&mut self, at: u64, single: bool) -> CheckpointWrite {
        self.saved = Saved::Writing;
        self.recorded = self.done;
        CheckpointWrite {
            key: RecordKey {
                at,
                single,
                start: self.start,
                pop_time: self.pop_time,
                revive_queue: self.revive_queue,
            },
            revive_queue: self.revive_queue,
            start: QueueOffset::new(self.start),
            pop_time: Timestamp::from_millis(self.pop_time),
            invisible_millis: self.invisible,
            messages: self.offsets(self.all()).map(QueueOffset::new).collect(),
            done_bits: self.done,
        }
    }

    /// The ack record for what records do not know of yet, if there is any.
    pub(crate) fn write_acks(&mut self) -> Option<AckWrite> {
        let fresh = self.done & !self.recorded & self.all();
        if fresh == 0 {
            return None;
        }
        self.recorded |= fresh;
        Some(AckWrite {
            revive_queue: self.revive_queue,
            start: QueueOffset::new(self.start),
            pop_time: Timestamp::from_millis(self.pop_time),
            invisible_millis: self.invisible,
            messages: self.offsets(fresh).map(QueueOffset::new).collect(),
        })
    }
}

/// The places of the bits that are set.
pub(crate) fn bits(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let bit = mask.trailing_zeros();
        mask &= mask - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_follow_each_other_and_messages_with_gaps_are_found_by_offset() {
        let plain = Checkpoint::new(&[100, 101, 102]).unwrap();
        assert_eq!(plain.index_of(102), Some(2));
        assert_eq!(plain.index_of(103), None);
        assert_eq!(plain.index_of(99), None);
        let gaps = Checkpoint::new(&[100, 101, 205]).unwrap();
        assert_eq!(gaps.index_of(205), Some(2));
        assert_eq!(gaps.index_of(102), None);
        assert_eq!((gaps.last(), gaps.all()), (205, 0b111));
    }

    #[test]
    fn an_offset_wrapped_by_32_bits_is_no_message_of_the_checkpoint() {
        let gaps = Checkpoint::new(&[100, 101, 105]).unwrap();
        assert_eq!(gaps.index_of(105 + (1 << 32)), None);
        let plain = Checkpoint::new(&[100, 101, 102, 103]).unwrap();
        assert_eq!(plain.index_of(103 + (1 << 32)), None);
    }

    #[test]
    fn a_read_is_split_at_32_messages_and_where_offsets_are_too_far_apart() {
        let many: Vec<u64> = (0..70).collect();
        let sizes: Vec<usize> = Checkpoint::split(&many).map(<[u64]>::len).collect();
        assert_eq!(sizes, [32, 32, 6]);
        let far = [5, 6, 6 + (1 << 33)];
        assert_eq!(Checkpoint::split(&far).count(), 2);
        assert_eq!(Checkpoint::split(&[]).count(), 0);
    }

    #[test]
    fn a_full_checkpoint_has_32_bits_and_a_buried_one_none() {
        let full: Vec<u64> = (0..32).collect();
        let mut full = Checkpoint::new(&full).unwrap();
        assert_eq!(full.all(), u32::MAX);
        full.bury();
        assert_eq!(full.all(), 0);
        assert!(size_of::<Checkpoint>() <= 72);
    }
}
