//! Changes since the last whole write of a table: one JSON text a line, flushed before the answer.
//!
//! A line cut short by a crash was never answered, so a broken last line is dropped. Lines whose
//! version is not above the table file's are already in it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rmq_protocol::body::DataVersion;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::files::{self, LoadError, PersistError};

/// One change.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry<V, X> {
    /// Version of the table after the change.
    pub(super) version: DataVersion,
    /// Entries put.
    #[serde(default = "Vec::new")]
    pub(super) put: Vec<V>,
    /// Names removed.
    #[serde(default)]
    pub(super) remove: Vec<String>,
    /// What the file holds beside the entries, if that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra: Option<X>,
}

/// The open file.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Journal {
    /// Opens the journal of `table`, giving back its whole lines.
    pub(super) fn open<V: DeserializeOwned, X: DeserializeOwned>(
        table: &Path,
    ) -> Result<(Self, Vec<Entry<V, X>>), LoadError> {
        let mut name = table.as_os_str().to_owned();
        name.push(".journal");
        let path = PathBuf::from(name);
        let fail = |source| LoadError::Io {
            path: path.clone(),
            source,
        };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(fail(error)),
        };
        let mut entries = Vec::new();
        let mut whole = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(entry) if line.ends_with(b"\n") => entries.push(entry),
                _ => break,
            }
            whole += line.len() as u64;
        }
        if whole < text.len() as u64 {
            tracing::warn!(file = %path.display(), dropped = text.len() as u64 - whole,
                "journal ends in a broken line that was never answered");
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(fail)?;
        file.set_len(whole).map_err(fail)?;
        files::sync_folder(&path).map_err(fail)?;
        Ok((
            Self {
                path,
                file,
                bytes: whole,
            },
            entries,
        ))
    }

    /// Appends one change and waits for the disk.
    pub(super) fn append<V: Serialize, X: Serialize>(
        &mut self,
        entry: &Entry<V, X>,
    ) -> Result<(), PersistError> {
        let outcome = serde_json::to_vec(entry)
            .map_err(io::Error::other)
            .and_then(|mut line| {
                line.push(b'\n');
                self.file
                    .write_all(&line)
                    .and_then(|()| self.file.sync_data())
                    .inspect_err(|_| {
                        // A half line must not stand before the next one.
                        let _ = self.file.set_len(self.bytes);
                    })?;
                self.bytes += line.len() as u64;
                Ok(())
            });
        outcome.map_err(|source| PersistError {
            path: self.path.clone(),
            source,
        })
    }

    /// Whether there is anything since the last [`Journal::clear`].
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Drops all lines; call once the table itself is written.
    pub(super) fn clear(&mut self) -> Result<(), PersistError> {
        self.file.set_len(0).map_err(|source| PersistError {
            path: self.path.clone(),
            source,
        })?;
        self.bytes = 0;
        Ok(())
    }
}
