//! Pulls that ask for what is not there or may not be had. An offset out of bounds has replayed whole
//! backlogs, a tag filter has dropped retries, and clients that left have stayed in the wait list.

use rmq_net::{Client, ClientOptions};
use rmq_protocol::{
    header::{PULL_SUBSCRIPTION, PULL_SUSPEND},
    remoting::{Command, request_code as code},
};

use super::{TestBroker, ok, pull_header, refused};

async fn with_messages(lines: &str) -> TestBroker {
    let broker = TestBroker::start_with(lines).await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    for body in ["1", "2", "3"] {
        broker.send("T", body).await;
    }
    broker
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offset_out_of_bounds_is_moved_to_the_nearest_end() {
    let broker = with_messages("").await;
    for (offset, code, next) in [
        (1_000_000, 21, 3),
        (i64::MAX, 21, 3),
        (3, 19, 3),
        (-1, 21, 0),
        (i64::MIN, 21, 0),
    ] {
        let pulled = broker.pull("G", ("T", 0), offset).await;
        assert_eq!((pulled.answer.code, pulled.next), (code, next), "{offset}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_of_too_many_is_bounded_and_one_of_none_gets_one_as_in_java() {
    let broker = with_messages("").await;
    let mut header = pull_header("G", ("T", 0), 0);
    header.max_msg_nums = i32::MAX;
    assert_eq!(broker.pull_as(&header).await.bodies.len(), 3);
    for none in [0, -1, i32::MIN] {
        header.max_msg_nums = none;
        assert_eq!(broker.pull_as(&header).await.bodies, ["1"], "{none}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_not_there_is_refused_by_its_number() {
    let broker = with_messages("").await;
    for queue in [1, -1, i32::MAX] {
        let pulled = broker.pull("G", ("T", queue), 0).await;
        refused(&pulled.answer, 29, &queue.to_string());
    }
    refused(&broker.pull("G", ("none", 0), 0).await.answer, 17, "none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_subscription_of_its_own_a_pull_needs_the_heartbeats_and_a_recent_one() {
    let broker = with_messages("autoCreateSubscriptionGroup=false").await;
    refused(&broker.pull("H", ("T", 0), 0).await.answer, 26, "H");
    let mut header = pull_header("G", ("T", 0), 0);
    header.sys_flag &= !PULL_SUBSCRIPTION;
    header.subscription = None;
    refused(&broker.pull_as(&header).await.answer, 24, "group info");
    broker.beat("client", "G", &["other"]).await;
    refused(&broker.pull_as(&header).await.answer, 24, "subscription");
    broker.beat("client", "G", &["T"]).await;
    assert_eq!(broker.pull_as(&header).await.bodies.len(), 3);
    header.sub_version = 2;
    refused(&broker.pull_as(&header).await.answer, 25, "not latest");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_sent_back_arrives_whatever_tags_the_group_wants() {
    let broker = TestBroker::start_with("messageDelayLevel=1s").await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    ok(broker.send_to(("T", 0), "x", &[("TAGS", "a")]).await);
    let offset = broker.pull("G", ("T", 0), 0).await.offsets[0].to_string();
    ok(broker.send_back("G", &offset, "0").await);
    let mut header = pull_header("G", ("%RETRY%G", 0), 0);
    header.subscription = Some("b || c".into());
    header.sys_flag |= PULL_SUSPEND;
    header.suspend_timeout_millis = 25_000;
    assert_eq!(broker.pull_as(&header).await.bodies, ["x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_may_not_be_made_do_not_keep_the_others_of_a_heartbeat_out() {
    let broker = with_messages("autoCreateSubscriptionGroup=false").await;
    let group = |name: &str, subscriptions: &str| {
        format!(
            r#"{{"groupName":"{name}","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",
                "consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","subscriptionDataSet":{subscriptions}}}"#
        )
    };
    let long = "x".repeat(300);
    let groups = [
        group("unknown", "[]"),
        group("", "[]"),
        group(&long, "[]"),
        group("G", "null"),
    ];
    let body = format!(
        r#"{{"clientID":"c1","consumerDataSet":[{}],"producerDataSet":[]}}"#,
        groups.join(",")
    );
    let answer = broker.ask_body(code::HEART_BEAT, body).await;
    assert!(matches!(answer.code, 0 | 1), "{answer:?}");
    for name in ["unknown", long.as_str()] {
        let fields = [("consumerGroup", name)];
        let answer = broker
            .ask_with(code::GET_CONSUMER_CONNECTION_LIST, &fields)
            .await;
        assert_eq!(answer.code, 206, "{name}");
    }
    let fields = [("consumerGroup", "G")];
    ok(broker
        .ask_with(code::GET_CONSUMER_CONNECTION_LIST, &fields)
        .await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pulls_of_a_client_that_left_do_not_wait_on() {
    let broker = with_messages("").await;
    let client = Client::new(ClientOptions::default());
    let connection = client.connection(broker.address()).await.unwrap();
    let mut header = pull_header("G", ("T", 0), 3);
    header.sys_flag |= PULL_SUSPEND;
    header.suspend_timeout_millis = 1_000_000;
    for opaque in 0..20 {
        let mut command = Command::request(code::PULL_MESSAGE).with_header(&header);
        command.opaque = opaque;
        connection.send(&command).unwrap();
    }
    while broker.runtime("pullThreadPoolQueueSize").await != "20" {}
    connection.close();
    while broker.runtime("pullThreadPoolQueueSize").await != "0" {}
}
