//! Progress of groups: what they committed, where they pulled, resets that no pull has taken yet.
//!
//! Java's `consumerOffset.json`, written every few seconds when anything moved. **Invariant:** a
//! pending reset wins over every commit until a pull has taken it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rmq_protocol::body::{ConsumerOffsets, DataVersion};
use rmq_types::Timestamp;
use rustc_hash::FxHashMap;

use super::files::{self, LoadError, PersistError};

/// How many commits make one step of the table's version (`consumerOffsetUpdateVersionStep`).
const VERSION_STEP: u64 = 500;

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    committed: Option<i64>,
    pulled: Option<i64>,
    reset: Option<i64>,
}

type Queues = BTreeMap<i32, Progress>;

/// How far a group has come in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueProgress {
    /// What it committed, or where it was reset to.
    pub committed: Option<i64>,
    /// Where it goes on pulling.
    pub pulled: Option<i64>,
}

/// Progress by queue.
pub(crate) type QueuesProgress = Vec<(i32, QueueProgress)>;

#[derive(Debug, Default)]
struct State {
    /// Topic, then group, then queue.
    topics: FxHashMap<Box<str>, FxHashMap<Box<str>, Queues>>,
    version: DataVersion,
    commits: u64,
    changed: bool,
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// Stored.
    None,
    /// Ignored: a reset is pending.
    Reset,
}

/// The table.
#[derive(Debug)]
pub(crate) struct OffsetTable {
    path: PathBuf,
    state: Mutex<State>,
}

