//! Topics that a group may not read although its settings let it consume (`forbiddenTable`).
//!
//! A table of its own, `groupForbidden.json`; Java keeps the same bits inside
//! `subscriptionGroup.json`, which is read where our file does not exist yet.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use rmq_protocol::body::SubscriptionGroupWrapper;

use super::files::{self, LoadError, PersistError};

/// Bit of "may not read" (`1 << PermName.INDEX_PERM_READ`).
const UNREADABLE: i32 = 4;

/// Group, then topic: bits.
type Bits = BTreeMap<String, BTreeMap<String, i32>>;

/// The table.
#[derive(Debug)]
pub(crate) struct Forbidden {
    path: PathBuf,
    bits: RwLock<Arc<Bits>>,
}

impl Forbidden {
    /// Reads the table from `folder`.
    pub(crate) fn open(folder: &Path) -> Result<Self, LoadError> {
        let path = folder.join("groupForbidden.json");
        let own = files::read(&path, |text| serde_json::from_slice::<Bits>(text))?;
        let bits = match own {
            Some(bits) => bits,
            None => files::read(&folder.join("subscriptionGroup.json"), |text| {
                SubscriptionGroupWrapper::from_json(text)
            })?
            .map(|file| file.forbidden_table)
            .unwrap_or_default(),
        };
        Ok(Self {
            path,
            bits: RwLock::new(Arc::new(bits)),
        })
    }

    /// The whole table.
    #[must_use]
    pub(crate) fn snapshot(&self) -> Arc<Bits> {
        Arc::clone(&self.bits.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a group may not read a topic.
    #[must_use]
    pub(crate) fn is_unreadable(&self, group: &str, topic: &str) -> bool {
        let bits = self.bits.read().unwrap_or_else(PoisonError::into_inner);
        let found = bits.get(group).and_then(|topics| topics.get(topic));
        found.is_some_and(|bits| bits & UNREADABLE != 0)
    }

    /// Forbids or allows reading; waits for the disk.
    pub(crate) fn set_readable(
        &self,
        group: &str,
        topic: &str,
        readable: bool,
    ) -> Result<(), PersistError> {
        self.change(|bits| {
            let topics = bits.entry(group.to_owned()).or_default();
            let entry = topics.entry(topic.to_owned()).or_default();
            *entry = if readable {
                *entry & !UNREADABLE
            } else {
                *entry | UNREADABLE
            };
            topics.retain(|_, bits| *bits != 0);
            bits.retain(|_, topics| !topics.is_empty());
        })
    }

    /// Forgets a group; waits for the disk if it had an entry.
    pub(crate) fn remove_group(&self, group: &str) -> Result<(), PersistError> {
        self.change(|bits| {
            bits.remove(group);
        })
    }

    fn change(&self, change: impl FnOnce(&mut Bits)) -> Result<(), PersistError> {
        let mut bits = self.bits.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Bits::clone(&bits);
        change(&mut next);
        if next == **bits {
            return Ok(());
        }
        let text = serde_json::to_vec_pretty(&next).map_err(|source| PersistError {
            path: self.path.clone(),
            source: source.into(),
        })?;
        files::replace(&self.path, &text)?;
        *bits = Arc::new(next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forbidden_stays_so_over_a_restart_until_it_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let table = Forbidden::open(folder.path()).unwrap();
        table.set_readable("g", "t", false).unwrap();
        assert!(table.is_unreadable("g", "t"));
        assert!(!table.is_unreadable("g", "u"));
        drop(table);
        let table = Forbidden::open(folder.path()).unwrap();
        assert!(table.is_unreadable("g", "t"));
        table.set_readable("g", "t", true).unwrap();
        assert!(table.snapshot().is_empty());
    }

    #[test]
    fn the_table_inside_javas_group_file_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"forbiddenTable":{"g":{"t":4}}}"#;
        std::fs::write(folder.path().join("subscriptionGroup.json"), text).unwrap();
        assert!(
            Forbidden::open(folder.path())
                .unwrap()
                .is_unreadable("g", "t")
        );
    }
}
