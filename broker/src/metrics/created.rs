//! How long making a topic or a group takes (`rocketmq_topic_create_execution_time` and its twin).
//!
//! **Invariant:** only what a tool asked for counts, not what the broker makes by itself.

use std::time::{Duration, Instant};

use super::histogram::{Histogram, Snapshot};

/// Bounds of the buckets, in milliseconds, as in Java.
static BOUNDS: [u64; 5] = [10, 100, 1000, 3000, 5000];

/// Times of one kind of thing, by success and by whether it is the system's.
#[derive(Debug)]
pub(crate) struct CreateTimes {
    // [failed, succeeded], each [of users, of the system].
    times: [[Histogram<5>; 2]; 2],
}

impl CreateTimes {
    /// Nothing yet.
    #[must_use]
    pub(crate) fn new() -> Self {
        let pair = || [Histogram::new(&BOUNDS), Histogram::new(&BOUNDS)];
        Self {
            times: [pair(), pair()],
        }
    }

    /// Runs `work` and adds how long it took and whether it went well.
    pub(crate) fn measure<T, E>(
        &self,
        is_system: bool,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let since = Instant::now();
        let outcome = work();
        self.record(outcome.is_ok(), is_system, since.elapsed());
        outcome
    }

    fn record(&self, done: bool, is_system: bool, elapsed: Duration) {
        self.times[usize::from(done)][usize::from(is_system)].record(elapsed.as_millis() as u64, 1);
    }

    /// Each kind that happened: whether it was done, whether it was the system's, milliseconds.
    pub(crate) fn views(&self) -> impl Iterator<Item = (bool, bool, Snapshot)> {
        let kinds = [(true, false), (true, true), (false, false), (false, true)];
        kinds
            .into_iter()
            .map(|(done, system)| {
                let times = &self.times[usize::from(done)][usize::from(system)];
                (done, system, times.snapshot())
            })
            .filter(|(_, _, times)| times.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_apart_and_what_never_happened_is_not_shown() {
        let times = CreateTimes::new();
        times.record(true, false, Duration::from_millis(11));
        times.record(true, false, Duration::from_millis(10));
        assert!(times.measure(true, || Err::<(), _>("refused")).is_err());
        let views: Vec<_> = times.views().collect();
        assert_eq!(views.len(), 2);
        let (done, system, values) = &views[0];
        assert!(*done && !*system);
        assert_eq!(values.upto[..2], [(10, 1), (100, 2)]);
        assert!(matches!(&views[1], (false, true, values) if values.count == 1));
    }
}
