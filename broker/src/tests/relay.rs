//! Questions passed on to consumers: 307, 309, 223.

use rmq_protocol::{
    body::{ConsumerStatusBody, MessageQueue},
    message::Record,
    remoting::{Command, request_code as code},
};

use super::{TestBroker, ok, refused};

/// Answers with what was asked, so that the test sees what arrived.
fn echo(request: &Command) -> Command {
    if request.code == code::GET_CONSUMER_STATUS_FROM_CLIENT {
        let body = ConsumerStatusBody {
            message_queue_table: [(MessageQueue::default(), 7)].into(),
            ..ConsumerStatusBody::default()
        };
        return Command::success(0).with_body(body.to_json());
    }
    let fields: Vec<String> = request
        .ext
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let body = match Record::decode(&request.body) {
        Ok((record, _)) => record.body.to_vec(),
        Err(_) => request.body.to_vec(),
    };
    Command::success(0)
        .with_remark(format!("{} {}", request.code, fields.join(",")))
        .with_body(body)
}

fn other(_request: &Command) -> Command {
    Command::success(0).with_remark("the wrong client")
}

async fn with_consumers() -> (TestBroker, [super::Consumer; 2]) {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    let right = broker.consumer("right", ("G", &["T"]), echo).await;
    let wrong = broker.consumer("wrong", ("G", &["T"]), other).await;
    (broker, [right, wrong])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_info_is_asked_of_the_named_client_and_no_other() {
    let (broker, _online) = with_consumers().await;
    let fields = [
        ("consumerGroup", "G"),
        ("clientId", "right"),
        ("jstackEnable", "true"),
    ];
    let answer = ok(broker
        .ask_with(code::GET_CONSUMER_RUNNING_INFO, &fields)
        .await);
    let remark = answer.remark.unwrap();
    assert!(
        remark.starts_with("307 ") && remark.contains("jstackEnable=true"),
        "{remark}"
    );
    for (group, client) in [("G", "nobody"), ("none", "right")] {
        let fields = [
            ("consumerGroup", group),
            ("clientId", client),
            ("jstackEnable", "false"),
        ];
        let answer = broker
            .ask_with(code::GET_CONSUMER_RUNNING_INFO, &fields)
            .await;
        refused(&answer, 206, "not online");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_consumed_directly_by_the_named_client() {
    let (broker, _online) = with_consumers().await;
    let sent = broker.send("T", "hello").await;
    let id = sent.ext.get("msgId").unwrap();
    let ask = |client, id| {
        [
            ("consumerGroup", "G"),
            ("clientId", client),
            ("msgId", id),
            ("topic", "T"),
        ]
    };
    let answer = ok(broker
        .ask_with(code::CONSUME_MESSAGE_DIRECTLY, &ask("right", id))
        .await);
    assert_eq!(&answer.body[..], b"hello");
    let remark = answer.remark.unwrap();
    for field in [
        "brokerName=b",
        "topicSysFlag=0",
        "groupSysFlag=0",
        "clientId=right",
    ] {
        assert!(remark.contains(field), "{field} is not in {remark}");
    }
    let answer = broker
        .ask_with(code::CONSUME_MESSAGE_DIRECTLY, &ask("nobody", id))
        .await;
    refused(&answer, 206, "not online");
    let bad = broker
        .ask_with(code::CONSUME_MESSAGE_DIRECTLY, &ask("right", "no id"))
        .await;
    refused(&bad, 29, "msgId");
    let beyond = format!("{}{}", &id[..16], "00000000FFFFFFFF");
    let answer = broker
        .ask_with(code::CONSUME_MESSAGE_DIRECTLY, &ask("right", &beyond))
        .await;
    refused(&answer, 1, "can not find message");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offsets_of_online_members_are_collected() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    let _one = broker.consumer("one", ("G", &["T"]), echo).await;
    let _two = broker.consumer("two", ("G", &["T"]), echo).await;
    let ask = async |client| {
        let fields = [("topic", "T"), ("group", "G"), ("clientAddr", client)];
        let request = code::INVOKE_BROKER_TO_GET_CONSUMER_STATUS;
        let answer = ok(broker.ask_with(request, &fields).await);
        ConsumerStatusBody::from_json(&answer.body)
            .unwrap()
            .consumer_table
    };
    assert_eq!(
        ask("").await.into_keys().collect::<Vec<_>>(),
        ["one", "two"]
    );
    let one = ask("one").await;
    assert_eq!(one.len(), 1);
    assert_eq!(one["one"][&MessageQueue::default()], 7);
    let fields = [("topic", "T"), ("group", "none")];
    let request = code::INVOKE_BROKER_TO_GET_CONSUMER_STATUS;
    refused(&broker.ask_with(request, &fields).await, 206, "none");
}
