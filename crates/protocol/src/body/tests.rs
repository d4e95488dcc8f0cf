//! Bodies as old, foreign and hostile peers send them.

use std::io::Write;

use flate2::{Compression, write::ZlibEncoder};

use super::*;
use crate::json::JsonError;

#[test]
fn an_empty_object_reads_as_javas_defaults() {
    let topic = TopicConfig::from_json(b"{}").unwrap();
    assert_eq!(
        (topic.read_queue_nums, topic.write_queue_nums, topic.perm),
        (16, 16, 6)
    );
    let group = SubscriptionGroupConfig::from_json(b"{}").unwrap();
    assert!(group.consume_enable && group.consume_broadcast_enable);
    assert_eq!((group.retry_max_times, group.retry_queue_nums), (16, 1));
    assert_eq!(
        (group.broker_id, group.which_broker_when_consume_slowly),
        (0, 1)
    );
    assert_eq!(group.consume_timeout_minute, 15);
    assert_eq!(
        SubscriptionData::from_json(b"{}").unwrap().expression_type,
        "TAG"
    );
    assert_eq!(
        EpochEntryCache::from_json(b"{}").unwrap(),
        EpochEntryCache::default()
    );
    assert!(
        ConsumeMessageDirectlyResult::from_json(b"{}")
            .unwrap()
            .auto_commit
    );
}

#[test]
fn null_fields_read_like_missing_ones() {
    let text = br#"{"consumeEnable":null,"retryMaxTimes":null,"groupName":"g","attributes":null}"#;
    assert_eq!(
        SubscriptionGroupConfig::from_json(text).unwrap(),
        SubscriptionGroupConfig::named("g")
    );
}

#[test]
fn registrations_with_null_tables_read_as_empty_ones_of_version_zero() {
    for text in [
        "{}",
        r#"{"topicConfigSerializeWrapper":null}"#,
        r#"{"topicConfigSerializeWrapper":{"topicConfigTable":null,"dataVersion":null}}"#,
        r#"{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":null}}}"#,
        r#"{"topicConfigSerializeWrapper":{},"filterServerList":null}"#,
        r#"{"topicConfigSerializeWrapper":{"dataVersion":{"counter":null}}}"#,
        "",
    ] {
        let read = RegisterBrokerBody::decode(text.as_bytes(), false, 0, 479).unwrap();
        assert_eq!(read, RegisterBrokerBody::default(), "{text}");
        assert_eq!(read.topic_config_serialize_wrapper.data_version.counter, 0);
    }
}

#[test]
fn a_registration_of_a_4_9_broker_lacks_the_mapping_tables() {
    let text = br#"{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":
        {"counter":7,"timestamp":1600000000000},"topicConfigTable":{"T":{"order":false,"perm":6,
        "readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":0,
        "writeQueueNums":4}}}}"#;
    let read = RegisterBrokerBody::decode(text, false, 0, 395).unwrap();
    let wrapper = read.topic_config_serialize_wrapper;
    assert_eq!(wrapper.data_version.counter, 7);
    assert_eq!(wrapper.topic_config_table["T"].read_queue_nums, 4);
    assert!(wrapper.topic_queue_mapping_info_map.is_empty());
}

#[test]
fn versions_keep_64_bits_and_compare_as_numbers() {
    let text = br#"{"counter":3000000000,"stateVersion":1,"timestamp":9223372036854775807}"#;
    let read = DataVersion::from_json(text).unwrap();
    assert_eq!((read.counter, read.timestamp), (3_000_000_000, i64::MAX));
    let older = DataVersion {
        counter: 2_999_999_999,
        ..read
    };
    assert!(read.compare(&older).is_gt() && older.compare(&read).is_lt());
    assert_eq!(DataVersion::from_json(&read.to_json()).unwrap(), read);
    assert!(DataVersion::from_json(br#"{"counter":9223372036854775808}"#).is_err());
}

#[test]
fn heartbeat_constants_read_from_names_of_any_case_and_from_positions() {
    for (kind, model, from) in [
        (
            "\"CONSUME_PASSIVELY\"",
            "\"CLUSTERING\"",
            "\"CONSUME_FROM_FIRST_OFFSET\"",
        ),
        (
            "\"consume_passively\"",
            "\"Clustering\"",
            "\"consume_from_first_offset\"",
        ),
        ("1", "1", "4"),
        ("\"1\"", "\"1\"", "\"4\""),
    ] {
        let text = format!(
            r#"{{"clientID":"c","consumerDataSet":[{{"groupName":"g","consumeType":{kind},
            "messageModel":{model},"consumeFromWhere":{from}}}]}}"#
        );
        let read = HeartbeatData::from_json(text.as_bytes()).unwrap();
        let group = &read.consumer_data_set[0];
        assert_eq!(group.consume_type, ConsumeType::ConsumePassively);
        assert_eq!(group.message_model, MessageModel::Clustering);
        assert_eq!(group.consume_from_where, ConsumeFromWhere::FirstOffset);
    }
    for kind in ["\"NO_SUCH\"", "9", "-1", "1.5", "true", "{}", "\"\""] {
        let text = format!(r#"{{"consumerDataSet":[{{"consumeType":{kind}}}]}}"#);
        let error = HeartbeatData::from_json(text.as_bytes()).unwrap_err();
        assert!(matches!(error, JsonError::Shape(_)), "{kind}");
    }
}

