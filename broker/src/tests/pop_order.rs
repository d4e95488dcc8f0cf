//! Ordered groups: one batch of a queue at a time.

use rmq_protocol::{
    pop::{OrderInfoFile, parse_order_counts},
    remoting::request_code as code,
};

use super::{
    TestBroker, ok,
    pop_client::{ASK, Ask, GROUP, TOPIC},
    refused,
};

const ORDER: Ask = Ask { order: true, ..ASK };
const SHORT: Ask = Ask {
    invisible: 1000,
    ..ORDER
};

async fn with_messages(lines: &str) -> TestBroker {
    let broker = TestBroker::to_pop(1, lines).await;
    for body in ["1", "2", "3", "4"] {
        broker.send(TOPIC, body).await;
    }
    broker
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_behind_a_batch_comes_before_all_of_it_is_acked() {
    let broker = with_messages("").await;
    let first = broker.pop(&Ask { max: 3, ..ORDER }).await;
    assert_eq!(first.bodies(), ["1", "2", "3"]);
    assert_eq!(first.header().revive_qid, 999);
    assert_eq!(broker.pop(&ORDER).await.command.code, 210);
    ok(broker.ack_of(&first.messages[1]).await);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "0");
    ok(broker.ack_of(&first.messages[0]).await);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "2");
    assert_eq!(broker.pop(&ORDER).await.command.code, 210);
    ok(broker.ack_of(&first.messages[2]).await);
    let next = broker.pop(&ORDER).await;
    assert_eq!(next.bodies(), ["4"]);
    // Twice is no fault, what is none of the batch is one.
    ok(broker.ack_of(&first.messages[2]).await);
    let mut strange = next.messages[0].clone();
    strange.offset = 4;
    refused(&broker.ack_of(&strange).await, 13, "none of the messages");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acked_middle_one_does_not_come_again_and_the_others_do_in_order_with_their_counts() {
    let broker = with_messages("").await;
    let first = broker.pop(&Ask { max: 3, ..ORDER }).await;
    ok(broker.ack_of(&first.messages[1]).await);
    for index in [0, 2] {
        ok(broker.change(&first.messages[index], 0).await.0);
    }
    let again = broker.pop_waiting(&ORDER).await;
    assert_eq!(again.bodies(), ["1", "3"]);
    let counts = again.header().order_count_info.unwrap().into_owned();
    let counts = parse_order_counts(&counts).unwrap();
    let of = |offset| {
        counts
            .iter()
            .find(|one| one.offset == offset)
            .map(|one| one.count)
    };
    assert_eq!(
        (of(Some(0)), of(Some(2)), of(None)),
        (Some(1), Some(1), Some(1))
    );
    // The first delivery's handles are stale; saying so is no fault.
    ok(broker.ack_of(&first.messages[0]).await);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "0");
    broker.ack_all(&again).await;
    assert_eq!(broker.pop(&ORDER).await.bodies(), ["4"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_attempt_gets_the_same_messages_again_and_another_waits() {
    let broker = with_messages("").await;
    let mine = Ask {
        max: 1,
        attempt: Some("x"),
        ..ORDER
    };
    assert_eq!(broker.pop(&mine).await.bodies(), ["1"]);
    assert_eq!(broker.pop(&mine).await.bodies(), ["1"]);
    let other = Ask {
        attempt: Some("y"),
        ..mine
    };
    assert_eq!(broker.pop(&other).await.command.code, 210);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_ordered_pop_is_woken_by_the_ack_of_the_batch_before_it() {
    let broker = with_messages("").await;
    let first = broker.pop(&Ask { max: 3, ..ORDER }).await;
    let long = Ask {
        poll: 1_000_000,
        ..ORDER
    };
    let acking = async {
        let fields = [
            ("consumerGroup", GROUP),
            ("topic", TOPIC),
            ("queueId", "-1"),
        ];
        loop {
            let answer = ok(broker.ask_with(code::POLLING_INFO, &fields).await);
            if answer.ext.get("pollingNum") == Some("1") {
                break;
            }
        }
        broker.ack_all(&first).await;
    };
    let (next, ()) = tokio::join!(broker.pop(&long), acking);
    assert_eq!(next.bodies(), ["4"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_time_of_an_ordered_message_keeps_its_handle() {
    let broker = with_messages("").await;
    let first = broker.pop(&Ask { max: 1, ..ORDER }).await;
    let (answer, changed) = broker.change(&first.messages[0], 0).await;
    ok(answer);
    assert_eq!(
        changed.receipt().pop_time,
        first.messages[0].receipt().pop_time
    );
    let again = broker.pop_waiting(&ORDER).await;
    assert_eq!(again.bodies(), ["1"]);
    broker.ack_all(&again).await;
    let (answer, changed) = broker.change(&again.messages[0], 5000).await;
    ok(answer);
    assert_eq!(changed.receipt().pop_time, 0, "it was consumed already");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordered_message_that_always_fails_is_a_dead_letter_and_blocks_its_queue_no_more() {
    let broker = with_messages("").await;
    let body = format!(r#"{{"groupName":"{GROUP}","retryMaxTimes":1}}"#);
    ok(broker
        .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body)
        .await);
    let ask = Ask { max: 1, ..SHORT };
    for _ in 0..2 {
        assert_eq!(broker.pop_waiting(&ask).await.bodies(), ["1"]);
    }
    assert_eq!(broker.pop_waiting(&ask).await.bodies(), ["2"]);
    assert_eq!(broker.pull("tool", ("%DLQ%G", 0), 0).await.bodies, ["1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_stays_in_flight_over_a_restart_and_its_handles_count() {
    let mut broker = with_messages("").await;
    let first = broker.pop(&Ask { max: 2, ..ORDER }).await;
    ok(broker.ack_of(&first.messages[0]).await);
    broker.restart().await;
    let path = broker.folder().join("config/consumerOrderInfo.json");
    let file = OrderInfoFile::from_json(&std::fs::read(path).unwrap()).unwrap();
    let info = &file.table["T@G"][&0];
    assert_eq!(
        (info.commit_bits, info.offsets.as_slice()),
        (1, [0, 1].as_slice())
    );
    assert_eq!(broker.pop(&ORDER).await.command.code, 210);
    ok(broker.ack_of(&first.messages[1]).await);
    assert_eq!(broker.pop(&ORDER).await.bodies(), ["3", "4"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_an_ordered_group_waits_and_gets_its_messages_again_in_order() {
    let mut broker = with_messages("").await;
    let first = broker.pop(&Ask { max: 2, ..SHORT }).await;
    assert_eq!(first.bodies(), ["1", "2"]);
    broker.kill();
    broker.start_again().await;
    let again = broker.pop_waiting(&ORDER).await;
    assert_eq!(again.bodies()[..2], ["1", "2"]);
}
