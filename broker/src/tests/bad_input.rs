//! Missing, absurd and hostile requests: each gets a prompt answer that says what is wrong, and the
//! connection goes on.

use rmq_protocol::remoting::{Command, request_code as code};

use super::{TestBroker, ok};

/// Requests that need fields.
const FIELDS: [i32; 28] = [
    code::UPDATE_AND_CREATE_TOPIC,
    code::DELETE_TOPIC_IN_BROKER,
    code::GET_TOPIC_CONFIG,
    code::GET_TOPIC_STATS_INFO,
    code::GET_SUBSCRIPTIONGROUP_CONFIG,
    code::DELETE_SUBSCRIPTIONGROUP,
    code::UPDATE_AND_GET_GROUP_FORBIDDEN,
    code::VIEW_BROKER_STATS_DATA,
    code::GET_CONSUMER_CONNECTION_LIST,
    code::GET_PRODUCER_CONNECTION_LIST,
    code::QUERY_MESSAGE,
    code::VIEW_MESSAGE_BY_ID,
    code::QUERY_CONSUME_QUEUE,
    code::GET_CONSUME_STATS,
    code::QUERY_CONSUME_TIME_SPAN,
    code::QUERY_CORRECTION_OFFSET,
    code::QUERY_TOPIC_CONSUME_BY_WHO,
    code::QUERY_TOPICS_BY_CONSUMER,
    code::QUERY_SUBSCRIPTION_BY_CONSUMER,
    code::INVOKE_BROKER_TO_RESET_OFFSET,
    code::CLONE_GROUP_OFFSET,
    code::GET_CONSUMER_RUNNING_INFO,
    code::CONSUME_MESSAGE_DIRECTLY,
    code::INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
    code::END_TRANSACTION,
    code::RECALL_MESSAGE,
    code::QUERY_CONSUMER_OFFSET,
    code::GET_MAX_OFFSET,
];

/// Requests that need a body.
const BODIES: [i32; 10] = [
    code::UPDATE_AND_CREATE_TOPIC_LIST,
    code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
    code::UPDATE_BROKER_CONFIG,
    code::QUERY_ASSIGNMENT,
    code::SET_MESSAGE_REQUEST_MODE,
    code::HEART_BEAT,
    code::LOCK_BATCH_MQ,
    code::UNLOCK_BATCH_MQ,
    code::CHECK_CLIENT_CONFIG,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_its_fields_is_answered_with_the_name_of_one() {
    let broker = TestBroker::start().await;
    for request in FIELDS {
        let answer = broker.ask(request).await;
        let remark = answer.remark.unwrap_or_default();
        assert_eq!(answer.code, 1, "{request}: {remark}");
        assert!(
            remark.contains('<') && remark.contains("null"),
            "{request}: {remark}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_its_body_is_answered_with_what_is_missing() {
    let broker = TestBroker::start().await;
    for request in BODIES {
        let answer = broker.ask(request).await;
        let remark = answer.remark.unwrap_or_default();
        assert!(
            matches!(answer.code, 1 | 13 | 29),
            "{request}: {} {remark}",
            answer.code
        );
        assert!(remark.contains("body"), "{request}: {remark}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_bodies_fail_fast_and_type_hints_mean_nothing() {
    let broker = TestBroker::start().await;
    let hostile = [
        "[".repeat(100_000),
        format!("{}1", r#"{"a":"#.repeat(100_000)),
        r#"{"clientID":"\x"#.to_owned(),
        "9".repeat(1 << 20),
        "null".to_owned(),
        "{".to_owned(),
    ];
    for request in BODIES
        .into_iter()
        .filter(|request| *request != code::UPDATE_BROKER_CONFIG)
    {
        for body in &hostile {
            let answer = broker.ask_body(request, body.clone()).await;
            let start: String = body.chars().take(8).collect();
            assert!(
                matches!(answer.code, 1 | 13 | 26 | 29),
                "{request} {start}: {}",
                answer.code
            );
            assert!(answer.remark.is_some(), "{request} {start}");
        }
    }
    let hinted = r#"{"@type":"x.y.Z","groupName":"G"}"#;
    ok(broker
        .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, hinted)
        .await);
    ok(broker
        .ask_with(code::GET_SUBSCRIPTIONGROUP_CONFIG, &[("group", "G")])
        .await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_are_none_are_refused_with_their_field() {
    let broker = TestBroker::start().await;
    for bad in ["abc", "99999999999999999999", "", "1.5"] {
        for (request, field) in [
            (code::UPDATE_AND_CREATE_TOPIC, "perm"),
            (code::QUERY_MESSAGE, "maxNum"),
            (code::VIEW_MESSAGE_BY_ID, "offset"),
            (code::QUERY_CONSUME_QUEUE, "count"),
            (code::INVOKE_BROKER_TO_RESET_OFFSET, "timestamp"),
            (code::GET_ALL_TOPIC_CONFIG, "topicSeq"),
            (code::GET_ALL_SUBSCRIPTIONGROUP_CONFIG, "maxGroupNum"),
            (code::QUERY_CONSUMER_OFFSET, "queueId"),
            (code::SEARCH_OFFSET_BY_TIMESTAMP, "timestamp"),
        ] {
            let answer = broker
                .call(Command::request(request).with_ext(field, bad))
                .await;
            let remark = answer.remark.unwrap_or_default();
            assert_eq!(answer.code, 1, "{request} {field}={bad:?}: {remark}");
            assert!(
                remark.contains(field),
                "{request} {field}={bad:?}: {remark}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_unknown_topics_and_queues_makes_nothing() {
    let broker = TestBroker::start().await;
    let count = async || {
        let answer = ok(broker.ask(code::GET_ALL_TOPIC_CONFIG).await);
        answer.ext.get("totalTopicNum").unwrap().to_owned()
    };
    broker.topic("T", 1).await;
    let before = count().await;
    for (topic, queue) in [("T", "999"), ("T", "-1"), ("none", "0"), ("../x", "0")] {
        let fields = [
            ("topic", topic),
            ("queueId", queue),
            ("timestamp", "0"),
            ("consumerGroup", "G"),
        ];
        for request in [
            code::GET_MAX_OFFSET,
            code::GET_MIN_OFFSET,
            code::SEARCH_OFFSET_BY_TIMESTAMP,
        ] {
            let answer = ok(broker.ask_with(request, &fields).await);
            assert_eq!(
                answer.ext.get("offset"),
                Some("0"),
                "{request} {topic} {queue}"
            );
        }
        let answer = ok(broker
            .ask_with(code::GET_EARLIEST_MSG_STORETIME, &fields)
            .await);
        assert_eq!(answer.ext.get("timestamp"), Some("-1"));
        broker.ask_with(code::QUERY_CONSUMER_OFFSET, &fields).await;
    }
    assert_eq!(count().await, before);
    assert!(!broker.folder().join("consumequeue/none").exists());
    assert!(!broker.folder().join("consumequeue/T/999").exists());
}
