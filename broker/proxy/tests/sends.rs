//! Sends, routes and what is refused, seen by a client of the gateway.

#[cfg(test)]
mod common;

use common::{Stage, call, connect, endpoints, message, named};
use rmq_protocol::remoting::request_code as req;
use rmq_proxy::proto::v2::{self, Code, MessageType, Permission};
use tonic::Request;

#[cfg(test)]
fn send(messages: Vec<v2::Message>) -> Request<v2::SendMessageRequest> {
    call(v2::SendMessageRequest { messages })
}

#[cfg(test)]
async fn code(stage: &mut Stage, messages: Vec<v2::Message>) -> Code {
    let answer = stage.client.send_message(send(messages)).await.unwrap();
    answer.into_inner().status.unwrap().code()
}

#[tokio::test]
async fn a_message_reaches_a_broker_with_its_properties_and_its_place_comes_back() {
    let mut stage = Stage::new().await;
    let answer = stage.client.send_message(send(vec![message("t", "id-1")]));
    let answer = answer.await.unwrap().into_inner();
    assert_eq!(answer.status.unwrap().code(), Code::Ok);
    let entry = &answer.entries[0];
    assert_eq!((entry.message_id.as_str(), entry.offset), ("id-1", 0));
    let state = stage.fake.state();
    let sent = &state.sent[0];
    assert_eq!(sent.code, req::SEND_MESSAGE_V2);
    assert_eq!(sent.body, b"hello");
    for entry in [
        "UNIQ_KEY\u{1}id-1\u{2}",
        "TAGS\u{1}a\u{2}",
        "colour\u{1}blue\u{2}",
    ] {
        assert!(sent.properties.contains(entry), "{}", sent.properties);
    }
}

#[tokio::test]
async fn several_messages_are_one_batch_with_an_entry_each() {
    let mut stage = Stage::new().await;
    let batch = vec![message("t", "one"), message("t", "two")];
    let answer = stage.client.send_message(send(batch)).await.unwrap();
    let entries = answer.into_inner().entries;
    let told: Vec<_> = entries
        .iter()
        .map(|entry| (entry.message_id.as_str(), entry.offset))
        .collect();
    assert_eq!(told, [("one", 0), ("two", 1)]);
    assert_eq!(stage.fake.state().sent[0].code, req::SEND_BATCH_MESSAGE);
}

#[tokio::test]
async fn what_a_topic_does_not_take_conflicts_with_its_type() {
    let mut stage = Stage::new().await;
    let mut grouped = message("t", "id");
    grouped.system_properties.as_mut().unwrap().message_group = Some("g".into());
    let conflict = Code::MessagePropertyConflictWithType;
    assert_eq!(code(&mut stage, vec![grouped.clone()]).await, conflict);
    grouped.topic = named("fifo");
    assert_eq!(code(&mut stage, vec![grouped]).await, Code::Ok);
    assert_eq!(
        code(&mut stage, vec![message("fifo", "id")]).await,
        conflict
    );
    let mut late = message("mixed", "id");
    late.system_properties.as_mut().unwrap().delivery_timestamp = Some(prost_types::Timestamp {
        seconds: common::NOW / 1_000 + 60,
        nanos: 0,
    });
    assert_eq!(code(&mut stage, vec![late]).await, Code::Ok);
}

#[tokio::test]
async fn bad_sends_have_their_codes_and_reach_no_broker() {
    let mut stage = Stage::new().await;
    assert_eq!(code(&mut stage, Vec::new()).await, Code::MessageCorrupted);
    assert_eq!(
        code(&mut stage, vec![message("nowhere", "id")]).await,
        Code::TopicNotFound
    );
    assert_eq!(
        code(&mut stage, vec![message("TBW102", "id")]).await,
        Code::IllegalTopic
    );
    assert_eq!(
        code(&mut stage, vec![message("t", "")]).await,
        Code::IllegalMessageId
    );
    let nobody = Request::new(v2::SendMessageRequest {
        messages: vec![message("t", "id")],
    });
    let answer = stage
        .client
        .send_message(nobody)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.status.unwrap().code(), Code::ClientIdRequired);
    assert!(stage.fake.state().sent.is_empty());
}

