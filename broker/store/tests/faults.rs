//! Full disks, failing syncs and deletion: what is refused, what goes on, what recovers by itself.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

mod common;

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use common::*;
use rmq_store::*;

/// Makes one kind of action fail while it is switched on.
struct Fault {
    action: DiskAction,
    errno: i32,
    on: AtomicBool,
}

impl Fault {
    fn new(action: DiskAction, errno: i32) -> Arc<Self> {
        Arc::new(Self {
            action,
            errno,
            on: AtomicBool::new(false),
        })
    }

    fn set(&self, on: bool) {
        self.on.store(on, Ordering::SeqCst);
    }
}

impl FaultHook for Fault {
    fn before(&self, action: DiskAction) -> io::Result<()> {
        if self.on.load(Ordering::SeqCst) && action == self.action {
            return Err(io::Error::from_raw_os_error(self.errno));
        }
        Ok(())
    }
}

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_recovers_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let fault = Fault::new(DiskAction::AllocateLog, ENOSPC);
    let options = StoreOptions {
        faults: Some(fault.clone()),
        ..options(dir.path())
    };
    let (store, _) = open_with(options.clone());
    fault.set(true);
    let mut stored = 0;
    let refused = loop {
        match store.append_one(&message("T", 0, &[7; 500], b"")) {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 100_000, "the fault never came");
    };
    assert_eq!(refused, AppendError::DiskFull);
    assert!(refused.is_retryable());
    assert_eq!(store.state().not_writable, Some(NotWritable::NoSpace));
    assert_eq!(bodies(&store, "T", 0).len(), stored);
    fault.set(false);
    for _ in 0..6_000 {
        if store.is_writable() {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    put(&store, "T", 0, b"again");
    assert_eq!(bodies(&store, "T", 0).len(), stored + 1);
    store.shutdown().unwrap();
    drop(store);
    let (store, report) = open_with(options);
    assert!(report.damaged.is_empty());
    assert_eq!(bodies(&store, "T", 0).len(), stored + 1);
}

#[test]
fn a_failed_sync_poisons_the_store_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let fault = Fault::new(DiskAction::SyncLog, EIO);
    let heard = Arc::new(Heard::default());
    let options = StoreOptions {
        faults: Some(fault.clone()),
        ..options(dir.path())
    };
    let (store, _) = MessageStore::open(options, heard.clone(), HandClock::at(1)).unwrap();
    put(&store, "T", 0, b"1");
    fault.set(true);
    assert!(store.flush().is_err());
    fault.set(false);
    assert!(matches!(
        store.append_one(&message("T", 0, b"2", b"")),
        Err(AppendError::Poisoned(_))
    ));
    assert!(store.flush().is_err());
    assert_eq!(store.durable_offset().get(), 0);
    assert_eq!(
        heard.wait(|told| !told.poisoned.is_empty()).poisoned.len(),
        1
    );
    assert_eq!(bodies(&store, "T", 0), [b"1"]);
    assert!(store.shutdown().is_err());
    assert!(dir.path().join("abort").exists());
}

#[test]
fn under_sync_flush_nothing_is_told_durable_that_failed() {
    let dir = tempfile::tempdir().unwrap();
    let fault = Fault::new(DiskAction::SyncLog, EIO);
    let heard = Arc::new(Heard::default());
    let options = StoreOptions {
        faults: Some(fault.clone()),
        flush: FlushMode::Sync,
        ..options(dir.path())
    };
    let (store, _) = MessageStore::open(options, heard.clone(), HandClock::at(1)).unwrap();
    let first = put(&store, "T", 0, b"1");
    heard.wait(|told| told.durable >= first.end.get());
    fault.set(true);
    put(&store, "T", 0, b"2");
    let told = heard.wait(|told| !told.poisoned.is_empty());
    assert_eq!((told.durable, told.arrivals.len()), (first.end.get(), 1));
    assert_eq!(store.max_queue_offset("T", 0), Some(1));
}

