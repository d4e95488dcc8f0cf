//! Delayed delivery by level: messages rest in `SCHEDULE_TOPIC_XXXX`, one queue per level, and move
//! to their real topic when their time has come (`ScheduleMessageService`).
//!
//! Progress stands in `delayOffset.json`. **Invariant:** progress moves only past messages that were
//! appended to their target or can never be; after a crash a message may come twice, never not at all.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use rmq_protocol::{
    body::{DataVersion, DelayOffsets},
    message::{
        Record,
        properties::{self, names},
    },
};
use rmq_store::{AppendError, ErrorClass, ReadRequest, ReadStatus};
use rmq_types::{Timestamp, system};

use crate::{
    copy,
    core::{Core, lock},
    metadata::{LoadError, PersistError, read_json, write_json},
    metrics::MessageType,
    stats::Stat,
};

/// Longest sleep: progress is written and a changed clock is noticed this often.
const NAP: Duration = Duration::from_secs(1);
/// Pause after a target that cannot be written now.
const RETRY: Duration = Duration::from_millis(500);
/// Under which the scheduler's reads are counted.
const OWN_KEY: &str = "SCHEDULE_TOPIC_XXXX@SCHEDULE_CONSUMER";
/// Messages moved in one read.
const BATCH: usize = 32;

/// The levels and how far each has come.
#[derive(Debug)]
pub(crate) struct DelayTable {
    path: PathBuf,
    /// Delay of level 1, 2, … in milliseconds.
    levels: Vec<i64>,
    offsets: Mutex<Offsets>,
    wake: Condvar,
    signal: Mutex<Signal>,
}

#[derive(Debug, Default)]
struct Offsets {
    by_level: BTreeMap<i32, i64>,
    version: DataVersion,
    changed: bool,
}

#[derive(Debug, Default)]
struct Signal {
    arrived: bool,
    stop: bool,
}

/// `1s 5s 10s …` in milliseconds; units s, m, h, d.
pub(crate) fn parse_levels(text: &str) -> Result<Vec<i64>, String> {
    let levels: Result<Vec<i64>, String> = text
        .split_whitespace()
        .map(|item| {
            let bad = || format!("messageDelayLevel: {item:?} is no delay like 10s, 2m, 1h, 1d");
            let (unit, digits) = match item.char_indices().last() {
                Some((at, 's')) => (1_000, &item[..at]),
                Some((at, 'm')) => (60_000, &item[..at]),
                Some((at, 'h')) => (3_600_000, &item[..at]),
                Some((at, 'd')) => (86_400_000, &item[..at]),
                _ => return Err(bad()),
            };
            let number: i64 = digits.parse().map_err(|_| bad())?;
            number
                .checked_mul(unit)
                .filter(|millis| *millis > 0)
                .ok_or_else(bad)
        })
        .collect();
    match levels {
        Ok(levels) if levels.is_empty() => Err("messageDelayLevel: no level".to_owned()),
        other => other,
    }
}

impl DelayTable {
    /// Reads progress from `folder`.
    pub(crate) fn open(folder: &Path, levels: Vec<i64>) -> Result<Self, LoadError> {
        let path = folder.join("delayOffset.json");
        let file = read_json(&path, DelayOffsets::from_json)?.unwrap_or_default();
        Ok(Self {
            path,
            levels,
            offsets: Mutex::new(Offsets {
                by_level: file.offset_table,
                version: file.data_version,
                changed: false,
            }),
            wake: Condvar::new(),
            signal: Mutex::default(),
        })
    }

    /// Level 18 at most, and never beyond the last one configured.
    #[must_use]
    pub(crate) fn clamp(&self, level: i32) -> i32 {
        level.min(self.levels.len() as i32)
    }

    /// Delay of a level, in milliseconds.
    #[must_use]
    pub(crate) fn delay(&self, level: i32) -> i64 {
        let index = usize::try_from(self.clamp(level) - 1).unwrap_or(0);
        self.levels.get(index).copied().unwrap_or(1000)
    }

    /// Says that a delayed message arrived.
    pub(crate) fn arrived(&self) {
        lock(&self.signal).arrived = true;
        self.wake.notify_one();
    }

    /// Ends the scheduler.
    pub(crate) fn stop(&self) {
        lock(&self.signal).stop = true;
        self.wake.notify_all();
    }

    /// The table as code 45 and the file have it.
    #[must_use]
    pub(crate) fn snapshot(&self) -> DelayOffsets {
        let offsets = lock(&self.offsets);
        DelayOffsets {
            data_version: offsets.version,
            offset_table: offsets.by_level.clone(),
        }
    }

    /// Writes the file if anything moved.
    pub(crate) fn flush(&self) -> Result<(), PersistError> {
        if !std::mem::take(&mut lock(&self.offsets).changed) {
            return Ok(());
        }
        write_json(&self.path, &self.snapshot().to_json_pretty())
            .inspect_err(|_| lock(&self.offsets).changed = true)
    }

    fn progress(&self, level: i32) -> Option<i64> {
        lock(&self.offsets).by_level.get(&level).copied()
    }

    fn advance(&self, level: i32, offset: i64, now: Timestamp) {
        let mut offsets = lock(&self.offsets);
        if offsets.by_level.insert(level, offset) != Some(offset) {
            offsets.changed = true;
            let version = offsets.version;
            offsets.version = version.next(version.state_version, now.millis());
        }
    }

