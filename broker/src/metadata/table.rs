//! A table of named settings (topics, or groups) with its version, kept on disk.

use std::{
    marker::PhantomData,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
};

use rmq_protocol::{
    body::{
        DataVersion, SubscriptionGroupConfig, SubscriptionGroupWrapper, TopicConfig,
        TopicConfigFile,
    },
    json::JsonError,
};
use rmq_types::Timestamp;
use rustc_hash::FxHashMap;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    files::{self, LoadError, PersistError},
    forbidden::Bits,
    journal::{Entry, Journal},
};

/// What a table holds and how its file looks.
pub(crate) trait Kind: 'static {
    /// The settings of one name.
    type Value: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync;
    /// What the file holds beside them.
    type Extra: Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync;
    /// File name under `config/`.
    const FILE: &'static str;
    /// The name that settings carry.
    fn name(value: &Self::Value) -> &str;
    /// Reads the file.
    fn parse(text: &[u8]) -> Result<Content<Self>, JsonError>;
    /// Writes the file.
    fn render(version: DataVersion, values: &[Arc<Self::Value>], extra: &Self::Extra) -> Vec<u8>;
}

/// What a file holds.
pub(crate) struct Content<K: Kind + ?Sized> {
    version: DataVersion,
    values: Vec<K::Value>,
    extra: K::Extra,
}

impl<K: Kind> Default for Content<K> {
    fn default() -> Self {
        Self {
            version: DataVersion::default(),
            values: Vec::new(),
            extra: K::Extra::default(),
        }
    }
}

impl Kind for TopicConfig {
    type Value = Self;
    type Extra = ();
    const FILE: &'static str = "topics.json";
    fn name(value: &Self) -> &str {
        &value.topic_name
    }
    fn parse(text: &[u8]) -> Result<Content<Self>, JsonError> {
        let file = TopicConfigFile::from_json(text)?;
        Ok(Content {
            version: file.data_version,
            values: file.topic_config_table.into_values().collect(),
            extra: (),
        })
    }
    fn render(data_version: DataVersion, values: &[Arc<Self>], (): &()) -> Vec<u8> {
        let table = values
            .iter()
            .map(|v| (v.topic_name.clone(), Self::clone(v)))
            .collect();
        TopicConfigFile {
            data_version,
            topic_config_table: table,
        }
        .to_json_pretty()
    }
}

impl Kind for SubscriptionGroupConfig {
    type Value = Self;
    /// Topics forbidden to groups; see [`super::forbidden`].
    type Extra = Bits;
    const FILE: &'static str = "subscriptionGroup.json";
    fn name(value: &Self) -> &str {
        &value.group_name
    }
    fn parse(text: &[u8]) -> Result<Content<Self>, JsonError> {
        let file = SubscriptionGroupWrapper::from_json(text)?;
        Ok(Content {
            version: file.data_version,
            values: file.subscription_group_table.into_values().collect(),
            extra: file.forbidden_table,
        })
    }
    fn render(data_version: DataVersion, values: &[Arc<Self>], forbidden: &Bits) -> Vec<u8> {
        let table = values
            .iter()
            .map(|v| (v.group_name.clone(), Self::clone(v)))
            .collect();
        SubscriptionGroupWrapper {
            data_version,
            forbidden_table: forbidden.clone(),
            subscription_group_table: table,
        }
        .to_json_pretty()
    }
}

#[derive(Debug)]
struct State<V, X> {
    map: FxHashMap<Box<str>, Arc<V>>,
    version: DataVersion,
    extra: X,
}

/// What a change of a table did.
#[derive(Clone, Debug)]
pub(crate) struct Changed {
    /// Names whose settings are other than before.
    pub names: Vec<String>,
    /// Version of the table with the change.
    pub version: DataVersion,
}

