//! Receives, acknowledgements and renewals, seen by a client of the gateway.

#[cfg(test)]
mod common;

use std::time::Duration;

use common::{Received, Stage, call, call_of, connect, named, receive, received, record};
use rmq_protocol::body::SubscriptionGroupConfig;
use rmq_proxy::proto::v2::{self, Code, FilterExpression, FilterType};

#[cfg(test)]
fn ack(handles: &[&str]) -> tonic::Request<v2::AckMessageRequest> {
    call(v2::AckMessageRequest {
        group: named("g"),
        topic: named("t"),
        entries: handles
            .iter()
            .map(|handle| v2::AckMessageEntry {
                message_id: "m".into(),
                receipt_handle: (*handle).to_owned(),
                lite_topic: None,
            })
            .collect(),
    })
}

#[cfg(test)]
async fn one_message(stage: &mut Stage, auto_renew: bool) -> Received {
    let bytes = record(5, "UNIQ_KEY\u{1}id\u{2}", b"hello");
    stage.fake.set(|state| state.waiting.push_back(bytes));
    let mut request = receive("g", "t");
    request.auto_renew = auto_renew;
    let got = received(&mut stage.client, call(request)).await.unwrap();
    assert_eq!(got.code(), Code::Ok);
    got
}

#[tokio::test]
async fn messages_come_after_the_status_and_are_acknowledged_by_their_handles() {
    let mut stage = Stage::new().await;
    stage.fake.set(|state| {
        state.waiting.push_back(record(0, "", b"one"));
        state.waiting.push_back(record(1, "", b"two"));
    });
    let request = call(receive("g", "t"));
    let got = received(&mut stage.client, request).await.unwrap();
    assert_eq!(got.code(), Code::Ok);
    assert!(got.delivered_at.is_some());
    let bodies: Vec<_> = got.messages.iter().map(|m| m.body.to_vec()).collect();
    assert_eq!(bodies, [b"one", b"two"]);
    assert_eq!(
        got.handle(1),
        format!("0 {} 30000 1 0 a 0 1 1001", common::NOW)
    );
    let handles = [got.handle(0), got.handle(1)];
    let handles = [handles[0].as_str(), handles[1].as_str()];
    let answer = stage.client.ack_message(ack(&handles)).await.unwrap();
    assert_eq!(answer.into_inner().status.unwrap().code(), Code::Ok);
    assert_eq!(stage.fake.state().acked.len(), 2);
}

#[tokio::test]
async fn nothing_new_full_and_broken_filters_have_their_codes() {
    let mut stage = Stage::new().await;
    stage.fake.set(|state| state.no_wait = true);
    for (broker, wanted) in [
        (None, Code::MessageNotFound),
        (Some(209), Code::TooManyRequests),
        (Some(23), Code::IllegalFilterExpression),
        (Some(26), Code::ConsumerGroupNotFound),
    ] {
        stage.fake.set(|state| state.pop_code = broker);
        let request = call(receive("g", "t"));
        let got = received(&mut stage.client, request).await.unwrap();
        assert_eq!(got.code(), wanted);
        assert!(got.messages.is_empty() && got.delivered_at.is_none());
    }
}

#[tokio::test]
async fn bad_receives_are_refused_before_a_broker_is_asked() {
    let mut stage = Stage::new().await;
    let short = Some(prost_types::Duration {
        seconds: 1,
        nanos: 0,
    });
    let mut brief = receive("g", "t");
    brief.invisible_duration = short;
    let mut none = receive("g", "t");
    none.batch_size = 0;
    let mut absent = receive("g", "t");
    absent.invisible_duration = None;
    for (request, wanted) in [
        (receive("CID_RMQ_SYS_x", "t"), Code::IllegalConsumerGroup),
        (receive("g", "rmq_sys_x"), Code::IllegalTopic),
        (receive("g", "nowhere"), Code::TopicNotFound),
        (brief, Code::IllegalInvisibleTime),
        (absent, Code::IllegalInvisibleTime),
        (none, Code::BadRequest),
    ] {
        let got = received(&mut stage.client, call(request)).await.unwrap();
        assert_eq!(got.code(), wanted);
    }
    let mut hasty = call(receive("g", "t"));
    hasty.set_timeout(Duration::from_secs(4));
    let got = received(&mut stage.client, hasty).await.unwrap();
    assert_eq!(got.code(), Code::IllegalPollingTime);
    assert!(stage.fake.state().popped.is_empty());
}

#[tokio::test]
async fn a_tag_of_the_same_hash_is_acknowledged_and_not_delivered() {
    let mut stage = Stage::new().await;
    stage.fake.set(|state| {
        state
            .waiting
            .push_back(record(0, "TAGS\u{1}Aa\u{2}", b"wanted"));
        state
            .waiting
            .push_back(record(1, "TAGS\u{1}BB\u{2}", b"unwanted"));
    });
    let mut request = receive("g", "t");
    request.filter_expression = Some(FilterExpression {
        r#type: FilterType::Tag.into(),
        expression: "Aa || C".into(),
    });
    let got = received(&mut stage.client, call(request)).await.unwrap();
    assert_eq!(got.messages.len(), 1);
    stage.fake.until(|state| state.acked.len() == 1).await;
    assert!(stage.fake.state().acked[0].handle.ends_with(" 1 1001"));
    assert_eq!(stage.fake.state().popped[0].1, "Aa || C");
}

