//! Key queries: exact topic and key, each message once, real time window, over restarts and files.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

mod common;

use std::sync::Arc;

use common::*;
use rmq_store::*;
use rmq_types::Timestamp;

fn put_key(store: &MessageStore, topic: &str, words: &str, body: &[u8]) -> Appended {
    store
        .append_one(&message(topic, 0, body, &keys(words)))
        .unwrap()
}

#[test]
fn equal_hashes_of_keys_or_topics_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    put_key(&store, "T1", "Aa", b"1");
    put_key(&store, "T1", "BB", b"2");
    put_key(&store, "AaT", "k", b"3");
    put_key(&store, "BBT", "k", b"4");
    indexed(&store);
    assert_eq!(by_key(&store, "T1", "Aa"), [b"1"]);
    assert_eq!(by_key(&store, "T1", "BB"), [b"2"]);
    assert_eq!(by_key(&store, "AaT", "k"), [b"3"]);
    assert_eq!(by_key(&store, "BBT", "k"), [b"4"]);
    assert!(by_key(&store, "T1", "k").is_empty());
}

#[test]
fn a_message_is_found_by_its_key_as_soon_as_it_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for word in ["a", "b", "c"] {
        put_key(&store, "T", word, word.as_bytes());
        assert_eq!(by_key(&store, "T", word), [word.as_bytes()]);
    }
}

#[test]
fn a_repeated_word_finds_its_message_once_and_unique_keys_count() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let mut text = keys("k k j");
    rmq_protocol::message::properties::push(&mut text, "UNIQ_KEY", b"k");
    store.append_one(&message("T", 0, b"1", &text)).unwrap();
    indexed(&store);
    assert_eq!(by_key(&store, "T", "k"), [b"1"]);
    assert_eq!(by_key(&store, "T", "j"), [b"1"]);
}

#[test]
fn results_are_bounded_whatever_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for index in 0..300u32 {
        put_key(&store, "T", "k", &index.to_be_bytes());
    }
    indexed(&store);
    let ask = |max| {
        let all = (Timestamp::from_millis(0), Timestamp::from_millis(i64::MAX));
        store
            .query_by_key("T", "k", max, all.0, all.1)
            .messages
            .len()
    };
    assert_eq!((ask(usize::MAX), ask(10), ask(0)), (64, 10, 0));
    assert_eq!(
        by_key(&store, "T", "k").last().unwrap(),
        &299u32.to_be_bytes()
    );
}

#[test]
fn the_window_is_compared_with_the_real_time() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::at(1_000_000);
    let (store, _) =
        MessageStore::open(options(dir.path()), Arc::new(NoListener), clock.clone()).unwrap();
    put_key(&store, "T", "first", b"0");
    clock.set(1_003_900);
    put_key(&store, "T", "k", b"1");
    indexed(&store);
    let ask = |begin, end| {
        let window = (Timestamp::from_millis(begin), Timestamp::from_millis(end));
        store
            .query_by_key("T", "k", 32, window.0, window.1)
            .messages
            .len()
    };
    assert_eq!(ask(1_003_900, 1_004_900), 1);
    assert_eq!(ask(1_003_899, 1_003_900), 1);
    assert_eq!(ask(1_003_901, 1_004_900), 0);
    assert_eq!(ask(0, 1_003_899), 0);
    assert_eq!(ask(0, i64::MAX), 1);
}

#[test]
fn keys_are_found_across_files_and_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for index in 1..2_500 {
        put_key(&store, "T", &format!("k{index}"), b"x");
    }
    indexed(&store);
    assert_eq!(
        std::fs::read_dir(dir.path().join("index")).unwrap().count(),
        3
    );
    let check = |store: &MessageStore| {
        for key in ["k1", "k499", "k501", "k999", "k1000", "k2499"] {
            assert_eq!(by_key(store, "T", key).len(), 1, "{key}");
        }
    };
    check(&store);
    store.shutdown().unwrap();
    drop(store);
    let (store, _) = open(dir.path());
    indexed(&store);
    check(&store);
    put_key(&store, "T", "new", b"x");
    indexed(&store);
    assert_eq!(by_key(&store, "T", "new").len(), 1);
    check(&store);
}

#[test]
fn after_a_crash_all_keys_are_found_also_without_index_or_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    for index in 0..300 {
        put_key(&store, "T", &format!("k{index}"), b"x");
        if index == 150 {
            indexed(&store);
            store.checkpoint().unwrap();
        }
    }
    for case in 0..4 {
        let copy = crash_copy(dir.path());
        if case == 1 {
            std::fs::remove_file(copy.path().join("checkpoint")).unwrap();
        }
        if case == 2 {
            std::fs::remove_dir_all(copy.path().join("index")).unwrap();
            std::fs::remove_file(copy.path().join("checkpoint")).unwrap();
        }
        if case == 3 {
            for file in std::fs::read_dir(copy.path().join("index")).unwrap() {
                let path = file.unwrap().path();
                let mut bytes = std::fs::read(&path).unwrap();
                bytes[36..40].copy_from_slice(&5i32.to_be_bytes());
                std::fs::write(&path, bytes).unwrap();
            }
        }
        let (store, report) = open(copy.path());
        assert!(!report.clean);
        indexed(&store);
        for index in 0..300 {
            assert_eq!(
                by_key(&store, "T", &format!("k{index}")).len(),
                1,
                "case {case} k{index}"
            );
        }
    }
}