/// The table. Readers never wait for a disk; writers are one at a time.
#[derive(Debug)]
pub(crate) struct ConfigTable<K: Kind> {
    path: PathBuf,
    state: RwLock<State<K::Value, K::Extra>>,
    journal: Mutex<Journal>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> ConfigTable<K> {
    /// Reads the table from `folder` and applies its journal.
    pub(crate) fn open(folder: &Path) -> Result<Self, LoadError> {
        let path = folder.join(K::FILE);
        let content: Content<K> = files::read(&path, K::parse)?.unwrap_or_default();
        let (journal, entries) = Journal::open::<K::Value, K::Extra>(&path)?;
        let mut state = State {
            map: FxHashMap::default(),
            version: content.version,
            extra: content.extra,
        };
        for value in content.values {
            state.map.insert(K::name(&value).into(), Arc::new(value));
        }
        for entry in entries {
            if entry.version.compare(&state.version).is_gt() {
                apply::<K>(&mut state, entry);
            }
        }
        Ok(Self {
            path,
            state: RwLock::new(state),
            journal: Mutex::new(journal),
            kind: PhantomData,
        })
    }

    fn read(&self) -> RwLockReadGuard<'_, State<K::Value, K::Extra>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The settings of `name`.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<Arc<K::Value>> {
        self.read().map.get(name).cloned()
    }

    /// Whether `name` is known.
    #[must_use]
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.read().map.contains_key(name)
    }

    /// Looks at what is kept beside the settings.
    pub(super) fn with_extra<T>(&self, look: impl FnOnce(&K::Extra) -> T) -> T {
        look(&self.read().extra)
    }

    /// Number of names.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.read().map.len()
    }

    /// The version in force.
    #[must_use]
    pub(crate) fn version(&self) -> DataVersion {
        self.read().version
    }

    /// All settings sorted by name, with the version they belong to.
    #[must_use]
    pub(crate) fn snapshot(&self) -> (DataVersion, Vec<Arc<K::Value>>) {
        let state = self.read();
        let mut values: Vec<_> = state.map.values().cloned().collect();
        let version = state.version;
        drop(state);
        values.sort_by(|a, b| K::name(a).cmp(K::name(b)));
        (version, values)
    }

    /// Puts settings; waits for the disk. Gives back what really changed, if anything.
    pub(crate) fn put(
        &self,
        values: Vec<K::Value>,
        now: Timestamp,
    ) -> Result<Option<Changed>, PersistError> {
        let mut journal = self.journal();
        let changed: Vec<K::Value> = {
            let state = self.read();
            let is_new = |value: &K::Value| {
                state
                    .map
                    .get(K::name(value))
                    .is_none_or(|old| **old != *value)
            };
            values.into_iter().filter(is_new).collect()
        };
        if changed.is_empty() {
            return Ok(None);
        }
        let entry = Entry {
            version: self.next_version(now),
            put: changed,
            remove: Vec::new(),
            extra: None,
        };
        journal.append(&entry)?;
        let change = Changed {
            names: entry.put.iter().map(|v| K::name(v).to_owned()).collect(),
            version: entry.version,
        };
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        apply::<K>(&mut state, entry);
        Ok(Some(change))
    }

    /// Takes `name` out; waits for the disk. `false`: it was not there.
    pub(crate) fn remove(&self, name: &str, now: Timestamp) -> Result<bool, PersistError> {
        let mut journal = self.journal();
        if !self.contains(name) {
            return Ok(false);
        }
        let entry = Entry {
            version: self.next_version(now),
            put: Vec::new(),
            remove: vec![name.to_owned()],
            extra: None,
        };
        journal.append(&entry)?;
        apply::<K>(
            &mut self.state.write().unwrap_or_else(PoisonError::into_inner),
            entry,
        );
        Ok(true)
    }

    /// Steps the version although no entry changed, so that NameServers take a registration as new.
    pub(crate) fn touch(&self, now: Timestamp) -> Result<(), PersistError> {
        let mut journal = self.journal();
        let entry = Entry {
            version: self.next_version(now),
            put: Vec::new(),
            remove: Vec::new(),
            extra: None,
        };
        journal.append(&entry)?;
        apply::<K>(
            &mut self.state.write().unwrap_or_else(PoisonError::into_inner),
            entry,
        );
        Ok(())
    }

    /// Changes what is kept beside the settings; waits for the disk if it is other than before.
    pub(super) fn change_extra(
        &self,
        change: impl FnOnce(&mut K::Extra),
        now: Timestamp,
    ) -> Result<(), PersistError> {
        let mut journal = self.journal();
        let mut next = self.read().extra.clone();
        change(&mut next);
        if next == self.read().extra {
            return Ok(());
        }
        let entry = Entry {
            version: self.next_version(now),
            put: Vec::new(),
            remove: Vec::new(),
            extra: Some(next),
        };
        journal.append(&entry)?;
        apply::<K>(
            &mut self.state.write().unwrap_or_else(PoisonError::into_inner),
            entry,
        );
        Ok(())
    }

    fn next_version(&self, now: Timestamp) -> DataVersion {
        let version = self.version();
        version.next(version.state_version, now.millis())
    }

    /// Writes the whole table when its journal holds anything.
    pub(crate) fn compact(&self) -> Result<(), PersistError> {
        let mut journal = self.journal();
        if journal.is_empty() {
            return Ok(());
        }
        let (version, values) = self.snapshot();
        let text = self.with_extra(|extra| K::render(version, &values, extra));
        files::replace(&self.path, &text)?;
        journal.clear()
    }
}

