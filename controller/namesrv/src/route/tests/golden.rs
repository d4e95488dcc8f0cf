//! Answers byte for byte as the official Java classes write them for the same table.

use rmq_protocol::body::RegisterBrokerBody;

use super::*;

/// Bytes of a fixture by its name.
fn golden(name: &str) -> Vec<u8> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../crates/protocol/tests/fixtures/bodies.golden"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find_map(|line| {
        line.strip_prefix(name)
            .and_then(|rest| rest.strip_prefix(' '))
    });
    let digits = line.unwrap_or_else(|| panic!("no fixture {name}"));
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

/// The table that the fixtures were made of.
fn table(mapping: bool) -> RouteTable {
    let sent = RegisterBrokerBody::from_json(&golden("body.RegisterBrokerBody")).unwrap();
    let wrapper = sent.topic_config_serialize_wrapper;
    let topics = wrapper.topic_config_table.values();
    let topics: Vec<_> = topics
        .map(|config| TopicSettings {
            name: TopicName::parse(&config.topic_name).unwrap(),
            queues: QueueSettings {
                read_queues: config.read_queue_nums,
                write_queues: config.write_queue_nums,
                perm: config.perm,
                sys_flag: config.topic_sys_flag,
            },
        })
        .collect();
    let mut table = RouteTable::default();
    for (id, addr) in [(0, "10.0.0.1:10911"), (2, "10.0.0.2:10911")] {
        let mut registration = broker("broker-a", id);
        registration.cluster = ClusterName::parse("DefaultCluster").unwrap();
        registration.addr = addr.to_owned();
        registration.zone = Some("zone-1".to_owned());
        registration.version = wrapper.data_version;
        registration.topics.clone_from(&topics);
        if mapping {
            let maps = wrapper.topic_queue_mapping_info_map.clone().into_iter();
            registration.mappings = maps
                .map(|(name, map)| (TopicName::parse(&name).unwrap(), map))
                .collect();
        }
        accepted(&mut table, registration);
    }
    table
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_route_has_javas_bytes_in_both_flavours() {
    let mut table = table(false);
    for (flavour, name) in [
        (Flavour::Legacy, "body.TopicRouteData"),
        (Flavour::Standard, "body.TopicRouteData.standard"),
    ] {
        let answer = table.answer("TopicTest", flavour, Some("broker-a:4"));
        assert_eq!(text(&answer.unwrap()), text(&golden(name)));
    }
}

#[test]
fn a_route_of_a_static_topic_has_javas_bytes() {
    let route = table(true).route("TopicTest", Some("broker-a:4")).unwrap();
    let expected = golden("body.TopicRouteData.mapping");
    assert_eq!(text(&route.to_json_legacy()), text(&expected));
}

#[test]
fn cluster_info_is_javas_with_number_keys_quoted() {
    let expected = rmq_protocol::body::ClusterInfo::from_json(&golden("body.ClusterInfo")).unwrap();
    assert_eq!(table(false).cluster_info(), expected);
    let java = text(&golden("body.ClusterInfo"));
    let quoted = java.replace("{0:", "{\"0\":").replace(",2:", ",\"2\":");
    assert_eq!(text(&table(false).cluster_answer()), quoted);
}
