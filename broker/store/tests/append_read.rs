//! Appending and reading through the public API: offsets, statuses, limits, filters, file rolls.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

mod common;

use common::*;
use rmq_store::*;
use rmq_types::{CommitLogOffset, Timestamp};

#[test]
fn messages_come_back_in_order_with_dense_offsets() {
    let dir = tempfile::tempdir().unwrap();
    let (store, report) = open(dir.path());
    assert!(report.clean);
    for index in 0..200u32 {
        let appended = put(&store, "T", index % 2, &index.to_be_bytes());
        assert_eq!(appended.queue_offset.get(), u64::from(index / 2));
    }
    let read = bodies(&store, "T", 1);
    assert_eq!(read.len(), 100);
    assert_eq!(read[99], 199u32.to_be_bytes());
}

#[test]
fn a_group_mixes_topics_and_reports_each_message() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let long = vec![0; 5 << 20];
    let properties = vec![b'p'; 32_768];
    let group = [
        message("A", 0, b"1", b""),
        message("A", 0, &long, b""),
        message("B", 3, b"2", b"TAGS\x01x\x02"),
        message("A", 0, b"3", &properties),
        message("../x", 0, b"4", b""),
        message("A", 1 << 20, b"5", b""),
        message("A", 0, b"6", b""),
    ];
    let mut results = Vec::new();
    store.append(&group, &mut results);
    assert!(matches!(results[1], Err(AppendError::BodyTooLong { .. })));
    assert!(matches!(
        results[3],
        Err(AppendError::PropertiesTooLong { .. })
    ));
    assert!(matches!(results[4], Err(AppendError::Topic(_))));
    assert!(matches!(results[5], Err(AppendError::QueueId(_))));
    assert_eq!(results[6].as_ref().unwrap().queue_offset.get(), 1);
    assert_eq!(
        results[0].as_ref().unwrap().end,
        results[2].as_ref().unwrap().offset
    );
    assert_eq!(bodies(&store, "A", 0), [b"1", b"6"]);
    assert_eq!(bodies(&store, "B", 3), [b"2"]);
}

#[test]
fn records_that_do_not_fit_the_rest_of_a_file_start_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open_with(StoreOptions {
        segment_bytes: 1 << 20,
        ..options(dir.path())
    });
    let first = put(&store, "T", 0, &vec![1; 700 << 10]);
    let second = put(&store, "T", 0, &vec![2; 400 << 10]);
    assert_eq!(first.offset.get(), 0);
    assert_eq!(second.offset.get(), 1 << 20);
    let too_long = store.append_one(&message("T", 0, &vec![3; 1 << 20], b""));
    assert!(matches!(too_long, Err(AppendError::RecordTooLong { .. })));
    let third = put(&store, "T", 0, &vec![4; 700 << 10]);
    assert_eq!(third.offset.get(), 2 << 20);
    let lengths: Vec<_> = bodies(&store, "T", 0).iter().map(Vec::len).collect();
    assert_eq!(lengths, [700 << 10, 400 << 10, 700 << 10]);
    store.shutdown().unwrap();
    drop(store);
    let (store, report) = open_with(StoreOptions {
        segment_bytes: 1 << 20,
        ..options(dir.path())
    });
    assert!(report.clean && report.damaged.is_empty());
    assert_eq!(bodies(&store, "T", 0).len(), 3);
}

#[test]
fn a_record_may_fill_a_file_but_for_the_last_eight_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let fits = (64 << 10) - 91 - 1 - 8;
    let first = put(&store, "T", 0, &vec![1; fits]);
    assert_eq!(
        (first.offset.get(), u64::from(first.bytes)),
        (0, (64 << 10) - 8)
    );
    let second = put(&store, "T", 0, b"x");
    assert_eq!(second.offset.get(), 64 << 10);
    let over = store.append_one(&message("T", 0, &vec![1; fits + 1], b""));
    assert!(matches!(over, Err(AppendError::RecordTooLong { .. })));
}

