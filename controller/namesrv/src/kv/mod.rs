//! The KV configuration: namespaces of texts, kept in one JSON file in Java's form.
//!
//! **Invariant:** what a reader sees is on disk: a change enters memory only after its file is
//! written, and a failed write leaves memory as it was. Changing blocks on the disk; call it off the
//! io threads, from one thread at a time.

mod file;
mod table;

#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

pub use file::{LoadError, SaveError};
pub use table::{KvTable, PutError};

/// Namespace of the queue numbers of ordered topics.
pub const ORDER_TOPIC_NAMESPACE: &str = "ORDER_TOPIC_CONFIG";

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The caller's fault.
    #[error(transparent)]
    Refused(#[from] PutError),
    /// The disk's.
    #[error("not changed, because it could not be kept: {0}")]
    NotSaved(#[from] SaveError),
}

/// The table and its file.
#[derive(Debug)]
pub struct KvConfig {
    path: PathBuf,
    table: RwLock<Arc<KvTable>>,
    writing: Mutex<()>,
}

impl KvConfig {
    /// Reads the file; its backup if the file is gone or broken; an empty table if neither exists.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let table = file::load(path)?;
        Ok(Self {
            path: path.to_owned(),
            table: RwLock::new(Arc::new(table)),
            writing: Mutex::new(()),
        })
    }

    /// The table as it is now.
    #[must_use]
    pub fn table(&self) -> Arc<KvTable> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets a value and keeps it.
    pub fn put(&self, namespace: &str, key: &str, value: &str) -> Result<(), ChangeError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.table().with(namespace, key, value)?;
        self.replace(changed)
    }

    /// Removes a value; nothing happens when there is none.
    pub fn delete(&self, namespace: &str, key: &str) -> Result<(), ChangeError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.table().without(namespace, key) {
            Some(changed) => self.replace(changed),
            None => Ok(()),
        }
    }

    fn replace(&self, table: KvTable) -> Result<(), ChangeError> {
        file::save(&self.path, &table)?;
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        Ok(())
    }
}
