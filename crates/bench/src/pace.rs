//! When requests are due in an open loop. Pure: time is an argument.
//!
//! Invariant: the n-th request is due at n / rate, whenever it is really sent; latency counts from
//! there, so a stalled server cannot hide the requests it delayed (no coordinated omission).

/// A constant rate from nanosecond 0 on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    nanos_each: f64,
    issued: u64,
}

impl Schedule {
    pub(crate) fn new(per_second: f64) -> Self {
        Self {
            nanos_each: 1e9 / per_second.max(1e-3),
            issued: 0,
        }
    }

    /// When the next request is due.
    pub(crate) fn next_at(&self) -> u64 {
        (self.issued as f64 * self.nanos_each) as u64
    }

    /// Takes the next request if it is due; gives the time it was due at.
    pub(crate) fn take(&mut self, now: u64) -> Option<u64> {
        let at = self.next_at();
        if at > now {
            return None;
        }
        self.issued += 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_evenly_and_late_ones_keep_their_time() {
        let mut schedule = Schedule::new(1_000.0);
        assert_eq!(schedule.take(0), Some(0));
        assert_eq!(schedule.take(0), None);
        assert_eq!(schedule.next_at(), 1_000_000);
        assert_eq!(schedule.take(5_000_000), Some(1_000_000));
        assert_eq!(schedule.take(5_000_000), Some(2_000_000));
    }
}
