//! Pulls (11) whose group is made by them: they do all that other pulls do.

use std::time::Duration;

use rmq_net::{Client, ClientOptions};
use rmq_protocol::{
    body::BrokerStatsData,
    header::{PULL_COMMIT_OFFSET, PULL_SUSPEND},
    remoting::{Command, request_code as code},
};

use super::{TestBroker, ok, pull_header, send_header};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_pull_of_a_group_commits_and_counts_like_any_other() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    for body in ["1", "2"] {
        broker.send("T", body).await;
    }
    for group in ["new", "known"] {
        if group == "known" {
            broker.group(group).await;
        }
        let mut header = pull_header(group, ("T", 0), 1);
        header.sys_flag |= PULL_COMMIT_OFFSET;
        header.commit_offset = 1;
        assert_eq!(broker.pull_as(&header).await.bodies, ["2"]);
        let fields = [("consumerGroup", group), ("topic", "T"), ("queueId", "0")];
        let answer = ok(broker.ask_with(code::QUERY_CONSUMER_OFFSET, &fields).await);
        assert_eq!(answer.ext.get("offset"), Some("1"), "{group}");
        let key = format!("T@{group}");
        let fields = [("statsName", "GROUP_GET_NUMS"), ("statsKey", key.as_str())];
        let answer = ok(broker.ask_with(code::VIEW_BROKER_STATS_DATA, &fields).await);
        let stats = BrokerStatsData::from_json(&answer.body).unwrap();
        assert_eq!(stats.stats_minute.sum, 1, "{group}");
    }
    for (name, sum) in [("BROKER_PUT_NUMS", 2), ("BROKER_GET_NUMS", 2)] {
        let fields = [("statsName", name), ("statsKey", "c")];
        let answer = ok(broker.ask_with(code::VIEW_BROKER_STATS_DATA, &fields).await);
        let stats = BrokerStatsData::from_json(&answer.body).unwrap();
        assert_eq!(stats.stats_minute.sum, sum, "{name}");
    }
    assert_eq!(broker.runtime("msgGetTotalTodayNow").await, "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_pull_of_a_group_waits_for_a_message_like_any_other() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    let mut header = pull_header("new", ("T", 0), 0);
    header.sys_flag |= PULL_SUSPEND;
    header.suspend_timeout_millis = 25_000;
    let sending = async {
        while broker.runtime("pullThreadPoolQueueSize").await != "1" {}
        broker.send("T", "now").await
    };
    let (pulled, _) = tokio::join!(broker.pull_as(&header), sending);
    assert_eq!(pulled.bodies, ["now"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_of_none_or_fewer_messages_gets_one_and_one_of_too_many_what_an_answer_holds() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    for body in ["1", "2"] {
        broker.send("T", body).await;
    }
    let mut header = pull_header("g", ("T", 0), 0);
    for (wanted, got) in [(0, 1), (-1, 1), (i32::MIN, 1), (i32::MAX, 2)] {
        header.max_msg_nums = wanted;
        assert_eq!(broker.pull_as(&header).await.bodies.len(), got, "{wanted}");
    }
}

/// The message comes while the pull is put among those that wait, or just before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_comes_while_a_pull_begins_to_wait_wakes_it() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    let mut header = pull_header("G", ("T", 0), 0);
    header.sys_flag |= PULL_SUSPEND;
    // Far longer than the test is patient.
    header.suspend_timeout_millis = 10_000_000;
    let other = Client::new(ClientOptions::default());
    for offset in 0..300 {
        header.queue_offset = offset;
        let body = offset.to_string();
        let send = Command::request(code::SEND_MESSAGE_V2)
            .with_header(&send_header(("T", 0)))
            .with_body(body.clone());
        let sending = other.call(broker.address(), send, Duration::from_secs(30));
        let (pulled, sent) = tokio::join!(broker.pull_as(&header), sending);
        assert_eq!((pulled.bodies, sent.unwrap().code), (vec![body], 0));
    }
}

/// Consumers have stopped for good when their broker was started again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_waited_through_a_restart_goes_on_at_the_same_address() {
    let mut broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    let (client, address) = (broker.client(), broker.address().to_owned());
    let mut header = pull_header("G", ("T", 0), 0);
    header.sys_flag |= PULL_SUSPEND;
    header.suspend_timeout_millis = 30_000;
    let pull = Command::request(code::PULL_MESSAGE).with_header(&header);
    let long = Duration::from_mins(1);
    let (answer, ()) = tokio::join!(client.call(&address, pull.clone(), long), async {
        while !broker
            .metrics()
            .contains("\nrocketmq_held_pulls{cluster=\"c\",node_type=\"broker\",node_id=\"b\"} 1\n")
        {
            tokio::task::yield_now().await;
        }
        broker.stop().await;
    });
    assert_eq!(
        answer.unwrap().code,
        19,
        "nothing was lost: there was nothing"
    );
    let port = address.rsplit(':').next().unwrap();
    broker.start_again_with(&format!("listenPort={port}")).await;
    assert_eq!(broker.address(), address);
    let (answer, _) = tokio::join!(client.call(&address, pull, long), broker.send("T", "new"));
    let answer = super::fixture::Pulled::from(answer.unwrap());
    assert_eq!(answer.bodies, ["new"]);
}
