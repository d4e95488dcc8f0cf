//! Moving progress: 222 and 314.

use rmq_protocol::{
    body::{ConsumeStats, ResetOffsetBody},
    remoting::{Command, request_code as code},
};

use super::{TestBroker, ok, refused};

fn reset(fields: &[(&'static str, &str)]) -> Command {
    let mut command =
        Command::request(code::INVOKE_BROKER_TO_RESET_OFFSET).with_ext("isForce", "true");
    for (name, value) in [("group", "G"), ("topic", "T"), ("timestamp", "-1")] {
        command = command.with_ext(name, value);
    }
    for (name, value) in fields {
        command = command.with_ext(name, *value);
    }
    command
}

async fn lag(broker: &TestBroker, topic: &str) -> i64 {
    let fields = [("consumerGroup", "G"), ("topic", topic)];
    let answer = ok(broker.ask_with(code::GET_CONSUME_STATS, &fields).await);
    let stats = ConsumeStats::from_json(&answer.body).unwrap();
    stats
        .offset_table
        .values()
        .map(|queue| queue.broker_offset - queue.consumer_offset)
        .sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_to_the_end_or_to_now_leaves_no_lag() {
    for time in ["-1", "9000000000000"] {
        let broker = TestBroker::with_backlog().await;
        broker.topic("%RETRY%G", 1).await;
        broker.send("%RETRY%G", "again").await;
        assert_eq!(lag(&broker, "T").await, 2);
        for topic in ["T", "%RETRY%G"] {
            ok(broker
                .call(reset(&[("topic", topic), ("timestamp", time)]))
                .await);
            assert_eq!(lag(&broker, topic).await, 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_pull_takes_the_reset_and_commits_before_it_are_ignored() {
    let broker = TestBroker::with_backlog().await;
    let answer = ok(broker.call(reset(&[("timestamp", "0")])).await);
    let set = ResetOffsetBody::from_json(&answer.body)
        .unwrap()
        .offset_table;
    assert_eq!(set.into_values().collect::<Vec<_>>(), [0, 0]);
    broker.commit("G", ("T", 0), 3).await;
    let pulled = broker.pull("G", ("T", 0), 3).await;
    assert_eq!((pulled.answer.code, pulled.next), (21, 0));
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies, ["1", "2", "3"]);
    broker.commit("G", ("T", 0), 2).await;
    assert_eq!(lag(&broker, "T").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_that_waits_hears_of_the_reset_at_once() {
    let broker = TestBroker::with_backlog().await;
    let waiting = broker.pull_for("G", ("T", 0), 3, 25_000);
    let resetting = async {
        while broker.runtime("pullThreadPoolQueueSize").await != "1" {}
        ok(broker.call(reset(&[("timestamp", "0")])).await)
    };
    let (pulled, _) = tokio::join!(waiting, resetting);
    assert_eq!((pulled.answer.code, pulled.next), (21, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_queue_can_be_set_to_an_offset_within_its_bounds() {
    let broker = TestBroker::with_backlog().await;
    ok(broker
        .call(reset(&[("queueId", "0"), ("offset", "2")]))
        .await);
    assert_eq!(lag(&broker, "T").await, 1);
    for wrong in ["-2", "5", "9223372036854775807"] {
        let answer = broker
            .call(reset(&[("queueId", "0"), ("offset", wrong)]))
            .await;
        refused(&answer, 1, "not in consume queue range");
    }
    refused(
        &broker.call(reset(&[("queueId", "2")])).await,
        29,
        "queueId",
    );
    assert_eq!(lag(&broker, "T").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_names_and_the_clients_own_way_are_refused() {
    let broker = TestBroker::with_backlog().await;
    refused(&broker.call(reset(&[("topic", "none")])).await, 17, "none");
    refused(&broker.call(reset(&[("group", "none")])).await, 26, "none");
    ok(broker
        .ask_body(code::UPDATE_BROKER_CONFIG, "useServerSideResetOffset=false")
        .await);
    refused(
        &broker.call(reset(&[])).await,
        1,
        "useServerSideResetOffset",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offsets_are_cloned_for_one_topic_or_for_all() {
    let broker = TestBroker::with_backlog().await;
    for (group, topic) in [("H", "T"), ("I", "")] {
        let fields = [
            ("srcGroup", "G"),
            ("destGroup", group),
            ("topic", topic),
            ("offline", "true"),
        ];
        ok(broker.ask_with(code::CLONE_GROUP_OFFSET, &fields).await);
        let fields = [("consumerGroup", group), ("topic", "T"), ("queueId", "0")];
        let answer = ok(broker.ask_with(code::QUERY_CONSUMER_OFFSET, &fields).await);
        assert_eq!(answer.ext.get("offset"), Some("1"));
    }
    let fields = [("srcGroup", "G"), ("destGroup", "a b"), ("offline", "true")];
    refused(
        &broker.ask_with(code::CLONE_GROUP_OFFSET, &fields).await,
        29,
        "group",
    );
}
