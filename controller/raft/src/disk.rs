//! The redb file of a controller: log, vote, snapshot, and whose file it is.
//!
//! | table | key | value |
//! |---|---|---|
//! | `log` | index | entry as JSON |
//! | `meta` | `owner`, `vote`, `purged`, `standing`, `snapshot-meta`, `snapshot` | JSON |
//!
//! **Invariant:** every write is one transaction that is on the disk when the call returns. What
//! cannot be read back is corruption and stops the controller; nothing is skipped.

use std::{
    ops::{Bound, RangeBounds},
    path::{Path, PathBuf},
};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Serialize, de::DeserializeOwned};

const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// Entries of one read stay below this, though at least one is given.
const READ_BYTES_MAX: usize = 1024 * 1024;
/// Pages that redb may keep in memory.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

pub(crate) const OWNER: &str = "owner";
pub(crate) const VOTE: &str = "vote";
pub(crate) const PURGED: &str = "purged";
pub(crate) const STANDING: &str = "standing";
pub(crate) const SNAPSHOT_META: &str = "snapshot-meta";
pub(crate) const SNAPSHOT: &str = "snapshot";

/// Why the file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The file cannot be opened: rights, another process, or it is no such file.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What redb said.
        source: Box<redb::Error>,
    },
    /// Reading or writing failed.
    #[error("the controller's file: {0}")]
    Io(#[source] Box<redb::Error>),
    /// What stands there is not what was written: corruption, or a newer program's.
    #[error("{what} in the controller's file cannot be read: {source}")]
    Decode {
        /// The key, or the index of an entry.
        what: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A value cannot be written: a defect.
    #[error("{what} cannot be written: {source}")]
    Encode {
        /// The key.
        what: String,
        /// What is wrong.
        source: serde_json::Error,
    },
}

fn io(source: impl Into<redb::Error>) -> DiskError {
    DiskError::Io(Box::new(source.into()))
}

/// The open file.
#[derive(Debug)]
pub(crate) struct Disk {
    db: Database,
}

impl Disk {
    /// Opens or makes the file.
    pub(crate) fn open(path: &Path) -> Result<Self, DiskError> {
        let failed = |source: redb::Error| DiskError::Open {
            path: path.to_owned(),
            source: Box::new(source),
        };
        let db = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create(path)
            .map_err(|error| failed(error.into()))?;
        let disk = Self { db };
        // Tables exist before anybody reads.
        let write = disk.db.begin_write().map_err(|e| failed(e.into()))?;
        write.open_table(LOG).map_err(|e| failed(e.into()))?;
        write.open_table(META).map_err(|e| failed(e.into()))?;
        write.commit().map_err(|e| failed(e.into()))?;
        Ok(disk)
    }

    /// The raw value of a key.
    pub(crate) fn bytes(&self, key: &str) -> Result<Option<Vec<u8>>, DiskError> {
        let read = self.db.begin_read().map_err(io)?;
        let table = read.open_table(META).map_err(io)?;
        let value = table.get(key).map_err(io)?;
        Ok(value.map(|value| value.value().to_vec()))
    }

    /// The value of a key.
    pub(crate) fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, DiskError> {
        let Some(bytes) = self.bytes(key)? else {
            return Ok(None);
        };
        decode(key, &bytes).map(Some)
    }

    /// Sets a key.
    pub(crate) fn put(&self, key: &str, value: &impl Serialize) -> Result<(), DiskError> {
        self.put_all(&[(key, encode(key, value)?)])
    }

    /// Sets several keys together.
    pub(crate) fn put_all(&self, values: &[(&str, Vec<u8>)]) -> Result<(), DiskError> {
        let write = self.db.begin_write().map_err(io)?;
        {
            let mut table = write.open_table(META).map_err(io)?;
            for (key, value) in values {
                table.insert(*key, value.as_slice()).map_err(io)?;
            }
        }
        write.commit().map_err(io)
    }

    /// Appends entries.
    pub(crate) fn append(&self, entries: &[(u64, Vec<u8>)]) -> Result<(), DiskError> {
        let write = self.db.begin_write().map_err(io)?;
        {
            let mut table = write.open_table(LOG).map_err(io)?;
            for (index, entry) in entries {
                table.insert(index, entry.as_slice()).map_err(io)?;
            }
        }
        write.commit().map_err(io)
    }

    /// Removes entries, and sets a key in the same transaction.
    pub(crate) fn remove(
        &self,
        range: impl RangeBounds<u64>,
        set: Option<(&str, Vec<u8>)>,
    ) -> Result<(), DiskError> {
        let write = self.db.begin_write().map_err(io)?;
        {
            let mut log = write.open_table(LOG).map_err(io)?;
            let bounds = (cloned(range.start_bound()), cloned(range.end_bound()));
            log.retain_in(bounds, |_, _| false).map_err(io)?;
            if let Some((key, value)) = set {
                let mut meta = write.open_table(META).map_err(io)?;
                meta.insert(key, value.as_slice()).map_err(io)?;
            }
        }
        write.commit().map_err(io)
    }

    /// Entries from the beginning of a range; at least the first one, then as many as
    /// [`READ_BYTES_MAX`] holds if `limited`.
    pub(crate) fn entries<T: DeserializeOwned>(
        &self,
        range: impl RangeBounds<u64>,
        limited: bool,
    ) -> Result<Vec<T>, DiskError> {
        let read = self.db.begin_read().map_err(io)?;
        let table = read.open_table(LOG).map_err(io)?;
        let bounds = (cloned(range.start_bound()), cloned(range.end_bound()));
        let mut entries = Vec::new();
        let mut bytes = 0;
        for item in table.range::<u64>(bounds).map_err(io)? {
            let (index, value) = item.map_err(io)?;
            bytes += value.value().len();
            if limited && bytes > READ_BYTES_MAX && !entries.is_empty() {
                break;
            }
            entries.push(decode(&format!("entry {}", index.value()), value.value())?);
        }
        Ok(entries)
    }

    /// The last entry.
    pub(crate) fn last<T: DeserializeOwned>(&self) -> Result<Option<T>, DiskError> {
        let read = self.db.begin_read().map_err(io)?;
        let table = read.open_table(LOG).map_err(io)?;
        let Some((index, value)) = table.last().map_err(io)? else {
            return Ok(None);
        };
        decode(&format!("entry {}", index.value()), value.value()).map(Some)
    }
}

fn cloned(bound: Bound<&u64>) -> Bound<u64> {
    bound.cloned()
}

/// A value as it is stored.
pub(crate) fn encode(what: &str, value: &impl Serialize) -> Result<Vec<u8>, DiskError> {
    serde_json::to_vec(value).map_err(|source| DiskError::Encode {
        what: what.to_owned(),
        source,
    })
}

fn decode<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, DiskError> {
    serde_json::from_slice(bytes).map_err(|source| DiskError::Decode {
        what: what.to_owned(),
        source,
    })
}
