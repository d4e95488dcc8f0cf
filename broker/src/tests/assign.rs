//! Sharing queues: 400 and 401.

use rmq_protocol::{
    body::{MessageRequestMode, QueryAssignmentResponse, QueueData, TopicRouteData},
    remoting::{Command, request_code as code, response_code},
};

use super::{Peer, TestBroker, ok, refused};

const USUAL: (&str, &str) = ("", "");

fn silent(_request: &Command) -> Command {
    Command::success(0)
}

/// The share of a client; `changed` overrides one field of the usual question.
async fn share(broker: &TestBroker, client: &str, changed: (&str, &str)) -> Option<Vec<i32>> {
    let usual = [
        ("clientId", client),
        ("consumerGroup", "G"),
        ("topic", "T"),
        ("strategyName", "AVG"),
        ("messageModel", "CLUSTERING"),
    ];
    let fields = usual.map(|(name, value)| {
        let value = if name == changed.0 { changed.1 } else { value };
        format!(r#""{name}":"{value}""#)
    });
    let body = format!("{{{}}}", fields.join(","));
    let answer = ok(broker.ask_body(code::QUERY_ASSIGNMENT, body).await);
    let body = QueryAssignmentResponse::from_json(&answer.body).unwrap();
    body.message_queue_assignments.map(|list| {
        assert!(
            list.iter()
                .all(|assigned| assigned.mode == MessageRequestMode::Pull)
        );
        list.into_iter()
            .map(|assigned| assigned.message_queue.queue_id)
            .collect()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_members_share_the_queues_of_a_topic() {
    let broker = TestBroker::start().await;
    broker.topic("T", 5).await;
    assert_eq!(share(&broker, "a", USUAL).await, None, "nobody is online");
    let _a = broker.consumer("a", ("G", &["T"]), silent).await;
    let _b = broker.consumer("b", ("G", &["T"]), silent).await;
    assert_eq!(share(&broker, "a", USUAL).await.unwrap(), [0, 1, 2]);
    assert_eq!(share(&broker, "b", USUAL).await.unwrap(), [3, 4]);
    let circle = ("strategyName", "AVG_BY_CIRCLE");
    assert_eq!(share(&broker, "b", circle).await.unwrap(), [1, 3]);
    assert_eq!(share(&broker, "stranger", USUAL).await.unwrap(), [0; 0]);
    let broadcast = ("messageModel", "BROADCASTING");
    assert_eq!(
        share(&broker, "a", broadcast).await.unwrap(),
        [0, 1, 2, 3, 4]
    );
    assert_eq!(share(&broker, "a", ("strategyName", "NOPE")).await, None);
    assert_eq!(share(&broker, "a", ("topic", "none")).await, None);
    ok(broker
        .ask_body(code::UPDATE_BROKER_CONFIG, "serverLoadBalancerEnable=false")
        .await);
    assert_eq!(share(&broker, "b", USUAL).await.unwrap(), [0, 1, 2, 3, 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_assignment_without_its_fields_is_refused_by_name() {
    let broker = TestBroker::start().await;
    refused(
        &broker.ask_body(code::QUERY_ASSIGNMENT, "{}").await,
        1,
        "topic",
    );
    let body = r#"{"topic":"T","consumerGroup":"G"}"#;
    refused(
        &broker.ask_body(code::QUERY_ASSIGNMENT, body).await,
        1,
        "clientId",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_is_set_for_known_names_only_and_counts_over_a_restart() {
    let mut broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    let set = async |broker: &TestBroker, topic, group, mode| {
        let body = format!(
            r#"{{"topic":"{topic}","consumerGroup":"{group}","mode":"{mode}","popShareQueueNum":0}}"#
        );
        broker.ask_body(code::SET_MESSAGE_REQUEST_MODE, body).await
    };
    ok(set(&broker, "T", "G", "PULL").await);
    refused(
        &set(&broker, "%RETRY%G", "G", "PULL").await,
        16,
        "retry topic",
    );
    refused(&set(&broker, "none", "G", "PULL").await, 17, "none");
    refused(&set(&broker, "T", "none", "PULL").await, 26, "none");
    ok(set(&broker, "T", "G", "POP").await);
    broker.restart().await;
    let _a = broker.consumer("a", ("G", &["T"]), silent).await;
    let body = r#"{"clientId":"a","consumerGroup":"G","topic":"T","strategyName":"AVG"}"#;
    let answer = ok(broker.ask_body(code::QUERY_ASSIGNMENT, body).await);
    let body = QueryAssignmentResponse::from_json(&answer.body).unwrap();
    let share = body.message_queue_assignments.unwrap();
    assert_eq!(share.len(), 1);
    assert_eq!(share[0].mode, MessageRequestMode::Pop);
    assert_eq!(share[0].message_queue.queue_id, -1, "every queue");
}

/// A NameServer that knows topic `T` on two brokers.
fn name_server(request: &Command) -> Command {
    if request.code != code::GET_ROUTEINFO_BY_TOPIC {
        return Command::success(0);
    }
    if request.ext.get("topic") != Some("T") {
        return Command::response(0, response_code::TOPIC_NOT_EXIST);
    }
    let data = |broker: &str| QueueData {
        broker_name: broker.to_owned(),
        perm: 6,
        read_queue_nums: 2,
        ..QueueData::default()
    };
    let route = TopicRouteData {
        queue_datas: vec![data("b"), data("other")],
        ..TopicRouteData::default()
    };
    Command::success(0).with_body(route.to_json())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_of_all_brokers_are_shared_when_a_name_server_knows_them() {
    let servers = Peer::start(name_server);
    let broker = TestBroker::start_with(&format!("namesrvAddr={}", servers.address())).await;
    let _a = broker.consumer("a", ("G", &["T"]), silent).await;
    let _b = broker.consumer("b", ("G", &["T"]), silent).await;
    let body = r#"{"clientId":"b","consumerGroup":"G","topic":"T","strategyName":"AVG"}"#;
    let answer = ok(broker.ask_body(code::QUERY_ASSIGNMENT, body).await);
    let body = QueryAssignmentResponse::from_json(&answer.body).unwrap();
    let share = body.message_queue_assignments.unwrap();
    let share: Vec<_> = share
        .iter()
        .map(|assigned| {
            (
                assigned.message_queue.broker_name.as_str(),
                assigned.message_queue.queue_id,
            )
        })
        .collect();
    assert_eq!(share, [("other", 0), ("other", 1)]);
    assert_eq!(self::share(&broker, "a", ("topic", "U")).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_server_that_does_not_answer_takes_no_queue_away() {
    let broker = TestBroker::start_with("namesrvAddr=127.0.0.1:1").await;
    broker.topic("T", 4).await;
    let _a = broker.consumer("a", ("G", &["T"]), silent).await;
    assert_eq!(
        share(&broker, "a", USUAL).await,
        None,
        "the client keeps what it has"
    );
}
