//! Handles, offset texts, bit sets and records: round trips, and what hostile or cut text does.

use std::borrow::Cow;

use proptest::{collection::vec, option, prelude::*, sample::select};
use rmq_types::pop::PopTopic;

use super::*;

fn kind() -> impl Strategy<Value = PopTopic> {
    select(vec![PopTopic::Normal, PopTopic::RetryV1, PopTopic::RetryV2])
}

prop_compose! {
    fn handle()(
        numbers in (any::<i64>(), any::<i64>(), any::<i64>(), any::<i32>(), any::<i32>()),
        topic in kind(),
        broker in "[a-zA-Z0-9._-]{1,40}",
        tail in option::of((any::<i64>(), option::of(any::<i64>()))),
    ) -> ReceiptHandle<'static> {
        ReceiptHandle {
            start_offset: numbers.0,
            pop_time: numbers.1,
            invisible_time: numbers.2,
            revive_queue_id: numbers.3,
            topic,
            broker_name: Cow::Owned(broker),
            queue_id: numbers.4,
            queue_offset: tail.map(|(offset, _)| offset),
            commit_log_offset: tail.and_then(|(_, offset)| offset),
        }
    }
}

proptest! {
    #[test]
    fn a_handle_reads_back_as_it_was_written(handle in handle()) {
        let text = handle.to_string();
        prop_assert_eq!(ReceiptHandle::parse(&text).unwrap(), handle);
    }

    #[test]
    fn any_text_is_a_handle_or_an_error(text in "[0-9 a-z+-]{0,80}") {
        if let Ok(handle) = ReceiptHandle::parse(&text) {
            prop_assert!(ReceiptHandle::parse(&handle.to_string()).is_ok());
        }
    }

    #[test]
    fn a_cut_handle_is_shorter_or_refused_but_never_another_queue(
        handle in handle(),
        keep in 0usize..200,
    ) {
        let text = handle.to_string();
        let cut: String = text.chars().take(keep).collect();
        if let Ok(read) = ReceiptHandle::parse(&cut) {
            prop_assert_eq!(read.start_offset, handle.start_offset);
            prop_assert_eq!(read.pop_time, handle.pop_time);
        }
    }

    #[test]
    fn start_offsets_read_back(queues in vec((kind(), 0i32..9, any::<i64>()), 0..9)) {
        let mut text = String::new();
        let mut wanted: Vec<StartOffset> = Vec::new();
        for (topic, queue_id, offset) in queues {
            if wanted.iter().all(|one| (one.topic, one.queue_id) != (topic, queue_id)) {
                push_start_offset(&mut text, topic, queue_id, offset);
                wanted.push(StartOffset { topic, queue_id, offset });
            }
        }
        prop_assert_eq!(parse_start_offsets(&text).unwrap(), wanted);
    }

    #[test]
    fn message_offsets_read_back(topic in kind(), queue_id: i32, offsets in vec(any::<i64>(), 1..40)) {
        let mut text = String::new();
        push_message_offsets(&mut text, topic, queue_id, offsets.iter().copied());
        push_message_offsets(&mut text, topic, queue_id.wrapping_add(1), [7]);
        let read = parse_message_offsets(&text).unwrap();
        prop_assert_eq!(&read[0], &MessageOffsets { topic, queue_id, offsets });
        prop_assert_eq!(&read[1].offsets, &vec![7]);
    }

    #[test]
    fn order_counts_read_back(topic in kind(), queue_id: i32, offset: i64, count: i32) {
        let mut text = String::new();
        push_order_count(&mut text, topic, queue_id, offset, count);
        push_queue_order_count(&mut text, topic, queue_id, count);
        let line = |offset| OrderCount { topic, queue_id, offset, count };
        let wanted = vec![line(Some(offset)), line(None)];
        prop_assert_eq!(parse_order_counts(&text).unwrap(), wanted);
    }

    #[test]
    fn any_offset_text_is_read_or_refused(text in "[0-9 ;,qo%-]{0,60}") {
        let _ = parse_start_offsets(&text);
        let _ = parse_message_offsets(&text);
        let _ = parse_order_counts(&text);
    }

    #[test]
    fn bit_sets_read_back(bits in proptest::collection::btree_set(0u32..5000, 0..40)) {
        let set: BitSet = bits.iter().copied().collect();
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), bits.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(BitSet::parse(&set.to_base64()).unwrap(), set);
    }

    #[test]
    fn base64_reads_back_and_refuses_other_text(bytes in vec(any::<u8>(), 0..60), text in "[A-Za-z0-9+/=]{0,20}") {
        prop_assert_eq!(base64::decode(&base64::encode(&bytes)), Some(bytes));
        if let Some(read) = base64::decode(&text) {
            prop_assert!(read.len() <= text.len() / 4 * 3);
        }
    }

    #[test]
    fn checkpoints_read_back(
        start in 0i64..1 << 40,
        diffs in proptest::collection::btree_set(0i32..1000, 1..=32),
        bit_map: i32,
        times in (any::<i64>(), any::<i64>()),
        broker_name in option::of("[a-z]{1,8}"),
    ) {
        let record = CheckpointRecord {
            bit_map,
            broker_name,
            group: "g".into(),
            count: diffs.len() as i8,
            offset_diffs: Some(diffs.iter().copied().collect()),
            invisible_time: times.0,
            pop_time: times.1,
            start_offset: start,
            topic: "t".into(),
            ..CheckpointRecord::default()
        };
        let read = ReviveRecord::decode(CHECKPOINT_TAG, &record.to_json()).unwrap();
        prop_assert_eq!(&read, &ReviveRecord::Checkpoint(record.clone()));
        let messages = record.messages().unwrap();
        for (index, (offset, open)) in messages.into_iter().enumerate() {
            prop_assert_eq!(offset as i64, start + i64::from(*diffs.iter().nth(index).unwrap()));
            prop_assert_eq!(open, bit_map >> index & 1 == 0);
        }
    }

    #[test]
    fn acks_read_back(offsets in vec(any::<i64>(), 0..40), pop_time: i64, queue_id: i32) {
        let batch = BatchAckRecord {
            ack_offsets: offsets, pop_time, queue_id, ..BatchAckRecord::default()
        };
        let read = ReviveRecord::decode(BATCH_ACK_TAG, &batch.to_json()).unwrap();
        prop_assert_eq!(read, ReviveRecord::BatchAck(batch));
        let ack = AckRecord { pop_time, queue_id, topic: "t".into(), ..AckRecord::default() };
        let read = ReviveRecord::decode(ACK_TAG, &ack.to_json()).unwrap();
        prop_assert_eq!(read, ReviveRecord::Ack(ack));
    }
}

