//! The version that a table carries, to tell whether a peer has the same one.

use serde::{Deserialize, Serialize};

use super::json_body;

/// `DataVersion`: equal when all three parts are equal.
///
/// A missing or `null` version reads as version 0 of time 0; Java takes the time of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DataVersion {
    /// Steps of this table; 64 bits.
    pub counter: i64,
    /// Master epoch under a controller, else 0.
    pub state_version: i64,
    /// When the last step was made, in milliseconds.
    pub timestamp: i64,
}

impl DataVersion {
    /// The version after one more change at `now_millis`, in the state of `state_version`.
    #[must_use]
    pub const fn next(self, state_version: i64, now_millis: i64) -> Self {
        Self {
            counter: self.counter.wrapping_add(1),
            state_version,
            timestamp: now_millis,
        }
    }

    /// `DataVersion.compare`: state version first, then counter, then time.
    #[must_use]
    pub fn compare(&self, other: &Self) -> std::cmp::Ordering {
        self.state_version
            .cmp(&other.state_version)
            .then(self.counter.cmp(&other.counter))
            .then(self.timestamp.cmp(&other.timestamp))
    }
}

json_body!(DataVersion);
