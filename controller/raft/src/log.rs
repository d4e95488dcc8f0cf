//! Log and vote for openraft.
//!
//! **Invariant:** an entry is on the disk when `append` returns and before its callback is told; so
//! is a vote. Writes come one after the other: openraft awaits each.

use std::{fmt::Debug, ops::RangeBounds, sync::Arc};

use openraft::{
    LogState, OptionalSend, RaftLogReader, StorageIOError,
    storage::{LogFlushed, RaftLogStorage},
};

use crate::{
    disk::{Disk, DiskError, PURGED, VOTE, encode},
    types::{Entry, LogId, NodeId, StorageError, Types, Vote},
};

/// The log of a controller; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    disk: Arc<Disk>,
}

impl Log {
    pub(crate) fn new(disk: Arc<Disk>) -> Self {
        Self { disk }
    }
}

/// Runs a task of the disk off the threads that serve.
pub(crate) async fn on_disk<T: Send + 'static>(
    disk: &Arc<Disk>,
    task: impl FnOnce(&Disk) -> Result<T, DiskError> + Send + 'static,
    error: impl FnOnce(&(dyn std::error::Error + 'static)) -> StorageIOError<NodeId>,
) -> Result<T, StorageError> {
    let disk = Arc::clone(disk);
    match tokio::task::spawn_blocking(move || task(&disk)).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failed)) => Err(error(&failed).into()),
        Err(gone) => Err(error(&gone).into()),
    }
}

/// The last entry that is known, whether it is still there or was purged.
pub(crate) fn last_log_id(disk: &Disk) -> Result<Option<LogId>, DiskError> {
    let last: Option<Entry> = disk.last()?;
    match last {
        Some(entry) => Ok(Some(entry.log_id)),
        None => disk.get(PURGED),
    }
}

fn any(error: &(dyn std::error::Error + 'static)) -> openraft::AnyError {
    openraft::AnyError::error(error.to_string())
}

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, StorageError> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        let read = move |disk: &Disk| disk.entries(bounds, false);
        on_disk(&self.disk, read, |e| StorageIOError::read_logs(any(e))).await
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, StorageError> {
        let read = move |disk: &Disk| disk.entries(start..end, true);
        on_disk(&self.disk, read, |e| StorageIOError::read_logs(any(e))).await
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let read = |disk: &Disk| {
            Ok(LogState {
                last_purged_log_id: disk.get(PURGED)?,
                last_log_id: last_log_id(disk)?,
            })
        };
        on_disk(&self.disk, read, |e| StorageIOError::read_logs(any(e))).await
    }

    async fn get_log_reader(&mut self) -> Self::LogReader {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let vote = *vote;
        let write = move |disk: &Disk| disk.put(VOTE, &vote);
        on_disk(&self.disk, write, |e| StorageIOError::write_vote(any(e))).await
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        let read = |disk: &Disk| disk.get(VOTE);
        on_disk(&self.disk, read, |e| StorageIOError::read_vote(any(e))).await
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<Types>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let encoded: Result<Vec<_>, DiskError> = entries
            .into_iter()
            .map(|entry| Ok((entry.log_id.index, encode("an entry", &entry)?)))
            .collect();
        let write = move |disk: &Disk| disk.append(&encoded?);
        let written = on_disk(&self.disk, write, |e| StorageIOError::write_logs(any(e))).await;
        if let Err(error) = written {
            callback.log_io_completed(Err(std::io::Error::other(error.to_string())));
            return Err(error);
        }
        callback.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let write = move |disk: &Disk| disk.remove(log_id.index.., None);
        on_disk(&self.disk, write, |e| StorageIOError::write_logs(any(e))).await
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let write = move |disk: &Disk| {
            let purged = encode(PURGED, &log_id)?;
            disk.remove(..=log_id.index, Some((PURGED, purged)))
        };
        on_disk(&self.disk, write, |e| StorageIOError::write_logs(any(e))).await
    }
}
