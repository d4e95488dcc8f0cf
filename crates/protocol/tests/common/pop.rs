//! The pop fixtures as our values: what e2e/golden sets in Java.

use std::collections::BTreeMap;

use rmq_protocol::pop::{
    AckRecord, BatchAck, BatchAckRecord, BatchAckRequest, CheckpointRecord, OrderInfo,
    OrderInfoFile, ReceiptHandle, push_message_offsets, push_order_count, push_queue_order_count,
    push_start_offset,
};
use rmq_types::pop::{PopTopic, revive_topic};

/// When the messages of the fixtures were popped.
pub const POP_TIME: i64 = 1_700_000_000_123;

/// Every fixture: its name and our bytes.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: String| text.into_bytes();
    let mut list: Vec<(&str, Vec<u8>)> = handles()
        .into_iter()
        .map(|(name, handle)| (name, text(handle.to_string())))
        .collect();
    list.extend([
        ("start_offset_info", text(start_offsets())),
        ("msg_offset_info", text(message_offsets())),
        ("order_count_info", text(order_counts())),
        (
            "retry_topic.v1",
            text(PopTopic::RetryV1.stored_topic("TopicTest", "cg")),
        ),
        (
            "retry_topic.v2",
            text(PopTopic::RetryV2.stored_topic("TopicTest", "cg")),
        ),
        ("revive_topic", text(revive_topic("DefaultCluster"))),
        ("ck_key", text(checkpoint().key())),
        ("ack_key", text(ack().key())),
        ("pop.CheckPoint", checkpoint().to_json()),
        ("pop.CheckPoint.again", checkpoint_again().to_json()),
        ("pop.Ack", ack().to_json()),
        ("pop.BatchAck", batch_ack().to_json()),
        ("pop.BatchAckRequest", request().to_json()),
        ("pop.OrderInfo", order_info().to_json_pretty()),
    ]);
    list
}

/// The handles.
pub fn handles() -> Vec<(&'static str, ReceiptHandle<'static>)> {
    let seven = ReceiptHandle {
        start_offset: 100,
        pop_time: POP_TIME,
        invisible_time: 60_000,
        revive_queue_id: 3,
        topic: PopTopic::Normal,
        broker_name: "broker-a".into(),
        queue_id: 150,
        queue_offset: None,
        commit_log_offset: None,
    };
    vec![
        ("extra_info.7", seven.clone()),
        (
            "extra_info.8",
            ReceiptHandle {
                start_offset: 5_000_000_000,
                revive_queue_id: 999,
                topic: PopTopic::RetryV1,
                queue_id: 0,
                queue_offset: Some(5_000_000_003),
                ..seven.clone()
            },
        ),
        (
            "extra_info.8.v2",
            ReceiptHandle {
                start_offset: 1,
                invisible_time: 1000,
                revive_queue_id: 0,
                topic: PopTopic::RetryV2,
                queue_id: 0,
                queue_offset: Some(2),
                ..seven.clone()
            },
        ),
        (
            "receipt_handle",
            ReceiptHandle {
                topic: PopTopic::RetryV1,
                queue_offset: Some(103),
                commit_log_offset: Some(123_456_789),
                ..seven
            },
        ),
    ]
}

fn start_offsets() -> String {
    let mut text = String::new();
    push_start_offset(&mut text, PopTopic::Normal, 2, 100);
    push_start_offset(&mut text, PopTopic::RetryV1, 0, 0);
    push_start_offset(&mut text, PopTopic::RetryV2, 0, 5_000_000_000);
    text
}

fn message_offsets() -> String {
    let mut text = String::new();
    push_message_offsets(&mut text, PopTopic::Normal, 2, [100, 101, 104]);
    push_message_offsets(&mut text, PopTopic::RetryV1, 0, [0]);
    text
}

fn order_counts() -> String {
    let mut text = String::new();
    push_order_count(&mut text, PopTopic::Normal, 2, 100, 3);
    push_order_count(&mut text, PopTopic::Normal, 2, 101, 1);
    push_queue_order_count(&mut text, PopTopic::Normal, 2, 1);
    text
}

/// A checkpoint of three messages.
pub fn checkpoint() -> CheckpointRecord {
    CheckpointRecord {
        bit_map: 5,
        broker_name: Some("broker-a".into()),
        group: "cg".into(),
        offset_diffs: Some(vec![0, 1, 4]),
        invisible_time: 60_000,
        count: 3,
        pop_time: POP_TIME,
        queue_id: 150,
        revive_offset: 0,
        put_again: None,
        start_offset: 100,
        suspended: false,
        topic: "TopicTest".into(),
    }
}

/// A checkpoint that was put again.
pub fn checkpoint_again() -> CheckpointRecord {
    CheckpointRecord {
        bit_map: 0,
        offset_diffs: None,
        count: 1,
        revive_offset: 77,
        put_again: Some("2".into()),
        ..checkpoint()
    }
}

/// An ack.
pub fn ack() -> AckRecord {
    AckRecord {
        ack_offset: 101,
        broker_name: Some("broker-a".into()),
        group: "cg".into(),
        pop_time: POP_TIME,
        queue_id: 150,
        start_offset: 100,
        topic: "TopicTest".into(),
    }
}

/// Two acks.
pub fn batch_ack() -> BatchAckRecord {
    BatchAckRecord {
        ack_offset: -1,
        ack_offsets: vec![101, 104],
        broker_name: Some("broker-a".into()),
        group: "cg".into(),
        pop_time: POP_TIME,
        queue_id: 150,
        start_offset: 100,
        topic: "TopicTest".into(),
    }
}

/// A batch ack request.
pub fn request() -> BatchAckRequest {
    BatchAckRequest {
        acks: vec![BatchAck {
            bits: [0, 4, 33].into_iter().collect(),
            group: "cg".into(),
            invisible_time: 60_000,
            pop_time: POP_TIME,
            queue_id: 150,
            retry: PopTopic::RetryV1,
            revive_queue_id: 3,
            start_offset: 100,
            topic: "TopicTest".into(),
        }],
        broker_name: "broker-a".into(),
    }
}

/// The state of an ordered group.
pub fn order_info() -> OrderInfoFile {
    let info = OrderInfo {
        attempt_id: Some("attempt-1".into()),
        commit_bits: 2,
        invisible_time: Some(60_000),
        last_consumed: POP_TIME,
        offsets: vec![100, 1, 4],
        consumed: Some(BTreeMap::from([(100, 1)])),
        next_visible: Some(BTreeMap::from([(101, POP_TIME + 9)])),
        pop_time: POP_TIME,
    };
    OrderInfoFile {
        table: BTreeMap::from([("TopicTest@cg".into(), BTreeMap::from([(2, info)]))]),
    }
}