#[tokio::test]
async fn a_message_that_came_too_often_goes_to_the_dead_letters() {
    let mut stage = Stage::new().await;
    let mut group = SubscriptionGroupConfig::named("g");
    group.retry_max_times = 2;
    stage.fake.set(|state| {
        state.groups.insert("g".into(), group);
        state.order_counts = Some("0 qo0%0 3;0 qo0%1 2".into());
        state
            .waiting
            .push_back(record(0, "UNIQ_KEY\u{1}x\u{2}", b"worn"));
        state.waiting.push_back(record(1, "", b"good"));
    });
    let request = call(receive("g", "t"));
    let got = received(&mut stage.client, request).await.unwrap();
    assert_eq!(got.messages.len(), 1);
    let system = got.messages[0].system_properties.as_ref().unwrap();
    assert_eq!(system.delivery_attempt, Some(3));
    stage.fake.until(|state| state.acked.len() == 1).await;
    let dead = &stage.fake.state().dead;
    assert_eq!(*dead, [(1_000, -1, Some("t".to_owned()))]);
}

#[tokio::test]
async fn messages_of_a_client_that_went_away_while_it_waited_are_given_back() {
    let stage = Stage::new().await;
    let mut gone = connect(stage.proxy.local_addr()).await;
    let request = call(receive("g", "t"));
    tokio::select! {
        biased;
        got = received(&mut gone, request) => panic!("{got:?}"),
        () = stage.fake.until(|state| state.pops_now == 1) => {}
    }
    drop(gone);
    let waits = |waiting: usize| {
        let mut text = String::new();
        stage.proxy.probe().metrics(&mut text);
        text.contains(&format!("rocketmq_proxy_receives_waiting {waiting}\n"))
    };
    // The gateway hears of it by its socket.
    while !waits(0) {
        tokio::task::yield_now().await;
    }
    stage
        .fake
        .set(|state| state.waiting.push_back(record(3, "", b"late")));
    stage.fake.until(|state| state.changed.len() == 1).await;
    assert_eq!(stage.fake.state().changed[0].invisible, 1_000);
}

#[tokio::test]
async fn a_stream_that_stands_still_loses_its_messages_and_holds_no_memory() {
    let mut stage = Stage::new().await;
    let body = vec![7; 3 * 1024 * 1024];
    stage.fake.set(|state| {
        for offset in 0..6 {
            state.waiting.push_back(record(offset, "", &body));
        }
    });
    let stream = stage.client.receive_message(call(receive("g", "t"))).await;
    let mut stream = stream.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    let mut text = String::new();
    stage.proxy.probe().metrics(&mut text);
    assert!(!text.contains("delivery_bytes 0\n"), "{text}");
    stage.clock.advance(10_000);
    stage.fake.until(|state| !state.changed.is_empty()).await;
    let mut text = String::new();
    stage.proxy.probe().metrics(&mut text);
    assert!(text.contains("rocketmq_proxy_delivery_bytes 0\n"), "{text}");
    let end = loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended as if all were there"),
            Err(status) => break status,
        }
    };
    assert_eq!(end.code(), tonic::Code::DeadlineExceeded);
}

#[tokio::test]
async fn a_renewed_message_is_acknowledged_by_the_handle_that_the_client_has() {
    let mut stage = Stage::new().await;
    let got = one_message(&mut stage, true).await;
    assert_eq!(stage.fake.state().popped[0].2, 60_000);
    stage.clock.advance(50_000);
    stage.fake.until(|state| state.changed.len() == 1).await;
    assert_eq!(stage.fake.state().changed[0].invisible, 60_000);
    stage.clock.advance(30_000);
    let handle = got.handle(0);
    let answer = stage.client.ack_message(ack(&[&handle])).await.unwrap();
    assert_eq!(answer.into_inner().status.unwrap().code(), Code::Ok);
    let newest = format!("5 {} 60000 2 0 a 0 5 1005", common::NOW + 50_000);
    assert_eq!(stage.fake.state().acked[0].handle, newest);
}

#[tokio::test]
async fn messages_of_a_client_that_ends_become_visible() {
    let mut stage = Stage::new().await;
    one_message(&mut stage, true).await;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let settings = v2::Settings {
        client_type: Some(v2::ClientType::PushConsumer.into()),
        pub_sub: Some(v2::settings::PubSub::Subscription(v2::Subscription {
            group: named("g"),
            ..v2::Subscription::default()
        })),
        ..v2::Settings::default()
    };
    let told = v2::TelemetryCommand {
        status: None,
        command: Some(v2::telemetry_command::Command::Settings(settings)),
    };
    sender.send(told).await.unwrap();
    let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let answer = stage.client.telemetry(call(stream)).await.unwrap();
    assert!(answer.into_inner().message().await.unwrap().is_some());
    let end = call(v2::NotifyClientTerminationRequest { group: named("g") });
    let answer = stage.client.notify_client_termination(end).await.unwrap();
    assert_eq!(answer.into_inner().status.unwrap().code(), Code::Ok);
    stage.fake.until(|state| state.changed.len() == 1).await;
    assert_eq!(stage.fake.state().changed[0].invisible, 1_000);
}

