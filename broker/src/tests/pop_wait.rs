//! Pops that wait, and questions whether there is something to pop.

use std::time::{Duration, Instant};

use rmq_net::{Client, ClientOptions};
use rmq_protocol::{
    header::{DecodeHeader, PollingInfoResponse},
    remoting::{Command, request_code as code},
};

use super::{
    TestBroker, ok,
    pop_client::{ASK, Ask, GROUP, TOPIC, read, request},
    refused,
};

/// Longer than a test waits.
const LONG: Ask = Ask {
    poll: 1_000_000,
    ..ASK
};

async fn waiting(broker: &TestBroker, queue: &str) -> i32 {
    let fields = [
        ("consumerGroup", GROUP),
        ("topic", TOPIC),
        ("queueId", queue),
    ];
    let answer = ok(broker.ask_with(code::POLLING_INFO, &fields).await);
    PollingInfoResponse::decode(&answer.ext)
        .unwrap()
        .polling_num
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_arrival_wakes_one_waiting_pop_and_a_filter_sleeps_on() {
    let broker = TestBroker::to_pop(1, "").await;
    let tagged = Ask {
        tags: Some("A"),
        ..LONG
    };
    let sending = async {
        while waiting(&broker, "-1").await != 1 {}
        ok(broker.send_to((TOPIC, 0), "other", &[("TAGS", "B")]).await);
        assert_eq!(waiting(&broker, "-1").await, 1);
        ok(broker.send_to((TOPIC, 0), "mine", &[("TAGS", "A")]).await);
    };
    let (popped, ()) = tokio::join!(broker.pop(&tagged), sending);
    assert_eq!(popped.bodies(), ["mine"]);
    assert_eq!(waiting(&broker, "-1").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_comes_while_a_pop_begins_to_wait_wakes_it() {
    let broker = TestBroker::to_pop(2, "").await;
    let other = Client::new(ClientOptions::default());
    for number in 0..300 {
        let body = number.to_string();
        let header = super::send_header((TOPIC, number % 2));
        let send = Command::request(code::SEND_MESSAGE_V2)
            .with_header(&header)
            .with_body(body.clone());
        let sending = other.call(broker.address(), send, Duration::from_secs(30));
        let (popped, sent) = tokio::join!(broker.pop(&LONG), sending);
        assert_eq!(sent.unwrap().code, 0);
        assert_eq!(popped.bodies(), [body]);
        broker.ack_all(&popped).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_ends_in_time_without_a_message() {
    let broker = TestBroker::to_pop(1, "").await;
    let began = Instant::now();
    let ask = Ask { poll: 300, ..ASK };
    let answer = broker.pop(&ask).await.command;
    refused(&answer, 210, "no message");
    assert!(began.elapsed() >= Duration::from_millis(200), "it waited");
    let asked = broker.has_message(&ask).await;
    assert!(!asked.has_msg && !asked.polling_full);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notification_says_that_there_is_something_and_takes_nothing() {
    let broker = TestBroker::to_pop(1, "").await;
    let sending = async {
        while waiting(&broker, "-1").await != 1 {}
        broker.send(TOPIC, "a").await;
    };
    let (asked, ()) = tokio::join!(broker.has_message(&LONG), sending);
    assert!(asked.has_msg);
    assert!(broker.has_message(&ASK).await.has_msg);
    assert_eq!(broker.pop(&ASK).await.bodies(), ["a"]);
    assert!(!broker.has_message(&ASK).await.has_msg);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_pops_are_bounded_and_one_more_is_refused() {
    let broker = TestBroker::to_pop(1, "popPollingSize=1000\n").await;
    let client = Client::new(ClientOptions {
        pending_max: 4096,
        ..ClientOptions::default()
    });
    let mut pops = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let (client, address) = (client.clone(), broker.address().to_owned());
        pops.spawn(async move {
            let patience = Duration::from_mins(1);
            client.call(&address, request(&LONG), patience).await
        });
    }
    while waiting(&broker, "-1").await != 1000 {}
    refused(&broker.pop(&LONG).await.command, 209, "1000");
    let asked = broker.has_message(&LONG).await;
    assert!(asked.polling_full && !asked.has_msg);
    // Each of them gets one of a thousand messages.
    for number in 0..1000 {
        broker.send(TOPIC, &number.to_string()).await;
    }
    let mut got = Vec::new();
    while let Some(answer) = pops.join_next().await {
        let popped = read(answer.unwrap().unwrap());
        got.extend(popped.messages.into_iter().map(|one| one.body));
        if got.len() == 1000 {
            break;
        }
    }
    got.sort_by_key(|body| body.parse::<u32>().unwrap());
    got.dedup();
    assert_eq!(got.len(), 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_go_away_while_they_wait_take_no_message_with_them() {
    let broker = TestBroker::to_pop(1, "").await;
    let mut pops = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (client, address) = (
            Client::new(ClientOptions::default()),
            broker.address().to_owned(),
        );
        pops.spawn(async move {
            let patience = Duration::from_mins(1);
            client.call(&address, request(&LONG), patience).await
        });
    }
    while waiting(&broker, "-1").await != 50 {}
    pops.shutdown().await;
    while waiting(&broker, "-1").await != 0 {}
    broker.send(TOPIC, "a").await;
    assert_eq!(broker.pop(&ASK).await.bodies(), ["a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_becomes_visible_again_wakes_a_waiting_pop_with_both_forms_of_topic() {
    for v2 in ["false", "true"] {
        let broker = TestBroker::to_pop(1, &format!("enableRetryTopicV2={v2}\n")).await;
        broker.send(TOPIC, "a").await;
        let short = Ask {
            invisible: 1000,
            ..ASK
        };
        broker.pop(&short).await;
        // One wait: nothing but the redelivery ends it.
        let again = broker.pop(&LONG).await;
        assert_eq!(again.bodies(), ["a"], "{v2}");
        broker.ack_all(&again).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_topic_and_a_stopping_broker_answer_who_waits() {
    let mut broker = TestBroker::to_pop(1, "").await;
    let deleting = async {
        while waiting(&broker, "-1").await != 1 {}
        ok(broker
            .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", TOPIC)])
            .await);
    };
    let (popped, ()) = tokio::join!(broker.pop(&LONG), deleting);
    assert_eq!(popped.command.code, 17);
    broker.topic(TOPIC, 1).await;
    let (client, address) = (broker.client(), broker.address().to_owned());
    let patience = Duration::from_mins(1);
    let (answer, ()) = tokio::join!(client.call(&address, request(&LONG), patience), async {
        while waiting(&broker, "-1").await != 1 {}
        broker.stop().await;
    });
    assert_eq!(answer.unwrap().code, 210);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_wakes_a_waiting_pop() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    let popped = broker.pop(&ASK).await;
    broker.ack_all(&popped).await;
    let resetting = async {
        while waiting(&broker, "-1").await != 1 {}
        let fields = [
            ("topic", TOPIC),
            ("group", GROUP),
            ("timestamp", "0"),
            ("isForce", "true"),
        ];
        ok(broker
            .ask_with(code::INVOKE_BROKER_TO_RESET_OFFSET, &fields)
            .await);
    };
    let (again, ()) = tokio::join!(broker.pop(&LONG), resetting);
    assert_eq!(again.bodies(), ["a"]);
}
