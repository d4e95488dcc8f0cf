//! A distribution over fixed bounds that any thread may add to.
//!
//! **Invariant:** adding takes two atomic adds and no lock; the count is the sum of the buckets, so a
//! page never shows one without the other. It knows no names, labels or units.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of values at most each of `N` bounds, and beyond the last.
#[derive(Debug)]
pub(crate) struct Histogram<const N: usize> {
    /// Each bound belongs to its bucket, as Prometheus' `le` says.
    bounds: &'static [u64; N],
    buckets: [AtomicU64; N],
    beyond: AtomicU64,
    sum: AtomicU64,
}

/// A histogram at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Each bound with the count of values up to it.
    pub(crate) upto: Vec<(u64, u64)>,
    /// Count of all values.
    pub(crate) count: u64,
    /// Sum of all values.
    pub(crate) sum: u64,
}

impl<const N: usize> Histogram<N> {
    /// An empty one; `bounds` rise.
    pub(crate) fn new(bounds: &'static [u64; N]) -> Self {
        Self {
            bounds,
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            beyond: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    /// Adds `value`, `times` times.
    pub(crate) fn record(&self, value: u64, times: u64) {
        let found = self.bounds.iter().position(|bound| value <= *bound);
        let bucket = found.and_then(|index| self.buckets.get(index));
        bucket
            .unwrap_or(&self.beyond)
            .fetch_add(times, Ordering::Relaxed);
        self.sum
            .fetch_add(value.wrapping_mul(times), Ordering::Relaxed);
    }

    /// What is in it now.
    #[must_use]
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut count = 0;
        let counts = self.bounds.iter().zip(&self.buckets);
        let upto = counts
            .map(|(bound, bucket)| {
                count += bucket.load(Ordering::Relaxed);
                (*bound, count)
            })
            .collect();
        Snapshot {
            upto,
            count: count + self.beyond.load(Ordering::Relaxed),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    static BOUNDS: [u64; 3] = [1, 3, 10];

    #[test]
    fn a_bound_belongs_to_its_own_bucket() {
        let histogram = Histogram::new(&BOUNDS);
        for value in [0, 1, 2, 3, 4, 10, 11] {
            histogram.record(value, 1);
        }
        let shown = histogram.snapshot();
        assert_eq!(shown.upto, [(1, 2), (3, 4), (10, 6)]);
        assert_eq!((shown.count, shown.sum), (7, 31));
    }

    proptest! {
        #[test]
        fn every_bucket_counts_what_is_not_above_its_bound(
            values in proptest::collection::vec((0u64..20, 1u64..5), 0..40)
        ) {
            let histogram = Histogram::new(&BOUNDS);
            for (value, times) in &values {
                histogram.record(*value, *times);
            }
            let shown = histogram.snapshot();
            for (bound, count) in shown.upto {
                let below = values.iter().filter(|(value, _)| *value <= bound);
                prop_assert_eq!(count, below.map(|(_, times)| times).sum::<u64>());
            }
            prop_assert_eq!(shown.count, values.iter().map(|(_, times)| times).sum::<u64>());
            let sum: u64 = values.iter().map(|(value, times)| value * times).sum();
            prop_assert_eq!(shown.sum, sum);
        }
    }
}