#[tokio::test]
async fn changing_the_invisible_time_gives_a_new_handle() {
    let mut stage = Stage::new().await;
    let got = one_message(&mut stage, false).await;
    let change = |handle: String, seconds: i64| {
        call(v2::ChangeInvisibleDurationRequest {
            group: named("g"),
            topic: named("t"),
            receipt_handle: handle,
            invisible_duration: Some(prost_types::Duration { seconds, nanos: 0 }),
            ..v2::ChangeInvisibleDurationRequest::default()
        })
    };
    let request = change(got.handle(0), 15);
    let answer = stage.client.change_invisible_duration(request).await;
    let answer = answer.unwrap().into_inner();
    assert_eq!(answer.status.unwrap().code(), Code::Ok);
    let wanted = format!("5 {} 15000 2 0 a 0 5 1005", common::NOW + 50_000);
    assert_eq!(answer.receipt_handle, wanted);
    for (handle, seconds, wanted) in [
        (got.handle(0), 43_201, Code::IllegalInvisibleTime),
        (got.handle(0), -1, Code::IllegalInvisibleTime),
        ("x".into(), 15, Code::InvalidReceiptHandle),
    ] {
        let answer = stage
            .client
            .change_invisible_duration(change(handle, seconds))
            .await;
        assert_eq!(answer.unwrap().into_inner().status.unwrap().code(), wanted);
    }
}

#[tokio::test]
async fn acks_are_judged_one_by_one() {
    let mut stage = Stage::new().await;
    let got = one_message(&mut stage, false).await;
    let good = got.handle(0);
    let foreign = good.replace(" a ", " elsewhere ");
    let old = "0 1000 10 1 0 a 0 0 0".to_owned();
    let all = [good.as_str(), good.as_str(), "forged", &foreign, &old];
    let answer = stage.client.ack_message(ack(&all)).await.unwrap();
    let answer = answer.into_inner();
    assert_eq!(answer.status.unwrap().code(), Code::MultipleResults);
    let codes: Vec<_> = answer
        .entries
        .iter()
        .map(|entry| entry.status.as_ref().unwrap().code())
        .collect();
    let invalid = Code::InvalidReceiptHandle;
    assert_eq!(
        codes,
        [Code::Ok, Code::Ok, invalid, Code::BadRequest, invalid]
    );
    stage.fake.set(|state| state.ack_code = Some(208));
    let answer = stage.client.ack_message(ack(&[&good])).await.unwrap();
    assert_eq!(answer.into_inner().status.unwrap().code(), invalid);
    for many in [0, 1_001] {
        let answer = stage.client.ack_message(ack(&vec!["x"; many])).await;
        let code = answer.unwrap().into_inner().status.unwrap().code();
        assert_eq!(code, Code::BadRequest, "{many}");
    }
}

#[tokio::test]
async fn a_dead_letter_is_stored_before_it_is_acknowledged_and_needs_a_full_handle() {
    let mut stage = Stage::new().await;
    let got = one_message(&mut stage, false).await;
    let bury = |handle: &str| {
        call(v2::ForwardMessageToDeadLetterQueueRequest {
            group: named("g"),
            topic: named("t"),
            receipt_handle: handle.to_owned(),
            message_id: "id".into(),
            ..v2::ForwardMessageToDeadLetterQueueRequest::default()
        })
    };
    let full = got.handle(0);
    let short = full.rsplit_once(' ').unwrap().0;
    for (handle, wanted) in [(short, Code::InvalidReceiptHandle), (&full, Code::Ok)] {
        let answer = stage
            .client
            .forward_message_to_dead_letter_queue(bury(handle))
            .await;
        assert_eq!(answer.unwrap().into_inner().status.unwrap().code(), wanted);
    }
    let state = stage.fake.state();
    assert_eq!(state.dead, [(1_005, -1, Some("t".to_owned()))]);
    assert_eq!(state.acked.len(), 1);
}

#[tokio::test]
async fn receives_beyond_the_bound_are_told_to_slow_down() {
    let stage = Stage::with(&[("a", "h:1")], |options| {
        options.limits.receives_max = 1;
    })
    .await;
    let (mut first, mut second) = (stage.client.clone(), stage.client.clone());
    let waiting = received(&mut first, call(receive("g", "t")));
    let refused = async {
        stage.fake.until(|state| state.pops_now == 1).await;
        let request = call_of("d", receive("g", "t"));
        let refused = received(&mut second, request).await.unwrap();
        stage
            .fake
            .set(|state| state.waiting.push_back(record(0, "", b"x")));
        refused
    };
    let (got, refused) = tokio::join!(waiting, refused);
    assert_eq!(refused.code(), Code::TooManyRequests);
    assert_eq!(got.unwrap().messages.len(), 1);
}
