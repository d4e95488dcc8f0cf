//! How long an object that failed waits before it is tried again.
//!
//! **Invariant:** pure. Waits double from [`FIRST`] to [`LAST`] and are spread by a fifth, by the
//! object's name and the attempt, so that many objects that fail together do not come back together.

use crate::build::object::hash;
use std::time::Duration;

/// The first wait.
pub(crate) const FIRST: Duration = Duration::from_secs(5);
/// The longest wait, also of failures that a person must put right.
pub(crate) const LAST: Duration = Duration::from_mins(5);
/// The wait after somebody else was faster.
pub(crate) const CONFLICT: Duration = Duration::from_millis(500);

/// The wait after failure number `attempt`, counted from 1, of the object called `name`.
pub(crate) fn wait(attempt: u32, name: &str) -> Duration {
    let doublings = attempt.saturating_sub(1).min(10);
    let plain = FIRST.saturating_mul(1 << doublings).min(LAST);
    spread(plain, attempt, name)
}

/// `plain`, a fifth more or less.
pub(crate) fn spread(plain: Duration, attempt: u32, name: &str) -> Duration {
    let seed = hash(format!("{name}/{attempt}").as_bytes());
    let share = 0.8 + 0.4 * (f64::from((seed >> 40) as u32) / f64::from(1_u32 << 24));
    plain.mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_wait_is_within_its_bounds(attempt in 0_u32..u32::MAX, name in ".{0,20}") {
            let wait = wait(attempt, &name);
            prop_assert!(wait >= FIRST.mul_f64(0.8));
            prop_assert!(wait <= LAST.mul_f64(1.2));
        }
    }

    #[test]
    fn waits_double_and_objects_come_apart() {
        let mean = |attempt| {
            (0..100)
                .map(|n| wait(attempt, &n.to_string()))
                .sum::<Duration>()
                / 100
        };
        assert!(mean(2) > mean(1).mul_f64(1.6));
        assert!(mean(3) > mean(2).mul_f64(1.6));
        assert_ne!(wait(1, "a"), wait(1, "b"));
    }
}
