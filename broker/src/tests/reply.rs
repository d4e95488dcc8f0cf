//! Request and reply: a reply (324, 325) is pushed (326) to the client that asked.

use rmq_protocol::{
    header::{SendMessageV1, SendMessageV2},
    message::properties,
    remoting::{Command, request_code as code, response_code},
};
use tokio::sync::mpsc;

use super::{TestBroker, ok, refused};

fn reply(asker: &str) -> SendMessageV1<'static> {
    let mut text = Vec::new();
    properties::push(&mut text, "REPLY_TO_CLIENT", asker.as_bytes());
    properties::push(&mut text, "CORRELATION_ID", b"7");
    SendMessageV1 {
        producer_group: "answerer".into(),
        topic: "c_REPLY_TOPIC".into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: 4,
        queue_id: 0,
        sys_flag: 0,
        born_timestamp: 1_700_000_000_000,
        flag: 0,
        properties: Some(String::from_utf8(text).unwrap().into()),
        reconsume_times: Some(0),
        unit_mode: false,
        max_reconsume_times: None,
        batch: false,
        broker_name: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_reaches_the_client_that_asked_and_nobody_else() {
    let broker = TestBroker::start().await;
    broker.group("G").await;
    let (pushed, mut pushes) = mpsc::channel(4);
    let (strayed, mut strays) = mpsc::channel(4);
    let _asker = broker
        .consumer("asker", ("G", &[]), move |request| {
            pushed.try_send(request.clone()).unwrap();
            Command::response(0, response_code::SUCCESS)
        })
        .await;
    let _other = broker
        .consumer("other", ("G", &[]), move |request| {
            strayed.try_send(request.clone()).unwrap();
            Command::response(0, response_code::SUCCESS)
        })
        .await;
    for code in [code::SEND_REPLY_MESSAGE, code::SEND_REPLY_MESSAGE_V2] {
        let command = Command::request(code);
        let command = if code == code::SEND_REPLY_MESSAGE {
            command.with_header(&reply("asker"))
        } else {
            command.with_header(&SendMessageV2::from(reply("asker")))
        };
        let answer = ok(broker.call(command.with_body("yes")).await);
        assert_eq!(answer.ext.get("MSG_REGION"), Some("DefaultRegion"));
        let push = pushes.recv().await.unwrap();
        assert_eq!(push.code, code::PUSH_REPLY_MESSAGE_TO_CLIENT);
        assert_eq!(&push.body[..], b"yes");
        assert_eq!(push.ext.get("topic"), Some("c_REPLY_TOPIC"));
        assert_eq!(push.ext.get("storeHost"), Some(broker.address()));
        let text = push.ext.get("properties").unwrap().as_bytes();
        assert_eq!(properties::get_str(text, "CORRELATION_ID"), Some("7"));
        assert!(properties::get_str(text, "PUSH_REPLY_TIME").is_some());
    }
    assert!(strays.try_recv().is_err());
    // Stored too, for a client that asks again.
    let stored = broker.pull("G", ("c_REPLY_TOPIC", 0), 0).await;
    assert_eq!(stored.bodies, ["yes", "yes"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_nobody_takes_is_refused_with_the_reason() {
    let broker = TestBroker::start_with("storeReplyMessageEnable=false").await;
    broker.group("G").await;
    let ask = async |asker: &str| {
        let command = Command::request(code::SEND_REPLY_MESSAGE_V2)
            .with_header(&SendMessageV2::from(reply(asker)));
        broker.call(command.with_body("yes")).await
    };
    refused(&ask("nobody").await, 1, "nobody");
    let _asker = broker
        .consumer("busy", ("G", &[]), |_| {
            Command::response(0, response_code::SYSTEM_ERROR).with_remark("gave up")
        })
        .await;
    refused(&ask("busy").await, 1, "gave up");
    assert!(
        broker
            .pull("G", ("c_REPLY_TOPIC", 0), 0)
            .await
            .bodies
            .is_empty()
    );
}
