//! Queue locks of ordered consumers (`RebalanceLockManager`): one client holds a queue of a group
//! for 60 seconds at a time.

use std::collections::HashMap;

use rmq_types::Timestamp;

/// How long a lock lasts without renewal.
pub(super) const LOCK_MILLIS: i64 = 60_000;

/// A queue: topic and number.
pub(crate) type QueueKey = (String, i32);

#[derive(Debug)]
struct Holder {
    client_id: String,
    since: Timestamp,
}

/// Locks of all groups.
#[derive(Debug, Default)]
pub(crate) struct QueueLocks {
    groups: HashMap<String, HashMap<QueueKey, Holder>>,
}

impl QueueLocks {
    /// Locks or renews each queue that is free, expired or already held by the client; gives those.
    pub(crate) fn lock(
        &mut self,
        now: Timestamp,
        group: &str,
        client_id: &str,
        queues: impl IntoIterator<Item = QueueKey>,
    ) -> Vec<QueueKey> {
        let held = self.groups.entry(group.to_owned()).or_default();
        let mut won = Vec::new();
        for queue in queues {
            let taken = held.get(&queue).is_some_and(|holder| {
                holder.client_id != client_id && now.since(holder.since) <= LOCK_MILLIS
            });
            if !taken {
                let holder = Holder {
                    client_id: client_id.to_owned(),
                    since: now,
                };
                held.insert(queue.clone(), holder);
                won.push(queue);
            }
        }
        won
    }

    /// Gives up queues that the client holds.
    pub(crate) fn unlock(
        &mut self,
        group: &str,
        client_id: &str,
        queues: impl IntoIterator<Item = QueueKey>,
    ) {
        let Some(held) = self.groups.get_mut(group) else {
            return;
        };
        for queue in queues {
            if held
                .get(&queue)
                .is_some_and(|holder| holder.client_id == client_id)
            {
                held.remove(&queue);
            }
        }
        if held.is_empty() {
            self.groups.remove(group);
        }
    }

    /// Whether a group holds any live lock: then it consumes in order.
    #[must_use]
    pub(crate) fn is_held(&self, now: Timestamp, group: &str) -> bool {
        let held = self.groups.get(group).into_iter().flat_map(HashMap::values);
        held.into_iter()
            .any(|holder| now.since(holder.since) <= LOCK_MILLIS)
    }

    /// Drops expired locks, so that groups that are gone cost nothing.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        self.groups.retain(|_, held| {
            held.retain(|_, holder| now.since(holder.since) <= LOCK_MILLIS);
            !held.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn queues(ids: &[i32]) -> Vec<QueueKey> {
        ids.iter().map(|id| ("t".to_owned(), *id)).collect()
    }

    #[test]
    fn a_held_queue_is_refused_to_others_until_it_is_given_up() {
        let mut locks = QueueLocks::default();
        assert_eq!(locks.lock(at(0), "g", "c1", queues(&[0, 1])).len(), 2);
        assert_eq!(
            locks.lock(at(1), "g", "c2", queues(&[0, 1, 2])),
            queues(&[2])
        );
        locks.unlock("g", "c2", queues(&[0]));
        assert!(locks.lock(at(1), "g", "c2", queues(&[0])).is_empty());
        locks.unlock("g", "c1", queues(&[0]));
        assert_eq!(locks.lock(at(2), "g", "c2", queues(&[0])).len(), 1);
    }

    #[test]
    fn a_silent_holder_loses_its_queue_after_60_seconds_and_not_before() {
        let mut locks = QueueLocks::default();
        locks.lock(at(0), "g", "c1", queues(&[0]));
        assert!(locks.lock(at(60_000), "g", "c2", queues(&[0])).is_empty());
        assert_eq!(locks.lock(at(60_001), "g", "c2", queues(&[0])).len(), 1);
    }

    #[test]
    fn renewals_keep_a_queue_for_as_long_as_they_come() {
        let mut locks = QueueLocks::default();
        for millis in (0..180_000).step_by(20_000) {
            assert_eq!(locks.lock(at(millis), "g", "c1", queues(&[0])).len(), 1);
            assert!(
                locks
                    .lock(at(millis + 1), "g", "c2", queues(&[0]))
                    .is_empty()
            );
        }
        assert!(locks.is_held(at(200_000), "g"));
        locks.expire(at(300_000));
        assert!(!locks.is_held(at(300_000), "g"));
    }
}
