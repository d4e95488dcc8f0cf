//! Random histories against a plain model: appends, flushes, crashes, orderly stops, deletions.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

mod common;

use std::collections::BTreeMap;

use common::*;
use proptest::prelude::*;
use rmq_store::*;

#[derive(Clone, Debug)]
enum Step {
    /// Appends a group: (topic, queue, body length).
    Append(Vec<(u8, u8, u16)>),
    /// Writes queues and checkpoint.
    Checkpoint,
    /// Goes on with a copy of the folder as it stands.
    Crash,
    /// Stops in order and opens again.
    Restart,
    /// Deletes a topic.
    Delete(u8),
    /// Loses queue files, then crashes.
    LoseQueues(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let group = proptest::collection::vec((0u8..3, 0u8..3, 0u16..3000), 1..20);
    prop_oneof![
        8 => group.prop_map(Step::Append),
        2 => Just(Step::Checkpoint),
        1 => Just(Step::Crash),
        1 => Just(Step::Restart),
        1 => (0u8..3).prop_map(Step::Delete),
        1 => (0u8..3).prop_map(Step::LoseQueues),
    ]
}

const TOPICS: [&str; 3] = ["A", "%RETRY%b", "c_C"];

type Model = BTreeMap<(u8, u8), Vec<Vec<u8>>>;

fn compare(store: &MessageStore, model: &Model) {
    for topic in 0..3u8 {
        for queue in 0..3u8 {
            let name = TOPICS[usize::from(topic)];
            let short = |bodies: &[Vec<u8>]| -> Vec<(u8, usize)> {
                bodies.iter().map(|body| (body[3], body.len())).collect()
            };
            let expected = model.get(&(topic, queue)).cloned().unwrap_or_default();
            let found = bodies(store, name, u32::from(queue));
            assert_eq!(short(&found), short(&expected), "{name} {queue}");
            assert!(found == expected, "bodies of {name} {queue}");
            let max = store.max_queue_offset(name, u32::from(queue)).unwrap_or(0);
            assert_eq!(max, expected.len() as i64);
        }
    }
}

fn append(store: &MessageStore, model: &mut Model, group: &[(u8, u8, u16)], seed: &mut u32) {
    let made: Vec<Vec<u8>> = group
        .iter()
        .map(|(_, _, length)| {
            *seed += 1;
            let mut body = seed.to_be_bytes().to_vec();
            body.resize(4 + usize::from(*length), *seed as u8);
            body
        })
        .collect();
    let messages: Vec<_> = group
        .iter()
        .zip(&made)
        .map(|((topic, queue, _), body)| {
            message(TOPICS[usize::from(*topic)], u32::from(*queue), body, b"")
        })
        .collect();
    let mut results = Vec::new();
    store.append(&messages, &mut results);
    for (((topic, queue, _), body), result) in group.iter().zip(made).zip(results) {
        let bodies = model.entry((*topic, *queue)).or_default();
        assert_eq!(result.unwrap().queue_offset.get(), bodies.len() as u64);
        bodies.push(body);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_reads_as_the_model_says(
        steps in proptest::collection::vec(step(), 1..25),
        sync: bool,
    ) {
        let open = |root: &std::path::Path| {
            let mut options = options(root);
            if sync {
                options.flush = FlushMode::Sync;
            }
            open_with(options)
        };
        let mut dir = tempfile::tempdir().unwrap();
        let (mut store, _) = open(dir.path());
        let mut model = Model::new();
        let mut seed = 0;
        for step in &steps {
            match step {
                Step::Append(group) => append(&store, &mut model, group, &mut seed),
                Step::Checkpoint => store.checkpoint().unwrap(),
                Step::Crash => {
                    let copy = crash_copy(dir.path());
                    drop(store);
                    dir = copy;
                    store = open(dir.path()).0;
                }
                Step::Restart => {
                    store.shutdown().unwrap();
                    drop(store);
                    let (opened, report) = open(dir.path());
                    prop_assert!(report.clean);
                    store = opened;
                }
                Step::Delete(topic) => {
                    store.delete_topic(TOPICS[usize::from(*topic)]).unwrap();
                    model.retain(|(of, _), _| of != topic);
                }
                Step::LoseQueues(topic) => {
                    store.shutdown().unwrap();
                    drop(store);
                    let name = TOPICS[usize::from(*topic)];
                    let _ = std::fs::remove_dir_all(dir.path().join("consumequeue").join(name));
                    store = open(dir.path()).0;
                }
            }
            // With sync flush nothing is read before it is on the disk.
            store.flush().unwrap();
            compare(&store, &model);
        }
    }
}