#[test]
fn under_sync_flush_zeros_that_cannot_be_forced_ahead_poison_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let fault = Fault::new(DiskAction::SettleLog, EIO);
    fault.set(true);
    let heard = Arc::new(Heard::default());
    let options = StoreOptions {
        faults: Some(fault),
        flush: FlushMode::Sync,
        ..options(dir.path())
    };
    let (store, _) = MessageStore::open(options, heard.clone(), HandClock::at(1)).unwrap();
    heard.wait(|told| !told.poisoned.is_empty());
    assert!(matches!(
        store.append_one(&message("T", 0, b"1", b"")),
        Err(AppendError::Poisoned(_))
    ));
}

#[test]
fn under_sync_flush_a_failed_write_of_the_log_fails_its_whole_group_and_poisons_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let fault = Fault::new(DiskAction::WriteLog, EIO);
    let options = StoreOptions {
        faults: Some(fault.clone()),
        flush: FlushMode::Sync,
        ..options(dir.path())
    };
    let heard = Arc::new(Heard::default());
    let (store, _) = MessageStore::open(options.clone(), heard.clone(), HandClock::at(1)).unwrap();
    let first = put(&store, "T", 0, b"1");
    heard.wait(|told| told.durable >= first.end.get());
    fault.set(true);
    let group = [message("T", 0, b"2", b""), message("T", 1, b"3", b"")];
    let mut results = Vec::new();
    store.append(&group, &mut results);
    assert_eq!(results.len(), 2);
    for result in results {
        assert!(matches!(result, Err(AppendError::Poisoned(_))));
    }
    fault.set(false);
    assert!(store.append_one(&message("T", 0, b"4", b"")).is_err());
    assert_eq!(bodies(&store, "T", 0), [b"1"]);
    assert!(store.shutdown().is_err());
    drop(store);
    let (store, _) = open_with(options);
    assert_eq!(bodies(&store, "T", 0), [b"1"]);
    assert_eq!(put(&store, "T", 0, b"5").queue_offset.get(), 1);
}

#[test]
fn queue_writes_that_fail_are_made_later_and_the_checkpoint_waits_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let fault = Fault::new(DiskAction::WriteQueue, ENOSPC);
    let options = StoreOptions {
        faults: Some(fault.clone()),
        ..options(dir.path())
    };
    let (store, _) = open_with(options);
    for _ in 0..10 {
        put(&store, "T", 0, b"x");
    }
    fault.set(true);
    assert!(store.checkpoint().is_err());
    assert_eq!(store.state().queues_durable, 0);
    assert_eq!(bodies(&store, "T", 0).len(), 10);
    put(&store, "T", 0, b"x");
    fault.set(false);
    store.checkpoint().unwrap();
    assert_eq!(store.state().queues_durable, store.max_offset().get());
    assert_eq!(bodies(&store, "T", 0).len(), 11);
}

/// Lets the first write of queues pass and no other, while it is switched on.
struct OneWrite {
    on: AtomicBool,
    written: AtomicBool,
    all_synced: AtomicBool,
}

