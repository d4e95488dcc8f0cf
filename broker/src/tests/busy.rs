//! What a busy broker says, and requests that ask for too much: the answers that make stock clients
//! back off and try elsewhere (`[REJECTREQUEST]`, `[OVERLOAD]`), and the bounds of single requests.
//!
//! **Invariant:** after each refusal the broker goes on as before.

use std::sync::Arc;

use rmq_protocol::{
    body::TopicConfig,
    remoting::{Command, request_code as code, response_code},
};
use tokio::task::JoinSet;

use super::{TestBroker, fixture::heartbeat, ok, refused, send_header};

/// Requests at once.
const BURST: usize = 32;
/// Bursts after which a refusal must have come.
const BURSTS: usize = 500;

/// Asks many times at once, until one answer is "busy"; every other one must be a success.
async fn until_busy<F>(ask: impl Fn(usize) -> F) -> Command
where
    F: Future<Output = Command> + Send + 'static,
{
    for burst in 0..BURSTS {
        let mut asked = JoinSet::new();
        for index in 0..BURST {
            asked.spawn(ask(burst * BURST + index));
        }
        let answers = asked.join_all().await;
        let busy = |answer: &Command| answer.code == response_code::SYSTEM_BUSY;
        let (busy, others): (Vec<_>, Vec<_>) = answers.into_iter().partition(busy);
        for other in others {
            ok(other);
        }
        if let Some(answer) = busy.into_iter().next() {
            return answer;
        }
    }
    panic!("{BURSTS} bursts, and the broker was never busy");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sends_beyond_those_that_wait_for_their_flush_are_told_to_come_later() {
    let settings = "flushDiskType=SYNC_FLUSH\nsendThreadPoolQueueCapacity=1";
    let broker = Arc::new(TestBroker::start_with(settings).await);
    broker.topic("T", 1).await;
    let busy = until_busy(|_| {
        let broker = Arc::clone(&broker);
        async move { broker.send_as(&send_header(("T", 0)), "x").await }
    })
    .await;
    refused(&busy, response_code::SYSTEM_BUSY, "[REJECTREQUEST]");
    broker.send("T", "later").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn administration_beyond_its_queue_is_told_to_come_later_and_sends_go_on() {
    let settings = "adminBrokerThreadPoolQueueCapacity=1";
    let broker = Arc::new(TestBroker::start_with(settings).await);
    let busy = until_busy(|number| {
        let broker = Arc::clone(&broker);
        async move {
            let topic = TopicConfig::named(format!("T{number}"));
            broker.put_topic(topic, None).await
        }
    })
    .await;
    refused(&busy, response_code::SYSTEM_BUSY, "[OVERLOAD]");
    broker.send("T0", "goes on").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_send_is_taken_before_the_configured_time() {
    let settings = format!("startAcceptSendRequestTimeStamp={}", i64::MAX);
    let broker = TestBroker::start_with(&settings).await;
    broker.topic("T", 1).await;
    let answer = broker.send_as(&send_header(("T", 0)), "x").await;
    refused(&answer, response_code::SYSTEM_ERROR, "configured time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_request_of_too_many_queues_is_refused_and_others_go_on() {
    let broker = TestBroker::start().await;
    let request = |queues: usize| {
        let queue = |id| format!(r#"{{"topic":"T","brokerName":"b","queueId":{id}}}"#);
        let queues: Vec<_> = (0..queues).map(queue).collect();
        let queues = queues.join(",");
        format!(r#"{{"clientId":"c","consumerGroup":"G","mqSet":[{queues}]}}"#)
    };
    let answer = broker.ask_body(code::LOCK_BATCH_MQ, request(16_000)).await;
    refused(&answer, response_code::SYSTEM_ERROR, "4096 queues");
    ok(broker.ask_body(code::LOCK_BATCH_MQ, request(4096)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_of_too_many_subscriptions_or_groups_is_refused_whole() {
    let broker = TestBroker::start().await;
    let topics: Vec<String> = (0..1025).map(|number| format!("T{number}")).collect();
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    let greedy = heartbeat("c", "G", &topics).to_json();
    let answer = broker.ask_body(code::HEART_BEAT, greedy).await;
    refused(&answer, response_code::SYSTEM_ERROR, "1024 topics");
    let group = [("consumerGroup", "G")];
    let members = broker
        .ask_with(code::GET_CONSUMER_LIST_BY_GROUP, &group)
        .await;
    refused(&members, response_code::SYSTEM_ERROR, "no consumer");
    let modest = heartbeat("c", "G", &topics[..1024]).to_json();
    ok(broker.ask_body(code::HEART_BEAT, modest).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_kept_of_queues_that_the_topic_has_only() {
    let broker = TestBroker::start().await;
    broker.topic("T", 2).await;
    broker.group("G").await;
    broker.commit("G", ("T", 1), 0).await;
    let fields = [
        ("consumerGroup", "G"),
        ("topic", "T"),
        ("queueId", "2"),
        ("commitOffset", "0"),
    ];
    let answer = broker.ask_with(code::UPDATE_CONSUMER_OFFSET, &fields).await;
    refused(&answer, response_code::INVALID_PARAMETER, "2 queues");
}
