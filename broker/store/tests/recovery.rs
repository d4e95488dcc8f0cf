//! Crashes: the tail cut, zeroed and flipped at every byte; lost queue files; lost checkpoint; reopening
//! without a shutdown. After each, acknowledged messages are there and queues are dense.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

mod common;

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
};

use common::*;
use rmq_store::*;

const LOG: &str = "commitlog/00000000000000000000";

/// Ten messages, a checkpoint, then three more: those are the tail that crashes harm.
fn sample(dir: &Path) -> Vec<Appended> {
    let (store, _) = open(dir);
    let mut appended = Vec::new();
    for index in 0..13u8 {
        let text = if index % 2 == 0 {
            &b"TAGS\x01a\x02"[..]
        } else {
            b""
        };
        let body = [index; 20];
        let one = store.append_one(&message("T", u32::from(index % 2), &body, text));
        appended.push(one.unwrap());
        if index == 9 {
            store.checkpoint().unwrap();
        }
    }
    drop(store);
    appended
}

/// Opens a damaged copy: `whole` records must be there, and the store must work on.
fn check(dir: &Path, whole: usize, what: &str) {
    let (store, report) = open(dir);
    assert!(!report.clean, "{what}");
    let count = |store: &MessageStore| bodies(store, "T", 0).len() + bodies(store, "T", 1).len();
    assert_eq!(count(&store), whole, "{what}: {report:?}");
    put(&store, "T", 0, b"more");
    assert_eq!(count(&store), whole + 1, "{what}");
    drop(store);
    let (store, _) = open(dir);
    assert_eq!(count(&store), whole + 1, "{what}, opened again");
    assert_eq!(bodies(&store, "T", 0).last().unwrap(), b"more", "{what}");
}

fn harm(dir: &Path, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(dir.join(LOG)).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

#[test]
fn the_tail_zeroed_from_any_byte_keeps_every_whole_record() {
    let dir = tempfile::tempdir().unwrap();
    let appended = sample(dir.path());
    let end = appended[12].end.get();
    for at in appended[11].offset.get()..end {
        let copy = crash_copy(dir.path());
        harm(copy.path(), at, &vec![0; (end - at) as usize]);
        // A record whose last bytes are zero anyway is whole without them.
        let log = fs::read(copy.path().join(LOG)).unwrap();
        let original = fs::read(dir.path().join(LOG)).unwrap();
        let whole = appended
            .iter()
            .filter(|one| log[..one.end.get() as usize] == original[..one.end.get() as usize])
            .count();
        check(copy.path(), whole, &format!("zero from {at}"));
    }
}

/// Records a queue gives; the first five of each must be whole.
fn readable(store: &MessageStore, queue_id: u32) -> usize {
    let outcome = store.read(&request("T", queue_id, 0));
    assert_eq!(outcome.queue_offsets.get(..5), Some(&[0, 1, 2, 3, 4][..]));
    for slice in &outcome.messages {
        let (record, _) = rmq_protocol::message::Record::decode(slice).unwrap();
        assert_eq!(record.verify_body(), Ok(()));
    }
    outcome.messages.len()
}

#[test]
fn a_byte_flipped_anywhere_in_the_tail_never_shows_a_broken_record() {
    let dir = tempfile::tempdir().unwrap();
    let appended = sample(dir.path());
    let log = fs::read(dir.path().join(LOG)).unwrap();
    for at in appended[11].offset.get()..appended[12].offset.get() {
        let copy = crash_copy(dir.path());
        harm(copy.path(), at, &[log[at as usize] ^ 0xFF]);
        let (store, _) = open(copy.path());
        // Fields without a check (queue, index, time …) may be harmed and the record still be whole.
        let left = readable(&store, 0) + readable(&store, 1);
        assert!((10..=13).contains(&left), "flip at {at} leaves {left}");
        let more = put(&store, "T", 1, b"more");
        drop(store);
        let (store, _) = open(copy.path());
        let again = store.read(&request("T", 1, more.queue_offset.get() as i64));
        assert_eq!(again.messages.len(), 1, "flip at {at}");
        assert!(
            readable(&store, 0) + readable(&store, 1) >= left,
            "flip at {at}"
        );
    }
}

#[test]
fn a_log_cut_short_is_refused_like_java_does_and_an_empty_last_file_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path());
    let copy = crash_copy(dir.path());
    let file = OpenOptions::new()
        .write(true)
        .open(copy.path().join(LOG))
        .unwrap();
    file.set_len(1000).unwrap();
    let refused = MessageStore::open(
        options(copy.path()),
        std::sync::Arc::new(NoListener),
        HandClock::at(1),
    );
    assert!(matches!(
        refused,
        Err(OpenError::SegmentSize { found: 1000, .. })
    ));
    let copy = crash_copy(dir.path());
    fs::write(copy.path().join("commitlog/00000000000000065536"), b"").unwrap();
    check(copy.path(), 13, "empty last file");
}

