//! Times in which no answer came: what a stalled server looks like from outside. Pure.
//!
//! Invariant: a gap lies between two answers that follow each other, or an answer and an end of the
//! window. A generator that was itself kept from running is told apart: such a pause is counted, and
//! a gap that falls into it proves nothing about the server.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longer than this is a gap.
pub(crate) const LIMIT_NANOS: u64 = 20_000_000;
/// Gaps whose places are kept.
const KEPT: usize = 32;

/// A time without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gap {
    /// Where in the window it began, in seconds.
    pub at_seconds: f64,
    /// How long it was.
    pub millis: f64,
}

/// What is reported of a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stalls {
    /// What counts as a gap, in milliseconds.
    pub limit_millis: f64,
    /// Times without any answer, longer than the limit.
    pub gaps: u64,
    /// The longest time without an answer, in milliseconds, whether beyond the limit or not.
    pub longest_gap_millis: f64,
    /// The first gaps.
    pub first_gaps: Vec<Gap>,
    /// Requests that took longer than the limit.
    pub slow_requests: u64,
    /// Times in which this generator itself did not run, longer than the limit.
    pub own_pauses: u64,
}

/// Counts while a load runs. Times are nanoseconds of one clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    begun: u64,
    last: u64,
    count: u64,
    longest: u64,
    own_pauses: u64,
    first: Vec<Gap>,
}

impl Gaps {
    /// The window begins.
    pub(crate) fn begin(now: u64) -> Self {
        Self {
            begun: now,
            last: now,
            ..Self::default()
        }
    }

    /// An answer came, or the window ends.
    pub(crate) fn answer(&mut self, now: u64) {
        let gap = now.saturating_sub(self.last);
        self.longest = self.longest.max(gap);
        if gap > LIMIT_NANOS {
            self.count += 1;
            if self.first.len() < KEPT {
                self.first.push(Gap {
                    at_seconds: self.last.saturating_sub(self.begun) as f64 / 1e9,
                    millis: gap as f64 / 1e6,
                });
            }
        }
        self.last = now;
    }

    /// The generator was to run at `due` and ran at `now`.
    pub(crate) fn ran(&mut self, due: u64, now: u64) {
        if now.saturating_sub(due) > LIMIT_NANOS {
            self.own_pauses += 1;
        }
    }

    /// The report, with the latencies of the same window.
    pub(crate) fn stalls(&self, latency: &Histogram<u64>) -> Stalls {
        Stalls {
            limit_millis: LIMIT_NANOS as f64 / 1e6,
            gaps: self.count,
            longest_gap_millis: self.longest as f64 / 1e6,
            first_gaps: self.first.clone(),
            slow_requests: latency
                .iter_recorded()
                .filter(|step| step.value_iterated_to() > LIMIT_NANOS)
                .map(|step| step.count_since_last_iteration())
                .sum(),
            own_pauses: self.own_pauses,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn stalls(gaps: &Gaps) -> Stalls {
        gaps.stalls(&Histogram::new(3).unwrap())
    }

    #[test]
    fn a_gap_is_longer_than_the_limit_and_knows_its_place() {
        let mut gaps = Gaps::begin(1_000 * MS);
        for at in [1_010, 1_030, 1_050, 1_071, 1_080] {
            gaps.answer(at * MS);
        }
        let found = stalls(&gaps);
        assert_eq!((found.gaps, found.longest_gap_millis), (1, 21.0));
        let place = Gap {
            at_seconds: 0.05,
            millis: 21.0,
        };
        assert_eq!(found.first_gaps, [place]);
    }

    #[test]
    fn a_window_that_ends_in_silence_has_a_gap_at_its_end() {
        let mut gaps = Gaps::begin(0);
        gaps.answer(5 * MS);
        gaps.answer(500 * MS);
        assert_eq!((stalls(&gaps).gaps, gaps.longest), (1, 495 * MS));
    }

    #[test]
    fn every_gap_counts_but_only_the_first_ones_are_kept() {
        let mut gaps = Gaps::begin(0);
        for step in 1..=100 {
            gaps.answer(step * 30 * MS);
        }
        let found = stalls(&gaps);
        assert_eq!((found.gaps, found.first_gaps.len()), (100, KEPT));
    }

    #[test]
    fn a_generator_that_ran_late_says_so() {
        let mut gaps = Gaps::begin(0);
        gaps.ran(10 * MS, 29 * MS);
        gaps.ran(30 * MS, 20 * MS);
        gaps.ran(40 * MS, 61 * MS);
        assert_eq!(stalls(&gaps).own_pauses, 1);
    }

    #[test]
    fn slow_requests_are_those_beyond_the_limit() {
        let mut latency = Histogram::new_with_bounds(100, 600_000_000_000, 3).unwrap();
        for millis in [1, 19, 21, 300] {
            latency.record(millis * MS).unwrap();
        }
        assert_eq!(Gaps::begin(0).stalls(&latency).slow_requests, 2);
    }
}
