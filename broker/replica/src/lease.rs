//! The right to take writes: a lease that the controllers confirm, and a fence that somebody sets.
//!
//! **Invariant:** a lease ends a fixed time after the *sending* of the heartbeat that was confirmed,
//! so it ends before anybody can hold its master for lost. After a fence writes are taken only with
//! a lease whose heartbeat was sent after the fence ended: a controller that was told of the fence
//! may have elected somebody meanwhile.

use std::collections::VecDeque;

use rmq_types::Moment;

/// Heartbeats whose answers are awaited; older ones are given up.
const AWAITED_MAX: usize = 64;
/// Longest fence.
pub const FENCE_MILLIS_MAX: u64 = 10_000;
/// Bytes of an operation's name that are kept.
const OPERATION_BYTES_MAX: usize = 128;

/// Why a fence is not set or lifted. The caller's fault, or another operation is at work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FenceError {
    /// Another operation holds the fence.
    #[error("writes are fenced by operation {0}")]
    Held(String),
    /// Longer than [`FENCE_MILLIS_MAX`].
    #[error("a fence lasts at most {FENCE_MILLIS_MAX} ms, {0} were asked for")]
    TooLong(u64),
    /// The caller speaks of another epoch.
    #[error("the master epoch is another one")]
    OtherEpoch,
    /// No name, or one that is too long.
    #[error("the operation has no fitting name")]
    Operation,
}

#[derive(Clone, Debug)]
struct Fence {
    operation: String,
    until: Moment,
}

/// The right of one master in one epoch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lease {
    awaited: VecDeque<(u64, Moment)>,
    /// The sending of the newest confirmed heartbeat, and the end of its lease.
    confirmed: Option<(Moment, Moment)>,
    fence: Option<Fence>,
    /// When the last fence ended or will end.
    fenced_until: Option<Moment>,
}

impl Lease {
    /// The heartbeat of that number leaves at `now`.
    pub(crate) fn sent(&mut self, now: Moment, sequence: u64) {
        if self.awaited.len() >= AWAITED_MAX {
            self.awaited.pop_front();
        }
        self.awaited.push_back((sequence, now));
    }

    /// The heartbeat of that number was confirmed with a lease.
    pub(crate) fn granted(&mut self, sequence: u64, lease_millis: u64) {
        let at = self
            .awaited
            .iter()
            .position(|(number, _)| *number == sequence);
        let Some((_, sent)) = at.and_then(|at| self.awaited.remove(at)) else {
            return;
        };
        self.awaited.retain(|(number, _)| *number > sequence);
        if self.confirmed.is_none_or(|(newest, _)| sent >= newest) {
            self.confirmed = Some((sent, sent.plus_millis(lease_millis)));
        }
    }

    /// Whether a lease lasts.
    pub(crate) fn holds(&self, now: Moment) -> bool {
        self.confirmed.is_some_and(|(_, until)| now < until)
    }

    /// When the lease ends.
    pub(crate) fn until(&self) -> Option<Moment> {
        self.confirmed.map(|(_, until)| until)
    }

    /// Whether a fence is up.
    pub(crate) fn fenced(&self, now: Moment) -> bool {
        self.fence.as_ref().is_some_and(|fence| now < fence.until)
    }

    /// Whether writes may be taken.
    pub(crate) fn writes(&self, now: Moment) -> bool {
        let armed = self
            .fenced_until
            .is_none_or(|end| self.confirmed.is_some_and(|(sent, _)| sent > end));
        self.holds(now) && !self.fenced(now) && armed
    }

    pub(crate) fn fence(
        &mut self,
        now: Moment,
        operation: &str,
        millis: u64,
    ) -> Result<(), FenceError> {
        if operation.is_empty() || operation.len() > OPERATION_BYTES_MAX {
            return Err(FenceError::Operation);
        }
        if millis > FENCE_MILLIS_MAX {
            return Err(FenceError::TooLong(millis));
        }
        let held = self.fence.as_ref();
        if let Some(held) = held.filter(|fence| now < fence.until && fence.operation != operation) {
            return Err(FenceError::Held(held.operation.clone()));
        }
        let until = now.plus_millis(millis);
        if millis == 0 && !self.fenced(now) {
            return Ok(());
        }
        self.fence = Some(Fence {
            operation: operation.to_owned(),
            until,
        });
        self.fenced_until = Some(until);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    #[test]
    fn a_lease_counts_from_the_sending_and_only_grows() {
        let mut lease = Lease::default();
        assert!(!lease.writes(at(0)));
        lease.sent(at(100), 1);
        lease.sent(at(600), 2);
        lease.granted(2, 3000);
        lease.granted(1, 3000);
        assert_eq!(lease.until(), Some(at(3600)));
        assert!(lease.writes(at(3599)) && !lease.writes(at(3600)));
        lease.granted(99, 3000);
        assert_eq!(lease.until(), Some(at(3600)));
    }

    #[test]
    fn after_a_fence_an_older_lease_is_not_enough() {
        let mut lease = Lease::default();
        lease.sent(at(0), 1);
        lease.granted(1, 3000);
        lease.fence(at(100), "op", 1000).unwrap();
        assert!(lease.fenced(at(1099)) && !lease.writes(at(1099)));
        lease.sent(at(1000), 2);
        lease.granted(2, 3000);
        assert!(!lease.fenced(at(1100)) && !lease.writes(at(1200)));
        lease.sent(at(1201), 3);
        lease.granted(3, 3000);
        assert!(lease.writes(at(1202)));
    }

    #[test]
    fn a_fence_is_renewed_and_lifted_by_its_own_operation_only() {
        let mut lease = Lease::default();
        lease.fence(at(0), "a", 1000).unwrap();
        assert_eq!(
            lease.fence(at(1), "b", 1000),
            Err(FenceError::Held("a".to_owned()))
        );
        lease.fence(at(500), "a", 1000).unwrap();
        assert!(lease.fenced(at(1400)));
        lease.fence(at(600), "a", 0).unwrap();
        assert!(!lease.fenced(at(600)));
        lease.fence(at(700), "b", 1000).unwrap();
        assert_eq!(
            lease.fence(at(701), "b", 10_001),
            Err(FenceError::TooLong(10_001))
        );
        assert_eq!(lease.fence(at(701), "", 1), Err(FenceError::Operation));
    }

    #[test]
    fn answers_that_never_come_cost_no_memory() {
        let mut lease = Lease::default();
        for now in 0..10_000 {
            lease.sent(at(now), now);
        }
        assert_eq!(lease.awaited.len(), AWAITED_MAX);
    }
}
