//! One queue of the revive topic: up to where its records are done with.
//!
//! **Invariant:** the committed offset never passes the record of a checkpoint that is not done
//! with; so a recovery that begins there finds every such record, and after it every ack of it.
//!
//! It costs about 24 bytes for each checkpoint that has a record.

use std::collections::BTreeMap;

use rmq_types::QueueOffset;

/// The records of one revive queue.
#[derive(Debug, Default)]
pub struct ReviveQueue {
    /// Records that are not done with, and how many `Resolved` each still waits for.
    open: BTreeMap<u64, u32>,
    /// The offset behind the last record seen.
    next: u64,
    committed: u64,
}

impl ReviveQueue {
    /// A revive queue whose records before `next` are done with.
    #[must_use]
    pub fn new(next: QueueOffset) -> Self {
        Self {
            open: BTreeMap::new(),
            next: next.get(),
            committed: next.get(),
        }
    }

    /// A checkpoint record was written or read here; it is done with after `parts` times
    /// [`ReviveQueue::resolved`] (one for a record that was written). Ack records have no parts.
    pub fn note(&mut self, at: QueueOffset, parts: u32) {
        self.next = self.next.max(at.get() + 1);
        if parts > 0 && at.get() >= self.committed {
            *self.open.entry(at.get()).or_default() += parts;
        }
    }

    /// A part of a record is done with.
    pub fn resolved(&mut self, at: QueueOffset) {
        if let Some(parts) = self.open.get_mut(&at.get()) {
            *parts -= 1;
            if *parts == 0 {
                self.open.remove(&at.get());
            }
        }
    }

    /// The offset from which a recovery has to read; gives it only when it moved since last time.
    pub fn advance(&mut self) -> Option<QueueOffset> {
        let first = self.open.keys().next().copied().unwrap_or(self.next);
        (first > self.committed).then(|| {
            self.committed = first;
            QueueOffset::new(first)
        })
    }

    /// As Java's revive group has it in the offset table: the last record that is done with;
    /// `None` before the first one is.
    #[must_use]
    pub fn java_offset(&self) -> Option<QueueOffset> {
        self.committed.checked_sub(1).map(QueueOffset::new)
    }

    /// The offset from which to read, given what Java's revive group has in the offset table.
    #[must_use]
    pub fn from_java_offset(stored: Option<QueueOffset>) -> QueueOffset {
        stored.map_or(QueueOffset::new(0), |last| last.advance(1))
    }

    /// Records not done with: the lag of the revive queue.
    #[must_use]
    pub fn lag(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> QueueOffset {
        QueueOffset::new(offset)
    }

    #[test]
    fn the_offset_stops_at_the_first_record_that_is_not_done_with() {
        let mut queue = ReviveQueue::new(at(0));
        queue.note(at(0), 1);
        queue.note(at(1), 1);
        queue.note(at(2), 0);
        assert_eq!(queue.advance(), None);
        queue.resolved(at(1));
        assert_eq!((queue.advance(), queue.lag()), (None, 1));
        queue.resolved(at(0));
        assert_eq!(queue.advance(), Some(at(3)));
        assert_eq!(queue.advance(), None);
        assert_eq!(queue.java_offset(), Some(at(2)));
    }

    #[test]
    fn a_record_whose_messages_were_taken_apart_waits_for_all_of_them() {
        let mut queue = ReviveQueue::new(at(5));
        queue.note(at(5), 2);
        queue.resolved(at(5));
        assert_eq!(queue.advance(), None);
        queue.resolved(at(5));
        queue.resolved(at(5));
        assert_eq!(queue.advance(), Some(at(6)));
    }

    #[test]
    fn javas_offset_names_the_last_record_and_ours_the_next() {
        assert_eq!(ReviveQueue::from_java_offset(None), at(0));
        assert_eq!(ReviveQueue::from_java_offset(Some(at(0))), at(1));
        assert_eq!(ReviveQueue::new(at(0)).java_offset(), None);
    }
}