#[test]
fn each_status_has_its_next_offset() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let status = |offset| {
        let outcome = store.read(&request("T", 0, offset));
        (outcome.status, outcome.next)
    };
    assert_eq!(status(7), (ReadStatus::NoMatchedLogicQueue, 0));
    for _ in 0..100 {
        put(&store, "T", 0, b"x");
    }
    assert_eq!(status(-1), (ReadStatus::OffsetTooSmall, 0));
    assert_eq!(status(i64::MIN), (ReadStatus::OffsetTooSmall, 0));
    assert_eq!(status(100), (ReadStatus::OffsetOverflowOne, 100));
    assert_eq!(status(101), (ReadStatus::OffsetOverflowBadly, 100));
    assert_eq!(status(i64::MAX), (ReadStatus::OffsetOverflowBadly, 100));
    assert_eq!(status(0), (ReadStatus::Found, 32));
    assert_eq!(status(90), (ReadStatus::Found, 100));
    let none = ReadRequest {
        filter: &|_| false,
        ..request("T", 0, 10)
    };
    let outcome = store.read(&none);
    assert_eq!(
        (outcome.status, outcome.next),
        (ReadStatus::NoMatchedMessage, 100)
    );
    let zero = ReadRequest {
        max_messages: 0,
        ..request("T", 0, 10)
    };
    assert_eq!(store.read(&zero).next, 10);
}

#[test]
fn byte_limits_hold_but_one_message_always_comes() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for _ in 0..10 {
        put(&store, "T", 0, &[0; 1000]);
    }
    let read = |max_bytes| {
        store
            .read(&ReadRequest {
                max_bytes,
                ..request("T", 0, 0)
            })
            .messages
            .len()
    };
    assert_eq!((read(1), read(2500), read(1 << 20)), (1, 2, 10));
}

#[test]
fn the_filter_sees_tags_codes_and_the_next_offset_passes_what_it_left() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for tag in ["a", "b", "b", "a", "b"] {
        let properties = format!("TAGS\u{1}{tag}\u{2}");
        store
            .append_one(&message("T", 0, b"x", properties.as_bytes()))
            .unwrap();
    }
    let wanted = i64::from(rmq_types::java_hash("a"));
    let outcome = store.read(&ReadRequest {
        filter: &|code| code == wanted,
        ..request("T", 0, 1)
    });
    assert_eq!(outcome.queue_offsets, [3]);
    assert_eq!(outcome.next, 5);
}

#[test]
fn far_behind_the_end_fewer_messages_come_and_the_reader_counts_as_cold() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open_with(StoreOptions {
        memory_bytes: 10_000,
        ..options(dir.path())
    });
    for _ in 0..100 {
        put(&store, "T", 0, &[0; 1000]);
    }
    let behind = store.read(&request("T", 0, 0));
    assert_eq!((behind.messages.len(), behind.cold), (8, true));
    let near = store.read(&request("T", 0, 98));
    assert_eq!((near.messages.len(), near.cold), (2, false));
}

#[test]
fn records_are_found_by_log_offset_and_forged_offsets_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let appended = put(&store, "T", 0, b"hello");
    assert_eq!(
        store.read_at(appended.offset).unwrap().len(),
        appended.bytes as usize
    );
    for offset in [1, 50, appended.end.get(), 64 << 10, u64::MAX] {
        assert!(
            store.read_at(CommitLogOffset::new(offset)).is_err(),
            "{offset}"
        );
    }
}

#[test]
fn an_offset_for_a_time_is_exact_at_the_borders() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::at(1_000);
    let (store, _) = MessageStore::open(
        options(dir.path()),
        std::sync::Arc::new(NoListener),
        clock.clone(),
    )
    .unwrap();
    for time in [1_000, 1_050, 1_100] {
        clock.set(time);
        put(&store, "T", 0, b"x");
    }
    let at = |time, boundary| {
        store
            .offset_by_time("T", 0, Timestamp::from_millis(time), boundary)
            .unwrap()
    };
    let lower = [
        (999, 0),
        (1_000, 0),
        (1_001, 1),
        (1_100, 2),
        (1_101, 3),
        (0, 0),
        (-1, 0),
    ];
    for (time, expected) in lower {
        assert_eq!(at(time, Boundary::Lower), expected, "{time}");
    }
    assert_eq!(at(i64::MAX, Boundary::Lower), 3);
    for (time, expected) in [(999, 0), (1_000, 0), (1_049, 0), (1_050, 1), (1_101, 2)] {
        assert_eq!(at(time, Boundary::Upper), expected, "{time}");
    }
    assert_eq!(store.earliest_time(), Some(Timestamp::from_millis(1_000)));
    assert_eq!(
        store.store_time_of("T", 0, 1),
        Some(Timestamp::from_millis(1_050))
    );
}

