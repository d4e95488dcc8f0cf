//! What the store's tests share: a clock that is set by hand, small options, a listener that counts.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use rmq_protocol::message::{Record, properties};
use rmq_store::*;
use rmq_types::{Clock, CommitLogOffset, Timestamp};

/// A clock the test sets.
#[derive(Debug)]
pub(crate) struct HandClock(pub(crate) AtomicI64);

impl HandClock {
    pub(crate) fn at(millis: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(millis)))
    }

    pub(crate) fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Remembers what it was told.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) told: Mutex<Told>,
    pub(crate) changed: Condvar,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) arrivals: Vec<(String, u32, u64)>,
    pub(crate) durable: u64,
    pub(crate) poisoned: Vec<String>,
}

impl Heard {
    /// Waits until `enough` holds; fails the test after a minute.
    pub(crate) fn wait(&self, enough: impl Fn(&Told) -> bool) -> Told {
        let told = self.told.lock().unwrap();
        let (told, timeout) = self
            .changed
            .wait_timeout_while(told, Duration::from_mins(1), |told| !enough(told))
            .unwrap();
        assert!(!timeout.timed_out(), "still waiting with {told:?}");
        told.clone()
    }

    fn change(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.told.lock().unwrap());
        self.changed.notify_all();
    }
}

impl StoreListener for Heard {
    fn arrived(&self, topic: &str, queue_id: u32, arrivals: &[Arrival]) {
        self.change(|told| {
            for arrival in arrivals {
                told.arrivals
                    .push((topic.into(), queue_id, arrival.queue_offset.get()));
            }
        });
    }

    fn durable(&self, upto: CommitLogOffset) {
        self.change(|told| told.durable = upto.get());
    }

    fn poisoned(&self, reason: &str) {
        self.change(|told| told.poisoned.push(reason.into()));
    }
}

pub(crate) fn host() -> SocketAddr {
    "127.0.0.1:10911".parse().unwrap()
}

/// Small files, no waiting for intervals: tests call `checkpoint` and `flush` themselves.
pub(crate) fn options(root: &Path) -> StoreOptions {
    StoreOptions {
        segment_bytes: 64 * 1024,
        queue_file_units: 50,
        flush: FlushMode::Async {
            interval: Duration::from_hours(1),
        },
        queue_flush_interval: Duration::from_hours(1),
        disk_full_percent: 100,
        disk_force_clean_percent: 100,
        disk_max_used_percent: 100,
        index_slots: 100,
        index_entries: 1000,
        delete_when: vec![],
        prepare_bytes: 16 * 1024,
        ..StoreOptions::new(root, host())
    }
}

pub(crate) fn open_with(options: StoreOptions) -> (MessageStore, RecoveryReport) {
    MessageStore::open(
        options,
        Arc::new(NoListener),
        HandClock::at(1_700_000_000_000),
    )
    .unwrap()
}

pub(crate) fn open(root: &Path) -> (MessageStore, RecoveryReport) {
    open_with(options(root))
}

pub(crate) fn message<'a>(
    topic: &'a str,
    queue_id: u32,
    body: &'a [u8],
    properties: &'a [u8],
) -> Append<'a> {
    Append {
        topic,
        queue_id,
        tags_code: properties::tags_code(properties),
        flag: 0,
        sys_flag: 0,
        born_at: 1,
        born_host: "10.0.0.1:5000".parse().unwrap(),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body,
        properties,
    }
}

pub(crate) fn put(store: &MessageStore, topic: &str, queue_id: u32, body: &[u8]) -> Appended {
    store
        .append_one(&message(topic, queue_id, body, b""))
        .unwrap()
}

pub(crate) fn request(topic: &str, queue_id: u32, offset: i64) -> ReadRequest<'_> {
    ReadRequest {
        topic,
        queue_id,
        offset,
        max_messages: 32,
        max_bytes: 1 << 20,
        filter: &|_| true,
    }
}

/// All bodies of a queue, read in as many steps as it takes; checks that indexes are dense.
pub(crate) fn bodies(store: &MessageStore, topic: &str, queue_id: u32) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let Some(mut at) = store.min_queue_offset(topic, queue_id) else {
        return found;
    };
    loop {
        let outcome = store.read(&request(topic, queue_id, at));
        if outcome.status != ReadStatus::Found {
            return found;
        }
        for (slice, index) in outcome.messages.iter().zip(&outcome.queue_offsets) {
            let (record, _) = Record::decode(slice).unwrap();
            assert_eq!(record.verify_body(), Ok(()));
            assert_eq!(record.queue_offset, *index);
            assert_eq!(*index, at, "index missing");
            at += 1;
            found.push(record.body.to_vec());
        }
        assert_eq!(outcome.next, at);
    }
}

/// Copies a store's folder as a crash at this moment would leave it.
pub(crate) fn crash_copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    copy(from, to.path());
    to
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Waits until the index has seen the whole log.
pub(crate) fn indexed(store: &MessageStore) {
    for _ in 0..6_000 {
        if store.state().index_behind == 0 {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    assert_eq!(store.state().index_behind, 0, "the index does not follow");
}

/// Bodies that a key query gives.
pub(crate) fn by_key(store: &MessageStore, topic: &str, key: &str) -> Vec<Vec<u8>> {
    let all = (Timestamp::from_millis(0), Timestamp::from_millis(i64::MAX));
    let found = store.query_by_key(topic, key, 64, all.0, all.1);
    found
        .messages
        .iter()
        .map(|slice| Record::decode(slice).unwrap().0.body.to_vec())
        .collect()
}

/// Properties text with KEYS.
pub(crate) fn keys(words: &str) -> Vec<u8> {
    let mut text = Vec::new();
    properties::push(&mut text, properties::names::KEYS, words.as_bytes());
    text
}
