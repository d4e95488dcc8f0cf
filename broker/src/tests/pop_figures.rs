//! What is seen from outside of a pop group: lag, messages in flight, statistics, metrics.

use rmq_protocol::{body::ConsumeStats, remoting::request_code as code};

use super::{
    TestBroker, ok,
    pop_client::{ASK, Ask, GROUP, TOPIC},
};

/// The value of a series of the group.
fn figure(broker: &TestBroker, name: &str, topic: &str) -> Option<i64> {
    let labels = [
        format!("consumer_group=\"{GROUP}\""),
        format!("topic=\"{topic}\""),
    ];
    let page = broker.metrics();
    let mut lines = page.lines().filter(|line| line.starts_with(name));
    let line = lines.find(|line| labels.iter().all(|label| line.contains(label.as_str())))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// The value of a series without labels of its own.
fn plain(broker: &TestBroker, name: &str) -> i64 {
    let page = broker.metrics();
    let line = page
        .lines()
        .find(|line| line.starts_with(&format!("{name}{{")));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

/// Not consumed, and in flight, as the consumer tools count them.
async fn progress(broker: &TestBroker) -> (i64, i64) {
    let fields = [("consumerGroup", GROUP), ("topic", TOPIC)];
    let answer = ok(broker.ask_with(code::GET_CONSUME_STATS, &fields).await);
    let stats = ConsumeStats::from_json(&answer.body).unwrap();
    let queues = stats.offset_table.values();
    queues.fold((0, 0), |sum, one| {
        (
            sum.0 + one.broker_offset - one.consumer_offset,
            sum.1 + one.pull_offset - one.consumer_offset,
        )
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lag_messages_in_flight_and_messages_to_come_are_exact_whatever_was_acked() {
    // With records written at once the committed offset runs ahead, as in Java.
    for lines in ["", "popCkMaxBufferSize=1\n"] {
        let broker = TestBroker::to_pop(1, lines).await;
        for number in 0..100 {
            broker.send(TOPIC, &number.to_string()).await;
        }
        let popped = broker.pop(&Ask { max: 30, ..ASK }).await;
        for message in &popped.messages[20..] {
            ok(broker.ack_of(message).await);
        }
        for (name, wanted) in [
            ("rocketmq_consumer_lag_messages", 90),
            ("rocketmq_consumer_inflight_messages", 20),
            ("rocketmq_consumer_ready_messages", 70),
        ] {
            assert_eq!(figure(&broker, name, TOPIC), Some(wanted), "{name} {lines}");
        }
        assert_eq!(progress(&broker).await, (90, 20), "{lines}");
        for message in &popped.messages[..20] {
            ok(broker.ack_of(message).await);
        }
        assert_eq!(progress(&broker).await, (70, 0), "{lines}");
        assert_eq!(plain(&broker, "rocketmq_pop_inflight_messages"), 0);
        assert_eq!(plain(&broker, "rocketmq_pop_checkpoint_buffer_size"), 0);
        for queue in 0..8 {
            let name = format!("queue_id=\"{queue}\"");
            let page = broker.metrics();
            let mut lines = page.lines();
            let found = lines.find(|line| line.contains("pop_revive_lag{") && line.contains(&name));
            assert!(found.unwrap().ends_with(" 0"), "{found:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_waits_is_behind_by_what_came_since() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "first").await;
    let popped = broker.pop(&ASK).await;
    broker.ack_all(&popped).await;
    for _ in 0..100 {
        broker.send(TOPIC, "m").await;
    }
    let lag = figure(&broker, "rocketmq_consumer_lag_messages", TOPIC);
    assert_eq!(lag, Some(100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acked_message_in_the_buffer_writes_nothing_and_a_redelivery_is_counted() {
    let broker = TestBroker::to_pop(1, "").await;
    for number in 0..64 {
        broker.send(TOPIC, &number.to_string()).await;
    }
    let end = broker.runtime("commitLogMaxOffset").await;
    for _ in 0..2 {
        let popped = broker.pop(&ASK).await;
        assert_eq!(popped.messages.len(), 32);
        broker.ack_all(&popped).await;
    }
    assert_eq!(broker.runtime("commitLogMaxOffset").await, end);
    broker.send(TOPIC, "again").await;
    let short = Ask {
        invisible: 1000,
        ..ASK
    };
    broker.pop(&short).await;
    broker.pop_waiting(&ASK).await;
    let count = figure(&broker, "rocketmq_pop_revive_retry_messages_total", TOPIC);
    assert_eq!(count, Some(1));
}
