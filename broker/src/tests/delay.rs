//! Delay levels: a message rests in the schedule topic, then comes to its own; retries with delay.

use rmq_protocol::{
    body::{BrokerStatsData, QueryConsumeQueueResponse},
    remoting::request_code as code,
};

use super::{TestBroker, ok};

const SCHEDULE: &str = "SCHEDULE_TOPIC_XXXX";
/// Longest wait for a message that is due soon.
const SOON: i64 = 25_000;

async fn count(broker: &TestBroker, name: &str, key: &str) -> i64 {
    let fields = [("statsName", name), ("statsKey", key)];
    let answer = broker.ask_with(code::VIEW_BROKER_STATS_DATA, &fields).await;
    if answer.code != 0 {
        return 0;
    }
    BrokerStatsData::from_json(&answer.body)
        .unwrap()
        .stats_minute
        .sum
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delayed_message_comes_to_its_topic_after_its_level_and_not_before() {
    let broker = TestBroker::start_with("messageDelayLevel=1s 2s").await;
    broker.topic("T", 2).await;
    broker.group("G").await;
    broker.send("T", "before").await;
    let before = broker.pull("G", ("T", 0), 0).await.stored_at[0];
    let pairs = [("DELAY", "1"), ("TAGS", "a"), ("k", "v")];
    ok(broker.send_to(("T", 1), "later", &pairs).await);
    let rests = broker.pull("G", (SCHEDULE, 0), 0).await;
    assert_eq!(rests.bodies, ["later"]);
    assert_eq!(rests.property(0, "REAL_TOPIC"), Some("T"));
    assert_eq!(rests.property(0, "REAL_QID"), Some("1"));
    let came = broker.pull_for("G", ("T", 1), 0, SOON).await;
    assert_eq!(came.bodies, ["later"]);
    // By the broker's own times, whatever the test's computer does meanwhile.
    assert!(came.stored_at[0] - before >= 1_000);
    assert_eq!(came.property(0, "DELAY"), None);
    assert_eq!(came.property(0, "TAGS"), Some("a"));
    assert_eq!(came.property(0, "k"), Some("v"));
    // Counted where it was stored, as in Java; the scheduler counts once it has delivered.
    for (name, key, sum) in [
        ("TOPIC_PUT_NUMS", SCHEDULE, 1),
        ("TOPIC_PUT_NUMS", "T", 2),
        ("GROUP_GET_NUMS", "SCHEDULE_TOPIC_XXXX@SCHEDULE_CONSUMER", 1),
        ("BROKER_PUT_NUMS", "c", 3),
    ] {
        while count(&broker, name, key).await != sum {}
    }
}

/// A due time that counts from when the send was read is too early by what the send waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_due_its_level_after_the_store_time_in_its_record_also_after_a_rebuild() {
    let mut broker = TestBroker::start_with("messageDelayLevel=1d 2d").await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker.send("T", "sent back").await;
    let offset = broker.pull("G", ("T", 0), 0).await.offsets[0].to_string();
    for _ in 0..2 {
        ok(broker.send_to(("T", 0), "later", &[("DELAY", "2")]).await);
    }
    ok(broker.send_back("G", &offset, "2").await);
    let rests = broker.pull("G", (SCHEDULE, 1), 0).await;
    assert_eq!(rests.bodies, ["later", "later", "sent back"]);
    let wanted: Vec<i64> = rests
        .stored_at
        .iter()
        .map(|at| at + 2 * 86_400_000)
        .collect();
    let entries = [
        ("topic", SCHEDULE),
        ("queueId", "1"),
        ("index", "0"),
        ("count", "9"),
    ];
    for rebuilt in [false, true] {
        let answer = ok(broker.ask_with(code::QUERY_CONSUME_QUEUE, &entries).await);
        let shown = QueryConsumeQueueResponse::from_json(&answer.body).unwrap();
        let due: Vec<i64> = shown
            .queue_data
            .unwrap()
            .iter()
            .map(|entry| entry.tags_code)
            .collect();
        assert_eq!(due, wanted, "rebuilt: {rebuilt}");
        if !rebuilt {
            broker.stop().await;
            std::fs::remove_dir_all(broker.folder().join("consumequeue")).unwrap();
            broker.start_again().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_level_beyond_the_last_is_the_last_and_level_0_is_none() {
    let broker = TestBroker::start_with("messageDelayLevel=1s").await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    ok(broker.send_to(("T", 0), "now", &[("DELAY", "0")]).await);
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies, ["now"]);
    ok(broker.send_to(("T", 0), "later", &[("DELAY", "99")]).await);
    assert_eq!(
        broker.pull_for("G", ("T", 0), 1, SOON).await.bodies,
        ["later"]
    );
}

/// A retry of a long delay has never come due, and shortened levels have not counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_of_a_high_level_is_due_and_shorter_levels_count_after_a_restart() {
    let mut broker = TestBroker::start_with("messageDelayLevel=1d 1d 1d").await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker.send("T", "bad").await;
    let offset = broker.pull("G", ("T", 0), 0).await.offsets[0].to_string();
    ok(broker.send_back("G", &offset, "18").await);
    assert_eq!(broker.pull("G", (SCHEDULE, 2), 0).await.bodies, ["bad"]);
    broker.restart_with("messageDelayLevel=1s 1s 1s").await;
    let came = broker.pull_for("G", ("%RETRY%G", 0), 0, SOON).await;
    assert_eq!(came.bodies, ["bad"]);
}

/// The first id has been lost over several retries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_id_and_topic_of_a_message_stay_with_it_over_retries_and_in_the_dead_letter() {
    let broker = TestBroker::start_with("messageDelayLevel=1s").await;
    broker.topic("T", 1).await;
    let group = r#"{"groupName":"G","retryQueueNums":1}"#;
    ok(broker
        .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, group)
        .await);
    let first = broker
        .send("T", "bad")
        .await
        .ext
        .get("msgId")
        .unwrap()
        .to_owned();
    let mut last = broker.pull("G", ("T", 0), 0).await;
    for (level, topic, offset) in [
        ("1", "%RETRY%G", 0),
        ("1", "%RETRY%G", 1),
        ("-1", "%DLQ%G", 0),
    ] {
        let at = last.offsets[0].to_string();
        ok(broker.send_back("G", &at, level).await);
        last = broker.pull_for("G", (topic, 0), offset, SOON).await;
        assert_eq!(last.bodies, ["bad"]);
        assert_eq!(last.property(0, "ORIGIN_MESSAGE_ID"), Some(first.as_str()));
        assert_eq!(last.property(0, "RETRY_TOPIC"), Some("T"));
    }
    assert_eq!(count(&broker, "SNDBCK_PUT_NUMS", "T@G").await, 3);
    assert_eq!(count(&broker, "DLQ_PUT_NUMS", "T@G").await, 1);
}

/// A deleted topic has held up what was due after it, and lost offsets have sent all of it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_delivered_does_not_come_again_and_a_deleted_target_holds_nothing_up() {
    let mut broker = TestBroker::start_with("messageDelayLevel=1s").await;
    broker.topic("T", 1).await;
    broker.topic("gone", 1).await;
    broker.group("G").await;
    ok(broker.send_to(("T", 0), "first", &[("DELAY", "1")]).await);
    assert_eq!(
        broker.pull_for("G", ("T", 0), 0, SOON).await.bodies,
        ["first"]
    );
    broker.restart().await;
    ok(broker.send_to(("gone", 0), "lost", &[("DELAY", "1")]).await);
    ok(broker.send_to(("T", 0), "second", &[("DELAY", "1")]).await);
    ok(broker
        .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", "gone")])
        .await);
    // Of one level in order: a repeated or stuck message would come before this one.
    assert_eq!(
        broker.pull_for("G", ("T", 0), 1, SOON).await.bodies,
        ["second"]
    );
    assert_eq!(broker.pull("G", ("gone", 0), 0).await.answer.code, 17);
}
