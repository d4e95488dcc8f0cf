//! Options that change while the store is open.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

mod common;

use std::{sync::Arc, time::Duration};

use rmq_store::{AppendError, MessageStore, NoListener, ReadLimits, Tuning};

use common::{HandClock, message, open_with, options, put, request};

fn tuning() -> Tuning {
    Tuning {
        reserved_for: Duration::from_hours(72),
        delete_when: Vec::new(),
        disk_max_used_percent: 100,
        disk_force_clean_percent: 100,
        disk_full_percent: 100,
        message_bytes_max: 1 << 20,
        read_limits: ReadLimits::default(),
        flush_interval: Duration::from_millis(10),
    }
}

#[test]
fn a_shorter_retention_deletes_files_of_an_open_store() {
    let folder = tempfile::tempdir().unwrap();
    // By this clock every file is some decades old.
    let clock = HandClock::at(4_000_000_000_000);
    let options = options(folder.path());
    let (store, _) = MessageStore::open(options, Arc::new(NoListener), clock).unwrap();
    store.retune(Tuning {
        reserved_for: Duration::from_hours(2_000_000),
        ..tuning()
    });
    while store.state().log_files < 3 {
        put(&store, "t", 0, &[7; 1024]);
    }
    assert_eq!(store.delete_expired(true).log_files, 0);
    store.retune(tuning());
    assert!(store.delete_expired(true).log_files > 0);
}

#[test]
fn limits_of_messages_and_reads_count_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open_with(options(folder.path()));
    for _ in 0..3 {
        put(&store, "t", 0, b"body");
    }
    let mut tuned = tuning();
    tuned.message_bytes_max = 3;
    tuned.read_limits.memory_messages = 2;
    store.retune(tuned);
    let refused = store.append_one(&message("t", 0, b"body", b""));
    assert!(matches!(
        refused,
        Err(AppendError::BodyTooLong { max: 3, .. })
    ));
    assert_eq!(store.read(&request("t", 0, 0)).messages.len(), 2);
}