#[tokio::test]
async fn a_message_group_has_one_queue_and_other_messages_go_round() {
    let mut stage = Stage::with(&[("a", "h:1"), ("b", "h:2")], |_| {}).await;
    for id in 0..8 {
        let mut one = message("fifo", &format!("id-{id}"));
        one.system_properties.as_mut().unwrap().message_group = Some("g".into());
        assert_eq!(code(&mut stage, vec![one]).await, Code::Ok);
        assert_eq!(code(&mut stage, vec![message("t", "id")]).await, Code::Ok);
    }
    let state = stage.fake.state();
    let places = |fifo: bool| -> std::collections::BTreeSet<_> {
        let sent = state.sent.iter();
        sent.filter(|sent| sent.properties.contains("__SHARDINGKEY") == fifo)
            .map(|sent| (sent.addr.clone(), sent.queue))
            .collect()
    };
    assert_eq!(places(true).len(), 1);
    assert_eq!(places(false).len(), 8);
}

#[tokio::test]
async fn a_broker_that_cannot_be_reached_is_passed_over_once() {
    let mut stage = Stage::with(&[("a", "h:1"), ("b", "h:2")], |_| {}).await;
    stage.fake.set(|state| state.down.push("h:1".into()));
    for _ in 0..4 {
        assert_eq!(code(&mut stage, vec![message("t", "id")]).await, Code::Ok);
    }
    let state = stage.fake.state();
    assert!(state.sent.iter().all(|sent| sent.addr == "h:2"));
}

#[tokio::test]
async fn codes_of_the_broker_reach_the_client() {
    let mut stage = Stage::new().await;
    for (broker, wanted) in [
        (2, Code::TooManyRequests),
        (10, Code::MasterPersistenceTimeout),
        (11, Code::HaNotAvailable),
        (12, Code::SlavePersistenceTimeout),
        (14, Code::InternalServerError),
        (16, Code::Forbidden),
    ] {
        stage.fake.set(|state| state.send_code = Some(broker));
        let found = code(&mut stage, vec![message("t", "id")]).await;
        assert_eq!(found, wanted, "{broker}");
    }
}

#[tokio::test]
async fn a_transaction_ends_at_the_gateway_that_began_it() {
    let mut stage = Stage::new().await;
    let mut half = message("mixed", "id-1");
    half.system_properties
        .as_mut()
        .unwrap()
        .set_message_type(MessageType::Transaction);
    let answer = stage.client.send_message(send(vec![half])).await.unwrap();
    let transaction_id = answer.into_inner().entries[0].transaction_id.clone();
    let end = |id: &str| {
        call(v2::EndTransactionRequest {
            topic: named("mixed"),
            message_id: "id-1".into(),
            transaction_id: id.to_owned(),
            resolution: v2::TransactionResolution::Commit.into(),
            ..v2::EndTransactionRequest::default()
        })
    };
    for (id, wanted) in [
        ("", Code::InvalidTransactionId),
        ("other", Code::InternalServerError),
        (&transaction_id, Code::Ok),
        (&transaction_id, Code::InternalServerError),
    ] {
        let answer = stage.client.end_transaction(end(id)).await.unwrap();
        assert_eq!(answer.into_inner().status.unwrap().code(), wanted, "{id}");
    }
    assert_eq!(stage.fake.state().ended, [8]);
}