impl FaultHook for OneWrite {
    fn before(&self, action: DiskAction) -> io::Result<()> {
        if action == DiskAction::WriteQueue
            && self.on.load(Ordering::SeqCst)
            && self.written.swap(true, Ordering::SeqCst)
        {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        Ok(())
    }

    fn all_synced(&self) {
        self.all_synced.store(true, Ordering::SeqCst);
    }
}

#[test]
fn queues_written_in_a_round_that_failed_are_synced_before_the_checkpoint_moves() {
    let dir = tempfile::tempdir().unwrap();
    let hook = Arc::new(OneWrite {
        on: AtomicBool::new(true),
        written: AtomicBool::new(false),
        all_synced: AtomicBool::new(false),
    });
    let options = StoreOptions {
        faults: Some(hook.clone()),
        ..options(dir.path())
    };
    let (store, _) = open_with(options);
    put(&store, "T", 0, b"x");
    put(&store, "T", 1, b"x");
    assert!(store.checkpoint().is_err());
    assert!(hook.written.load(Ordering::SeqCst));
    assert!(!hook.all_synced.load(Ordering::SeqCst));
    hook.on.store(false, Ordering::SeqCst);
    store.checkpoint().unwrap();
    assert!(hook.all_synced.load(Ordering::SeqCst));
    assert_eq!(store.state().queues_durable, store.max_offset().get());
}

#[test]
fn after_a_failed_sync_of_queues_the_checkpoint_stays_until_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let fault = Fault::new(DiskAction::SyncQueue, EIO);
    let options = StoreOptions {
        faults: Some(fault.clone()),
        ..options(dir.path())
    };
    let (store, _) = open_with(options.clone());
    put(&store, "T", 0, b"x");
    fault.set(true);
    assert!(store.checkpoint().is_err());
    fault.set(false);
    assert!(store.checkpoint().is_err(), "no later sync proves anything");
    put(&store, "T", 0, b"y");
    assert!(store.checkpoint().is_err());
    assert_eq!(store.state().queues_durable, 0);
    assert_eq!(bodies(&store, "T", 0).len(), 2);
    drop(store);
    let (store, report) = open_with(options);
    assert_eq!(
        report.records, 2,
        "the walk begins where the checkpoint stayed"
    );
    assert_eq!(bodies(&store, "T", 0).len(), 2);
    put(&store, "T", 0, b"z");
    store.checkpoint().unwrap();
    assert_eq!(store.state().queues_durable, store.max_offset().get());
}

/// Fills four log files with messages of two topics, one of which stops early.
fn fill(store: &MessageStore) {
    for index in 0..500u32 {
        store
            .append_one(&message("T", 0, &[1; 400], &keys(&format!("k{index}"))))
            .unwrap();
        if index < 60 {
            put(store, "Old", 0, &index.to_be_bytes());
        }
    }
    store.checkpoint().unwrap();
    indexed(store);
}

fn log_files(dir: &std::path::Path) -> usize {
    fs::read_dir(dir.join("commitlog")).unwrap().count()
}

#[test]
fn expired_files_go_with_their_queue_and_index_files() {
    let dir = tempfile::tempdir().unwrap();
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_millis();
    let clock = HandClock::at(now as i64);
    let options = StoreOptions {
        index_entries: 100,
        ..options(dir.path())
    };
    let (store, _) =
        MessageStore::open(options.clone(), Arc::new(NoListener), clock.clone()).unwrap();
    fill(&store);
    let files = store.state().log_files;
    assert!(files >= 4);
    assert_eq!(store.delete_expired(true), Cleaned::default());
    assert_eq!(store.delete_expired(false), Cleaned::default());
    clock.advance(73 * 3_600_000);
    let held = store.read(&request("T", 0, 0));
    let cleaned = store.delete_expired(true);
    assert_eq!(cleaned.log_files, files - 1);
    assert!(
        cleaned.queue_files >= 4 && cleaned.index_files >= 2,
        "{cleaned:?}"
    );
    assert_eq!(store.state().log_files, 1);
    assert!(log_files(dir.path()) <= 2);
    assert_eq!(held.messages[0].len(), held.messages[0].to_vec().len());

    let min = store.min_queue_offset("T", 0).unwrap();
    assert!(min > 0);
    let first = store.log_offset_of("T", 0, min).unwrap().unwrap();
    assert!(first >= store.min_offset());
    let outcome = store.read(&request("T", 0, 0));
    assert_eq!(
        (outcome.status, outcome.next),
        (ReadStatus::OffsetTooSmall, min)
    );
    assert_eq!(bodies(&store, "T", 0).len(), 500 - min as usize);
    assert_eq!(store.min_queue_offset("Old", 0), Some(60));
    assert_eq!(store.max_queue_offset("Old", 0), Some(60));
    assert_eq!(
        store.read(&request("Old", 0, 60)).status,
        ReadStatus::OffsetOverflowOne
    );
    assert!(by_key(&store, "T", "k0").is_empty());
    assert_eq!(by_key(&store, "T", "k499").len(), 1);
    assert_eq!(put(&store, "Old", 0, b"x").queue_offset.get(), 60);

    store.shutdown().unwrap();
    drop(store);
    let (store, _) = open_with(options);
    assert_eq!(store.min_queue_offset("T", 0), Some(min));
    assert_eq!(store.max_queue_offset("Old", 0), Some(61));
    assert_eq!(bodies(&store, "Old", 0), [b"x"]);
}

