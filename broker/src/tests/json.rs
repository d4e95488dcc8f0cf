//! Bodies that clients of any language read are strict JSON: clients in Go and Python choke on others.
//!
//! Where Java's tools need objects as keys of a map the form is Java's own: consume and topic
//! statistics (202, 208), lock and assignment tables aside.

use rmq_protocol::remoting::request_code as code;

use super::{TestBroker, ok};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_are_strict_json_but_for_tables_whose_keys_are_queues() {
    let broker = TestBroker::start().await;
    broker.topic("T", 2).await;
    broker.group("G").await;
    broker.send("T", "x").await;
    broker.commit("G", ("T", 0), 1).await;
    broker.beat("client", "G", &["T"]).await;
    let group = ("consumerGroup", "G");
    let asked: [(i32, &[(&'static str, &str)]); 14] = [
        (code::GET_ALL_TOPIC_CONFIG, &[]),
        (code::GET_ALL_SUBSCRIPTIONGROUP_CONFIG, &[]),
        (code::GET_ALL_CONSUMER_OFFSET, &[]),
        (code::GET_ALL_DELAY_OFFSET, &[]),
        (code::GET_BROKER_RUNTIME_INFO, &[]),
        (code::GET_CONSUMER_CONNECTION_LIST, &[group]),
        (
            code::GET_PRODUCER_CONNECTION_LIST,
            &[("producerGroup", "p")],
        ),
        (code::GET_CONSUMER_LIST_BY_GROUP, &[group]),
        (code::GET_TOPIC_CONFIG, &[("topic", "T")]),
        (code::GET_SUBSCRIPTIONGROUP_CONFIG, &[("group", "G")]),
        (code::QUERY_TOPIC_CONSUME_BY_WHO, &[("topic", "T")]),
        (code::QUERY_TOPICS_BY_CONSUMER, &[("group", "G")]),
        (
            code::QUERY_SUBSCRIPTION_BY_CONSUMER,
            &[("group", "G"), ("topic", "T")],
        ),
        (
            code::VIEW_BROKER_STATS_DATA,
            &[("statsName", "TOPIC_PUT_NUMS"), ("statsKey", "T")],
        ),
    ];
    for (request, fields) in asked {
        let answer = ok(broker.ask_with(request, fields).await);
        let strict: Result<serde_json::Value, _> = serde_json::from_slice(&answer.body);
        assert!(strict.is_ok_and(|body| body.is_object()), "{request}");
    }
    let java: [(i32, &[(&'static str, &str)]); 2] = [
        (code::GET_CONSUME_STATS, &[group]),
        (code::GET_TOPIC_STATS_INFO, &[("topic", "T")]),
    ];
    for (request, fields) in java {
        let answer = ok(broker.ask_with(request, fields).await);
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(text.contains(r#""offsetTable":{{""#), "{request}: {text}");
    }
}
