//! What the official Java classes encode is read, and what we encode means the same.

mod common;

use std::collections::BTreeMap;

use common::{ADMIN_BODIES, BODIES, FRAMES, RECORDS, bodies, fixture, frames, lines};
use rmq_protocol::{
    body::{ConsumerRunningInfo, RegisterBodyError, RegisterBrokerBody, TopicRouteData},
    java_properties, json,
    message::{self, OffsetId, Record, batch, properties},
};
use serde_json::Value;

/// Ordinal of V5_0_0, the first version with static topics in the compressed registration.
const V5_0_0: i32 = 413;

#[test]
fn every_java_frame_reads_as_the_command_it_was() {
    let known = frames::all();
    let mut seen = 0;
    for (serializer, part) in frames::SERIALIZERS {
        for frame in &known {
            let name = format!("frame.{part}.{}", frame.name);
            let bytes = fixture(FRAMES, &name).expect(&name);
            let (written_in, read) = frames::decode(&bytes);
            let wanted = &frame.command;
            assert_eq!(written_in, serializer, "{name}");
            assert_eq!((read.code, read.flag), (wanted.code, wanted.flag), "{name}");
            assert_eq!(
                (read.opaque, read.version),
                (wanted.opaque, wanted.version),
                "{name}"
            );
            assert_eq!(read.language, wanted.language, "{name}");
            assert_eq!(read.remark, wanted.remark, "{name}");
            assert_eq!(read.body, wanted.body, "{name}");
            assert_eq!(
                frames::sorted(&read.ext),
                frames::sorted(&wanted.ext),
                "{name}"
            );
            (frame.check)(&read.ext);
            seen += 1;
        }
    }
    assert_eq!(
        seen,
        lines(FRAMES).len(),
        "a frame of the fixtures has no counterpart"
    );
}

#[test]
fn a_java_frame_read_and_written_again_has_the_same_bytes() {
    for (name, bytes) in lines(FRAMES) {
        let (serializer, command) = frames::decode(&bytes);
        let ours = frames::encode(&command, serializer);
        if command.ext.is_empty() && name.starts_with("frame.json.") {
            // Java writes empty fields as {} or not at all, depending on the header class.
            let (_, again) = frames::decode(&ours);
            assert_eq!(again.body, command.body, "{name}");
        } else {
            assert_eq!(
                String::from_utf8_lossy(&ours),
                String::from_utf8_lossy(&bytes),
                "{name}"
            );
        }
    }
}

#[test]
fn every_java_body_reads_as_the_value_it_was() {
    for body in bodies::all() {
        for suffix in ["", ".fastjson1"] {
            let name = format!("body.{}{suffix}", body.name);
            if let Some(bytes) = body_fixture(&name) {
                (body.check)(&bytes);
            } else {
                assert_eq!(suffix, ".fastjson1", "{name}");
            }
        }
        (body.check)(&body.ours);
    }
    for name in [
        "body.ConsumerRunningInfo",
        "body.ConsumerRunningInfo.fastjson1",
    ] {
        let bytes = body_fixture(name).unwrap();
        assert_eq!(
            ConsumerRunningInfo::from_json(&bytes).unwrap(),
            bodies::running_info()
        );
    }
}

#[test]
fn every_body_of_the_fixtures_has_a_counterpart() {
    let mut known: Vec<String> = bodies::all()
        .iter()
        .map(|body| body.name.to_owned())
        .collect();
    known.extend([
        "ConsumerRunningInfo".to_owned(),
        "RegisterBrokerBody.compressed".to_owned(),
    ]);
    for (name, _) in lines(BODIES).into_iter().chain(lines(ADMIN_BODIES)) {
        let name = name
            .trim_start_matches("body.")
            .trim_end_matches(".fastjson1");
        assert!(known.iter().any(|one| one == name), "{name}");
    }
}

#[test]
fn our_bodies_hold_the_keys_and_values_that_java_writes() {
    for body in bodies::all() {
        let mut java: Value =
            json::from_slice(&body_fixture(&format!("body.{}", body.name)).unwrap()).unwrap();
        let ours: Value = json::from_slice(&body.ours).unwrap();
        if body.name == "ConsumeTimeSpan" {
            // Java adds the times as text; nobody reads them.
            for span in java["consumeTimeSpanSet"].as_array_mut().unwrap() {
                span.as_object_mut()
                    .unwrap()
                    .retain(|key, _| !key.ends_with("Str"));
            }
        }
        assert_eq!(ours, java, "{}", body.name);
    }
}

#[test]
fn bodies_with_object_keys_and_legacy_routes_have_javas_very_bytes() {
    for body in bodies::all() {
        let java = body_fixture(&format!("body.{}", body.name)).unwrap();
        if java.windows(3).any(|part| part == b"{{\"") {
            assert_eq!(
                String::from_utf8_lossy(&body.ours),
                String::from_utf8_lossy(&java)
            );
        }
    }
    for (name, route) in [
        ("body.TopicRouteData", bodies::route()),
        ("body.TopicRouteData.mapping", bodies::mapped_route()),
    ] {
        let java = body_fixture(name).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&route.to_json_legacy()),
            String::from_utf8_lossy(&java)
        );
    }
    let standard = body_fixture("body.TopicRouteData.standard").unwrap();
    assert_eq!(bodies::route().to_json(), standard);
}

#[test]
fn only_bodies_with_queues_as_keys_are_no_strict_json() {
    for body in bodies::all() {
        let strict = serde_json::from_slice::<Value>(&body.ours).is_ok();
        let queue_keys = [
            "ConsumeStats",
            "ConsumeStatsList",
            "TopicStatsTable",
            "ResetOffsetBody",
            "ConsumerStatusBody",
        ];
        assert_eq!(strict, !queue_keys.contains(&body.name), "{}", body.name);
    }
}

