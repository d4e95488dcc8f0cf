//! Pops (200050), acks (200051, 200151), changes of invisible time (200053): the usual course.

use rmq_protocol::{
    body::BrokerStatsData,
    header::{POP_INIT_MAX, PeekMessage},
    message::properties::names,
    pop::{BatchAck, BatchAckRequest, BitSet},
    remoting::{Command, request_code as code, response_code},
};
use rmq_types::pop::PopTopic;

use super::{
    TestBroker, ok,
    pop_client::{ASK, Ask, GROUP, TOPIC},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_popped_once_acked_and_never_comes_again() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    broker.send(TOPIC, "b").await;
    let popped = broker.pop(&ASK).await;
    assert_eq!(popped.bodies(), ["a", "b"]);
    assert_eq!(popped.header().rest_num, 0);
    let again = broker.pop(&ASK).await;
    assert_eq!(again.command.code, response_code::POLLING_TIMEOUT);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "0");
    ok(broker.ack_of(&popped.messages[1]).await);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "0");
    ok(broker.ack_of(&popped.messages[0]).await);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pop_takes_from_every_queue_and_never_more_than_it_asked_for() {
    let broker = TestBroker::to_pop(4, "").await;
    for queue in 0..4 {
        for number in 0..3 {
            ok(broker
                .send_to((TOPIC, queue), &format!("{queue}{number}"), &[])
                .await);
        }
    }
    let mut all = Vec::new();
    loop {
        let popped = broker.pop(&Ask { max: 5, ..ASK }).await;
        assert!(popped.messages.len() <= 5);
        if popped.messages.is_empty() {
            break;
        }
        broker.ack_all(&popped).await;
        all.extend(popped.messages.into_iter().map(|one| one.body));
    }
    all.sort();
    let sent: Vec<String> = (0..4)
        .flat_map(|queue| (0..3).map(move |number| format!("{queue}{number}")))
        .collect();
    assert_eq!(all, sent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pop_of_one_queue_leaves_the_others_alone_even_beyond_127() {
    let broker = TestBroker::to_pop(200, "").await;
    ok(broker.send_to((TOPIC, 150), "far", &[]).await);
    ok(broker.send_to((TOPIC, 3), "near", &[]).await);
    let ask = Ask { queue: 150, ..ASK };
    let popped = broker.pop(&ask).await;
    assert_eq!(popped.bodies(), ["far"]);
    assert_eq!(popped.messages[0].receipt().queue_id, 150);
    broker.ack_all(&popped).await;
    assert_eq!(broker.pop(&ASK).await.bodies(), ["near"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_pop_the_same_messages_each_for_itself_and_a_group_is_made_by_its_first_pop() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    assert_eq!(broker.pop(&ASK).await.bodies(), ["a"]);
    let other = Ask {
        group: "new",
        ..ASK
    };
    assert_eq!(broker.pop(&other).await.bodies(), ["a"]);
    assert_eq!(broker.pop(&other).await.command.code, 210);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_group_may_begin_at_the_end_of_a_topic() {
    let lines = "initPopOffsetByCheckMsgInMem=false\n";
    let broker = TestBroker::to_pop(1, lines).await;
    for body in ["1", "2", "3"] {
        broker.send(TOPIC, body).await;
    }
    let ask = Ask {
        init: POP_INIT_MAX,
        ..ASK
    };
    assert_eq!(broker.pop(&ask).await.bodies(), ["3"]);
    let small = TestBroker::to_pop(1, "").await;
    small.send(TOPIC, "1").await;
    small.send(TOPIC, "2").await;
    assert_eq!(
        small.pop(&ask).await.bodies(),
        ["1", "2"],
        "a small topic from its beginning"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_a_filter_leaves_out_are_passed_and_do_not_hold_the_offset_back() {
    let broker = TestBroker::to_pop(1, "").await;
    for _ in 0..100 {
        ok(broker.send_to((TOPIC, 0), "b", &[("TAGS", "B")]).await);
    }
    ok(broker.send_to((TOPIC, 0), "a", &[("TAGS", "A")]).await);
    // Two tags of one hash are two tags.
    ok(broker.send_to((TOPIC, 0), "x", &[("TAGS", "BB")]).await);
    let ask = Ask {
        tags: Some("A||Aa"),
        ..ASK
    };
    let popped = broker.pop(&ask).await;
    assert_eq!(popped.bodies(), ["a"]);
    broker.ack_all(&popped).await;
    assert_eq!(broker.pop(&ask).await.command.code, 210);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "102");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_ack_acks_what_its_bits_say() {
    let broker = TestBroker::to_pop(1, "").await;
    for number in 0..5 {
        broker.send(TOPIC, &number.to_string()).await;
    }
    let popped = broker.pop(&ASK).await;
    let receipt = popped.messages[0].receipt();
    let ack = |bits: &[u32]| BatchAck {
        bits: bits.iter().copied().collect::<BitSet>(),
        group: GROUP.to_owned(),
        invisible_time: receipt.invisible_time,
        pop_time: receipt.pop_time,
        queue_id: 0,
        retry: PopTopic::Normal,
        revive_queue_id: receipt.revive_queue_id,
        start_offset: receipt.start_offset,
        topic: TOPIC.to_owned(),
    };
    let body = |acks| BatchAckRequest {
        acks,
        broker_name: "b".to_owned(),
    };
    let send = async |request: BatchAckRequest| {
        broker
            .ask_body(code::BATCH_ACK_MESSAGE, request.to_json())
            .await
    };
    ok(send(body(vec![ack(&[0, 1, 3])])).await);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "2");
    // Bits of no message, of messages acked before, and far outside are passed over.
    ok(send(body(vec![ack(&[3, 4, 70, 500_000]), ack(&[2])])).await);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "5");
    let key = format!("{TOPIC}@{GROUP}");
    let fields = [("statsName", "GROUP_ACK_NUMS"), ("statsKey", key.as_str())];
    let answer = ok(broker.ask_with(code::VIEW_BROKER_STATS_DATA, &fields).await);
    let stats = BrokerStatsData::from_json(&answer.body).unwrap();
    assert_eq!(stats.stats_minute.sum, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_time_counts_from_then_and_only_its_new_handle_acks() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    let popped = broker.pop(&ASK).await;
    let (answer, changed) = broker.change(&popped.messages[0], 300_000).await;
    ok(answer);
    assert_ne!(changed.handle, popped.messages[0].handle);
    assert_eq!(changed.receipt().invisible_time, 300_000);
    ok(broker.ack_of(&popped.messages[0]).await);
    assert_eq!(
        broker.committed(GROUP, TOPIC).await,
        "0",
        "the old handle is void"
    );
    let (old, _) = broker.change(&popped.messages[0], 1).await;
    assert_eq!(old.code, response_code::NO_MESSAGE);
    ok(broker.ack_of(&changed).await);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_changes_within_a_millisecond_lose_no_message() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    broker.send(TOPIC, "b").await;
    let popped = broker.pop(&ASK).await;
    let (one, other) = tokio::join!(
        broker.change(&popped.messages[0], 1000),
        broker.change(&popped.messages[1], 1000)
    );
    ok(one.0);
    ok(other.0);
    let mut bodies = Vec::new();
    while bodies.len() < 2 {
        let again = broker.pop_waiting(&ASK).await;
        bodies.extend(again.messages.into_iter().map(|one| one.body));
    }
    bodies.sort();
    assert_eq!(bodies, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peek_shows_messages_and_takes_none() {
    let broker = TestBroker::to_pop(1, "").await;
    let peek = async || {
        let command = Command::request(code::PEEK_MESSAGE).with_header(&PeekMessage {
            topic: TOPIC.into(),
            queue_id: -1,
            max_msg_nums: 32,
            consumer_group: GROUP.into(),
        });
        broker.call(command).await
    };
    assert_eq!(peek().await.code, response_code::PULL_NOT_FOUND);
    broker.send(TOPIC, "a").await;
    for _ in 0..2 {
        let answer = ok(peek().await);
        assert!(!answer.body.is_empty());
    }
    assert_eq!(broker.pop(&ASK).await.bodies(), ["a"]);
    assert_eq!(peek().await.code, response_code::PULL_NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_was_deleted_and_made_again_begins_anew_and_old_handles_are_void() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "old").await;
    let popped = broker.pop(&ASK).await;
    ok(broker
        .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", TOPIC)])
        .await);
    let gone = broker.ack_of(&popped.messages[0]).await;
    assert_eq!(gone.code, response_code::TOPIC_NOT_EXIST);
    broker.topic(TOPIC, 1).await;
    broker.send(TOPIC, "new").await;
    let again = broker.pop(&ASK).await;
    assert_eq!(again.bodies(), ["new"]);
    ok(broker.ack_of(&popped.messages[0]).await);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "0");
    ok(broker.ack_of(&again.messages[0]).await);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_while_messages_are_in_flight_gives_them_again_and_voids_their_handles() {
    let broker = TestBroker::to_pop(1, "").await;
    for number in 0..10 {
        broker.send(TOPIC, &number.to_string()).await;
    }
    let first = broker.pop(&ASK).await;
    assert_eq!(first.messages.len(), 10);
    let fields = [
        ("topic", TOPIC),
        ("group", GROUP),
        ("timestamp", "0"),
        ("isForce", "true"),
    ];
    ok(broker
        .ask_with(code::INVOKE_BROKER_TO_RESET_OFFSET, &fields)
        .await);
    let again = broker.pop(&ASK).await;
    assert_eq!(again.bodies(), first.bodies());
    broker.ack_all(&first).await;
    assert_eq!(broker.committed(GROUP, TOPIC).await, "0");
    broker.ack_all(&again).await;
    assert_eq!(broker.committed(GROUP, TOPIC).await, "10");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pops_and_pulls_of_two_groups_share_a_topic_without_hurting_each_other() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    assert_eq!(broker.pull("puller", (TOPIC, 0), 0).await.bodies, ["a"]);
    let popped = broker.pop(&ASK).await;
    assert_eq!(popped.bodies(), ["a"]);
    assert!(popped.messages[0].property(names::POP_CK).is_none());
    broker.commit("puller", (TOPIC, 0), 1).await;
    assert_eq!(broker.committed(GROUP, TOPIC).await, "0");
    broker.ack_all(&popped).await;
    assert_eq!(broker.committed("puller", TOPIC).await, "1");
}