#[test]
fn forged_and_truncated_handles_say_what_is_wrong_with_them() {
    use HandleError::{Number, TooLong, TooShort, Topic};
    let good = "100 1700000000123 60000 3 0 broker-a 150 103";
    assert!(ReceiptHandle::parse_of_message(good).is_ok());
    let fault = |text: &str| ReceiptHandle::parse_of_message(text).unwrap_err();
    assert!(matches!(fault(""), TooShort { fields: 1, .. }));
    assert!(matches!(
        fault("100 1700000000123 60000 3 0 broker-a"),
        TooShort { fields: 6, .. }
    ));
    assert!(matches!(
        fault("100 1 60000 3 0 broker-a 150"),
        TooShort { needed: 8, .. }
    ));
    assert!(matches!(fault(&good.replace(" 0 ", " 7 ")), Topic { .. }));
    assert!(matches!(
        fault(&good.replace("150", "99999999999")),
        Number {
            field: "queueId",
            ..
        }
    ));
    assert!(matches!(
        fault(&good.replace("103", "")),
        Number {
            field: "queueOffset",
            ..
        }
    ));
    assert!(matches!(
        fault(&good.replace(' ', "  ")),
        Number {
            field: "popTime",
            ..
        }
    ));
    assert!(matches!(
        fault(&format!("{good} {}", "1".repeat(600))),
        TooLong { .. }
    ));
}

#[test]
fn a_handle_of_another_broker_or_with_negative_numbers_is_refused() {
    let handle = ReceiptHandle::parse("100 5 60000 3 0 broker-a 150 103").unwrap();
    assert_eq!(handle.check("broker-a"), Ok(()));
    assert!(matches!(
        handle.check("broker-b"),
        Err(HandleError::Foreign { .. })
    ));
    let negative = ReceiptHandle::parse("100 5 60000 3 0 broker-a 150 -103").unwrap();
    let wanted = HandleError::Negative {
        field: "queueOffset",
        found: -103,
    };
    assert_eq!(negative.check("broker-a"), Err(wanted));
}

#[test]
fn a_queue_above_127_and_an_offset_above_32_bits_stay_what_they_are() {
    let text = "4294967399 5 60000 3 1 b 150 4294967402";
    let handle = ReceiptHandle::parse(text).unwrap();
    assert_eq!((handle.queue_id, handle.start_offset), (150, 4_294_967_399));
    assert_eq!(handle.to_string(), text);
}

