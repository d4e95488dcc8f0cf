//! The KV table as a value: every change makes a new one.
//!
//! **Invariant:** names are not blank and the whole table fits one answer.

use std::collections::BTreeMap;

use rmq_protocol::body::KvConfigFile;

/// Longest namespace or key.
const NAME_BYTES_MAX: usize = 1024;
/// Longest table, all texts added.
const TABLE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Why a value was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// Such a file stopped Java name servers from starting again.
    #[error("namespace or key is null: the {0} is empty")]
    Blank(&'static str),
    /// The name is longer than any sensible one.
    #[error("the {part} has {bytes} bytes, more than {NAME_BYTES_MAX}")]
    NameTooLong {
        /// Which name.
        part: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// The table would grow beyond its bound.
    #[error("the KV configuration would have {bytes} bytes, more than {TABLE_BYTES_MAX}")]
    TableFull {
        /// What it would have.
        bytes: usize,
    },
}

/// Namespaces of keys and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KvTable(KvConfigFile);

impl KvTable {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, namespace: &str, key: &str) -> Option<&str> {
        self.0
            .config_table
            .get(namespace)?
            .get(key)
            .map(String::as_str)
    }

    /// All keys of a namespace.
    #[must_use]
    pub fn namespace(&self, namespace: &str) -> Option<&BTreeMap<String, String>> {
        self.0.config_table.get(namespace)
    }

    pub(super) fn with(&self, namespace: &str, key: &str, value: &str) -> Result<Self, PutError> {
        for (part, text) in [("namespace", namespace), ("key", key)] {
            if text.trim().is_empty() {
                return Err(PutError::Blank(part));
            }
            if text.len() > NAME_BYTES_MAX {
                return Err(PutError::NameTooLong {
                    part,
                    bytes: text.len(),
                });
            }
        }
        let mut changed = self.clone();
        let keys = changed
            .0
            .config_table
            .entry(namespace.to_owned())
            .or_default();
        keys.insert(key.to_owned(), value.to_owned());
        let bytes = changed.bytes();
        if bytes > TABLE_BYTES_MAX {
            return Err(PutError::TableFull { bytes });
        }
        Ok(changed)
    }

    /// `None` when the key is not there.
    pub(super) fn without(&self, namespace: &str, key: &str) -> Option<Self> {
        self.get(namespace, key)?;
        let mut changed = self.clone();
        changed.0.config_table.get_mut(namespace)?.remove(key);
        Some(changed)
    }

    /// The table of a file, without names that no put would take: such a file may come from an old
    /// Java name server.
    pub(super) fn from_file(file: KvConfigFile) -> Self {
        let mut file = file;
        file.config_table.retain(|namespace, keys| {
            keys.retain(|key, _| !key.trim().is_empty());
            !namespace.trim().is_empty()
        });
        Self(file)
    }

    pub(super) fn as_file(&self) -> &KvConfigFile {
        &self.0
    }

    fn bytes(&self) -> usize {
        let keys = |keys: &BTreeMap<String, String>| -> usize {
            keys.iter()
                .map(|(key, value)| key.len() + value.len())
                .sum()
        };
        self.0
            .config_table
            .iter()
            .map(|(namespace, table)| namespace.len() + keys(table))
            .sum()
    }
}
