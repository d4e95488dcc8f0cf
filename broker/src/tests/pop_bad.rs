//! Pops, acks and changes that are wrong: each is refused by its code and changes nothing.

use rmq_protocol::remoting::{Command, request_code as code};

use super::{
    TestBroker, ok,
    pop_client::{ASK, Ask, GROUP, TOPIC, request},
    refused,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pops_outside_their_bounds_are_refused_by_name() {
    let broker = TestBroker::to_pop(2, "autoCreateSubscriptionGroup=false\n").await;
    let pop = async |ask: Ask| broker.pop(&ask).await.command;
    for max in [33, 0, -1, i32::MAX] {
        refused(&pop(Ask { max, ..ASK }).await, 29, "maxMsgNums");
    }
    for invisible in [0, -1, i64::MIN] {
        refused(&pop(Ask { invisible, ..ASK }).await, 29, "invisible time");
    }
    refused(&pop(Ask { queue: 2, ..ASK }).await, 29, "queueId[2]");
    refused(
        &pop(Ask {
            topic: "none",
            ..ASK
        })
        .await,
        17,
        "none",
    );
    refused(
        &pop(Ask {
            group: "none",
            ..ASK
        })
        .await,
        26,
        "none",
    );
    let tags = Some("||");
    refused(&pop(Ask { tags, ..ASK }).await, 23, "tag");
    // It was sent long ago and does not wait any more.
    let old = Ask {
        born: 1_700_000_000_000,
        poll: 1000,
        ..ASK
    };
    refused(&pop(old).await, 210, "on its way");
    let body = format!(r#"{{"groupName":"{GROUP}","consumeEnable":false}}"#);
    ok(broker
        .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body)
        .await);
    refused(&pop(ASK).await, 16, "subscription group no permission");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pop_with_only_the_fields_of_old_clients_is_served() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    let fields = [
        ("consumerGroup", GROUP),
        ("topic", TOPIC),
        ("queueId", "-1"),
        ("maxMsgNums", "1"),
        ("invisibleTime", "60000"),
        ("pollTime", "0"),
        ("initMode", "0"),
    ];
    ok(broker.ask_with(code::POP_MESSAGE, &fields).await);
    refused(
        &broker.ask_with(code::POP_MESSAGE, &fields[1..]).await,
        1,
        "consumerGroup",
    );
    let sql = request(&ASK)
        .with_ext("expType", "SQL92")
        .with_ext("exp", "a > 1");
    refused(&broker.call(sql).await, 1, "SQL92");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invisible_time_of_a_year_is_cut_and_one_of_a_millisecond_lengthened() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    broker.send(TOPIC, "b").await;
    let long = Ask {
        invisible: i64::MAX,
        max: 1,
        ..ASK
    };
    let popped = broker.pop(&long).await;
    assert_eq!(popped.header().invisible_time, 7 * 24 * 3_600_000);
    let short = Ask {
        invisible: 1,
        ..ASK
    };
    assert_eq!(broker.pop(&short).await.header().invisible_time, 1000);
    let (answer, _) = broker.change(&popped.messages[0], -1).await;
    refused(&answer, 29, "invisible time");
    let (answer, changed) = broker.change(&popped.messages[0], i64::MAX).await;
    ok(answer);
    assert_eq!(changed.receipt().invisible_time, 7 * 24 * 3_600_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_foreign_truncated_and_old_handles_ack_nothing() {
    let broker = TestBroker::to_pop(1, "").await;
    for body in ["a", "b", "c", "d"] {
        broker.send(TOPIC, body).await;
    }
    let popped = broker.pop(&ASK).await;
    let message = &popped.messages[3];
    let with = async |handle: String| {
        broker
            .ack_as(message, |header| header.extra_info = handle.into())
            .await
    };
    let fields: Vec<&str> = message.handle.split(' ').collect();
    let replaced = |at: usize, value: &str| {
        let mut fields = fields.clone();
        fields[at] = value;
        fields.join(" ")
    };
    for at in 0..6 {
        let cut = fields[..at].join(" ");
        assert_eq!(with(cut.clone()).await.code, 13, "{cut}");
    }
    refused(&with(replaced(5, "other")).await, 13, "other");
    for (at, value) in [
        (0, "x"),
        (1, "-5"),
        (2, ""),
        (3, "99999999999"),
        (4, "7"),
        (6, "-1"),
    ] {
        let forged = replaced(at, value);
        assert_eq!(with(forged.clone()).await.code, 13, "{forged}");
    }
    // Well formed, but no pop gave it.
    ok(with(replaced(1, "1")).await);
    let wrapped = message.offset + (1 << 32);
    let answer = broker
        .ack_as(message, |header| header.offset = wrapped)
        .await;
    refused(&answer, 208, "not within");
    for offset in [-1, i64::MIN, i64::MAX, 5] {
        let answer = broker
            .ack_as(message, |header| header.offset = offset)
            .await;
        assert_eq!(answer.code, 208, "{offset}");
    }
    for queue in [1, -1] {
        let answer = broker
            .ack_as(message, |header| header.queue_id = queue)
            .await;
        refused(&answer, 13, "queueId");
    }
    let answer = broker
        .ack_as(message, |header| header.topic = "none".into())
        .await;
    assert_eq!(answer.code, 17);
    for one in &popped.messages[..3] {
        ok(broker.ack_of(one).await);
        ok(broker.ack_of(one).await);
    }
    assert_eq!(
        broker.committed(GROUP, TOPIC).await,
        "3",
        "the fourth is not acked"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_batch_acks_are_refused_or_change_nothing() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    let popped = broker.pop(&ASK).await;
    let send = async |body: String| broker.ask_body(code::BATCH_ACK_MESSAGE, body).await;
    for body in [
        String::new(),
        r#"{"brokerName":"b"}"#.into(),
        r#"{"acks":[]}"#.into(),
    ] {
        assert_eq!(send(body.clone()).await.code, 208, "{body}");
    }
    refused(&send("{".to_owned()).await, 1, "");
    let pop_time = popped.messages[0].receipt().pop_time;
    let entry = |so: i64, bits: &str, queue: i32| {
        format!(
            r#"{{"c":"G","t":"T","r":"0","so":{so},"q":{queue},"rq":0,"pt":{pop_time},"it":1,"b":"{bits}"}}"#
        )
    };
    let acks = |list: &[String]| format!(r#"{{"brokerName":"b","acks":[{}]}}"#, list.join(","));
    for harmless in [
        entry(-5, "Hw==", 0),
        entry(i64::MAX, "/w==", 0),
        entry(0, "", 0),
        entry(0, "AQ==", -1),
        entry(0, "AQ==", i32::MAX),
    ] {
        ok(send(acks(&[harmless])).await);
    }
    let many = vec![entry(0, "AQ==", 7); 100_000];
    refused(&send(acks(&many)).await, 1, "acks");
    assert_eq!(broker.committed(GROUP, TOPIC).await, "0");
    ok(send(acks(&[entry(0, "AQ==", 0)])).await);
    assert_eq!(broker.committed(GROUP, TOPIC).await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_what_is_not_in_flight_are_refused() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    let popped = broker.pop(&ASK).await;
    let mut message = popped.messages[0].clone();
    ok(broker.ack_of(&message).await);
    let (answer, _) = broker.change(&message, 10_000).await;
    refused(&answer, 208, "not in flight");
    // Here the end of the queue is outside, unlike in acks.
    message.offset = 1;
    ok(broker.ack_of(&message).await);
    let (answer, _) = broker.change(&message, 10_000).await;
    refused(&answer, 208, "not within");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ack_of_what_was_never_popped_is_answered_and_a_rollback_has_nothing_to_do() {
    let broker = TestBroker::to_pop(1, "").await;
    broker.send(TOPIC, "a").await;
    let fields = [
        ("consumerGroup", GROUP),
        ("topic", TOPIC),
        ("queueId", "0"),
        ("extraInfo", "0 1 1 0 0 b 0 0"),
        ("offset", "0"),
    ];
    ok(broker.ask_with(code::ACK_MESSAGE, &fields).await);
    ok(broker.call(Command::request(code::POP_ROLLBACK)).await);
    assert_eq!(broker.pop(&ASK).await.bodies(), ["a"]);
}