#[test]
fn a_queue_or_message_named_twice_is_refused() {
    assert!(matches!(
        parse_start_offsets("0 1 5;0 1 6"),
        Err(OffsetInfoError::Twice { .. })
    ));
    assert!(matches!(
        parse_message_offsets("0 1 5;0 1 6"),
        Err(OffsetInfoError::Twice { .. })
    ));
    assert!(matches!(
        parse_order_counts("0 qo1%5 1;0 qo1%5 2"),
        Err(OffsetInfoError::Twice { .. })
    ));
    assert_eq!(parse_start_offsets("0 1 5;1 1 5").unwrap().len(), 2);
    for broken in ["0 1", "0 1 2 3", "9 1 2", "x", "0 1 ,"] {
        assert!(matches!(
            parse_message_offsets(broken),
            Err(OffsetInfoError::Entry { .. })
        ));
    }
}

#[test]
fn hostile_bit_sets_cost_no_more_than_their_text() {
    assert_eq!(BitSet::parse("***="), Err(BitSetError::Base64));
    assert_eq!(BitSet::parse("AAA"), Err(BitSetError::Base64));
    assert_eq!(
        BitSet::parse(&"A".repeat(1 << 20)),
        Err(BitSetError::TooLong)
    );
    let mut far = BitSet::default();
    far.set(i32::MAX as u32 - 1);
    assert_eq!(far.iter().count(), 0);
}

#[test]
fn acked_offsets_below_zero_and_beyond_63_bits_are_skipped() {
    let ack = |start_offset| BatchAck {
        start_offset,
        bits: [0, 5, 9].into_iter().collect(),
        ..BatchAck::default()
    };
    assert_eq!(ack(-5).offsets().collect::<Vec<_>>(), [0, 4]);
    assert_eq!(
        ack(i64::MAX - 5).offsets().collect::<Vec<_>>(),
        [i64::MAX - 5, i64::MAX]
    );
}

#[test]
fn a_batch_ack_with_long_names_reads_as_one_with_short_names() {
    let long = br#"{"brokerName":"b","acks":[{"consumerGroup":"g","topic":"t","retry":"2",
        "startOffset":7,"queueId":1,"reviveQueueId":3,"popTime":9,"invisibleTime":5,"bitSet":"Aw=="}]}"#;
    let read = BatchAckRequest::from_json(long).unwrap();
    assert_eq!(read.acks[0].offsets().collect::<Vec<_>>(), [7, 8]);
    assert_eq!(read.acks[0].retry, PopTopic::RetryV2);
    assert_eq!(BatchAckRequest::from_json(&read.to_json()).unwrap(), read);
}

#[test]
fn more_acks_than_the_limit_and_unknown_kinds_are_refused() {
    let many = BatchAckRequest {
        acks: vec![BatchAck::default(); ACKS_MAX + 1],
        broker_name: "b".into(),
    };
    assert!(BatchAckRequest::from_json(&many.to_json()).is_err());
    assert!(BatchAckRequest::from_json(br#"{"acks":[{"r":"3"}]}"#).is_err());
    assert!(BatchAckRequest::from_json(b"{}").unwrap().acks.is_empty());
}

#[test]
fn checkpoints_whose_counts_contradict_each_other_are_refused() {
    let sound = CheckpointRecord {
        count: 2,
        start_offset: 5,
        ..CheckpointRecord::default()
    };
    assert_eq!(sound.messages().unwrap(), [(5, true), (6, true)]);
    let with = |change: fn(&mut CheckpointRecord)| {
        let mut record = sound.clone();
        change(&mut record);
        record.messages()
    };
    assert!(with(|record| record.count = 33).is_err());
    assert!(with(|record| record.count = -1).is_err());
    assert!(with(|record| record.start_offset = -1).is_err());
    assert!(with(|record| record.start_offset = i64::MAX).is_err());
    assert!(with(|record| record.offset_diffs = Some(vec![0])).is_err());
    assert!(with(|record| record.offset_diffs = Some(vec![0, -1])).is_err());
    assert!(with(|record| record.offset_diffs = Some(vec![4, 4])).is_err());
    assert_eq!(
        with(|record| record.offset_diffs = Some(vec![]))
            .unwrap()
            .len(),
        2
    );
    assert!(matches!(
        ReviveRecord::decode("other", b"{}"),
        Err(RecordError::Tag { .. })
    ));
    assert!(matches!(
        ReviveRecord::decode(ACK_TAG, b"[]"),
        Err(RecordError::Json { .. })
    ));
}

#[test]
fn order_batches_hold_offsets_as_differences() {
    let info = |offsets: &[i64]| OrderInfo {
        offsets: offsets.to_vec(),
        ..OrderInfo::default()
    };
    assert_eq!(
        info(&[100, 1, 4]).absolute_offsets(),
        Some(vec![100, 101, 104])
    );
    assert_eq!(info(&[]).absolute_offsets(), Some(vec![]));
    for broken in [&[-1][..], &[5, 0], &[5, -1], &[i64::MAX, i64::MAX, 1]] {
        assert_eq!(info(broken).absolute_offsets(), None);
    }
}
