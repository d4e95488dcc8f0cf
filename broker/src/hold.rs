//! Pulls that wait for a message (long polling).
//!
//! Pure: who waits is an opaque `W`, time is an argument. A waiter is woken by the append that
//! brought its message or by its own deadline, never by a scan over queues. **Invariant:** every
//! waiter leaves exactly once; the number of waiters is bounded.

use std::collections::{BTreeSet, HashMap};

use rmq_types::Timestamp;

/// One waiting pull.
#[derive(Debug)]
pub(crate) struct Waiter<W> {
    /// Answers once the queue's end is beyond this offset.
    pub offset: i64,
    /// Answers at this time whatever happens.
    pub deadline: Timestamp,
    /// Connection, to forget it when it closes.
    pub connection: u64,
    /// What the shell needs to answer.
    pub what: W,
}

type Id = u64;

/// All waiting pulls.
#[derive(Debug)]
pub(crate) struct Holds<W> {
    next_id: Id,
    max: usize,
    waiters: HashMap<Id, (Box<str>, u32, Waiter<W>)>,
    queues: HashMap<Box<str>, HashMap<u32, Vec<Id>>>,
    deadlines: BTreeSet<(Timestamp, Id)>,
    connections: HashMap<u64, Vec<Id>>,
}

impl<W> Holds<W> {
    /// Takes at most `max` waiters.
    #[must_use]
    pub(crate) fn new(max: usize) -> Self {
        Self {
            next_id: 0,
            max,
            waiters: HashMap::new(),
            queues: HashMap::new(),
            deadlines: BTreeSet::new(),
            connections: HashMap::new(),
        }
    }

    /// Changes how many may wait; those that do stay.
    pub(crate) fn set_max(&mut self, max: usize) {
        self.max = max;
    }

    /// Lets a pull wait; gives it back when there is no more room.
    pub(crate) fn hold(
        &mut self,
        topic: &str,
        queue: u32,
        waiter: Waiter<W>,
    ) -> Result<(), Waiter<W>> {
        if self.waiters.len() >= self.max {
            return Err(waiter);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.deadlines.insert((waiter.deadline, id));
        self.connections
            .entry(waiter.connection)
            .or_default()
            .push(id);
        if !self.queues.contains_key(topic) {
            self.queues.insert(topic.into(), HashMap::new());
        }
        let queues = self.queues.get_mut(topic).expect("inserted above");
        queues.entry(queue).or_default().push(id);
        self.waiters.insert(id, (topic.into(), queue, waiter));
        Ok(())
    }

    /// Takes the waiters of a queue that `wanted` says can be answered.
    pub(crate) fn take(
        &mut self,
        topic: &str,
        queue: u32,
        mut wanted: impl FnMut(&Waiter<W>) -> bool,
    ) -> Vec<Waiter<W>> {
        let Some(ids) = self.queues.get(topic).and_then(|queues| queues.get(&queue)) else {
            return Vec::new();
        };
        let ready: Vec<Id> = ids
            .iter()
            .copied()
            .filter(|id| {
                self.waiters
                    .get(id)
                    .is_some_and(|(_, _, waiter)| wanted(waiter))
            })
            .collect();
        ready.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Takes the waiters of a whole topic, for when it is deleted.
    pub(crate) fn take_topic(&mut self, topic: &str) -> Vec<Waiter<W>> {
        let queues = self.queues.get(topic).into_iter().flat_map(HashMap::values);
        let ids: Vec<Id> = queues.flatten().copied().collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Takes the waiters whose time is up.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<Waiter<W>> {
        let due: Vec<Id> = self
            .deadlines
            .range(..=(now, Id::MAX))
            .map(|(_, id)| *id)
            .collect();
        due.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Forgets the waiters of a closed connection.
    pub(crate) fn forget(&mut self, connection: u64) {
        for id in self.connections.remove(&connection).unwrap_or_default() {
            self.remove(id);
        }
    }

    /// Takes everybody, for the shutdown.
    pub(crate) fn drain(&mut self) -> Vec<Waiter<W>> {
        let ids: Vec<Id> = self.waiters.keys().copied().collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Number of waiters.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }

    fn remove(&mut self, id: Id) -> Option<Waiter<W>> {
        let (topic, queue, waiter) = self.waiters.remove(&id)?;
        self.deadlines.remove(&(waiter.deadline, id));
        if let Some(queues) = self.queues.get_mut(&topic) {
            if let Some(ids) = queues.get_mut(&queue) {
                ids.retain(|other| *other != id);
                if ids.is_empty() {
                    queues.remove(&queue);
                }
            }
            if queues.is_empty() {
                self.queues.remove(&topic);
            }
        }
        if let Some(ids) = self.connections.get_mut(&waiter.connection) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.connections.remove(&waiter.connection);
            }
        }
        Some(waiter)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn waiter(offset: i64, deadline: i64, connection: u64) -> Waiter<u32> {
        Waiter {
            offset,
            deadline: Timestamp::from_millis(deadline),
            connection,
            what: 0,
        }
    }

    #[test]
    fn only_waiters_of_the_queue_that_want_it_are_taken() {
        let mut holds = Holds::new(10);
        holds.hold("t", 0, waiter(5, 100, 1)).unwrap();
        holds.hold("t", 0, waiter(9, 100, 2)).unwrap();
        holds.hold("t", 1, waiter(5, 100, 3)).unwrap();
        let taken = holds.take("t", 0, |waiter| waiter.offset < 7);
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].connection, 1);
        assert_eq!(holds.len(), 2);
    }

    #[test]
    fn a_full_table_gives_the_pull_back() {
        let mut holds = Holds::new(1);
        holds.hold("t", 0, waiter(0, 1, 1)).unwrap();
        assert!(holds.hold("t", 0, waiter(0, 1, 2)).is_err());
    }

    proptest! {
        #[test]
        fn every_waiter_leaves_exactly_once_and_leaves_nothing_behind(
            steps in proptest::collection::vec((0u8..5, 0u32..3, 0i64..20, 0u64..4), 1..80)
        ) {
            let mut holds = Holds::new(64);
            let (mut entered, mut left) = (0usize, 0usize);
            for (kind, queue, number, connection) in steps {
                match kind {
                    0 | 1 => {
                        entered += usize::from(
                            holds.hold("t", queue, waiter(number, number, connection)).is_ok());
                    }
                    2 => left += holds.take("t", queue, |w| w.offset < number).len(),
                    3 => left += holds.expire(Timestamp::from_millis(number)).len(),
                    _ => {
                        let before = holds.len();
                        holds.forget(connection);
                        left += before - holds.len();
                    }
                }
                prop_assert_eq!(entered - left, holds.len());
            }
            left += holds.drain().len();
            prop_assert_eq!(entered, left);
            prop_assert!(holds.queues.is_empty());
            prop_assert!(holds.deadlines.is_empty());
            prop_assert!(holds.connections.is_empty());
        }
    }
}
