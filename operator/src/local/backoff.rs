//! How long a crashed process waits before it is started again: as a kubelet does it.
//!
//! **Invariant:** the first restart is at once; then 10 s, doubled up to the longest wait; ten
//! minutes without a crash forget the past. Pure: times come in, delays go out.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(10);
/// A process that ran this long is sound again.
const FORGET_AFTER: Duration = Duration::from_mins(10);

/// The crashes of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    longest: Duration,
    crashes: u32,
}

impl Backoff {
    /// No crash yet; no wait will be longer than `longest`.
    pub(crate) const fn new(longest: Duration) -> Self {
        Self {
            longest,
            crashes: 0,
        }
    }

    /// The process ended after having run for `ran`: how long to wait now.
    pub(crate) fn crashed(&mut self, ran: Duration) -> Duration {
        if ran >= FORGET_AFTER {
            self.crashes = 0;
        }
        let delay = match self.crashes {
            0 => Duration::ZERO,
            past => FIRST
                .saturating_mul(2_u32.saturating_pow(past - 1))
                .min(self.longest),
        };
        self.crashes = self.crashes.saturating_add(1);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_mins(5);

    #[test]
    fn the_first_restart_is_at_once_and_the_next_ones_wait_up_to_five_minutes() {
        let mut backoff = Backoff::new(LONGEST);
        let waits: Vec<u64> = (0..8)
            .map(|_| backoff.crashed(Duration::from_secs(1)).as_secs())
            .collect();
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn no_wait_is_longer_than_asked_for_however_many_crashes_there_were() {
        let mut backoff = Backoff::new(Duration::from_secs(15));
        let waits: Vec<u64> = (0..100)
            .map(|_| backoff.crashed(Duration::ZERO).as_secs())
            .collect();
        assert_eq!(waits.get(..4), Some([0, 10, 15, 15].as_slice()));
        assert_eq!(waits.last(), Some(&15));
        let mut at_once = Backoff::new(Duration::ZERO);
        assert!((0..5).all(|_| at_once.crashed(Duration::ZERO).is_zero()));
    }

    #[test]
    fn a_long_sound_run_forgets_past_crashes() {
        let mut backoff = Backoff::new(LONGEST);
        for _ in 0..5 {
            backoff.crashed(Duration::ZERO);
        }
        assert_eq!(backoff.crashed(FORGET_AFTER), Duration::ZERO);
        assert_eq!(backoff.crashed(Duration::ZERO), FIRST);
    }
}
