//! The replication stream between a master and its replicas (Java's auto-switch HA), and the epoch
//! file beside the commit log.
//!
//! All numbers are big endian. A replica speaks first. Java origin: `AutoSwitchHAConnection`,
//! `AutoSwitchHAClient`, `EpochFileCache`.
//!
//! **Invariant:** what is taken from a buffer is whole and inside its bounds; a peer's numbers are
//! checked before they are used as lengths; nothing panics. Which frame may come when is decided by
//! the replication machines, not here.

mod epoch_file;
mod master;
mod replica;
#[cfg(test)]
mod tests;

pub use epoch_file::{EPOCH_FILE_BYTES_MAX, EpochFileError, read_epoch_file, write_epoch_file};
pub use master::{
    HANDSHAKE_HEAD_BYTES, MasterFrame, TRANSFER_BODY_BYTES_MAX, TRANSFER_HEAD_BYTES, TransferHead,
    take_from_master, write_handshake,
};
pub use replica::{
    HELLO_HEAD_BYTES, Hello, REPLICA_HANDSHAKE_BYTES, REPLICA_TRANSFER_BYTES, ReplicaFrame,
    take_from_replica,
};

/// Entries of an epoch list, in a handshake or in the file.
pub const EPOCHS_MAX: usize = 65_536;

/// Java's `HAConnectionState`, the first word of every frame.
pub(crate) const STATE_HANDSHAKE: i32 = 1;
pub(crate) const STATE_TRANSFER: i32 = 2;

/// The beginning of an epoch in the commit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    /// The epoch.
    pub epoch: i32,
    /// The first byte of it.
    pub start_offset: i64,
}

/// What a buffer begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<T> {
    /// Not enough bytes yet: at least this many in all.
    Incomplete {
        /// Bytes from the beginning of the frame.
        needed: usize,
    },
    /// A frame, and how many bytes it has.
    Frame(T, usize),
}

/// Why a stream cannot go on: the peer is no replica or master, or one that errs. Close it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HaError {
    /// The first word is no state that may be sent.
    #[error("{0:#010x} is no state of a replication frame")]
    State(i32),
    /// A number is outside of its range.
    #[error("{field} is {value}")]
    Range {
        /// The field.
        field: &'static str,
        /// What stood there.
        value: i64,
    },
    /// The epochs of a handshake do not rise, or their offsets fall.
    #[error("epoch {epoch} at {start_offset} follows epoch {after}")]
    Epochs {
        /// The epoch.
        epoch: i32,
        /// Its start.
        start_offset: i64,
        /// The epoch before it.
        after: i32,
    },
    /// An introduction whose group is no name.
    #[error("the group of an introduction is no name")]
    Group,
}

pub(crate) fn i16_at(buf: &[u8], at: usize) -> Option<i16> {
    let bytes = buf.get(at..at.checked_add(2)?)?;
    bytes.try_into().ok().map(i16::from_be_bytes)
}

pub(crate) fn i32_at(buf: &[u8], at: usize) -> Option<i32> {
    let bytes = buf.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(i32::from_be_bytes)
}

pub(crate) fn i64_at(buf: &[u8], at: usize) -> Option<i64> {
    let bytes = buf.get(at..at.checked_add(8)?)?;
    bytes.try_into().ok().map(i64::from_be_bytes)
}

/// A number that may not be below `least`.
pub(crate) fn at_least(field: &'static str, value: i64, least: i64) -> Result<i64, HaError> {
    if value < least {
        return Err(HaError::Range { field, value });
    }
    Ok(value)
}

/// Epochs rise and their starts do not fall.
pub(crate) fn check_epochs(entries: &[EpochStart]) -> Result<(), HaError> {
    let mut before: Option<EpochStart> = None;
    for entry in entries {
        at_least("the start of an epoch", entry.start_offset, 0)?;
        if let Some(before) = before
            && (entry.epoch <= before.epoch || entry.start_offset < before.start_offset)
        {
            return Err(HaError::Epochs {
                epoch: entry.epoch,
                start_offset: entry.start_offset,
                after: before.epoch,
            });
        }
        before = Some(*entry);
    }
    Ok(())
}