#[test]
fn a_cpp_heartbeat_writes_numbers_as_text() {
    let text = br#"{"clientID":"c","consumerDataSet":[{"groupName":"g","unitMode":"false",
        "subscriptionDataSet":[{"topic":"T","subString":"*","subVersion":"1700000000000",
        "classFilterMode":"false","codeSet":["1","-2"],"tagsSet":["a"]}]}]}"#;
    let read = HeartbeatData::from_json(text).unwrap();
    let subscription = &read.consumer_data_set[0].subscription_data_set[0];
    assert_eq!(subscription.sub_version, 1_700_000_000_000);
    assert_eq!(
        subscription.code_set.iter().copied().collect::<Vec<_>>(),
        [-2, 1]
    );
}

#[test]
fn hostile_heartbeats_are_refused_or_ignored() {
    let hint = HeartbeatData::from_json(br#"{"@type":"x.y.Z","clientID":"c"}"#).unwrap();
    assert_eq!(hint.client_id, "c");
    let deep = "[".repeat(100_000);
    assert!(HeartbeatData::from_json(deep.as_bytes()).is_err());
    assert!(HeartbeatData::from_json(b"{\"a\":\"\\x").is_err());
    let digits = format!("{{\"heartbeatFingerprint\":{}}}", "7".repeat(1 << 20));
    assert!(HeartbeatData::from_json(digits.as_bytes()).is_err());
    assert!(LockBatchRequest::from_json(b"[]").is_err());
    assert!(LockBatchRequest::from_json(b"null").is_err());
    assert!(LockBatchRequest::from_json(b"").is_err());
}

#[test]
fn queue_keys_that_are_no_queues_are_refused() {
    for text in [
        r#"{"offsetTable":{"T":{}}}"#,
        r#"{"offsetTable":{1:{}}}"#,
        r#"{"offsetTable":{{"queueId":"x"}:{}}}"#,
        r#"{"offsetTable":{{"queueId":4294967296}:{}}}"#,
    ] {
        assert!(
            TopicStatsTable::from_json(text.as_bytes()).is_err(),
            "{text}"
        );
    }
}

#[test]
fn queue_keys_read_bare_and_as_text() {
    let bare = br#"{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"T"}:5}}"#;
    let text = br#"{"offsetTable":{"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"T\"}":5}}"#;
    let read = ResetOffsetBody::from_json(bare).unwrap();
    assert_eq!(ResetOffsetBody::from_json(text).unwrap(), read);
    assert_eq!(read.to_json(), bare);
    assert_eq!(ResetOffsetBodyForC::from(&read).offset_table[0].offset, 5);
}

#[test]
fn names_from_peers_stay_inside_quotes_whatever_they_hold() {
    let queue = MessageQueue {
        broker_name: "b\"}:1,{".into(),
        queue_id: 0,
        topic: "\\\n".into(),
    };
    let body = ConsumerStatusBody {
        consumer_table: [("{\"x\":1}".to_owned(), [(queue.clone(), 1)].into())].into(),
        message_queue_table: [(queue, 2)].into(),
    };
    assert_eq!(
        ConsumerStatusBody::from_json(&body.to_json()).unwrap(),
        body
    );
}

#[test]
fn offset_files_of_java_read_with_all_their_tables() {
    let text = b"{\n\t\"dataVersion\":{\"counter\":2,\"stateVersion\":0,\"timestamp\":5},\n\t\"offsetTable\":{\n\t\t\"T@g\":{0:7,1:8\n\t\t}\n\t},\n\"pullOffsetTable\":{\"T@g\":{0:9}},\"resetOffsetTable\":{}}";
    let read = ConsumerOffsets::from_json(text).unwrap();
    assert_eq!(read.offset_table["T@g"], [(0, 7), (1, 8)].into());
    assert_eq!(read.pull_offset_table["T@g"][&0], 9);
    assert_eq!(
        ConsumerOffsets::from_json(&read.to_json_pretty()).unwrap(),
        read
    );
    let delay = DelayOffsets::from_json(b"{\"offsetTable\":{1:5,18:6}}").unwrap();
    assert_eq!(delay.offset_table, [(1, 5), (18, 6)].into());
}

fn zlib(bytes: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut out = ZlibEncoder::new(Vec::new(), Compression::fast());
    for part in bytes {
        out.write_all(&part).unwrap();
    }
    out.finish().unwrap()
}

fn part(text: &[u8]) -> Vec<u8> {
    [&(text.len() as i32).to_be_bytes(), text].concat()
}

fn compressed(body: &[u8]) -> Result<RegisterBrokerBody, RegisterBodyError> {
    RegisterBrokerBody::decode(body, true, 0, 479)
}

#[test]
fn a_stream_of_zeros_ends_at_its_first_part() {
    let bomb = zlib((0..64).map(|_| vec![0; 1 << 20]));
    assert!(bomb.len() < 1 << 20);
    assert!(matches!(compressed(&bomb), Err(RegisterBodyError::Json(_))));
}

#[test]
fn a_stream_that_inflates_without_end_is_refused_at_the_limit() {
    let topic = part(format!("T 1 1 6 SINGLE_TAG {{{}}}", " ".repeat(60_000)).as_bytes());
    let head = [part(b"{}"), 200_000_i32.to_be_bytes().to_vec()];
    let bomb = zlib(head.into_iter().chain((0..1200).map(|_| topic.clone())));
    assert!(matches!(
        compressed(&bomb),
        Err(RegisterBodyError::TooLong { .. })
    ));
}

#[test]
fn absurd_lengths_and_cut_streams_are_refused() {
    for (what, bytes) in [
        ("negative length", vec![(-1_i32).to_be_bytes().to_vec()]),
        ("huge length", vec![i32::MAX.to_be_bytes().to_vec()]),
        (
            "negative count",
            vec![part(b"{}"), (-5_i32).to_be_bytes().to_vec()],
        ),
        (
            "huge count",
            vec![part(b"{}"), i32::MAX.to_be_bytes().to_vec()],
        ),
    ] {
        let error = compressed(&zlib(bytes)).unwrap_err();
        assert!(
            matches!(error, RegisterBodyError::Range { .. }),
            "{what}: {error}"
        );
    }
    let whole = zlib([
        part(br#"{"counter":1}"#),
        1_i32.to_be_bytes().to_vec(),
        part(b"T 8 4 6 SINGLE_TAG {\"k\":\"a b\"}"),
        part(b"[]"),
        0_i32.to_be_bytes().to_vec(),
    ]);
    let read = compressed(&whole).unwrap().topic_config_serialize_wrapper;
    assert_eq!(read.topic_config_table["T"].attributes["k"], "a b");
    for end in 0..whole.len() {
        let cut = compressed(&whole[..end]);
        assert!(end == 0 || cut.is_err() || end >= whole.len() - 4, "{end}");
    }
    assert!(matches!(
        compressed(b"no zlib"),
        Err(RegisterBodyError::Inflate(_))
    ));
}

#[test]
fn bad_topic_texts_are_refused_by_their_text() {
    for text in [
        "",
        "T",
        "T 1 1 6",
        "T x 1 6 SINGLE_TAG",
        " 1 1 6 SINGLE_TAG",
        "T 1 1 6 NO_TAG",
    ] {
        let body = zlib([
            part(b"{}"),
            1_i32.to_be_bytes().to_vec(),
            part(text.as_bytes()),
        ]);
        let error = compressed(&body).unwrap_err();
        assert!(
            matches!(error, RegisterBodyError::Topic { .. }),
            "{text:?}: {error}"
        );
    }
    let long = format!("{} 1 1 6 SINGLE_TAG", "t".repeat(256));
    let body = zlib([
        part(b"{}"),
        1_i32.to_be_bytes().to_vec(),
        part(long.as_bytes()),
    ]);
    assert!(matches!(
        compressed(&body),
        Err(RegisterBodyError::Topic { .. })
    ));
}
