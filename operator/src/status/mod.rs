//! What is written into the status: a function of what is there and what shall be.
//!
//! **Invariant:** a cluster at rest gives the same status again and again: figures are rounded, lists
//! are sorted, and times are those of transitions.

/// A count that people read, rounded up to two digits so that it does not churn.
#[must_use]
pub const fn rounded(count: i64) -> i64 {
    let mut unit = 1;
    while count / unit >= 100 {
        unit *= 10;
    }
    (count + unit - 1) / unit * unit
}
