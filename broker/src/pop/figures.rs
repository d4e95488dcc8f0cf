//! Figures of pop consumption: for statistics, for the metrics page, for how far groups are behind.
//!
//! **Invariant:** reading them takes the lock of one queue at a time.

use std::sync::{
    RwLock,
    atomic::{AtomicU64, Ordering},
};

use rustc_hash::FxHashMap;

use super::{Cell, Place, Pops, Taken, Wish};
use crate::{
    core::{Core, read, write},
    metrics::LagPlace,
    stats::Stat,
};

/// A number that grows.
#[derive(Debug, Default)]
pub(crate) struct Total(AtomicU64);

impl Total {
    /// Adds.
    pub(crate) fn add(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    /// All so far.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What happened since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Checkpoints that went to the revive topic.
    pub(crate) checkpoints_written: Total,
    /// Acks that did.
    pub(crate) acks_written: Total,
    /// Messages put into retry topics, by popped topic and group.
    retries: RwLock<FxHashMap<Box<str>, Total>>,
}

impl Counters {
    pub(super) fn redelivered(&self, place: &Place) {
        let key = format!("{}@{}", place.topic, place.group);
        if let Some(total) = read(&self.retries).get(&*key) {
            total.add(1);
            return;
        }
        let mut retries = write(&self.retries);
        retries.entry(key.into()).or_default().add(1);
    }

    /// Messages put into retry topics, by `topic@group`.
    pub(crate) fn retries(&self) -> Vec<(Box<str>, u64)> {
        let retries = read(&self.retries);
        let mut list: Vec<_> = retries
            .iter()
            .map(|(key, total)| (key.clone(), total.get()))
            .collect();
        drop(retries);
        list.sort();
        list
    }

    pub(super) fn forget(&self, name: &str) {
        write(&self.retries).retain(|key, _| key.split('@').all(|part| part != name));
    }
}

/// How one queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupFigures {
    /// The queue.
    pub(crate) queue: u32,
    /// Given out and neither acked nor sent on.
    pub(crate) in_flight: i64,
    /// The next offset to give out.
    pub(crate) position: i64,
    /// Messages before it that are to be given out too.
    pub(crate) again: i64,
}

impl GroupFigures {
    /// Messages to be given out, when the queue ends at `end`; a pull client of the same group may
    /// have gone further.
    pub(crate) fn ready(&self, committed: Option<i64>, end: i64) -> i64 {
        let position = self.position.max(committed.unwrap_or(0));
        (end - position).max(0) + self.again
    }

    /// For ages: what a pop was given counts as given, although its record may have let the
    /// committed offset pass.
    pub(crate) fn place(&self, place: LagPlace, end: i64) -> LagPlace {
        let given = self
            .position
            .clamp(place.committed, end.max(place.committed));
        LagPlace { given, ..place }
    }
}

impl Pops {
    /// How a group stands in the queues of a stored topic that it popped.
    pub(crate) fn of_group(&self, stored: &str, group: &str) -> Vec<GroupFigures> {
        let cells = self.cells.of_group(stored, group);
        let figures = cells.iter().filter_map(|cell| {
            let state = cell.lock();
            state.queue.committed()?;
            let figures = state.queue.figures();
            Some(GroupFigures {
                queue: cell.place.queue,
                in_flight: figures.in_flight as i64,
                position: figures.position.get() as i64,
                again: figures.again as i64,
            })
        });
        figures.collect()
    }

    /// Messages in flight, checkpoints in memory only, bytes of state: of all queues.
    pub(crate) fn totals(&self) -> (usize, usize, usize) {
        let cells = self.cells.all();
        cells.iter().fold((0, 0, 0), |sum, cell| {
            let one = cell.lock().queue.figures();
            (
                sum.0 + one.in_flight,
                sum.1 + one.buffered,
                sum.2 + one.bytes,
            )
        })
    }

    /// Records that are not done with, by revive queue.
    pub(crate) fn revive_lags(&self) -> Vec<(u8, usize)> {
        self.revive.lags().collect()
    }
}

/// Counts what was given out.
pub(super) fn note_taken(core: &Core, wish: &Wish, taken: &Taken) {
    let (count, bytes) = (taken.count as u64, taken.bytes as u64);
    let stats = &core.stats;
    stats.get_found.add(1, 1);
    stats.gets.add(count, 1);
    let (topic, group) = (&wish.topic.topic_name, &wish.group.group_name);
    if !rmq_types::system::is_system_topic(topic) {
        stats.user_gets.add(count, 1);
    }
    stats.get_bytes.add(bytes, count);
    let key = format!("{topic}@{group}");
    stats.add(Stat::GroupGetNums, &key, count);
    stats.add(Stat::GroupGetSize, &key, bytes);
    if !wish.order {
        let checkpoints = taken.batches.len() as u64;
        stats.add(Stat::GroupCkNums, &key, checkpoints);
        stats.add(
            Stat::BrokerCkNums,
            core.identity.cluster.as_str(),
            checkpoints,
        );
    }
}

/// Counts acks.
pub(crate) fn note_acks(core: &Core, cell: &Cell, count: u64) {
    if count > 0 {
        cell.ack_counter(&core.stats).add(count, 1);
        let cluster = core.identity.cluster.as_str();
        core.stats.add(Stat::BrokerAckNums, cluster, count);
    }
}