#[test]
fn a_stale_record_behind_a_torn_one_never_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let appended = sample(dir.path());
    // Record 11 is torn, record 12 of the same size is whole behind it.
    harm(dir.path(), appended[11].offset.get(), &[0; 8]);
    let (store, report) = open(dir.path());
    assert_eq!(report.log_end, appended[11].offset.get());
    // The new record ends exactly where the stale one starts.
    let one = store.append_one(&message("T", 1, &[99; 20], b"")).unwrap();
    assert_eq!(one.end, appended[11].end);
    drop(store);
    let (store, report) = open(dir.path());
    assert_eq!(report.log_end, one.end.get());
    assert_eq!(bodies(&store, "T", 0).len(), 6);
    assert_eq!(bodies(&store, "T", 1).last().unwrap(), &[99; 20]);
}

#[test]
fn all_messages_are_back_after_a_crash_without_checkpoint_or_queues() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for index in 0..3000u32 {
        put(&store, "T", index % 3, &index.to_be_bytes());
        if index == 2000 {
            store.checkpoint().unwrap();
        }
    }
    for case in ["nothing", "checkpoint", "consumequeue", "both"] {
        let copy = crash_copy(dir.path());
        if case == "checkpoint" || case == "both" {
            fs::remove_file(copy.path().join("checkpoint")).unwrap();
        }
        if case == "consumequeue" || case == "both" {
            fs::remove_dir_all(copy.path().join("consumequeue")).unwrap();
        }
        let (store, report) = open(copy.path());
        assert!(!report.clean);
        for queue in 0..3 {
            assert_eq!(bodies(&store, "T", queue).len(), 1000, "{case}");
        }
    }
}

#[test]
fn the_walk_after_a_crash_starts_at_the_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for _ in 0..2000 {
        put(&store, "T", 0, &[0; 100]);
    }
    store.checkpoint().unwrap();
    let one = put(&store, "T", 0, b"x");
    drop(store);
    let (_, report) = open(dir.path());
    assert_eq!(report.scanned_bytes, u64::from(one.bytes));
    assert_eq!((report.records, report.rebuilt_entries), (1, 1));
}

type Harm = fn(&Path);

#[test]
fn lost_and_damaged_queue_files_are_rebuilt_after_an_orderly_stop() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for index in 0..220u32 {
        put(&store, "T", 0, &index.to_be_bytes());
        put(&store, "U", 5, &index.to_be_bytes());
    }
    store.shutdown().unwrap();
    drop(store);
    let last = "consumequeue/T/0/00000000000000004000";
    let harms: [(&str, Harm); 8] = [
        ("nothing", |_| {}),
        ("cut by 7 bytes", |path| resize(path, 20 * 20 - 7)),
        ("cut to nothing", |path| resize(path, 0)),
        ("last unit zero", |path| overwrite(path, 19 * 20, &[0; 20])),
        ("last unit FF", |path| overwrite(path, 19 * 20, &[0xFF; 20])),
        ("last half zero", |path| overwrite(path, 10 * 20, &[0; 200])),
        ("last file removed", |path| fs::remove_file(path).unwrap()),
        ("folder removed", |path| {
            fs::remove_dir_all(path.parent().unwrap()).unwrap();
        }),
    ];
    for (what, harm) in harms {
        let copy = crash_copy(dir.path());
        harm(&copy.path().join(last));
        let (store, report) = open(copy.path());
        assert!(report.clean, "{what}");
        assert_eq!(store.max_queue_offset("T", 0), Some(220), "{what}");
        assert_eq!(store.min_queue_offset("T", 0), Some(0), "{what}");
        assert_eq!(bodies(&store, "T", 0).len(), 220, "{what}");
        assert_eq!(bodies(&store, "U", 5).len(), 220, "{what}");
        assert_eq!(
            put(&store, "T", 0, b"more").queue_offset.get(),
            220,
            "{what}"
        );
        store.shutdown().unwrap();
        drop(store);
        let (store, _) = open(copy.path());
        assert_eq!(bodies(&store, "T", 0).len(), 221, "{what}");
        let length = fs::metadata(copy.path().join(last)).unwrap().len();
        assert_eq!(length, 50 * 20, "{what}");
    }
}

fn resize(path: &Path, len: u64) {
    OpenOptions::new()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(len)
        .unwrap();
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    OpenOptions::new()
        .write(true)
        .open(path)
        .unwrap()
        .write_all_at(bytes, at)
        .unwrap();
}

