//! Restarts and kills with messages in flight: none is lost, none visible before its time.

use std::collections::{BTreeMap, BTreeSet};

use rmq_protocol::remoting::request_code as code;

use super::{
    TestBroker, ok,
    pop_client::{ASK, Ask, GROUP, Message, TOPIC},
};

const SHORT: Ask = Ask {
    invisible: 3000,
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

/// When each message is visible again, by its last handle.
type Visible = BTreeMap<String, i64>;

fn note(visible: &mut Visible, message: &Message) {
    let at = message.receipt().visible_at();
    visible.insert(message.body.clone(), at);
}

/// Pops and acks until `wanted` different messages came, none of them before its time.
async fn drain(broker: &TestBroker, wanted: usize, visible: &Visible) -> Vec<String> {
    let (mut bodies, mut different) = (Vec::new(), BTreeSet::new());
    while different.len() < wanted {
        let popped = broker.pop_waiting(&ASK).await;
        // The two clocks of the broker are read a moment apart.
        let now = broker.now() + 1;
        for message in &popped.messages {
            let at = visible.get(&message.body).copied().unwrap_or(0);
            assert!(at <= now, "{} came {} ms early", message.body, at - now);
        }
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

fn is_even(message: &Message) -> bool {
    message.body.parse::<usize>().unwrap().is_multiple_of(2)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_exactly_the_messages_that_were_not_acked_come_again() {
    let mut broker = with_messages(100, "").await;
    let mut visible = Visible::new();
    for message in pop_all(&broker, &ASK).await {
        if is_even(&message) {
            ok(broker.ack_of(&message).await);
        } else {
            let (answer, changed) = broker.change(&message, 2000).await;
            ok(answer);
            note(&mut visible, &changed);
        }
    }
    broker.restart().await;
    assert!(!broker.folder().join("config/popInFlight.new").exists());
    assert_eq!(drain(&broker, 50, &visible).await, odd(100));
    assert_eq!(broker.pop(&ASK).await.command.code, 210);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_no_message_is_lost_and_none_comes_before_its_time() {
    let mut broker = with_messages(100, "").await;
    let mut visible = Visible::new();
    for message in pop_all(&broker, &SHORT).await {
        if is_even(&message) {
            ok(broker.ack_of(&message).await);
        } else {
            note(&mut visible, &message);
        }
    }
    broker.kill();
    broker.start_again().await;
    // Acks that only the killed process knew of are lost: those messages may come again.
    let mut came = BTreeSet::new();
    while !odd(100).iter().all(|body| came.contains(body)) {
        came.extend(drain(&broker, 1, &visible).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_and_acks_that_were_written_count_after_a_kill() {
    // Nothing stays in memory: each checkpoint is a record, and each ack.
    let mut broker = with_messages(64, "popCkMaxBufferSize=1\n").await;
    let all = pop_all(&broker, &ASK).await;
    assert_eq!(all.len(), 64);
    for message in &all[1..] {
        ok(broker.ack_of(message).await);
    }
    // Longer than before: the new time is written before it is answered.
    let (answer, changed) = broker.change(&all[0], 700_000).await;
    ok(answer);
    broker.kill();
    broker.start_again().await;
    assert_eq!(
        broker.pop(&ASK).await.command.code,
        210,
        "all acks were kept"
    );
    // The new handle is known, and only it.
    let (answer, _) = broker.change(&all[0], 0).await;
    assert_eq!(answer.code, 208);
    let (answer, _) = broker.change(&changed, 0).await;
    ok(answer);
    assert_eq!(
        broker.pop_waiting(&ASK).await.bodies(),
        [all[0].body.as_str()]
    );
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
    let all = pop_all(&broker, &ASK).await;
    assert_eq!(all.len(), 20);
    let (answer, changed) = broker.change(&all[0], 700_000).await;
    ok(answer);
    ok(broker.ack_of(&changed).await);
    for message in &all[1..10] {
        ok(broker.ack_of(message).await);
    }
    let mut visible = Visible::new();
    for message in &all[10..] {
        let (answer, changed) = broker.change(message, 2000).await;
        ok(answer);
        note(&mut visible, &changed);
    }
    broker.restart().await;
    let mut wanted: Vec<String> = visible.keys().cloned().collect();
    wanted.sort();
    assert_eq!(drain(&broker, 10, &visible).await, wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_kill_during_the_wait_loses_nothing_either() {
    let mut broker = with_messages(40, "").await;
    let mut visible = Visible::new();
    for message in pop_all(&broker, &SHORT).await {
        note(&mut visible, &message);
    }
    assert_eq!(visible.len(), 40);
    for _ in 0..2 {
        broker.kill();
        broker.start_again().await;
    }
    let came: BTreeSet<String> = drain(&broker, 40, &visible).await.into_iter().collect();
    assert_eq!(came.len(), 40);
}
