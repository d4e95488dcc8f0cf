//! Brokers: registering, leaving, versions, heartbeats, members, permissions, cluster info.

use std::io::Write;

use flate2::{Compression, write::ZlibEncoder};
use rmq_protocol::{
    body::{BrokerMemberGroupResponse, DataVersion, KvTable},
    remoting::{Command, request_code as code},
};

use crate::rig::{
    Rig, body, broker, connection, eventually, registration, registration_of, route_query,
};

fn deflate(parts: &[&[u8]]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    for part in parts {
        encoder.write_all(part).unwrap();
    }
    encoder.finish().unwrap()
}

fn sized(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text].concat()
}

#[tokio::test]
async fn a_replica_hears_of_its_master_and_ordered_topics_come_along() {
    let rig = Rig::start();
    let put = Command::request(code::PUT_KV_CONFIG)
        .with_ext("namespace", "ORDER_TOPIC_CONFIG")
        .with_ext("key", "T")
        .with_ext("value", "a:4");
    let master = rig.done(registration("a", 0)).await;
    assert!(master.body.is_empty(), "no ordered topics yet");
    assert_eq!(master.ext.get("masterAddr"), None);
    rig.done(put).await;
    let replica = rig.done(registration("a", 1)).await;
    assert_eq!(replica.ext.get("masterAddr"), Some("a-0:10911"));
    assert_eq!(replica.ext.get("haServerAddr"), Some("a-0:10912"));
    let table = KvTable::from_json(&replica.body).unwrap().table;
    assert_eq!(table["T"], "a:4");
    let off = Command::request(code::UPDATE_NAMESRV_CONFIG)
        .with_body("returnOrderTopicConfigToBroker=false");
    rig.done(off).await;
    assert!(rig.done(registration("a", 1)).await.body.is_empty());
}

#[tokio::test]
async fn a_first_registration_with_one_topic_is_refused_and_leaves_nothing() {
    let rig = Rig::start();
    let answer = rig.call(registration_of("a", 0, 1, &["T"])).await;
    assert_eq!(answer.code, 1);
    assert!(answer.remark.unwrap().starts_with("register broker failed"));
    assert!(rig.clusters().await.cluster_addr_table.is_empty());
}

#[tokio::test]
async fn bodies_of_old_brokers_are_taken() {
    let rig = Rig::start();
    let four_nine = br#"{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"timestamp":5},"topicConfigTable":{"T":{"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":0,"writeQueueNums":4},"U":{"topicName":"U"}}}}"#;
    rig.done(registration("a", 0).with_body(&four_nine[..]))
        .await;
    assert_eq!(
        rig.route("T").await.unwrap().queue_datas[0].read_queue_nums,
        4
    );

    let mut ancient = registration("b", 0).with_body(
        body(1, &["V", "W"])
            .topic_config_serialize_wrapper
            .to_json(),
    );
    ancient.version = 0;
    rig.done(ancient).await;
    assert!(rig.route("V").await.is_some());
}

#[tokio::test]
async fn bodies_with_null_parts_are_empty_registrations_and_reads_go_on() {
    let rig = Rig::start();
    rig.done(registration("good", 0)).await;
    for (at, text) in [
        "{}",
        r#"{"topicConfigSerializeWrapper":null}"#,
        r#"{"topicConfigSerializeWrapper":{"topicConfigTable":null,"dataVersion":null}}"#,
        r#"{"filterServerList":null,"topicConfigSerializeWrapper":{"dataVersion":{}}}"#,
        "",
    ]
    .into_iter()
    .enumerate()
    {
        rig.done(registration(&format!("b{at}"), 0).with_body(text))
            .await;
        assert!(rig.route("T").await.is_some());
        assert_eq!(rig.clusters().await.broker_addr_table.len(), at + 2);
        rig.done(Command::request(code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER))
            .await;
    }
}

