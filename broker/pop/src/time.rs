//! Time as the machine has it: the wall clock for handles and records, steady time for waiting.
//!
//! **Invariant:** nothing here waits by the wall clock. A step of the computer's clock, in either
//! direction, changes neither when a message in flight becomes visible nor when a lock ends; only
//! times of a former process (records, marks) are compared with the wall, and a wait that follows
//! from them is never longer than the invisible time they were given.

use rmq_types::{Moment, Timestamp};

/// Shortest invisible time of a pop, ms; shorter ones are lengthened to it.
pub const INVISIBLE_MIN_MILLIS: u32 = 1000;
/// Longest invisible time, ms: seven days; longer ones are cut to it.
pub const INVISIBLE_MAX_MILLIS: u32 = 7 * 24 * 3600 * 1000;

/// One point in time on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The computer's clock: goes into handles, records and answers.
    pub wall: Timestamp,
    /// A clock that never steps: decides when something is due.
    pub steady: Moment,
}

impl Now {
    /// When a wait of `span` millis that began at `began` on some wall clock is over: between now
    /// and `span` from now, whatever the clocks did in between.
    #[must_use]
    pub fn remaining(self, began: Timestamp, span: u32) -> Moment {
        let left = began.plus_millis(span.into()).since(self.wall);
        self.steady
            .plus_millis(left.clamp(0, span.into()).unsigned_abs())
    }
}

/// How long popped messages stay invisible, in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Invisible(u32);

/// A time that no message can be invisible for: the caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an invisible time of {millis} ms")]
pub struct InvisibleError {
    /// What was asked for.
    pub millis: i64,
}

impl Invisible {
    /// Of a pop: zero and less are refused, the rest is brought between the two limits.
    pub fn of_pop(millis: i64) -> Result<Self, InvisibleError> {
        if millis <= 0 {
            return Err(InvisibleError { millis });
        }
        let bounded = millis.clamp(INVISIBLE_MIN_MILLIS.into(), INVISIBLE_MAX_MILLIS.into());
        Ok(Self(bounded as u32))
    }

    /// Of a change: zero means visible at once; less is refused, more than the limit is cut.
    pub fn of_change(millis: i64) -> Result<Self, InvisibleError> {
        if millis < 0 {
            return Err(InvisibleError { millis });
        }
        Ok(Self(millis.min(INVISIBLE_MAX_MILLIS.into()) as u32))
    }

    /// Milliseconds.
    #[must_use]
    pub const fn millis(self) -> u32 {
        self.0
    }

    pub(crate) fn longest(millis: u32) -> Self {
        Self(millis.min(INVISIBLE_MAX_MILLIS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_times_of_zero_below_zero_and_a_year_have_a_stated_meaning() {
        assert!(Invisible::of_pop(0).is_err());
        assert!(Invisible::of_pop(-1).is_err());
        assert_eq!(Invisible::of_pop(1).unwrap().millis(), INVISIBLE_MIN_MILLIS);
        assert_eq!(
            Invisible::of_pop(i64::MAX).unwrap().millis(),
            INVISIBLE_MAX_MILLIS
        );
        assert_eq!(Invisible::of_change(0).unwrap().millis(), 0);
        assert!(Invisible::of_change(-1).is_err());
        assert_eq!(
            Invisible::of_change(31_536_000_000).unwrap().millis(),
            INVISIBLE_MAX_MILLIS
        );
    }

    #[test]
    fn a_wait_of_a_former_process_ends_between_now_and_its_full_span_whatever_the_clock_did() {
        let now = |wall| Now {
            wall: Timestamp::from_millis(wall),
            steady: Moment::from_millis(7),
        };
        let began = Timestamp::from_millis(1_000_000);
        assert_eq!(now(1_000_400).remaining(began, 1000).millis(), 607);
        assert_eq!(now(i64::MAX).remaining(began, 1000).millis(), 7);
        assert_eq!(now(0).remaining(began, 1000).millis(), 1007);
    }
}