#[test]
fn files_expire_at_the_chosen_hour_only() {
    let dir = tempfile::tempdir().unwrap();
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_millis() as i64;
    let day = now / 86_400_000 * 86_400_000 + 10 * 86_400_000;
    let clock = HandClock::at(day);
    let options = StoreOptions {
        delete_when: vec![4],
        utc_offset: Duration::from_hours(2),
        ..options(dir.path())
    };
    let (store, _) = MessageStore::open(options, Arc::new(NoListener), clock.clone()).unwrap();
    fill(&store);
    clock.set(day + 4 * 3_600_000);
    assert_eq!(store.delete_expired(false).log_files, 0);
    clock.set(day + 2 * 3_600_000);
    assert!(store.delete_expired(false).log_files > 0);
}

#[test]
fn a_disk_over_its_limits_is_freed_first_and_then_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open_with(StoreOptions {
        disk_force_clean_percent: 0,
        ..options(dir.path())
    });
    fill(&store);
    if store.state().disk_used_percent > 0 {
        assert!(store.delete_expired(false).log_files > 0);
        assert_eq!(store.state().log_files, 1);
    }
    drop(store);
    let (store, _) = open_with(StoreOptions {
        disk_full_percent: 0,
        ..options(dir.path())
    });
    if store.state().disk_used_percent > 0 {
        assert!(matches!(
            store.append_one(&message("T", 0, b"x", b"")),
            Err(AppendError::DiskFull)
        ));
        assert!(!bodies(&store, "T", 0).is_empty());
    }
}

#[test]
fn files_have_javas_lengths_and_idle_queues_take_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open_with(StoreOptions {
        queue_file_units: 300_000,
        ..options(dir.path())
    });
    for queue in 0..4 {
        put(&store, "T", queue, b"x");
    }
    store.checkpoint().unwrap();
    let data = fs::metadata(dir.path().join("consumequeue/T/3/00000000000000000000")).unwrap();
    assert_eq!(data.len(), 6_000_000);
    assert!(data.blocks() * 512 <= 16 * 1024);
    let log = fs::metadata(dir.path().join("commitlog/00000000000000000000")).unwrap();
    assert_eq!(log.len(), 64 * 1024);
    let checkpoint = fs::metadata(dir.path().join("checkpoint")).unwrap();
    assert_eq!(checkpoint.len(), 4096);
}

/// Thread whose append stalls.
const STALLED: &str = "stalled";

/// A clock that stops the append which asks it, as a disk does that stalls under the append lock.
struct Stall {
    reached: std::sync::Barrier,
    over: std::sync::Barrier,
}

impl rmq_types::Clock for Stall {
    fn now(&self) -> rmq_types::Timestamp {
        if std::thread::current().name() == Some(STALLED) {
            self.reached.wait();
            self.over.wait();
        }
        rmq_types::SystemClock.now()
    }
}

#[test]
fn an_append_that_stalls_holds_up_no_question_about_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(Stall {
        reached: std::sync::Barrier::new(2),
        over: std::sync::Barrier::new(2),
    });
    let listener = Arc::new(NoListener);
    let (store, _) =
        MessageStore::open(options(dir.path()), listener, Arc::clone(&clock) as _).unwrap();
    store.append_one(&message("T", 0, b"first", b"")).unwrap();
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name(STALLED.to_owned())
            .spawn_scoped(scope, || {
                store.append_one(&message("T", 0, b"second", b"")).unwrap();
            })
            .unwrap();
        clock.reached.wait();
        assert_eq!(store.poison(), None);
        assert!(store.is_writable());
        let state = store.state();
        assert_eq!((state.topics, state.queues), (1, 1));
        assert_eq!(bodies(&store, "T", 0).len(), 1);
        clock.over.wait();
    });
    assert_eq!(bodies(&store, "T", 0).len(), 2);
}