fn apply<K: Kind>(state: &mut State<K::Value, K::Extra>, entry: Entry<K::Value, K::Extra>) {
    for value in entry.put {
        state.map.insert(K::name(&value).into(), Arc::new(value));
    }
    for name in entry.remove {
        state.map.remove(name.as_str());
    }
    if let Some(extra) = entry.extra {
        state.extra = extra;
    }
    state.version = entry.version;
}

#[cfg(test)]
mod tests {
    use super::*;

    type Topics = ConfigTable<TopicConfig>;
    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    #[test]
    fn a_change_is_there_after_a_crash_without_a_whole_write() {
        let folder = tempfile::tempdir().unwrap();
        let table = Topics::open(folder.path()).unwrap();
        table
            .put(vec![TopicConfig::named("a"), TopicConfig::named("b")], NOW)
            .unwrap();
        table.remove("a", NOW).unwrap();
        let version = table.version();
        drop(table);
        let table = Topics::open(folder.path()).unwrap();
        assert!(!table.contains("a") && table.contains("b"));
        assert_eq!(table.version(), version);
    }

    #[test]
    fn a_compacted_table_reads_back_and_later_changes_follow_it() {
        let folder = tempfile::tempdir().unwrap();
        let table = Topics::open(folder.path()).unwrap();
        table.put(vec![TopicConfig::named("a")], NOW).unwrap();
        table.compact().unwrap();
        table.put(vec![TopicConfig::named("b")], NOW).unwrap();
        drop(table);
        assert_eq!(Topics::open(folder.path()).unwrap().len(), 2);
    }

    #[test]
    fn settings_that_did_not_change_leave_the_version_alone() {
        let folder = tempfile::tempdir().unwrap();
        let table = Topics::open(folder.path()).unwrap();
        let put = || table.put(vec![TopicConfig::named("a")], NOW).unwrap();
        let version = put().unwrap().version;
        assert!(put().is_none());
        assert_eq!(table.version(), version);
    }

    #[test]
    fn a_journal_cut_anywhere_keeps_every_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let table = Topics::open(folder.path()).unwrap();
        for name in ["a", "b", "c"] {
            table.put(vec![TopicConfig::named(name)], NOW).unwrap();
        }
        drop(table);
        let path = folder.path().join("topics.json.journal");
        let text = std::fs::read(&path).unwrap();
        for cut in 0..=text.len() {
            std::fs::write(&path, &text[..cut]).unwrap();
            let lines = text[..cut].split(|byte| *byte == b'\n').count() - 1;
            assert_eq!(Topics::open(folder.path()).unwrap().len(), lines);
        }
    }
}
