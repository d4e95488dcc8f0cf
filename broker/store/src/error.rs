//! What can go wrong, one enum per operation.
//!
//! **Invariant:** [`AppendError::class`] tells the caller's fault from a state that passes and from a
//! store that is broken; corruption is never retried.

use std::{io, path::PathBuf};

use rmq_types::CommitLogOffset;

/// Why a store does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the folder.
    #[error("the store folder {0} is in use by another process")]
    InUse(PathBuf),
    /// A log file does not have the configured size.
    #[error("log file {path} has {found} bytes, mappedFileSizeCommitLog is {configured}")]
    SegmentSize {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// The size all files must have.
        configured: u64,
    },
    /// Log files do not follow each other.
    #[error("log file {path} starts at {found}, the one before ends at {expected}")]
    Gap {
        /// The file.
        path: PathBuf,
        /// Where it starts.
        found: u64,
        /// Where it should start.
        expected: u64,
    },
    /// An option that cannot work.
    #[error("option {name}: {reason}")]
    Option {
        /// Its name.
        name: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// The file system refused.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The same message will fail again.
    Caller,
    /// It may work later.
    Transient,
    /// The store is broken and must be opened again.
    Broken,
}

/// Why a message was not appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The topic's name does not fit a record or folder.
    #[error("topic name is not storable: {0}")]
    Topic(rmq_types::NameError),
    /// Queue ids end at 65,535.
    #[error("queue id {0} is out of range")]
    QueueId(u32),
    /// The body is longer than `maxMessageSize`.
    #[error("message body of {bytes} bytes, at most {max} are taken")]
    BodyTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The properties text is longer than 32,767 bytes.
    #[error("message properties of {bytes} bytes, at most {max} are taken")]
    PropertiesTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The properties text ends in a zero byte, which would look like a torn write.
    #[error("message properties end in a zero byte")]
    PropertiesTorn,
    /// The record does not fit a log file.
    #[error("record of {bytes} bytes does not fit a log file of {segment}")]
    RecordTooLong {
        /// Its length.
        bytes: usize,
        /// The file's.
        segment: u64,
    },
    /// The topic is being deleted at this moment.
    #[error("the topic is being deleted")]
    TopicDeleted,
    /// The disk is full, or fuller than allowed.
    #[error("the store's disk is full")]
    DiskFull,
    /// The file system failed to give room for another reason.
    #[error("the store cannot allocate log space: {0}")]
    Allocate(String),
    /// A flush failed earlier: nothing is taken until the store is opened again.
    #[error("the store is broken: {0}")]
    Poisoned(String),
    /// The store was shut down.
    #[error("the store is shut down")]
    ShutDown,
}

impl AppendError {
    /// Whose fault it is.
    #[must_use]
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::Topic(_)
            | Self::QueueId(_)
            | Self::BodyTooLong { .. }
            | Self::PropertiesTooLong { .. }
            | Self::PropertiesTorn
            | Self::RecordTooLong { .. } => ErrorClass::Caller,
            Self::TopicDeleted | Self::DiskFull | Self::Allocate(_) | Self::ShutDown => {
                ErrorClass::Transient
            }
            Self::Poisoned(_) => ErrorClass::Broken,
        }
    }

    /// Whether the same message may be taken later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self.class(), ErrorClass::Transient)
    }
}

/// Why there is no record at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadAtError {
    /// Below the first or above the last byte.
    #[error("no record at {0}: outside the log")]
    Outside(CommitLogOffset),
    /// The bytes there are no start of a record.
    #[error("no record starts at {0}")]
    NoRecord(CommitLogOffset),
}
