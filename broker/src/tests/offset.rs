//! Offsets by time, and where a group that has none begins.

use rmq_protocol::remoting::request_code as code;

use super::{TestBroker, ok, refused};

async fn by_time(broker: &TestBroker, queue: &str, millis: i64) -> String {
    let millis = millis.to_string();
    let fields = [
        ("topic", "T"),
        ("queueId", queue),
        ("timestamp", millis.as_str()),
    ];
    let answer = ok(broker
        .ask_with(code::SEARCH_OFFSET_BY_TIMESTAMP, &fields)
        .await);
    answer.ext.get("offset").unwrap().to_owned()
}

/// Three messages in queue 0 of `T`, with two milliseconds or more between them.
async fn three_apart(broker: &TestBroker) -> Vec<i64> {
    broker.topic("T", 2).await;
    broker.group("G").await;
    let mut times: Vec<i64> = Vec::new();
    for body in ["1", "2", "3"] {
        let earliest = times.last().map_or(0, |last| last + 2);
        while broker.now() < earliest {
            std::hint::spin_loop();
        }
        broker.send("T", body).await;
        times = broker.pull("G", ("T", 0), 0).await.stored_at;
    }
    times
}

/// Searches have been off by one at the times of the first and last message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offset_by_time_is_right_at_every_border_also_after_a_restart() {
    let mut broker = TestBroker::start().await;
    let times = three_apart(&broker).await;
    for _ in 0..2 {
        for (millis, wanted) in [
            (times[0] - 1, "0"),
            (times[0], "0"),
            (times[0] + 1, "1"),
            (times[1], "1"),
            (times[1] + 1, "2"),
            (times[2], "2"),
            (times[2] + 1, "3"),
            (0, "0"),
            (-1, "0"),
            (i64::MIN, "0"),
            (i64::MAX, "3"),
        ] {
            assert_eq!(
                by_time(&broker, "0", millis).await,
                wanted,
                "{millis} of {times:?}"
            );
            // A queue without messages has no other offset than its first.
            assert_eq!(by_time(&broker, "1", millis).await, "0", "{millis}");
        }
        broker.restart().await;
    }
}

/// What a client's rule (first, last, by time) decides on: it has to hear that nothing is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_without_progress_hears_0_of_a_young_topic_unless_it_asks_not_to() {
    let broker = TestBroker::start().await;
    three_apart(&broker).await;
    let ask = async |group: &str, queue: &str, zero: &str| {
        let fields = [
            ("consumerGroup", group),
            ("topic", "T"),
            ("queueId", queue),
            ("setZeroIfNotFound", zero),
        ];
        broker.ask_with(code::QUERY_CONSUMER_OFFSET, &fields).await
    };
    assert_eq!(ok(ask("G", "0", "true").await).ext.get("offset"), Some("0"));
    refused(&ask("G", "0", "false").await, 22, "Not found");
    broker.commit("G", ("T", 0), 2).await;
    assert_eq!(
        ok(ask("G", "0", "false").await).ext.get("offset"),
        Some("2")
    );
    // Each group has a progress of its own; none is made by asking.
    refused(&ask("H", "0", "false").await, 22, "Not found");
}
