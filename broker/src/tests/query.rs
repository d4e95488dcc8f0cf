//! Looking for messages: 12, 33, 321.

use std::time::Duration;

use rmq_protocol::{
    body::QueryConsumeQueueResponse,
    message::{OffsetId, Record},
    remoting::{Command, request_code as code},
};

use super::{TestBroker, ok, refused};

fn key_query(key: &str, most: &str) -> Command {
    Command::request(code::QUERY_MESSAGE)
        .with_ext("topic", "T")
        .with_ext("key", key)
        .with_ext("maxNum", most)
        .with_ext("beginTimestamp", "0")
        .with_ext("endTimestamp", i64::MAX.to_string())
}

fn bodies(answer: &Command) -> Vec<String> {
    let (mut out, mut rest) = (Vec::new(), &answer.body[..]);
    while !rest.is_empty() {
        let (record, length) = Record::decode(rest).unwrap();
        out.push(String::from_utf8(record.body.to_vec()).unwrap());
        rest = &rest[length..];
    }
    out
}

/// The key index follows the log in the background: asks until it has come so far.
async fn found(broker: &TestBroker, query: impl Fn() -> Command, count: usize) -> Vec<String> {
    loop {
        let answer = broker.call(query()).await;
        let bodies = if answer.code == 0 {
            bodies(&answer)
        } else {
            Vec::new()
        };
        if bodies.len() >= count {
            assert!(answer.ext.get("indexLastUpdateTimestamp").is_some());
            return bodies;
        }
        assert!(matches!(answer.code, 0 | 22), "{:?}", answer.remark);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_found_by_key_and_by_unique_key() {
    let broker = TestBroker::start().await;
    broker.topic("T", 2).await;
    let id = "7F0000010007000000000000000A0001";
    ok(broker
        .send_to(("T", 0), "one", &[("KEYS", "k1 k2"), ("UNIQ_KEY", id)])
        .await);
    ok(broker.send_to(("T", 1), "two", &[("KEYS", "k2")]).await);
    assert_eq!(
        found(&broker, || key_query("k2", "32"), 2).await,
        ["one", "two"]
    );
    assert_eq!(found(&broker, || key_query("k1", "32"), 1).await, ["one"]);
    let unique = || key_query(id, "-1").with_ext("_UNIQUE_KEY_QUERY", "true");
    assert_eq!(found(&broker, unique, 1).await, ["one"]);
    refused(
        &broker.call(key_query("none", "32")).await,
        22,
        "can not find message",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_is_clamped_in_number_and_refused_when_it_asks_for_none() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    for number in 0..100 {
        ok(broker
            .send_to(("T", 0), &number.to_string(), &[("KEYS", "k")])
            .await);
    }
    let all = found(&broker, || key_query("k", "2147483647"), 64).await;
    assert_eq!(all.len(), 64);
    assert_eq!(found(&broker, || key_query("k", "5"), 5).await.len(), 5);
    for most in ["0", "-1"] {
        refused(&broker.call(key_query("k", most)).await, 29, "maxNum");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_messages_of_one_key_stay_below_a_frame() {
    let broker = TestBroker::start_with("mappedFileSizeCommitLog=16777216").await;
    broker.topic("T", 1).await;
    let body = "x".repeat(3 << 20);
    for _ in 0..8 {
        ok(broker.send_to(("T", 0), &body, &[("KEYS", "k")]).await);
    }
    let several = found(&broker, || key_query("k", "64"), 5).await;
    assert_eq!(several.len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_seen_by_the_offset_in_its_id_and_nothing_else_is() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.send("T", "first").await;
    let sent = broker.send("T", "second").await;
    let id = OffsetId::parse(sent.ext.get("msgId").unwrap()).unwrap();
    assert_eq!(id.host.to_string(), broker.address());
    let view = |offset: i64| {
        Command::request(code::VIEW_MESSAGE_BY_ID).with_ext("offset", offset.to_string())
    };
    assert_eq!(bodies(&ok(broker.call(view(id.offset)).await)), ["second"]);
    for wrong in [-1, 1, id.offset + 1, i64::MAX, i64::MIN] {
        refused(&broker.call(view(wrong)).await, 1, "can not find message");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_of_a_queue_are_shown_with_offset_and_size() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    for body in ["a", "b", "c"] {
        broker.send("T", body).await;
    }
    let ask = |index: &str, count: &str| {
        Command::request(code::QUERY_CONSUME_QUEUE)
            .with_ext("topic", "T")
            .with_ext("queueId", "0")
            .with_ext("index", index)
            .with_ext("count", count)
            .with_ext("consumerGroup", "G")
    };
    let read = |answer: Command| QueryConsumeQueueResponse::from_json(&answer.body).unwrap();
    let shown = read(ok(broker.call(ask("1", "10")).await));
    assert_eq!((shown.min_queue_index, shown.max_queue_index), (0, 3));
    assert!(shown.filter_data.unwrap().contains("not online"));
    let offsets = broker.pull("G", ("T", 0), 0).await.offsets;
    let entries: Vec<_> = shown
        .queue_data
        .unwrap()
        .iter()
        .map(|entry| entry.physic_offset)
        .collect();
    assert_eq!(entries, offsets[1..]);
    let beyond = ok(broker.call(ask("3", "10")).await);
    assert!(beyond.remark.as_deref().unwrap().contains("Index 3"));
    assert!(read(beyond).queue_data.is_none());
    ok(broker.call(ask("0", "-5")).await);
    let unknown = [("topic", "T"), ("queueId", "9")];
    refused(
        &broker.ask_with(code::QUERY_CONSUME_QUEUE, &unknown).await,
        1,
        "9@T",
    );
}

/// Ids have named 0.0.0.0, so that nobody could look the message up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_id_of_a_broker_that_listens_everywhere_names_an_address_where_it_is_found() {
    let broker = TestBroker::start_with("bindAddress=0.0.0.0\nbrokerIP1=").await;
    assert!(broker.address().starts_with("0.0.0.0:"));
    broker.topic("T", 1).await;
    let sent = broker.send("T", "x").await;
    let id = OffsetId::parse(sent.ext.get("msgId").unwrap()).unwrap();
    assert!(!id.host.ip().is_unspecified(), "{}", id.host);
    let offset = id.offset.to_string();
    let view = Command::request(code::VIEW_MESSAGE_BY_ID).with_ext("offset", offset);
    let host = id.host.to_string();
    let answer = broker
        .client()
        .call(&host, view, Duration::from_secs(30))
        .await;
    let answer = ok(answer.unwrap());
    assert_eq!(Record::decode(&answer.body).unwrap().0.body, b"x");
}
