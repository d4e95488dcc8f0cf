//! A sign of life of the loop that does what happens by the clock.
//!
//! **Invariant:** time is told by a clock that never steps, so that a changed wall clock is no sign
//! of death. It takes no lock; who asks for the broker's health must not wait for who is ill.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// A loop that was silent this long is stuck: it beats ten times a second.
const SILENCE: Duration = Duration::from_secs(30);

/// When the loop last came by.
#[derive(Debug)]
pub(crate) struct Pulse {
    since: Instant,
    last_millis: AtomicU64,
}

impl Pulse {
    /// Of a loop that is about to start.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            last_millis: AtomicU64::new(0),
        }
    }

    /// The loop comes by.
    pub(crate) fn beat(&self, now: Instant) {
        let millis = now.saturating_duration_since(self.since).as_millis();
        self.last_millis.store(millis as u64, Ordering::Relaxed);
    }

    /// How long it is silent, if that is too long.
    #[must_use]
    pub(crate) fn silence(&self, now: Instant) -> Option<Duration> {
        let last = Duration::from_millis(self.last_millis.load(Ordering::Relaxed));
        let silent = now
            .saturating_duration_since(self.since)
            .saturating_sub(last);
        (silent >= SILENCE).then_some(silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_stuck_after_half_a_minute_of_silence_and_well_again_with_its_next_beat() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let pulse = Pulse::new(start);
        assert_eq!(pulse.silence(at(29)), None);
        assert_eq!(pulse.silence(at(31)), Some(Duration::from_secs(31)));
        pulse.beat(at(40));
        assert_eq!(pulse.silence(at(69)), None);
        assert_eq!(pulse.silence(at(70)), Some(SILENCE));
    }
}