#[tokio::test]
async fn a_compressed_registration_is_read_and_a_bomb_is_refused() {
    let rig = Rig::start();
    let parts = [
        sized(br#"{"counter":1,"stateVersion":0,"timestamp":1}"#),
        2u32.to_be_bytes().to_vec(),
        sized(b"T 4 4 6 SINGLE_TAG {}"),
        sized(b"U 4 4 6 SINGLE_TAG"),
        sized(b"[]"),
        0u32.to_be_bytes().to_vec(),
    ];
    let good = deflate(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let crc = (crc32fast::hash(&good) & 0x7FFF_FFFF).to_string();
    let compressed = |body: Vec<u8>, crc: String| {
        registration("a", 0)
            .with_ext("compressed", "true")
            .with_ext("bodyCrc32", crc)
            .with_body(body)
    };
    rig.done(compressed(good.clone(), crc)).await;
    assert!(rig.route("T").await.is_some());
    let wrong = rig.call(compressed(good, "1".into())).await;
    assert!(wrong.code == 1 && wrong.remark.unwrap().contains("crc32 not match"));

    let zeros = vec![0u8; 1024 * 1024];
    let length = sized(b"");
    let mut bomb = vec![length.as_slice(), length.as_slice()];
    bomb.extend(std::iter::repeat_n(zeros.as_slice(), 80));
    let bomb = deflate(&bomb);
    assert!(bomb.len() < 256 * 1024);
    for _ in 0..4 {
        let answer = rig.call(compressed(bomb.clone(), "0".into())).await;
        assert_eq!(answer.code, 1, "{:?}", answer.remark);
        assert!(rig.route("T").await.is_some());
    }
    let mut nested = Vec::new();
    for part in [&5u32.to_be_bytes()[..], b"{}   "] {
        nested.extend_from_slice(part);
    }
    nested.extend_from_slice(&0x7FFF_FFFFu32.to_be_bytes());
    let answer = rig.call(compressed(deflate(&[&nested]), "0".into())).await;
    assert_eq!(answer.code, 1);
}

#[tokio::test]
async fn a_large_registration_is_served_beside_the_io_threads() {
    let rig = Rig::start();
    let names: Vec<String> = (0..3000).map(|at| format!("topic-{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let large = registration_of("a", 0, 1, &names);
    assert!(large.body.len() > 64 * 1024);
    rig.done(large).await;
    assert!(rig.route("topic-2999").await.is_some());
    assert_eq!(rig.server.metrics().topics, 3000);
}

#[tokio::test]
async fn a_bad_topic_is_left_out_and_the_others_are_served() {
    let rig = Rig::start();
    let mut with_bad = body(1, &["T", "U", "../x", "a b"]);
    let table = &mut with_bad.topic_config_serialize_wrapper.topic_config_table;
    table.get_mut("U").unwrap().read_queue_nums = -1;
    rig.done(registration("a", 0).with_body(with_bad.to_json()))
        .await;
    assert!(rig.route("T").await.is_some());
    assert_eq!(rig.server.metrics().topics, 1);
}

#[tokio::test]
async fn counters_beyond_32_bits_are_kept() {
    let rig = Rig::start();
    let mut big = body(3_000_000_000, &["T", "U"]);
    big.topic_config_serialize_wrapper.data_version.timestamp = i64::MAX;
    rig.done(registration("a", 0).with_body(big.to_json()))
        .await;
    let version = big.topic_config_serialize_wrapper.data_version;
    let query = |version: DataVersion| {
        broker(code::QUERY_DATA_VERSION, "a", 0).with_body(version.to_json())
    };
    let same = rig.done(query(version)).await;
    assert_eq!(same.ext.get("changed"), Some("false"));
    assert_eq!(DataVersion::from_json(&same.body).unwrap(), version);
    let newer = rig
        .done(query(DataVersion {
            counter: 3_000_000_001,
            ..version
        }))
        .await;
    assert_eq!(newer.ext.get("changed"), Some("true"));
}

#[tokio::test]
async fn a_version_query_of_an_unknown_broker_says_changed_without_a_body() {
    let rig = Rig::start();
    let answer = rig.done(broker(code::QUERY_DATA_VERSION, "a", 0)).await;
    assert_eq!(answer.ext.get("changed"), Some("true"));
    assert!(answer.body.is_empty());
}

#[tokio::test]
async fn members_of_a_group_are_answered_and_an_unknown_group_is_empty() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    rig.done(registration("a", 1)).await;
    for (name, members) in [("a", 2), ("nobody", 0)] {
        let query = Command::request(code::GET_BROKER_MEMBER_GROUP)
            .with_ext("clusterName", "c")
            .with_ext("brokerName", name);
        let answer = rig.done(query).await;
        let group = BrokerMemberGroupResponse::from_json(&answer.body).unwrap();
        let group = group.broker_member_group.unwrap();
        assert_eq!(
            (group.cluster.as_str(), group.broker_name.as_str()),
            ("c", name)
        );
        assert_eq!(group.broker_addrs.len(), members);
    }
}

#[tokio::test]
async fn write_permission_is_wiped_stays_wiped_and_is_given_back() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    let perm = async || rig.route("T").await.unwrap().queue_datas[0].perm;
    let by_name = |request| Command::request(request).with_ext("brokerName", "a");
    let wiped = rig.done(by_name(code::WIPE_WRITE_PERM_OF_BROKER)).await;
    assert_eq!(wiped.ext.get("wipeTopicCount"), Some("2"));
    for _ in 0..3 {
        rig.done(registration("a", 0)).await;
        assert_eq!(perm().await, 4);
    }
    let given = rig.done(by_name(code::ADD_WRITE_PERM_OF_BROKER)).await;
    assert_eq!(given.ext.get("addTopicCount"), Some("2"));
    assert_eq!(perm().await, 6);
    rig.done(by_name(code::WIPE_WRITE_PERM_OF_BROKER)).await;
    rig.done(registration_of("a", 0, 2, &["T", "U"])).await;
    assert_eq!(
        perm().await,
        6,
        "a changed topic table brings its own permissions"
    );
    let nobody = Command::request(code::WIPE_WRITE_PERM_OF_BROKER).with_ext("brokerName", "x");
    assert_eq!(rig.done(nobody).await.ext.get("wipeTopicCount"), Some("0"));
}

#[tokio::test]
async fn an_unregistered_broker_is_gone_at_once() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    rig.done(broker(code::UNREGISTER_BROKER, "a", 0)).await;
    assert!(rig.route("T").await.is_none());
    assert!(rig.clusters().await.broker_addr_table.is_empty());
    rig.done(broker(code::UNREGISTER_BROKER, "a", 0)).await;
}

#[tokio::test]
async fn a_late_end_of_an_old_connection_does_not_touch_a_fresh_registration() {
    let rig = Rig::start();
    let (old, new) = (connection(), connection());
    rig.call_over(&old, registration("a", 0)).await;
    rig.call_over(&new, registration("a", 0)).await;
    // The old process's goodbye comes late, then its connection ends.
    let late = rig
        .call_over(&old, broker(code::UNREGISTER_BROKER, "a", 0))
        .await;
    assert_eq!(late.code, 0);
    assert!(rig.route("T").await.is_some());
    let open = rig.server.listener_stats().open;
    old.close(&rig.addr);
    eventually("the old connection ends", async || {
        assert!(rig.route("T").await.is_some());
        assert_eq!(rig.clusters().await.broker_addr_table.len(), 1);
        rig.server.listener_stats().open < open
    })
    .await;
    assert!(rig.route("T").await.is_some());
    new.close(&rig.addr);
    eventually("the broker leaves with its connection", async || {
        rig.route("T").await.is_none()
    })
    .await;
}

#[tokio::test]
async fn a_silent_broker_leaves_after_the_time_it_named_and_heartbeats_keep_it() {
    let rig = Rig::with("scanNotActiveBrokerInterval=10");
    let (silent, heard) = (connection(), connection());
    for (client, name) in [(&silent, "silent"), (&heard, "heard")] {
        let register = registration(name, 0).with_ext("heartbeatTimeoutMillis", "100");
        rig.call_over(client, register).await;
    }
    rig.clusters().await;
    let open = rig.server.listener_stats().open;
    eventually("the silent one leaves", async || {
        rig.clock.advance(2);
        let beat = broker(code::BROKER_HEARTBEAT, "heard", 0);
        rig.call_over(&heard, beat).await;
        rig.clusters().await.broker_addr_table.len() == 1
    })
    .await;
    let left = rig.route("T").await.unwrap().broker_datas;
    assert_eq!(left[0].broker_name, "heard");
    eventually("its connection is closed", async || {
        rig.server.listener_stats().open < open
    })
    .await;
}

#[tokio::test]
async fn equal_registrations_make_two_name_servers_equal() {
    let (one, other) = (Rig::start(), Rig::start());
    one.done(registration("gone", 0)).await;
    for rig in [&one, &other] {
        for name in ["a", "b"] {
            rig.done(registration(name, 0)).await;
            rig.done(registration(name, 1)).await;
        }
    }
    one.done(broker(code::UNREGISTER_BROKER, "gone", 0)).await;
    assert_eq!(one.clusters().await, other.clusters().await);
    let (left, right) = (
        one.done(route_query("T")).await,
        other.done(route_query("T")).await,
    );
    assert_eq!(left.body, right.body);
}