#[test]
fn a_compressed_registration_reads_as_the_plain_one_less_what_it_cannot_hold() {
    let bytes = body_fixture("body.RegisterBrokerBody.compressed").unwrap();
    let crc = rmq_types::crc32_masked(crc32fast::hash(&bytes));
    let read = RegisterBrokerBody::decode(&bytes, true, crc, V5_0_0).unwrap();
    let mut wanted = bodies::registration();
    let wrapper = &mut wanted.topic_config_serialize_wrapper;
    wrapper.mapping_data_version = rmq_protocol::body::DataVersion::default();
    wrapper.topic_queue_mapping_detail_map = BTreeMap::new();
    for topic in wrapper.topic_config_table.values_mut() {
        topic.order = false;
        topic.topic_sys_flag = 0;
    }
    assert_eq!(read, wanted);

    let old = RegisterBrokerBody::decode(&bytes, true, 0, V5_0_0 - 1).unwrap();
    assert!(
        old.topic_config_serialize_wrapper
            .topic_queue_mapping_info_map
            .is_empty()
    );
    let wrong = RegisterBrokerBody::decode(&bytes, true, crc ^ 1, V5_0_0);
    assert!(matches!(wrong, Err(RegisterBodyError::Crc { .. })));
}

#[test]
fn every_java_record_reads_and_is_written_again_byte_for_byte() {
    let mut seen = 0;
    for (name, bytes) in lines(RECORDS) {
        if !name.starts_with("record.") {
            continue;
        }
        let (record, size) = Record::decode(&bytes).expect(&name);
        assert_eq!(size, bytes.len(), "{name}");
        assert_eq!(
            (record.queue_id, record.flag, record.queue_offset),
            (3, 5, 9),
            "{name}"
        );
        assert_eq!(record.physical_offset, 4096, "{name}");
        assert_eq!(
            (record.born_host.port(), record.store_host.port()),
            (40_000, 10_911),
            "{name}"
        );
        assert_eq!(record.reconsume_times, 2, "{name}");
        assert_eq!(record.body_crc, message::body_crc(record.body), "{name}");
        let mut out = vec![0; record.encoded_len()];
        if name == "record.v2" {
            // Java reads version 2 with a short topic, but no broker writes one.
            assert_eq!(record.topic.len(), 100);
        } else {
            assert_eq!(record.encode_into(&mut out).unwrap(), bytes.len(), "{name}");
            assert_eq!(out, bytes, "{name}");
        }
        seen += 1;
    }
    assert_eq!(seen, 5);
}

#[test]
fn a_java_batch_reads_and_is_written_again_byte_for_byte() {
    let bytes = fixture(RECORDS, "batch.two").unwrap();
    let items: Vec<_> = batch::iter(&bytes).collect::<Result<_, _>>().unwrap();
    assert_eq!(items.len(), 2);
    assert_eq!(
        (items[0].flag, items[0].body, items[1].body),
        (5, &b"hello"[..], &b"world!"[..])
    );
    assert_eq!(
        properties::get_str(items[0].properties, "TAGS"),
        Some("TagA")
    );
    let mut out = Vec::new();
    assert!(items.iter().all(|item| batch::push(&mut out, item)));
    assert_eq!(out, bytes);
}

#[test]
fn java_offset_ids_read_and_are_written_again() {
    for (name, host, offset) in [
        ("offset_id.v4", "10.0.0.1:10911", 1_234_567_890_123),
        ("offset_id.v6", "[2001:db8::2]:10911", 4096),
    ] {
        let text = String::from_utf8(fixture(RECORDS, name).unwrap()).unwrap();
        let id = OffsetId {
            host: host.parse().unwrap(),
            offset,
        };
        assert_eq!(OffsetId::parse(&text).unwrap(), id);
        let mut out = String::new();
        id.write(&mut out);
        assert_eq!(out, text);
    }
}

#[test]
fn java_message_properties_read_and_are_written_again() {
    let text = fixture(RECORDS, "message_properties").unwrap();
    let mut out = Vec::new();
    for (name, value) in properties::iter(&text) {
        properties::push(&mut out, std::str::from_utf8(name).unwrap(), value);
    }
    assert_eq!(out, text);
    assert_eq!(properties::get_str(&text, "主"), Some("题"));
}

#[test]
fn java_configuration_text_reads_and_is_written_again() {
    let text = fixture(RECORDS, "config_text").unwrap();
    let map = java_properties::parse_map(&text).unwrap();
    assert_eq!(map["namesrvAddr"], "10.0.0.1:9876;10.0.0.2:9876");
    assert_eq!(java_properties::write(&map).as_bytes(), text);

    let odd = java_properties::parse_map(&fixture(RECORDS, "config_text_odd").unwrap()).unwrap();
    let wanted: BTreeMap<String, String> = [
        ("blank", ""),
        ("key 1", "value"),
        ("path", "C:\\store\tA"),
        ("x", " y "),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    assert_eq!(odd, wanted);
}

#[test]
fn a_route_for_any_client_is_strict_json_when_its_keys_are_quoted() {
    let route: Value = serde_json::from_slice(&bodies::route().to_json()).unwrap();
    assert_eq!(
        route["brokerDatas"][0]["brokerAddrs"]["0"],
        "10.0.0.1:10911"
    );
    let legacy = bodies::route().to_json_legacy();
    assert!(serde_json::from_slice::<Value>(&legacy).is_err());
    assert_eq!(TopicRouteData::from_json(&legacy).unwrap(), bodies::route());
}

fn body_fixture(name: &str) -> Option<Vec<u8>> {
    fixture(BODIES, name).or_else(|| fixture(ADMIN_BODIES, name))
}
