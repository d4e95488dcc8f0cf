//! All consume queues by topic and number.
//!
//! **Invariant:** looking up never creates; creating touches no disk. A deleted topic's queues are
//! marked gone, so that an append that still holds one finds the new one instead.

use std::{
    io,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rustc_hash::FxHashMap;

use super::{Queue, files::Files, load::Loaded};
use crate::lock::{lock, read_lock, write_lock};

/// Queue ids end below this.
pub(crate) const QUEUES_MAX: u32 = rmq_types::limits::QUEUES_MAX;

/// The queues of one topic, by number.
#[derive(Debug, Default)]
struct Topic {
    queues: Vec<Option<Arc<Queue>>>,
}

/// All queues.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) files: Files,
    topics: RwLock<FxHashMap<Arc<str>, Topic>>,
    serial: AtomicU64,
    /// Held while a queue's files are written or deleted.
    io: Mutex<()>,
}

impl Table {
    pub(crate) fn new(files: Files) -> Self {
        Self {
            files,
            topics: RwLock::default(),
            serial: AtomicU64::new(1),
            io: Mutex::new(()),
        }
    }

    /// A queue that exists.
    pub(crate) fn get(&self, topic: &str, id: u32) -> Option<Arc<Queue>> {
        read_lock(&self.topics)
            .get(topic)?
            .queues
            .get(id as usize)?
            .clone()
    }

    /// A queue, made empty if there is none.
    pub(crate) fn get_or_create(&self, topic: &str, id: u32) -> Arc<Queue> {
        self.get(topic, id)
            .unwrap_or_else(|| self.insert(topic, id, Loaded::default()))
    }

    /// Adds a queue as its files say, unless there is one.
    pub(crate) fn insert(&self, topic: &str, id: u32, loaded: Loaded) -> Arc<Queue> {
        let mut topics = write_lock(&self.topics);
        let key = topics
            .get_key_value(topic)
            .map_or_else(|| Arc::from(topic), |(k, _)| Arc::clone(k));
        let entry = topics.entry(Arc::clone(&key)).or_default();
        let index = id as usize;
        if entry.queues.len() <= index {
            entry.queues.reserve_exact(index + 1 - entry.queues.len());
            entry.queues.resize(index + 1, None);
        }
        let serial = self.next_serial();
        let slot = entry
            .queues
            .get_mut(index)
            .expect("resized to hold the index");
        let queue = slot.get_or_insert_with(|| Arc::new(Queue::new(key, id, serial, loaded)));
        Arc::clone(queue)
    }

    /// A number no queue had.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Every queue.
    pub(crate) fn all(&self) -> Vec<Arc<Queue>> {
        read_lock(&self.topics)
            .values()
            .flat_map(|topic| topic.queues.iter().flatten())
            .cloned()
            .collect()
    }

    /// Numbers of a topic's queues.
    pub(crate) fn ids(&self, topic: &str) -> Vec<u32> {
        read_lock(&self.topics)
            .get(topic)
            .map(|topic| {
                topic
                    .queues
                    .iter()
                    .flatten()
                    .map(|queue| queue.id)
                    .collect()
            })
            .unwrap_or_default()
    }

    /// Topics that have a queue.
    pub(crate) fn topics(&self) -> Vec<Arc<str>> {
        read_lock(&self.topics).keys().cloned().collect()
    }

    /// Topics and queues there are.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let topics = read_lock(&self.topics);
        (
            topics.len(),
            topics
                .values()
                .map(|topic| topic.queues.iter().flatten().count())
                .sum(),
        )
    }

    /// Runs `work` while no queue's files are written or deleted by others.
    pub(crate) fn with_io<T>(&self, work: impl FnOnce() -> T) -> T {
        let _io = lock(&self.io);
        work()
    }

    /// Takes a topic out of use; `false` if there was none.
    pub(crate) fn detach(&self, topic: &str) -> bool {
        let removed = write_lock(&self.topics).remove(topic);
        for queue in removed
            .iter()
            .flat_map(|topic| topic.queues.iter().flatten())
        {
            queue.mark_gone();
            self.files.close(queue.name().serial);
        }
        removed.is_some()
    }

    /// Deletes the files of a topic that was [detached](Self::detach); `false` if there were none.
    pub(crate) fn delete_files(&self, topic: &str) -> io::Result<bool> {
        if rmq_types::TopicName::check(topic).is_err() {
            return Ok(false);
        }
        let dir = self.files.dir().join(topic);
        self.with_io(|| match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
            Ok(()) => Ok(true),
        })
    }
}
