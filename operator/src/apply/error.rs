//! What can go wrong when the API server is asked to change something.
//!
//! **Invariant:** [`ApplyError::class`] has no catch-all: a new failure must be put into a class, and
//! only a transient one is tried again soon.

use crate::build::Kind;
use kube::Error as ApiError;

/// Who can do something about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Trying again may help: the server is busy, away or was overtaken.
    Transient,
    /// Somebody else changed the object in between: look again, then write again at once.
    Conflict,
    /// A person must change something first.
    Permanent,
}

/// Why an object was not written.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The object is there and has another owner.
    #[error(
        "{kind} {name} is there already and belongs to {owner}: rename the cluster or remove it"
    )]
    NotOurs {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// Who has it.
        owner: String,
    },
    /// The server did not answer in time.
    #[error("{kind} {name}: the API server did not answer within {seconds} s")]
    Deadline {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The server refused or could not be reached.
    #[error("{kind} {name}: {}", told(source))]
    Api {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// What it said.
        source: ApiError,
    },
    /// A status was not written.
    #[error("status of {kind} {name}: {}", told(source))]
    Status {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What the server said.
        source: ApiError,
    },
    /// The server did not take a status in time.
    #[error("status of {kind} {name}: the API server did not answer within {seconds} s")]
    StatusDeadline {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// How long was waited.
        seconds: u64,
    },
}

impl ApplyError {
    /// Who can do something about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::NotOurs { .. } => Class::Permanent,
            Self::Deadline { .. } | Self::StatusDeadline { .. } => Class::Transient,
            Self::Api { source, .. } | Self::Status { source, .. } => class_of(source),
        }
    }

    /// A word for metrics.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::NotOurs { .. } => "not_ours",
            Self::Deadline { .. } => "deadline",
            Self::Api { .. } => "api",
            Self::Status { .. } => "status",
            Self::StatusDeadline { .. } => "status_deadline",
        }
    }
}

/// Who can do something about an answer of the API server.
pub(super) fn class_of(error: &ApiError) -> Class {
    match error {
        ApiError::Api(status) => match status.code {
            409 => Class::Conflict,
            // Being deleted, or its namespace is; the next look finds it gone.
            404 | 410 | 408 | 425 | 429 | 500..=599 => Class::Transient,
            _ => Class::Permanent,
        },
        // Whatever else fails on the way to the server or back.
        _ => Class::Transient,
    }
}

fn told(error: &ApiError) -> String {
    match error {
        ApiError::Api(status) => format!("{} (code {})", status.message, status.code),
        other => other.to_string(),
    }
}
