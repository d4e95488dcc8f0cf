//! Per topic and group: pull or pop (`messageRequestMode.json`).

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rmq_protocol::body::{MessageRequestModes, SetMessageRequestMode};

use super::files::{self, LoadError, PersistError};

/// The table.
#[derive(Debug)]
pub(crate) struct RequestModes {
    path: PathBuf,
    table: Mutex<MessageRequestModes>,
}

impl RequestModes {
    /// Reads the table from `folder`.
    pub(crate) fn open(folder: &Path) -> Result<Self, LoadError> {
        let path = folder.join("messageRequestMode.json");
        let table = files::read(&path, MessageRequestModes::from_json)?.unwrap_or_default();
        Ok(Self {
            path,
            table: Mutex::new(table),
        })
    }

    /// The mode set for a topic and group.
    #[must_use]
    pub(crate) fn get(&self, topic: &str, group: &str) -> Option<SetMessageRequestMode> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table
            .message_request_mode_map
            .get(topic)?
            .get(group)
            .cloned()
    }

    /// Sets a mode; waits for the disk.
    pub(crate) fn set(&self, mode: SetMessageRequestMode) -> Result<(), PersistError> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = table.clone();
        next.message_request_mode_map
            .entry(mode.topic.clone())
            .or_default()
            .insert(mode.consumer_group.clone(), mode);
        files::replace(&self.path, &next.to_json_pretty())?;
        *table = next;
        Ok(())
    }

    /// The whole table.
    #[must_use]
    pub(crate) fn snapshot(&self) -> MessageRequestModes {
        self.table
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
