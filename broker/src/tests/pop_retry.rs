//! Messages whose invisible time is over: they come again through a retry topic, at last as dead
//! letters.

use rmq_protocol::{message::properties::names, remoting::request_code as code};

use super::{
    TestBroker, ok,
    pop_client::{ASK, Ask, GROUP, TOPIC},
};

/// Invisible for the shortest time there is.
const SHORT: Ask = Ask {
    invisible: 1000,
    ..ASK
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_not_acked_comes_again_with_its_count_and_its_own_handle() {
    let broker = TestBroker::to_pop(1, "").await;
    ok(broker.send_to((TOPIC, 0), "a", &[("KEYS", "k")]).await);
    ok(broker.send_to((TOPIC, 0), "b", &[]).await);
    let first = broker.pop(&ASK).await;
    ok(broker.ack_of(&first.messages[1]).await);
    let (answer, changed) = broker.change(&first.messages[0], 0).await;
    ok(answer);
    let again = broker.pop_waiting(&ASK).await;
    assert_eq!(again.bodies(), ["a"]);
    let message = &again.messages[0];
    assert_eq!(
        (message.reconsume_times, message.topic.as_str()),
        (1, TOPIC)
    );
    assert_eq!(message.property("KEYS"), Some("k"));
    let first_time = changed.receipt().pop_time.to_string();
    assert_eq!(message.property(names::FIRST_POP_TIME), Some(&*first_time));
    assert!(message.property(names::POP_CK).is_some());
    broker.comes_to(TOPIC, "2").await;
    // The earlier handles are of no use any more.
    ok(broker.ack_of(&first.messages[0]).await);
    ok(broker.ack_of(&changed).await);
    assert_eq!(broker.committed(GROUP, "%RETRY%G_T").await, "0");
    ok(broker.ack_of(message).await);
    assert_eq!(broker.committed(GROUP, "%RETRY%G_T").await, "1");
    assert_eq!(broker.pop(&ASK).await.command.code, 210);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retry_topics_of_the_second_form_are_used_when_asked_for_and_both_are_read() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "one").await;
    broker.pop(&SHORT).await;
    let again = broker.pop_waiting(&SHORT).await;
    assert_eq!(again.bodies(), ["one"]);
    ok(broker
        .ask_body(code::UPDATE_BROKER_CONFIG, "enableRetryTopicV2=true")
        .await);
    broker.send(TOPIC, "two").await;
    broker.pop(&SHORT).await;
    let mut bodies = Vec::new();
    while bodies.len() < 2 {
        let popped = broker.pop_waiting(&ASK).await;
        broker.ack_all(&popped).await;
        bodies.extend(popped.messages.into_iter().map(|one| one.body));
    }
    bodies.sort();
    assert_eq!(bodies, ["one", "two"]);
    // A message stays in the form of topic that it has.
    broker.comes_to("%RETRY%G_T", "2").await;
    broker.comes_to("%RETRY%G+T", "1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_answer_may_hold_normal_and_retried_messages_and_each_is_acked_by_its_handle() {
    let broker = TestBroker::to_pop(1, "").await;
    for body in ["r1", "r2", "r3"] {
        broker.send(TOPIC, body).await;
    }
    broker.pop(&SHORT).await;
    let waiting = Ask {
        poll: 20_000,
        ..ASK
    };
    while !broker.has_message(&waiting).await.has_msg {}
    for body in ["n1", "n2", "n3"] {
        broker.send(TOPIC, body).await;
    }
    let mut bodies = Vec::new();
    while bodies.len() < 6 {
        let popped = broker.pop(&ASK).await;
        broker.ack_all(&popped).await;
        bodies.extend(popped.messages.into_iter().map(|one| one.body));
    }
    bodies.sort();
    assert_eq!(bodies, ["n1", "n2", "n3", "r1", "r2", "r3"]);
    broker.comes_to(TOPIC, "6").await;
    broker.comes_to("%RETRY%G_T", "3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_as_many_redeliveries_as_its_group_allows_a_message_is_a_dead_letter() {
    let broker = TestBroker::to_pop(1, "").await;
    let body = format!(r#"{{"groupName":"{GROUP}","retryMaxTimes":1}}"#);
    ok(broker
        .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body)
        .await);
    broker.send(TOPIC, "poison").await;
    for count in 0..2 {
        let popped = broker.pop_waiting(&SHORT).await;
        assert_eq!(popped.messages[0].reconsume_times, count);
    }
    let dead = loop {
        let pulled = broker.pull_for("tool", ("%DLQ%G", 0), 0, 10_000).await;
        if pulled.answer.code == 0 {
            break pulled;
        }
    };
    assert_eq!(dead.bodies, ["poison"]);
    assert_eq!(dead.property(0, names::DLQ_ORIGIN_TOPIC), Some(TOPIC));
    assert_eq!(broker.pop(&ASK).await.command.code, 210);
    assert!(
        broker
            .metrics()
            .contains("rocketmq_send_to_dlq_messages_total{")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_time_of_zero_brings_the_message_back_at_once() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    let popped = broker.pop(&ASK).await;
    let (answer, _) = broker.change(&popped.messages[0], 0).await;
    ok(answer);
    let again = broker.pop_waiting(&ASK).await;
    assert_eq!(
        (again.bodies(), again.messages[0].reconsume_times),
        (vec!["a"], 1)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redelivery_that_cannot_be_written_is_tried_again_until_it_can() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    broker.pop(&SHORT).await;
    assert_eq!(broker.pop_waiting(&SHORT).await.bodies(), ["a"]);
    let perm = async |perm: i32| {
        let topic = rmq_protocol::body::TopicConfig {
            read_queue_nums: 1,
            write_queue_nums: 1,
            perm,
            ..rmq_protocol::body::TopicConfig::named("%RETRY%G_T")
        };
        ok(broker.put_topic(topic, None).await);
    };
    perm(4).await;
    // Its second redelivery fails for as long as the topic cannot be written.
    let waiting = Ask { poll: 2_500, ..ASK };
    assert_eq!(broker.pop(&waiting).await.command.code, 210);
    perm(6).await;
    assert_eq!(broker.pop_waiting(&ASK).await.bodies(), ["a"]);
}
