//! What the broker adds to a message that it stores, and what it does not.

use rmq_protocol::{
    message::batch::{self, BatchItem},
    remoting::{Command, request_code as code},
};

use super::{TestBroker, ok};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_stored_with_region_trace_switch_and_cluster_whatever_its_sender_says() {
    let broker = TestBroker::start_with("regionId=north\ntraceOn=false").await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    let forged = [
        ("MSG_REGION", "x"),
        ("TRACE_ON", "y"),
        ("CLUSTER", "z"),
        ("k", "v"),
    ];
    let answer = ok(broker.send_to(("T", 0), "1", &forged).await);
    assert_eq!(answer.ext.get("MSG_REGION"), Some("north"));
    assert_eq!(answer.ext.get("TRACE_ON"), Some("false"));
    let pulled = broker.pull("G", ("T", 0), 0).await;
    for (name, value) in [
        ("MSG_REGION", "north"),
        ("TRACE_ON", "false"),
        ("CLUSTER", "c"),
        ("k", "v"),
    ] {
        assert_eq!(pulled.property(0, name), Some(value), "{name}");
        let text = String::from_utf8(pulled.texts[0].clone()).unwrap();
        assert_eq!(text.matches(&format!("{name}\u{1}")).count(), 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_batch_keep_the_properties_they_came_with() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    let mut body = Vec::new();
    for (text, properties) in [("1", "UNIQ_KEY\u{1}id1\u{2}"), ("2", "UNIQ_KEY\u{1}id2")] {
        let item = BatchItem {
            flag: 0,
            body: text.as_bytes(),
            properties: properties.as_bytes(),
        };
        assert!(batch::push(&mut body, &item));
    }
    let command = Command::request(code::SEND_BATCH_MESSAGE)
        .with_ext("a", "P")
        .with_ext("b", "T")
        .with_ext("c", "TBW102")
        .with_ext("d", "1")
        .with_ext("e", "0")
        .with_ext("f", "0")
        .with_ext("g", "1700000000000")
        .with_ext("h", "0")
        .with_ext("m", "true")
        .with_body(body);
    let answer = ok(broker.call(command).await);
    assert_eq!(answer.ext.get("msgId").unwrap().split(',').count(), 2);
    let pulled = broker.pull("G", ("T", 0), 0).await;
    assert_eq!(pulled.bodies, ["1", "2"]);
    for (index, id) in ["id1", "id2"].into_iter().enumerate() {
        assert_eq!(pulled.property(index, "UNIQ_KEY"), Some(id));
        for name in ["MSG_REGION", "TRACE_ON", "CLUSTER"] {
            assert_eq!(pulled.property(index, name), None, "{name}");
        }
    }
}
