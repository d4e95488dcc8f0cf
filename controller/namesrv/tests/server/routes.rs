//! Route queries: both JSON forms, zones, ordered topics, waiting, unknown topics.

use rmq_protocol::{
    body::TopicRouteData,
    json,
    remoting::{Command, request_code as code},
};

use crate::rig::{Rig, registration, route_query};

#[tokio::test]
async fn a_registered_topic_has_a_route_and_an_unknown_one_says_17_without_a_body() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    let route = rig.route("T").await.unwrap();
    assert_eq!(route.broker_datas[0].broker_addrs[&0], "a-0:10911");
    assert_eq!(route.queue_datas[0].write_queue_nums, 16);
    for topic in ["nobody", "", &"t".repeat(300), "../../etc"] {
        let answer = rig.call(route_query(topic)).await;
        assert_eq!((answer.code, answer.body.len()), (17, 0), "{topic}");
        let remark = answer.remark.unwrap();
        assert!(remark.starts_with("No topic route info in name server for the topic: "));
        assert!(remark.len() < 600, "what was asked is repeated in short");
    }
    let metrics = rig.server.metrics();
    assert_eq!((metrics.route_queries, metrics.route_misses), (5, 4));
}

#[tokio::test]
async fn new_clients_get_strict_json_and_old_ones_bare_number_keys() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    let is_strict = |body: &[u8]| serde_json::from_slice::<serde_json::Value>(body).is_ok();
    for (version, accepts, strict) in [
        (401, None, true),
        (479, None, true),
        (400, None, false),
        (0, None, false),
        (0, Some("true"), true),
    ] {
        for _ in 0..2 {
            let mut query = route_query("T");
            query.version = version;
            if let Some(text) = accepts {
                query = query.with_ext("acceptStandardJsonOnly", text);
            }
            let answer = rig.done(query).await;
            assert_eq!(is_strict(&answer.body), strict, "version {version}");
            assert!(json::from_slice::<TopicRouteData>(&answer.body).is_ok());
        }
    }
}

#[tokio::test]
async fn answers_have_the_bytes_that_java_writes() {
    let rig = Rig::start();
    let mut command = registration("b", 0);
    command.ext.set("brokerAddr", "10.0.0.1:10911");
    rig.done(command).await;
    let rest = r#""brokerName":"b","cluster":"c","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":16,"topicSysFlag":0,"writeQueueNums":16}]}"#;
    for (version, key) in [(0, "0"), (479, "\"0\"")] {
        let mut query = route_query("T");
        query.version = version;
        let body = rig.done(query).await.body;
        let expected =
            format!("{{\"brokerDatas\":[{{\"brokerAddrs\":{{{key}:\"10.0.0.1:10911\"}},{rest}");
        assert_eq!(String::from_utf8(body.to_vec()).unwrap(), expected);
    }
    let clusters = rig
        .done(Command::request(code::GET_BROKER_CLUSTER_INFO))
        .await;
    let expected = r#"{"brokerAddrTable":{"b":{"brokerAddrs":{"0":"10.0.0.1:10911"},"brokerName":"b","cluster":"c","enableActingMaster":false}},"clusterAddrTable":{"c":["b"]}}"#;
    assert_eq!(String::from_utf8(clusters.body.to_vec()).unwrap(), expected);
}

#[tokio::test]
async fn a_client_in_a_zone_gets_the_brokers_of_its_zone() {
    let rig = Rig::start();
    rig.done(registration("near", 0).with_ext("__ZONE_NAME", "z1"))
        .await;
    rig.done(registration("far", 0).with_ext("__ZONE_NAME", "z2"))
        .await;
    let query = || route_query("T").with_ext("__ZONE_NAME", "Z1");
    let brokers = |answer: &Command| {
        TopicRouteData::from_json(&answer.body)
            .unwrap()
            .broker_datas
    };
    assert_eq!(brokers(&rig.done(query()).await).len(), 2, "no zone mode");
    let answer = rig.done(query().with_ext("__ZONE_MODE", "true")).await;
    let found = brokers(&answer);
    assert_eq!((found.len(), found[0].broker_name.as_str()), (1, "near"));
    let blank = route_query("T")
        .with_ext("__ZONE_MODE", "true")
        .with_ext("__ZONE_NAME", " ");
    assert_eq!(brokers(&rig.done(blank).await).len(), 2);
}

#[tokio::test]
async fn ordered_topics_show_their_configuration_as_soon_as_it_changes() {
    let rig = Rig::with("orderMessageEnable=true");
    rig.done(registration("a", 0)).await;
    assert_eq!(rig.route("T").await.unwrap().order_topic_conf, None);
    let put = |value: &str| {
        Command::request(code::PUT_KV_CONFIG)
            .with_ext("namespace", "ORDER_TOPIC_CONFIG")
            .with_ext("key", "T")
            .with_ext("value", value)
    };
    for value in ["a:4", "a:8"] {
        rig.done(put(value)).await;
        assert_eq!(
            rig.route("T").await.unwrap().order_topic_conf.as_deref(),
            Some(value)
        );
    }
    assert_eq!(rig.route("U").await.unwrap().order_topic_conf, None);
}

#[tokio::test]
async fn routes_are_refused_until_brokers_had_time_to_register() {
    let rig = Rig::with("needWaitForService=true\nwaitSecondsForService=45");
    rig.done(registration("a", 0)).await;
    rig.clock.advance(44_999);
    let answer = rig.call(route_query("T")).await;
    assert_eq!(
        (answer.code, answer.remark.as_deref()),
        (1, Some("name server not ready"))
    );
    assert!(!rig.server.is_ready());
    rig.clock.advance(1);
    assert!(rig.route("T").await.is_some());
    assert!(rig.server.is_ready());
}

#[tokio::test]
async fn an_acting_master_is_shown_when_it_is_supported() {
    let rig = Rig::with("supportActingMaster=true");
    rig.done(registration("a", 2).with_ext("enableActingMaster", "true"))
        .await;
    let data = rig.route("T").await.unwrap().broker_datas.remove(0);
    assert_eq!(data.broker_addrs.keys().collect::<Vec<_>>(), [&0]);
}