#[test]
fn asking_for_unknown_queues_makes_none() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for queue in 0..1000 {
        assert_eq!(store.max_queue_offset("T", queue), None);
        assert_eq!(store.min_queue_offset("T", queue), None);
        assert_eq!(
            store.offset_by_time("T", queue, Timestamp::default(), Boundary::Lower),
            None
        );
        store.read(&request("T", queue, 0));
    }
    assert_eq!(store.state().queues, 0);
    assert_eq!(
        std::fs::read_dir(dir.path().join("consumequeue"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn reading_goes_on_across_written_and_waiting_entries() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for index in 0..180u32 {
        put(&store, "T", 0, &index.to_be_bytes());
        if index % 70 == 0 {
            store.checkpoint().unwrap();
        }
    }
    let expected: Vec<_> = (0..180u32)
        .map(|index| index.to_be_bytes().to_vec())
        .collect();
    assert_eq!(bodies(&store, "T", 0), expected);
    let file = dir.path().join("consumequeue/T/0/00000000000000000000");
    assert_eq!(std::fs::metadata(file).unwrap().len(), 50 * 20);
}

#[test]
fn listeners_hear_of_arrivals_in_the_append_round() {
    let dir = tempfile::tempdir().unwrap();
    let heard = std::sync::Arc::new(Heard::default());
    let (store, _) =
        MessageStore::open(options(dir.path()), heard.clone(), HandClock::at(5)).unwrap();
    let group = [
        message("T", 1, b"a", b""),
        message("T", 1, b"b", b""),
        message("U", 0, b"c", b""),
    ];
    store.append(&group, &mut Vec::new());
    let told = heard.told.lock().unwrap().clone();
    assert_eq!(
        told.arrivals,
        [("T".into(), 1, 0), ("T".into(), 1, 1), ("U".into(), 0, 0)]
    );
}

#[test]
fn many_threads_get_dense_offsets_across_file_rolls_and_queue_writes() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let threads: Vec<_> = (0..4u32)
        .map(|thread| {
            let store = store.clone();
            std::thread::spawn(move || {
                let mut results = Vec::new();
                for round in 0..150u32 {
                    let body = [thread.to_be_bytes(), round.to_be_bytes()].concat();
                    let group = [
                        message("T", 0, &body, b""),
                        message("T", thread, &body, b""),
                    ];
                    store.append(&group, &mut results);
                    assert!(results.iter().all(Result::is_ok));
                    if round % 40 == thread {
                        store.checkpoint().unwrap();
                    }
                    let seen = bodies(&store, "T", thread);
                    assert!(seen.contains(&body));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(bodies(&store, "T", 0).len(), 4 * 150 + 150);
    for thread in 1..4 {
        assert_eq!(bodies(&store, "T", thread).len(), 150);
    }
    let copy = crash_copy(dir.path());
    let (again, _) = open(copy.path());
    assert_eq!(bodies(&again, "T", 0), bodies(&store, "T", 0));
}

#[test]
fn under_sync_flush_a_message_is_read_only_once_it_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let heard = std::sync::Arc::new(Heard::default());
    let sync = StoreOptions {
        flush: FlushMode::Sync,
        ..options(dir.path())
    };
    let (store, _) = MessageStore::open(sync, heard.clone(), HandClock::at(5)).unwrap();
    for index in 0..50 {
        let appended = put(&store, "T", 0, b"x");
        let told = heard.wait(|told| told.durable >= appended.end.get());
        assert_eq!(told.arrivals.len(), index + 1);
        assert_eq!(store.max_queue_offset("T", 0), Some(index as i64 + 1));
    }
}
