//! The state as a snapshot: a version and the state, for any serde format.
//!
//! **Invariant:** a snapshot of another version, or one whose state breaks a rule, is refused, not
//! mended.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::state::State;

/// The version that this program writes.
pub const SNAPSHOT_VERSION: u32 = 1;

/// A snapshot to be written.
#[derive(Debug, Serialize)]
pub struct Snapshot<'a> {
    version: u32,
    state: &'a State,
}

impl<'a> Snapshot<'a> {
    /// Of `state`.
    #[must_use]
    pub fn of(state: &'a State) -> Self {
        Self {
            version: SNAPSHOT_VERSION,
            state,
        }
    }
}

/// A snapshot that was read, not yet believed.
#[derive(Debug, Deserialize)]
pub struct StoredSnapshot {
    version: u32,
    state: State,
}

/// Why a snapshot is not taken. Both are corruption or a newer program's data: never skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// Written by another version of this program.
    Version(u32),
    /// The state breaks a rule.
    Broken(String),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "the snapshot has version {version}, this program reads {SNAPSHOT_VERSION}"
            ),
            Self::Broken(what) => write!(f, "the snapshot's state is broken: {what}"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl StoredSnapshot {
    /// The state, if it may be believed.
    pub fn into_state(self) -> Result<State, SnapshotError> {
        if self.version != SNAPSHOT_VERSION {
            return Err(SnapshotError::Version(self.version));
        }
        self.state.check().map_err(SnapshotError::Broken)?;
        Ok(self.state)
    }
}