impl OffsetTable {
    /// Reads the table from `folder`.
    pub(crate) fn open(folder: &Path) -> Result<Self, LoadError> {
        let path = folder.join("consumerOffset.json");
        let file = files::read(&path, ConsumerOffsets::from_json)?.unwrap_or_default();
        let mut state = State {
            version: file.data_version,
            ..State::default()
        };
        fill(&mut state, file.offset_table, |progress, offset| {
            progress.committed = Some(offset);
        });
        fill(&mut state, file.pull_offset_table, |progress, offset| {
            progress.pulled = Some(offset);
        });
        fill(&mut state, file.reset_offset_table, |progress, offset| {
            progress.reset = Some(offset);
        });
        Ok(Self {
            path,
            state: Mutex::new(state),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a group committed; a pending reset counts as its place.
    #[must_use]
    pub(crate) fn committed(&self, topic: &str, group: &str, queue: i32) -> Option<i64> {
        let state = self.lock();
        let progress = state.topics.get(topic)?.get(group)?.get(&queue)?;
        progress.reset.or(progress.committed)
    }

    /// Where a group last pulled.
    #[must_use]
    pub(crate) fn pulled(&self, topic: &str, group: &str, queue: i32) -> Option<i64> {
        self.lock()
            .topics
            .get(topic)?
            .get(group)?
            .get(&queue)?
            .pulled
    }

    /// Commits `offset`, unless a reset is pending.
    pub(crate) fn commit(&self, topic: &str, group: &str, queue: i32, offset: i64) -> Pending {
        let mut state = self.lock();
        let progress = state.progress(topic, group, queue);
        if progress.reset.is_some() {
            return Pending::Reset;
        }
        if progress.committed != Some(offset) {
            progress.committed = Some(offset);
            state.step();
        }
        Pending::None
    }

    /// Remembers where a group goes on pulling.
    pub(crate) fn note_pull(&self, topic: &str, group: &str, queue: i32, next: i64) {
        self.lock().progress(topic, group, queue).pulled = Some(next);
    }

    /// Sets a reset that the next pull takes.
    pub(crate) fn set_reset(&self, topic: &str, group: &str, queue: i32, offset: i64) {
        let mut state = self.lock();
        state.progress(topic, group, queue).reset = Some(offset);
        state.step();
    }

    /// Takes the pending reset of a queue; from then on it is the committed offset.
    #[must_use]
    pub(crate) fn take_reset(&self, topic: &str, group: &str, queue: i32) -> Option<i64> {
        let mut state = self.lock();
        let progress = state
            .topics
            .get_mut(topic)?
            .get_mut(group)?
            .get_mut(&queue)?;
        let offset = progress.reset.take()?;
        progress.committed = Some(offset);
        state.step();
        Some(offset)
    }

    /// For a pop: the pending reset, which is taken, and what is committed now.
    #[must_use]
    pub(crate) fn place_for_pop(
        &self,
        topic: &str,
        group: &str,
        queue: i32,
    ) -> (Option<i64>, Option<i64>) {
        let mut state = self.lock();
        let found = state.topics.get_mut(topic);
        let found = found.and_then(|groups| groups.get_mut(group));
        let Some(progress) = found.and_then(|queues| queues.get_mut(&queue)) else {
            return (None, None);
        };
        let reset = progress.reset.take();
        progress.committed = reset.or(progress.committed);
        let committed = progress.committed;
        if reset.is_some() {
            state.step();
        }
        (reset, committed)
    }

    /// Whether a reset is pending, and the group's place.
    #[must_use]
    pub(crate) fn reset_pending(
        &self,
        topic: &str,
        group: &str,
        queue: i32,
    ) -> (bool, Option<i64>) {
        let state = self.lock();
        let found = state.topics.get(topic).and_then(|groups| groups.get(group));
        let Some(progress) = found.and_then(|queues| queues.get(&queue)) else {
            return (false, None);
        };
        (
            progress.reset.is_some(),
            progress.reset.or(progress.committed),
        )
    }

    /// All committed offsets of a group in a topic.
    #[must_use]
    pub(crate) fn of_group(&self, topic: &str, group: &str) -> BTreeMap<i32, i64> {
        let state = self.lock();
        let queues = state.topics.get(topic).and_then(|groups| groups.get(group));
        queues
            .into_iter()
            .flatten()
            .filter_map(|(id, p)| Some((*id, p.reset.or(p.committed)?)))
            .collect()
    }

    /// Topics in which a group has progress.
    #[must_use]
    pub(crate) fn topics_of(&self, group: &str) -> Vec<String> {
        let state = self.lock();
        let mut topics: Vec<String> = state
            .topics
            .iter()
            .filter(|(_, groups)| groups.contains_key(group))
            .map(|(topic, _)| topic.to_string())
            .collect();
        topics.sort();
        topics
    }

    /// Topics in which any group has progress, sorted.
    #[must_use]
    pub(crate) fn topics(&self) -> Vec<Box<str>> {
        let mut topics: Vec<_> = self.lock().topics.keys().cloned().collect();
        topics.sort();
        topics
    }

    /// How far each group has come in a topic, by queue, sorted by group.
    #[must_use]
    pub(crate) fn progress_in(&self, topic: &str) -> Vec<(Box<str>, QueuesProgress)> {
        let state = self.lock();
        let groups = state.topics.get(topic).into_iter().flatten();
        let mut found: Vec<_> = groups
            .map(|(group, queues)| {
                let each = queues.iter().map(|(id, p)| {
                    let (committed, pulled) = (p.reset.or(p.committed), p.pulled);
                    (*id, QueueProgress { committed, pulled })
                });
                (group.clone(), each.collect::<QueuesProgress>())
            })
            .collect();
        drop(state);
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found
    }

    /// Groups with progress in a topic.
    #[must_use]
    pub(crate) fn groups_of(&self, topic: &str) -> Vec<String> {
        let state = self.lock();
        let groups = state
            .topics
            .get(topic)
            .into_iter()
            .flat_map(FxHashMap::keys);
        groups.map(ToString::to_string).collect()
    }

    /// Forgets a topic: its offsets mean nothing for a later topic of the same name.
    pub(crate) fn remove_topic(&self, topic: &str) {
        let mut state = self.lock();
        if state.topics.remove(topic).is_some() {
            state.step();
        }
    }

    /// Forgets a group everywhere.
    pub(crate) fn remove_group(&self, group: &str) {
        let mut state = self.lock();
        let mut removed = false;
        for groups in state.topics.values_mut() {
            removed |= groups.remove(group).is_some();
        }
        if removed {
            state.topics.retain(|_, groups| !groups.is_empty());
            state.step();
        }
    }

    /// Copies the committed offsets of one group to another.
    pub(crate) fn clone_group(&self, topic: &str, from: &str, to: &str) {
        for (queue, offset) in self.of_group(topic, from) {
            self.commit(topic, to, queue, offset);
        }
    }

    /// The table as code 43 and the file have it.
    #[must_use]
    pub(crate) fn snapshot(&self) -> ConsumerOffsets {
        let state = self.lock();
        let mut out = ConsumerOffsets {
            data_version: state.version,
            ..ConsumerOffsets::default()
        };
        for (topic, groups) in &state.topics {
            for (group, queues) in groups {
                let key = format!("{topic}@{group}");
                for (queue, progress) in queues {
                    let put = |table: &mut BTreeMap<String, BTreeMap<i32, i64>>, value| {
                        if let Some(offset) = value {
                            table.entry(key.clone()).or_default().insert(*queue, offset);
                        }
                    };
                    put(&mut out.offset_table, progress.committed);
                    put(&mut out.pull_offset_table, progress.pulled);
                    put(&mut out.reset_offset_table, progress.reset);
                }
            }
        }
        out
    }

    /// Writes the file if anything moved since the last time.
    pub(crate) fn flush(&self, now: Timestamp) -> Result<(), PersistError> {
        {
            let mut state = self.lock();
            if !std::mem::take(&mut state.changed) {
                return Ok(());
            }
            state.version.timestamp = state.version.timestamp.max(now.millis());
        }
        let mut file = self.snapshot();
        file.pull_offset_table.clear();
        files::replace(&self.path, &file.to_json_pretty())
            .inspect_err(|_| self.lock().changed = true)
    }
}

impl State {
    fn progress(&mut self, topic: &str, group: &str, queue: i32) -> &mut Progress {
        if !self.topics.contains_key(topic) {
            self.topics.insert(topic.into(), FxHashMap::default());
        }
        let groups = self.topics.get_mut(topic).expect("inserted above");
        if !groups.contains_key(group) {
            groups.insert(group.into(), Queues::new());
        }
        groups
            .get_mut(group)
            .expect("inserted above")
            .entry(queue)
            .or_default()
    }

    fn step(&mut self) {
        self.changed = true;
        self.commits += 1;
        if self.commits % VERSION_STEP == 1 {
            self.version.counter += 1;
        }
    }
}

fn fill(
    state: &mut State,
    table: BTreeMap<String, BTreeMap<i32, i64>>,
    set: impl Fn(&mut Progress, i64),
) {
    for (key, queues) in table {
        let Some((topic, group)) = key.split_once('@') else {
            continue;
        };
        for (queue, offset) in queues {
            set(state.progress(topic, group, queue), offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> (tempfile::TempDir, OffsetTable) {
        let folder = tempfile::tempdir().unwrap();
        let table = OffsetTable::open(folder.path()).unwrap();
        (folder, table)
    }

    #[test]
    fn a_pending_reset_wins_over_commits_until_it_is_taken() {
        let (_folder, table) = table();
        table.commit("t", "g", 0, 100);
        table.set_reset("t", "g", 0, 5);
        assert_eq!(table.commit("t", "g", 0, 120), Pending::Reset);
        assert_eq!(table.committed("t", "g", 0), Some(5));
        assert_eq!(table.take_reset("t", "g", 0), Some(5));
        assert_eq!(table.take_reset("t", "g", 0), None);
        assert_eq!(table.commit("t", "g", 0, 6), Pending::None);
        assert_eq!(table.committed("t", "g", 0), Some(6));
    }

    #[test]
    fn offsets_are_there_after_a_flush_and_a_new_start() {
        let (folder, table) = table();
        table.commit("t", "%RETRY%g", 3, 7);
        table.flush(Timestamp::from_millis(1)).unwrap();
        let again = OffsetTable::open(folder.path()).unwrap();
        assert_eq!(again.committed("t", "%RETRY%g", 3), Some(7));
    }

    #[test]
    fn a_deleted_topic_or_group_leaves_no_offset_of_any_kind() {
        let (_folder, table) = table();
        table.commit("t", "g", 0, 1);
        table.note_pull("t", "g", 0, 2);
        table.commit("u", "g", 0, 1);
        table.remove_topic("t");
        assert!(table.pulled("t", "g", 0).is_none());
        table.remove_group("g");
        let left = table.snapshot();
        assert!(left.offset_table.is_empty() && left.pull_offset_table.is_empty());
    }

    #[test]
    fn a_lower_commit_is_taken() {
        let (_folder, table) = table();
        table.commit("t", "g", 0, 10);
        table.commit("t", "g", 0, 4);
        assert_eq!(table.committed("t", "g", 0), Some(4));
    }
}
