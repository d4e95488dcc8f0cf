//! Key queries (`DefaultMessageStore.queryMessage`).
//!
//! **Invariant:** what comes back has exactly the asked topic and key, was stored within the window by
//! the record's own time, and comes once. The work is bounded by the number of hits looked at.

use std::{
    ops::RangeInclusive,
    thread,
    time::{Duration, Instant},
};

use rmq_protocol::message::{Record, properties};
use rmq_types::{Timestamp, limits};
use rustc_hash::FxHashSet;

use super::{Index, hash_of};
use crate::{core::Core, lock::read_lock, mmap::RecordSlice};

/// Most hits one query looks at.
const HITS_MAX: usize = 200_000;
/// An entry's time is cut to whole seconds.
const COARSE: i64 = 1_000;

/// Longest time a query waits for the index to reach what was stored before it.
const CATCH_UP_MAX: Duration = Duration::from_millis(300);
/// How often it looks.
const CATCH_UP_STEP: Duration = Duration::from_millis(5);

/// What a key query found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The records, oldest first.
    pub messages: Vec<RecordSlice>,
    /// Store time of the last indexed message.
    pub last_update: Timestamp,
    /// Log offset of the last indexed message.
    pub last_offset: u64,
}

impl Index {
    /// Waits for what was stored before: a message is found as soon as its send was answered, as in
    /// Java, whose index follows within a millisecond. One that is far behind answers with what it
    /// has.
    fn catch_up(&self, core: &Core) {
        let (wanted, began) = (core.confirmed(), Instant::now());
        while self.enabled && self.seen() < wanted && began.elapsed() < CATCH_UP_MAX {
            thread::park_timeout(CATCH_UP_STEP);
        }
    }

    /// The newest `max` messages of a topic with a key. May wait a little: not for io threads.
    pub(crate) fn query(
        &self,
        core: &Core,
        topic: &str,
        key: &str,
        max: usize,
        window: RangeInclusive<Timestamp>,
    ) -> Found {
        self.catch_up(core);
        let max = max.min(limits::QUERY_MESSAGES_MAX);
        let hash = hash_of(topic, key, &mut String::new());
        let (begin, end) = (window.start().millis(), window.end().millis());
        let files = read_lock(&self.files);
        let mut found = Found::default();
        if let Some(newest) = files.last() {
            found.last_update = Timestamp::from_millis(newest.end_time());
            found.last_offset = newest.end_offset();
        }
        let mut seen = FxHashSet::default();
        let mut looked_at = 0;
        'files: for file in files.iter().rev() {
            if file.is_empty()
                || file.begin_time() > end
                || file.end_time().saturating_add(COARSE) < begin
            {
                continue;
            }
            for hit in file.hits(hash) {
                looked_at += 1;
                if found.messages.len() >= max || looked_at > HITS_MAX {
                    break 'files;
                }
                let near = hit.about <= end && hit.about.saturating_add(COARSE) >= begin;
                // A time beyond 68 years after the first record, or before it, was clipped.
                let clipped = hit.about == file.begin_time();
                if (near || clipped)
                    && seen.insert(hit.offset)
                    && let Some(record) = matching(core, hit.offset, topic, key, &window)
                {
                    found.messages.push(record);
                }
            }
        }
        drop(files);
        found.messages.reverse();
        found
    }
}

fn matching(
    core: &Core,
    offset: u64,
    topic: &str,
    key: &str,
    window: &RangeInclusive<Timestamp>,
) -> Option<RecordSlice> {
    let slice = core.chain.record_at(offset).ok()?;
    let (record, _) = Record::decode(&slice).ok()?;
    let fits = record.topic == topic
        && properties::keys(record.properties).any(|word| word == key)
        && window.contains(&Timestamp::from_millis(record.stored_at));
    fits.then_some(slice)
}