#[test]
fn an_orderly_stop_leaves_nothing_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for index in 0..100u32 {
        put(&store, "T", 0, &index.to_be_bytes());
    }
    assert!(dir.path().join("abort").exists());
    let pid = fs::read_to_string(dir.path().join("abort")).unwrap();
    assert_eq!(pid, std::process::id().to_string());
    store.shutdown().unwrap();
    assert!(!dir.path().join("abort").exists());
    assert!(matches!(
        store.append_one(&message("T", 0, b"x", b"")),
        Err(AppendError::ShutDown)
    ));
    assert_eq!(bodies(&store, "T", 0).len(), 100);
    store.shutdown().unwrap();
    drop(store);
    let (_, report) = open(dir.path());
    assert!(report.clean);
    assert_eq!((report.scanned_bytes, report.rebuilt_entries), (0, 0));
}

#[test]
fn a_second_owner_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, _) = open(dir.path());
    let second = MessageStore::open(
        options(dir.path()),
        std::sync::Arc::new(NoListener),
        HandClock::at(1),
    );
    assert!(matches!(second, Err(OpenError::InUse(_))));
}

#[test]
fn a_deleted_topic_stays_gone_and_its_name_starts_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for index in 0..100u32 {
        put(&store, "T", 0, &index.to_be_bytes());
        put(&store, "U", 0, &index.to_be_bytes());
        if index == 40 {
            store.checkpoint().unwrap();
        }
    }
    assert!(store.delete_topic("T").unwrap());
    assert!(!store.delete_topic("T").unwrap());
    assert!(!dir.path().join("consumequeue/T").exists());
    assert_eq!(
        store.read(&request("T", 0, 0)).status,
        ReadStatus::NoMatchedLogicQueue
    );
    let copy = crash_copy(dir.path());
    let (again, _) = open(copy.path());
    assert_eq!(again.topics_on_disk(), ["U"]);
    assert_eq!(put(&store, "T", 0, b"new").queue_offset.get(), 0);
    let copy = crash_copy(dir.path());
    for lost in ["nothing", "checkpoint"] {
        if lost == "checkpoint" {
            fs::remove_file(copy.path().join("checkpoint")).unwrap();
        }
        let (again, _) = open(copy.path());
        assert_eq!(bodies(&again, "T", 0), [b"new"], "{lost}");
        assert_eq!(bodies(&again, "U", 0).len(), 100);
    }
}

#[test]
fn a_topic_made_again_is_right_even_without_the_note_of_its_deletion() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for index in 0..60u32 {
        put(&store, "T", 0, &index.to_be_bytes());
    }
    store.delete_topic("T").unwrap();
    put(&store, "T", 0, b"new");
    drop(store);
    fs::remove_file(dir.path().join("deletedtopics")).unwrap();
    let (store, _) = open(dir.path());
    assert_eq!(bodies(&store, "T", 0), [b"new"]);
    assert_eq!(put(&store, "T", 0, b"next").queue_offset.get(), 1);
}

#[test]
fn unwanted_topics_are_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for topic in ["A", "B", "C"] {
        put(&store, topic, 0, b"x");
    }
    let mut gone = store.retain_topics(|topic| topic == "B").unwrap();
    gone.sort();
    assert_eq!(gone, ["A", "C"]);
    assert_eq!(store.topics_on_disk(), ["B"]);
}

#[test]
fn damage_in_an_old_file_does_not_end_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for index in 0..2000u32 {
        put(&store, "T", 0, &[index.to_be_bytes(); 25].concat());
    }
    store.shutdown().unwrap();
    drop(store);
    harm(dir.path(), 30_000, &[0xEE; 500]);
    let (store, report) = open(dir.path());
    assert!(report.damaged.is_empty(), "not walked: not noticed");
    assert_eq!(store.max_queue_offset("T", 0), Some(2000));
    drop(store);
    fs::remove_file(dir.path().join("checkpoint")).unwrap();
    fs::remove_dir_all(dir.path().join("consumequeue")).unwrap();
    let (store, report) = open(dir.path());
    assert_eq!(report.damaged.len(), 1);
    assert_eq!(store.max_queue_offset("T", 0), Some(2000));
    let last = store.read(&request("T", 0, 1999));
    assert_eq!(last.status, ReadStatus::Found);
}

#[test]
fn bodies_with_a_zero_crc_and_empty_parts_survive_a_full_check() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    put(&store, "T", 0, &[0x9D, 0x0A, 0xD9, 0x6D]);
    put(&store, "T", 0, b"");
    store
        .append_one(&message("T", 0, b"x", b"\x01\x02=\x02\xFF\x01\xFE"))
        .unwrap();
    put(&store, &"t".repeat(200), 0, b"long topic");
    drop(store);
    fs::remove_file(dir.path().join("checkpoint")).unwrap();
    let (store, report) = open(dir.path());
    assert!(!report.torn_tail && report.damaged.is_empty());
    assert_eq!(bodies(&store, "T", 0).len(), 3);
    assert_eq!(bodies(&store, &"t".repeat(200), 0).len(), 1);
}
