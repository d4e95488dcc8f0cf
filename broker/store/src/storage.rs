//! The points at which the disk may fail, and a hook that lets tests make it fail there.
//!
//! **Invariant:** every allocation, write and sync of the store asks its hook first. Does no IO.

use std::{fmt, io, sync::Arc};

/// What the store is about to do to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskAction {
    /// Allocate blocks of the commit log, and with sync flush write zeros into them.
    AllocateLog,
    /// Write records of the commit log (sync flush only; otherwise they are stored into a mapping).
    WriteLog,
    /// Force the commit log to the disk.
    SyncLog,
    /// Force zeros of the commit log to the disk, ahead of its records (sync flush only).
    SettleLog,
    /// Write consume queue entries.
    WriteQueue,
    /// Force consume queues to the disk.
    SyncQueue,
    /// Allocate or write an index file.
    WriteIndex,
    /// Write the checkpoint.
    WriteCheckpoint,
}

/// Decides whether an action may go on; the production store has none.
pub trait FaultHook: Send + Sync {
    /// The error the action shall meet.
    fn before(&self, action: DiskAction) -> io::Result<()>;
    /// The disk has the bytes of the commit log from `from` to `to`: a power cut leaves them.
    fn log_synced(&self, _from: u64, _to: u64) {}
    /// The disk has all that was written to any file of the store.
    fn all_synced(&self) {}
}

/// An optional hook.
#[derive(Clone, Default)]
pub(crate) struct Disk(pub(crate) Option<Arc<dyn FaultHook>>);

impl Disk {
    /// Asks the hook.
    pub(crate) fn before(&self, action: DiskAction) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |hook| hook.before(action))
    }

    /// Tells the hook.
    pub(crate) fn log_synced(&self, from: u64, to: u64) {
        if let Some(hook) = &self.0 {
            hook.log_synced(from, to);
        }
    }

    /// Tells the hook.
    pub(crate) fn all_synced(&self) {
        if let Some(hook) = &self.0 {
            hook.all_synced();
        }
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Disk(hooked)"
        } else {
            "Disk"
        })
    }
}

/// Whether an error means that the disk, or a quota on it, is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error),
        Some(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT)
    ) || error.kind() == io::ErrorKind::StorageFull
}
