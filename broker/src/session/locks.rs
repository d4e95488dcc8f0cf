//! Queue locks of ordered consumers (`RebalanceLockManager`): one client holds a queue of a group
//! for 60 seconds at a time.

use std::collections::HashMap;

use rmq_types::Timestamp;

/// Most locks of all groups together; above, no queue that nobody holds is given out.
const LOCKS_MAX: usize = 100_000;

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
    /// Locks of all groups.
    count: usize,
}

impl QueueLocks {
    /// Locks or renews each queue that is free, expired or already held by the client; tells of each
    /// whether it did.
    pub(crate) fn lock(
        &mut self,
        now: Timestamp,
        group: &str,
        client_id: &str,
        queues: impl IntoIterator<Item = QueueKey>,
    ) -> Vec<bool> {
        let Self { groups, count } = self;
        let held = groups.entry(group.to_owned()).or_default();
        let mut take = |queue: QueueKey| {
            let holder = Holder {
                client_id: client_id.to_owned(),
                since: now,
            };
            match held.get_mut(&queue) {
                Some(old) => {
                    let taken = old.client_id != client_id && now.since(old.since) <= LOCK_MILLIS;
                    if !taken {
                        *old = holder;
                    }
                    !taken
                }
                None if *count >= LOCKS_MAX => false,
                None => {
                    held.insert(queue, holder);
                    *count += 1;
                    true
                }
            }
        };
        let won = queues.into_iter().map(&mut take).collect();
        if held.is_empty() {
            groups.remove(group);
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
                self.count -= 1;
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
        self.count = self.groups.values().map(HashMap::len).sum();
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

    /// How many of these queues the client gets.
    fn won(locks: &mut QueueLocks, now: i64, client: &str, ids: &[i32]) -> usize {
        let won = locks.lock(at(now), "g", client, queues(ids));
        won.into_iter().filter(|won| *won).count()
    }

    #[test]
    fn a_held_queue_is_refused_to_others_until_it_is_given_up() {
        let mut locks = QueueLocks::default();
        assert_eq!(won(&mut locks, 0, "c1", &[0, 1]), 2);
        let second = locks.lock(at(1), "g", "c2", queues(&[0, 1, 2]));
        assert_eq!(second, [false, false, true]);
        locks.unlock("g", "c2", queues(&[0]));
        assert_eq!(won(&mut locks, 1, "c2", &[0]), 0);
        locks.unlock("g", "c1", queues(&[0]));
        assert_eq!(won(&mut locks, 2, "c2", &[0]), 1);
    }

    #[test]
    fn a_silent_holder_loses_its_queue_after_60_seconds_and_not_before() {
        let mut locks = QueueLocks::default();
        assert_eq!(won(&mut locks, 0, "c1", &[0]), 1);
        assert_eq!(won(&mut locks, 60_000, "c2", &[0]), 0);
        assert_eq!(won(&mut locks, 60_001, "c2", &[0]), 1);
    }

    #[test]
    fn renewals_keep_a_queue_for_as_long_as_they_come() {
        let mut locks = QueueLocks::default();
        for millis in (0..180_000).step_by(20_000) {
            assert_eq!(won(&mut locks, millis, "c1", &[0]), 1);
            assert_eq!(won(&mut locks, millis + 1, "c2", &[0]), 0);
        }
        assert!(locks.is_held(at(200_000), "g"));
        locks.expire(at(300_000));
        assert!(!locks.is_held(at(300_000), "g"));
    }

    #[test]
    fn locks_are_bounded_and_those_given_up_or_expired_make_room() {
        let mut locks = QueueLocks::default();
        let all: Vec<i32> = (0..LOCKS_MAX as i32).collect();
        assert_eq!(won(&mut locks, 0, "c1", &all), LOCKS_MAX);
        assert_eq!(won(&mut locks, 0, "c2", &[-1]), 0);
        assert_eq!(won(&mut locks, 1, "c1", &[0]), 1, "a renewal takes no room");
        locks.unlock("g", "c1", queues(&[0]));
        assert_eq!(won(&mut locks, 1, "c2", &[-1]), 1);
        assert_eq!(won(&mut locks, 1, "c2", &[-2]), 0);
        locks.expire(at(60_001));
        assert_eq!(won(&mut locks, 60_001, "c2", &[-2]), 1);
    }
}
