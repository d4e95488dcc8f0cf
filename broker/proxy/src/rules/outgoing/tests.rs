//! Checks and forms of messages that clients send.

use super::*;
use crate::proto::v2::Resource;

const BOUNDS: Bounds = Bounds {
    body_bytes_max: 1_000,
    now: Timestamp::from_millis(1_700_000_000_000),
};

fn message() -> Message {
    Message {
        topic: Some(Resource {
            resource_namespace: String::new(),
            name: "t".into(),
        }),
        user_properties: [("colour".to_owned(), "blue".to_owned())].into(),
        system_properties: Some(SystemProperties {
            message_id: "id-1".into(),
            tag: Some("tag".into()),
            keys: vec!["k1".into(), "k2".into()],
            ..SystemProperties::default()
        }),
        body: Bytes::from_static(b"hello"),
    }
}

fn with(change: impl FnOnce(&mut Message, &mut SystemProperties)) -> Message {
    let mut message = message();
    let mut system = message.system_properties.take().unwrap();
    change(&mut message, &mut system);
    message.system_properties = Some(system);
    message
}

fn one(message: Message) -> Result<Outgoing, Refusal> {
    Batch::new(vec![message], BOUNDS).map(|mut batch| batch.messages.pop().unwrap())
}

fn code(message: Message) -> Code {
    one(message).unwrap_err().code
}

#[test]
fn a_message_has_javas_properties() {
    let sent = one(message()).unwrap();
    let text = &sent.properties;
    for (name, value) in [
        ("colour", "blue"),
        ("UNIQ_KEY", "id-1"),
        ("PGROUP", "t"),
        ("TAGS", "tag"),
        ("KEYS", "k1 k2"),
    ] {
        assert_eq!(properties::get_str(text, name), Some(value), "{name}");
    }
    assert_eq!((sent.kind, sent.sys_flag), (MessageType::Normal, 0));
}

#[test]
fn the_kind_follows_from_group_time_and_type() {
    let fifo = one(with(|_, s| s.message_group = Some("g".into()))).unwrap();
    assert_eq!(fifo.kind, MessageType::Fifo);
    let delay = one(with(|_, s| {
        s.delivery_timestamp = Some(prost_types::Timestamp {
            seconds: 1_700_000_060,
            nanos: 5_000_000,
        });
    }))
    .unwrap();
    assert_eq!(delay.kind, MessageType::Delay);
    let text = properties::get_str(&delay.properties, names::TIMER_DELIVER_MS);
    assert_eq!(text, Some("1700000060005"));
    let half = one(with(|_, s| s.set_message_type(MessageType::Transaction))).unwrap();
    assert_eq!(half.sys_flag, sys_flag::TRANSACTION_PREPARED);
    let zipped = one(with(|_, s| s.set_body_encoding(Encoding::Gzip))).unwrap();
    assert_eq!(zipped.sys_flag, sys_flag::COMPRESSED);
}

#[test]
fn every_bad_part_has_its_code() {
    assert_eq!(
        code(with(|m, _| m.body = Bytes::new())),
        Code::MessageBodyEmpty
    );
    let long = Bytes::from(vec![0; 1_001]);
    assert_eq!(code(with(|m, _| m.body = long)), Code::MessageBodyTooLarge);
    assert_eq!(code(with(|m, _| m.topic = None)), Code::IllegalTopic);
    assert_eq!(
        code(with(|_, s| s.message_id = " ".into())),
        Code::IllegalMessageId
    );
    assert_eq!(
        code(with(|_, s| s.tag = Some("a|b".into()))),
        Code::IllegalMessageTag
    );
    assert_eq!(
        code(with(|_, s| s.keys = vec![" ".into()])),
        Code::IllegalMessageKey
    );
    assert_eq!(
        code(with(|_, s| s.message_group = Some(String::new()))),
        Code::IllegalMessageGroup
    );
    let far = prost_types::Timestamp {
        seconds: 1_700_086_401,
        nanos: 0,
    };
    assert_eq!(
        code(with(|_, s| s.delivery_timestamp = Some(far))),
        Code::IllegalDeliveryTime
    );
    let slow = prost_types::Duration {
        seconds: 3_601,
        nanos: 0,
    };
    assert_eq!(
        code(with(|_, s| {
            s.set_message_type(MessageType::Transaction);
            s.orphaned_transaction_recovery_duration = Some(slow);
        })),
        Code::BadRequest
    );
}

#[test]
fn names_of_the_protocol_and_control_characters_are_no_user_properties() {
    for (name, value) in [
        ("UNIQ_KEY", "x"),
        ("__SHARDINGKEY", "x"),
        ("INNER_NUM", "2"),
        ("", "x"),
        ("a\u{1}b", "x"),
        ("a", "x\u{2}TAGS\u{1}forged"),
    ] {
        let bad = with(|m, _| {
            m.user_properties.insert(name.into(), value.into());
        });
        assert_eq!(code(bad), Code::IllegalMessagePropertyKey, "{name:?}");
    }
}

#[test]
fn many_or_long_properties_are_too_large() {
    let many = with(|m, _| {
        m.user_properties = (0..129).map(|i| (format!("p{i}"), "v".into())).collect();
    });
    assert_eq!(code(many), Code::MessagePropertiesTooLarge);
    let long = with(|m, _| {
        m.user_properties.insert("p".into(), "v".repeat(16 * 1024));
    });
    assert_eq!(code(long), Code::MessagePropertiesTooLarge);
}

#[test]
fn a_batch_is_of_one_topic_and_of_plain_messages() {
    let batch = |messages| Batch::new(messages, BOUNDS).unwrap_err().code;
    assert_eq!(batch(Vec::new()), Code::MessageCorrupted);
    let other = with(|m, _| m.topic.as_mut().unwrap().name = "u".into());
    assert_eq!(batch(vec![message(), other]), Code::MessageCorrupted);
    let half = with(|_, s| s.set_message_type(MessageType::Transaction));
    assert_eq!(batch(vec![message(), half]), Code::BadRequest);
}

#[test]
fn a_batch_becomes_the_body_that_brokers_read() {
    let two = Batch::new(vec![message(), message()], BOUNDS).unwrap();
    let (body, properties, _, is_batch) = two.into_request();
    assert!(is_batch && properties.is_empty());
    let items: Vec<_> = batch::iter(&body).collect::<Result<_, _>>().unwrap();
    assert_eq!(items.len(), 2);
    assert_eq!(items[1].body, b"hello");
    assert_eq!(
        properties::get_str(items[1].properties, names::UNIQ_KEY),
        Some("id-1")
    );
}

#[test]
fn only_a_group_that_all_share_chooses_the_queue() {
    let grouped = |group: &str| with(|_, s| s.message_group = Some(group.into()));
    let batch = |messages| Batch::new(messages, BOUNDS).unwrap();
    assert_eq!(
        batch(vec![grouped("a"), grouped("a")]).message_group(),
        Some("a")
    );
    assert_eq!(
        batch(vec![grouped("a"), grouped("b")]).message_group(),
        None
    );
    assert_eq!(batch(vec![message()]).message_group(), None);
}