#[tokio::test]
async fn a_route_tells_the_endpoints_at_which_the_client_came() {
    let mut stage = Stage::new().await;
    let ask = |topic: &str, endpoints| {
        call(v2::QueryRouteRequest {
            topic: named(topic),
            endpoints,
        })
    };
    let answer = stage.client.query_route(ask("fifo", endpoints())).await;
    let queues = answer.unwrap().into_inner().message_queues;
    assert_eq!(queues.len(), 4);
    let broker = queues[0].broker.clone().unwrap();
    assert_eq!(broker.endpoints, endpoints());
    assert_eq!(queues[0].permission(), Permission::ReadWrite);
    assert_eq!(queues[0].accept_message_types, [2]);
    for (request, wanted) in [
        (ask("nowhere", endpoints()), Code::TopicNotFound),
        (ask("%RETRY%g", endpoints()), Code::IllegalTopic),
        (ask("t", None), Code::IllegalAccessPoint),
    ] {
        let answer = stage.client.query_route(request).await.unwrap();
        assert_eq!(answer.into_inner().status.unwrap().code(), wanted);
    }
}

#[tokio::test]
async fn an_assignment_is_each_broker_or_for_ordered_groups_each_queue() {
    let mut stage = Stage::with(&[("a", "h:1"), ("b", "h:2")], |_| {}).await;
    let mut ordered = rmq_protocol::body::SubscriptionGroupConfig::named("ordered");
    ordered.consume_message_orderly = true;
    stage.fake.set(|state| {
        state.groups.insert("ordered".into(), ordered);
    });
    let mut ids = Vec::new();
    for group in ["plain", "ordered"] {
        let request = call(v2::QueryAssignmentRequest {
            topic: named("t"),
            group: named(group),
            endpoints: endpoints(),
        });
        let answer = stage.client.query_assignment(request).await.unwrap();
        let assigned = answer.into_inner().assignments;
        ids.push(
            assigned
                .iter()
                .map(|one| one.message_queue.as_ref().unwrap().id)
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(ids, [vec![-1, -1], vec![0, 1, 2, 3, 0, 1, 2, 3]]);
}

#[tokio::test]
async fn what_nobody_serves_says_so() {
    let mut stage = Stage::new().await;
    let pull = stage
        .client
        .pull_message(call(v2::PullMessageRequest::default()));
    assert_eq!(pull.await.unwrap_err().code(), tonic::Code::Unimplemented);
    let offset = stage
        .client
        .get_offset(call(v2::GetOffsetRequest::default()));
    assert_eq!(offset.await.unwrap_err().code(), tonic::Code::Unimplemented);
    let recall = stage.client.recall_message(call(v2::RecallMessageRequest {
        topic: named("t"),
        recall_handle: "x".into(),
    }));
    let recall = recall.await.unwrap().into_inner();
    assert_eq!(recall.status.unwrap().code(), Code::Unsupported);
    let lite = stage
        .client
        .sync_lite_subscription(call(v2::SyncLiteSubscriptionRequest {
            topic: named("t"),
            ..v2::SyncLiteSubscriptionRequest::default()
        }));
    let lite = lite.await.unwrap().into_inner();
    assert_eq!(lite.status.unwrap().code(), Code::Unsupported);
}

#[tokio::test]
async fn a_request_beyond_the_longest_ends_alone() {
    let mut stage = Stage::with(&[("a", "h:1")], |options| {
        options.limits.request_bytes_max = 4_096;
    })
    .await;
    let mut large = message("t", "id");
    large.body = vec![7; 8_192].into();
    let refused = stage.client.send_message(send(vec![large])).await;
    assert_eq!(refused.unwrap_err().code(), tonic::Code::OutOfRange);
    assert_eq!(code(&mut stage, vec![message("t", "id")]).await, Code::Ok);
}

#[tokio::test]
async fn a_connection_beyond_the_bound_is_closed_and_a_free_seat_taken_again() {
    let mut stage = Stage::with(&[("a", "h:1")], |options| {
        options.limits.connections_max = 1;
    })
    .await;
    assert_eq!(code(&mut stage, vec![message("t", "id")]).await, Code::Ok);
    let addr = stage.proxy.local_addr();
    let mut second = connect(addr).await;
    assert!(
        second
            .send_message(send(vec![message("t", "id")]))
            .await
            .is_err()
    );
    assert_eq!(code(&mut stage, vec![message("t", "id")]).await, Code::Ok);
}
