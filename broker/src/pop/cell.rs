//! One queue of the machine behind its lock, and the table of all of them.
//!
//! **Invariant:** a (stored topic, group, queue) has one cell at a time. One whose topic or group
//! was deleted is marked and writes nothing any more. Cells are made by pops of topics and groups
//! that exist, so their number is bounded by those.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rmq_pop::{Options, Queue};
use rmq_types::{GroupName, TopicName, pop::PopTopic};
use rustc_hash::FxHashMap;

use super::marks::{Kept, Marks, Slot};
use crate::{
    core::{lock, read, write},
    stats::{Counter, Stat, Stats},
};

/// No alarm is set.
const NEVER: u64 = u64::MAX;

/// What a cell is of.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The topic that is popped.
    pub(crate) topic: TopicName,
    /// The group.
    pub(crate) group: GroupName,
    /// Which of the topics of a pop it is.
    pub(crate) kind: PopTopic,
    /// The topic that the messages lie in.
    pub(crate) stored: TopicName,
    /// The queue.
    pub(crate) queue: u32,
}

impl Place {
    /// `None`: a name is none, or too long.
    pub(super) fn parse(topic: &str, kind: PopTopic, group: &str, queue: u32) -> Option<Self> {
        let stored = super::stored_topic(kind, topic, group);
        Some(Self {
            topic: TopicName::parse(topic).ok()?,
            group: GroupName::parse(group).ok()?,
            kind,
            stored: TopicName::parse(&stored).ok()?,
            queue,
        })
    }

    /// Of a stored topic.
    pub(super) fn of_stored(stored: &str, group: &str, queue: u32) -> Option<Self> {
        let topic = rmq_types::pop::popped_topic(stored, group);
        let kind = if topic == stored {
            PopTopic::Normal
        } else {
            PopTopic::of(stored)
        };
        Self::parse(topic, kind, group, queue)
    }
}

/// What is behind the lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) queue: Queue,
    /// What the file of marks has.
    pub(super) kept: Kept,
    /// When it was written, in millis of the steady clock.
    pub(super) written_at: u64,
    /// Its topic or group was deleted.
    pub(super) gone: bool,
}

/// One queue.
#[derive(Debug)]
pub(crate) struct Cell {
    /// What it is of.
    pub(crate) place: Place,
    pub(super) slot: Option<Slot>,
    state: Mutex<State>,
    /// Millis of the steady clock at which an alarm looks at it.
    armed: AtomicU64,
    /// A pop found it locked: whoever unlocks it wakes somebody.
    missed: AtomicBool,
    /// Where its acks are counted; looked up once.
    acks: OnceLock<Arc<Counter>>,
}

impl Cell {
    fn new(place: Place, options: Options, marks: &Marks) -> Self {
        let slot = marks.take_slot(&place);
        Self {
            place,
            slot,
            state: Mutex::new(State {
                queue: Queue::new(options),
                kept: Kept::default(),
                written_at: 0,
                gone: false,
            }),
            armed: AtomicU64::new(NEVER),
            missed: AtomicBool::new(false),
            acks: OnceLock::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The counter of its acks.
    pub(super) fn ack_counter(&self, stats: &Stats) -> &Counter {
        self.acks.get_or_init(|| {
            let key = format!("{}@{}", self.place.topic, self.place.group);
            stats.counter(Stat::GroupAckNums, &key)
        })
    }

    /// Whether an alarm at `at` is earlier than the one that is set; then that one is set.
    pub(super) fn arms(&self, at: u64) -> bool {
        at < self.armed.load(Ordering::Acquire) && {
            self.armed.store(at, Ordering::Release);
            true
        }
    }

    /// The alarm went off.
    pub(super) fn disarm(&self) {
        self.armed.store(NEVER, Ordering::Release);
    }

    pub(super) fn note_missed(&self) {
        self.missed.store(true, Ordering::Release);
    }

    pub(super) fn take_missed(&self) -> bool {
        self.missed.load(Ordering::Acquire) && self.missed.swap(false, Ordering::AcqRel)
    }
}

type Queues = BTreeMap<u32, Arc<Cell>>;
type Groups = FxHashMap<Box<str>, Queues>;

/// All cells: by stored topic, then group, then queue.
#[derive(Debug, Default)]
pub(super) struct Cells {
    topics: RwLock<FxHashMap<Box<str>, Groups>>,
}

impl Cells {
    pub(super) fn get(&self, stored: &str, group: &str, queue: u32) -> Option<Arc<Cell>> {
        let topics = read(&self.topics);
        topics.get(stored)?.get(group)?.get(&queue).cloned()
    }

    pub(super) fn get_or_make(&self, place: Place, options: Options, marks: &Marks) -> Arc<Cell> {
        let mut topics = write(&self.topics);
        let groups = topics.entry(place.stored.as_str().into()).or_default();
        let queues = groups.entry(place.group.as_str().into()).or_default();
        let made = queues
            .entry(place.queue)
            .or_insert_with(|| Arc::new(Cell::new(place, options, marks)));
        Arc::clone(made)
    }

    /// Takes out what is of a stored topic.
    pub(super) fn take_topic(&self, stored: &str) -> Vec<Arc<Cell>> {
        let groups = write(&self.topics).remove(stored).unwrap_or_default();
        groups.into_values().flat_map(Queues::into_values).collect()
    }

    /// Takes out what is of a group.
    pub(super) fn take_group(&self, group: &str) -> Vec<Arc<Cell>> {
        let mut topics = write(&self.topics);
        let taken: Vec<_> = topics
            .values_mut()
            .filter_map(|groups| groups.remove(group))
            .flat_map(Queues::into_values)
            .collect();
        topics.retain(|_, groups| !groups.is_empty());
        taken
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<Cell>> {
        let topics = read(&self.topics);
        let queues = topics.values().flat_map(FxHashMap::values);
        queues.flat_map(Queues::values).cloned().collect()
    }

    /// Those of one group in a stored topic.
    pub(super) fn of_group(&self, stored: &str, group: &str) -> Vec<Arc<Cell>> {
        let topics = read(&self.topics);
        let queues = topics.get(stored).and_then(|groups| groups.get(group));
        queues.map_or_else(Vec::new, |queues| queues.values().cloned().collect())
    }

    /// Popped topics and groups that read a stored topic.
    pub(super) fn readers(&self, stored: &str) -> Vec<(TopicName, GroupName)> {
        let topics = read(&self.topics);
        let groups = topics.get(stored).into_iter().flat_map(FxHashMap::values);
        let places = groups.filter_map(|queues| queues.values().next());
        places
            .map(|cell| (cell.place.topic.clone(), cell.place.group.clone()))
            .collect()
    }
}
