//! Restarts and kills with messages in flight: none is lost, none visible before its time.

use std::collections::BTreeSet;

use rmq_protocol::remoting::request_code as code;

use super::{
    TestBroker, ok,
    pop_client::{ASK, Ask, GROUP, Message, TOPIC},
};

const SHORT: Ask = Ask {
    invisible: 2000,
    ..ASK
};

async fn with_messages(count: usize, lines: &str) -> TestBroker {
    let broker = TestBroker::to_pop(2, lines).await;
    for number in 0..count {
        let queue = (number % 2) as i32;
        ok(broker
            .send_to((TOPIC, queue), &number.to_string(), &[])
            .await);
    }
    broker
}

async fn pop_all(broker: &TestBroker, ask: &Ask) -> Vec<Message> {
    let mut all = Vec::new();
    loop {
        let popped = broker.pop(ask).await;
        if popped.messages.is_empty() {
            return all;
        }
        all.extend(popped.messages);
    }
}

/// Pops and acks until `wanted` different messages came.
async fn drain(broker: &TestBroker, wanted: usize) -> Vec<String> {
    let (mut bodies, mut different) = (Vec::new(), BTreeSet::new());
    while different.len() < wanted {
        let popped = broker.pop_waiting(&ASK).await;
        broker.ack_all(&popped).await;
        different.extend(popped.messages.iter().map(|one| one.body.clone()));
        bodies.extend(popped.messages.into_iter().map(|one| one.body));
    }
    bodies.sort();
    bodies
}

fn odd(count: usize) -> Vec<String> {
    let mut list: Vec<String> = (0..count)
        .filter(|number| number % 2 == 1)
        .map(|number| number.to_string())
        .collect();
    list.sort();
    list
}

async fn half_is_acked(broker: &TestBroker, count: usize) {
    for message in pop_all(broker, &SHORT).await {
        if message.body.parse::<usize>().unwrap() % 2 == 0 {
            ok(broker.ack_of(&message).await);
        }
    }
    assert!(count > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_exactly_the_messages_that_were_not_acked_come_again() {
    let mut broker = with_messages(100, "").await;
    half_is_acked(&broker, 100).await;
    broker.restart().await;
    assert!(!broker.folder().join("config/popInFlight.new").exists());
    assert_eq!(
        broker.pop(&ASK).await.command.code,
        210,
        "they are still invisible"
    );
    assert_eq!(drain(&broker, 50).await, odd(100));
    assert_eq!(broker.pop(&ASK).await.command.code, 210);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_no_message_is_lost_and_none_comes_before_its_time() {
    let mut broker = with_messages(100, "").await;
    half_is_acked(&broker, 100).await;
    broker.kill();
    broker.start_again().await;
    assert_eq!(
        broker.pop(&ASK).await.command.code,
        210,
        "they are still invisible"
    );
    // Acks that only the killed process knew of are lost: those messages may come again.
    let came: BTreeSet<String> = drain(&broker, 50).await.into_iter().collect();
    assert!(odd(100).iter().all(|body| came.contains(body)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_and_acks_that_were_written_count_after_a_kill() {
    // Nothing stays in memory: each checkpoint is a record, and each ack.
    let mut broker = with_messages(64, "popCkMaxBufferSize=1\n").await;
    let all = pop_all(&broker, &SHORT).await;
    assert_eq!(all.len(), 64);
    let mut single = all[0].clone();
    for message in &all[1..] {
        ok(broker.ack_of(message).await);
    }
    let (answer, changed) = broker.change(&single, 4000).await;
    ok(answer);
    single.handle = changed.handle;
    broker.kill();
    broker.start_again().await;
    let again = broker.pop_waiting(&ASK).await;
    assert!(again.bodies().contains(&single.body.as_str()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handles_from_before_a_restart_or_a_kill_still_ack() {
    for kill in [false, true] {
        let mut broker = with_messages(10, "").await;
        let all = pop_all(&broker, &ASK).await;
        assert_eq!(all.len(), 10);
        if kill {
            broker.kill();
            broker.start_again().await;
        } else {
            broker.restart().await;
        }
        for message in &all {
            ok(broker.ack_of(message).await);
        }
        assert_eq!(broker.committed(GROUP, TOPIC).await, "5", "kill: {kill}");
        let fields = [("consumerGroup", GROUP), ("topic", TOPIC), ("queueId", "1")];
        let answer = ok(broker.ask_with(code::QUERY_CONSUMER_OFFSET, &fields).await);
        assert_eq!(answer.ext.get("offset"), Some("5"), "kill: {kill}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_flush_before_every_answer_records_count_when_they_are_on_the_disk() {
    let lines = "flushDiskType=SYNC_FLUSH\npopCkMaxBufferSize=1\n";
    let mut broker = with_messages(20, lines).await;
    let all = pop_all(&broker, &SHORT).await;
    let (answer, changed) = broker.change(&all[0], 3000).await;
    ok(answer);
    ok(broker.ack_of(&changed).await);
    for message in &all[1..10] {
        ok(broker.ack_of(message).await);
    }
    let acked: BTreeSet<String> = all[..10].iter().map(|one| one.body.clone()).collect();
    broker.restart().await;
    let came = drain(&broker, 10).await;
    assert_eq!(came.len(), 10);
    assert!(came.iter().all(|body| !acked.contains(body)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_kill_during_the_wait_loses_nothing_either() {
    let mut broker = with_messages(40, "").await;
    assert_eq!(pop_all(&broker, &SHORT).await.len(), 40);
    for _ in 0..2 {
        broker.kill();
        broker.start_again().await;
    }
    let came: BTreeSet<String> = drain(&broker, 40).await.into_iter().collect();
    assert_eq!(came.len(), 40);
}
