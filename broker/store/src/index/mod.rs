//! The key index (`IndexService`): files of hashed keys, built by a thread that follows the log.
//!
//! **Invariant:** the index is derived: it may lag or be rebuilt, and a query checks each hit against
//! the record itself.

use std::{io, ops::RangeInclusive, path::Path};

use rmq_types::Timestamp;

use crate::{checkpoint::Checkpoint, core::Core, mmap::RecordSlice, options::StoreOptions};

/// What a key query found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The records, oldest first.
    pub messages: Vec<RecordSlice>,
    /// Store time of the last indexed message.
    pub last_update: Timestamp,
    /// Log offset of the last indexed message.
    pub last_offset: u64,
}

/// The index files of a store.
#[derive(Debug)]
pub(crate) struct Index {}

impl Index {
    pub(crate) fn open(
        _root: &Path,
        _options: &StoreOptions,
        _clean: bool,
        _from: u64,
        _end: u64,
    ) -> io::Result<Self> {
        Ok(Self {})
    }

    pub(crate) fn checkpoint(&self, _checkpoint: &mut Checkpoint) {}

    pub(crate) fn release(&self) {}

    pub(crate) fn seen(&self) -> u64 {
        0
    }

    pub(crate) fn trim(&self, _log_min: u64) -> usize {
        0
    }

    pub(crate) fn close(&self) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn query(
        &self,
        _core: &Core,
        _topic: &str,
        _key: &str,
        _max: usize,
        _window: RangeInclusive<Timestamp>,
    ) -> Found {
        Found::default()
    }

    pub(crate) fn follow(&self, _core: &Core, _stop: impl Fn() -> bool) -> io::Result<()> {
        Ok(())
    }
}
