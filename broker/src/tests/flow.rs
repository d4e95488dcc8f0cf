//! The ways of messages: send, pull, wait, commit, lock, send back.

use rmq_protocol::{
    body::LockBatchResponse,
    remoting::{Command, request_code as code},
};

use super::{TestBroker, ok, refused};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_come_back_in_order_also_after_a_restart() {
    let mut broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    for body in ["1", "2", "3"] {
        broker.send("T", body).await;
    }
    broker.commit("G", ("T", 0), 2).await;
    broker.restart().await;
    let pulled = broker.pull("G", ("T", 0), 0).await;
    assert_eq!(
        (pulled.bodies, pulled.next),
        (vec!["1".into(), "2".into(), "3".into()], 3)
    );
    let fields = [("consumerGroup", "G"), ("topic", "T"), ("queueId", "0")];
    let answer = ok(broker.ask_with(code::QUERY_CONSUMER_OFFSET, &fields).await);
    assert_eq!(answer.ext.get("offset"), Some("2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_that_waits_is_woken_by_the_message() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    let waiting = broker.pull_for("G", ("T", 0), 0, 25_000);
    let sending = async {
        while broker.runtime("pullThreadPoolQueueSize").await != "1" {}
        broker.send("T", "now").await
    };
    let (pulled, _) = tokio::join!(waiting, sending);
    assert_eq!(pulled.bodies, ["now"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sent_message_is_answered_only_when_it_is_flushed() {
    let broker = TestBroker::start_with("flushDiskType=SYNC_FLUSH").await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker.send("T", "x").await;
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies, ["x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_is_locked_for_one_client_at_a_time() {
    let broker = TestBroker::start().await;
    let ask = async |code, client: &str| {
        let body = format!(
            r#"{{"clientId":"{client}","consumerGroup":"G",
                "mqSet":[{{"topic":"T","brokerName":"b","queueId":0}}]}}"#
        );
        ok(broker.ask_body(code, body).await)
    };
    let won = |answer: Command| {
        LockBatchResponse::from_json(&answer.body)
            .unwrap()
            .lock_ok_mq_set
            .len()
    };
    assert_eq!(won(ask(code::LOCK_BATCH_MQ, "one").await), 1);
    assert_eq!(won(ask(code::LOCK_BATCH_MQ, "two").await), 0);
    ask(code::UNLOCK_BATCH_MQ, "one").await;
    assert_eq!(won(ask(code::LOCK_BATCH_MQ, "two").await), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_tried_too_often_ends_in_the_dead_letter_topic() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker.send("T", "bad").await;
    let offset = broker.pull("G", ("T", 0), 0).await.offsets[0].to_string();
    ok(broker.send_back("G", &offset, "-1").await);
    assert_eq!(broker.pull("G", ("%DLQ%G", 0), 0).await.bodies, ["bad"]);
    refused(&broker.send_back("none", &offset, "-1").await, 26, "none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_sent_too_often_makes_its_dead_letter_topic_and_is_not_delayed_again() {
    let broker = TestBroker::start().await;
    broker.group("G").await;
    broker.topic("%RETRY%G", 1).await;
    for body in ["first", "second"] {
        let command = Command::request(code::SEND_MESSAGE_V2)
            .with_ext("a", "P")
            .with_ext("b", "%RETRY%G")
            .with_ext("c", "TBW102")
            .with_ext("d", "1")
            .with_ext("e", "0")
            .with_ext("f", "0")
            .with_ext("g", "1700000000000")
            .with_ext("h", "0")
            .with_ext("i", "DELAY\u{1}5\u{2}")
            .with_ext("j", "17")
            .with_body(body.as_bytes().to_vec());
        ok(broker.call(command).await);
    }
    let letters = broker.pull("G", ("%DLQ%G", 0), 0).await;
    assert_eq!(letters.bodies, ["first", "second"]);
}