    /// Sleeps until woken, at most `limit`; `false`: stop.
    fn nap(&self, limit: Duration) -> bool {
        let mut signal = lock(&self.signal);
        if !signal.arrived && !signal.stop {
            signal = self
                .wake
                .wait_timeout(signal, limit)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        signal.arrived = false;
        !signal.stop
    }
}

/// The scheduler's thread.
pub(crate) fn run(core: &Arc<Core>) {
    let mut wait = Duration::ZERO;
    while core.delays.nap(wait.min(NAP)) {
        wait = NAP;
        for level in 1..=core.delays.levels.len() as i32 {
            match deliver_level(core, level) {
                Next::At(millis) => wait = wait.min(Duration::from_millis(millis.max(1) as u64)),
                Next::Later => wait = wait.min(RETRY),
                Next::Nothing => {}
            }
        }
        if let Err(error) = core.delays.flush() {
            tracing::warn!(%error, "delay offsets not written");
        }
    }
}

enum Next {
    /// The next message is due in so many milliseconds.
    At(i64),
    /// A target cannot be written now.
    Later,
    /// The queue is at its end.
    Nothing,
}

fn deliver_level(core: &Core, level: i32) -> Next {
    let queue = (level - 1) as u32;
    let Some(max) = core.store.max_queue_offset(system::SCHEDULE_TOPIC, queue) else {
        return Next::Nothing;
    };
    let min = core
        .store
        .min_queue_offset(system::SCHEDULE_TOPIC, queue)
        .unwrap_or(0);
    let mut offset = core.delays.progress(level).unwrap_or(0).clamp(min, max);
    while offset < max {
        let now = core.now();
        let latest = now.millis() + core.delays.delay(level);
        let due_in = std::cell::Cell::new(None);
        let filter = |due: i64| {
            // A due time beyond the level's delay means that the clock went back: deliver now.
            let is_due = due <= now.millis() || due > latest;
            if due_in.get().is_none() && !is_due {
                due_in.set(Some(due - now.millis()));
            }
            due_in.get().is_none()
        };
        let outcome = core.store.read(&ReadRequest {
            topic: system::SCHEDULE_TOPIC,
            queue_id: queue,
            offset,
            max_messages: BATCH,
            max_bytes: 4 << 20,
            filter: &filter,
        });
        for (record, index) in outcome.messages.iter().zip(&outcome.queue_offsets) {
            if !deliver(core, record) {
                return Next::Later;
            }
            offset = index + 1;
            core.delays.advance(level, offset, now);
        }
        if let Some(millis) = due_in.get() {
            return Next::At(millis);
        }
        match outcome.status {
            ReadStatus::Found => {}
            _ if outcome.next > offset => {
                offset = outcome.next;
                core.delays.advance(level, offset, now);
            }
            _ => return Next::Nothing,
        }
    }
    Next::Nothing
}

/// Moves one message to its real topic; `false`: try again later.
fn deliver(core: &Core, record: &[u8]) -> bool {
    let Ok((record, _)) = Record::decode(record) else {
        tracing::error!("a delayed message cannot be read and is skipped");
        return true;
    };
    let Some(topic) = properties::get_str(record.properties, names::REAL_TOPIC) else {
        tracing::error!(
            offset = record.physical_offset,
            "a delayed message has no target"
        );
        return true;
    };
    if topic == system::TRANS_HALF_TOPIC || core.topics.get(topic).is_none() {
        tracing::warn!(topic, "the target of a delayed message is gone: dropped");
        return true;
    }
    let queue = properties::get_str(record.properties, names::REAL_QID);
    let queue_id = queue.and_then(|text| text.parse().ok()).unwrap_or(0u32);
    let mut text = Vec::with_capacity(record.properties.len() + 16);
    let dropped = [
        names::DELAY,
        names::TIMER_DELIVER_MS,
        names::TIMER_DELAY_SEC,
        names::WAIT,
    ];
    properties::copy_without(record.properties, &dropped, &mut text);
    properties::push(&mut text, names::WAIT, b"false");
    let again = copy::of(&record, (topic, queue_id), &text);
    match core.store.append_one(&again) {
        Ok(appended) => {
            count(core, topic, u64::from(appended.bytes));
            true
        }
        Err(error) => keep_or_drop(topic, &error),
    }
}

/// Counts a delivery as Java does: the scheduler is a group that reads the schedule topic.
fn count(core: &Core, topic: &str, bytes: u64) {
    core.stats.add(Stat::GroupGetNums, OWN_KEY, 1);
    core.stats.add(Stat::GroupGetSize, OWN_KEY, bytes);
    core.stats.stored(topic, MessageType::Delay, (1, bytes));
}

fn keep_or_drop(topic: &str, error: &AppendError) -> bool {
    let dropped = error.class() == ErrorClass::Caller;
    tracing::warn!(topic, %error, dropped, "a delayed message was not delivered");
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_with_their_units_and_bad_ones_named() {
        assert_eq!(
            parse_levels("1s 2m 3h 1d").unwrap(),
            [1_000, 120_000, 10_800_000, 86_400_000]
        );
        for bad in ["", "5", "x s", "0s", "-1s", "9999999999999999d"] {
            assert!(parse_levels(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_level_beyond_the_last_is_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let table = DelayTable::open(folder.path(), vec![1_000, 5_000]).unwrap();
        assert_eq!(table.clamp(18), 2);
        assert_eq!(table.delay(18), 5_000);
        assert_eq!(table.delay(1), 1_000);
    }
}
