//! The metrics page after real traffic: names, labels and units of the Java broker.

use std::collections::BTreeMap;

use rmq_protocol::remoting::{Command, request_code as code};

use super::{TestBroker, fixture::send_header, ok};

/// The value of the one series of a family whose labels include `labels`.
#[track_caller]
fn value(page: &str, name: &str, labels: &[&str]) -> f64 {
    let start = format!("{name}{{");
    let mut found = page
        .lines()
        .filter(|line| line.starts_with(&start) && labels.iter().all(|label| line.contains(label)));
    let line = found
        .next()
        .unwrap_or_else(|| panic!("no {name} {labels:?} in\n{page}"));
    assert_eq!(found.next(), None, "{name} {labels:?} is not one series");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[track_caller]
fn has_none(page: &str, name: &str, label: &str) {
    let start = format!("{name}{{");
    let found = page
        .lines()
        .find(|line| line.starts_with(&start) && line.contains(label));
    assert_eq!(found, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traffic_is_shown_by_topic_and_type_and_the_lag_of_each_group() {
    let broker = TestBroker::start().await;
    broker.topic("T", 2).await;
    for group in ["G", "H"] {
        broker.group(group).await;
    }
    for body in ["1", "2"] {
        broker.send("T", body).await;
    }
    let keyed = [("__SHARDINGKEY", "k")];
    ok(broker.send_to(("T", 0), "3", &keyed).await);
    let delayed = [("DELAY", "18")];
    ok(broker.send_to(("T", 0), "later", &delayed).await);
    broker.pull("G", ("T", 0), 0).await;
    broker.commit("G", ("T", 0), 1).await;
    broker.commit("H", ("T", 0), 3).await;
    let page = broker.metrics();
    let (t, g, h) = (
        r#"topic="T""#,
        r#"consumer_group="G""#,
        r#"consumer_group="H""#,
    );
    let common = r#"cluster="c",node_type="broker",node_id="b""#;
    let (normal, fifo) = (r#"message_type="normal""#, r#"message_type="fifo""#);
    let delay = [
        r#"topic="SCHEDULE_TOPIC_XXXX""#,
        r#"message_type="delay",is_system="true""#,
    ];
    for (name, labels, wanted) in [
        ("rocketmq_messages_in_total", &[common, t, normal][..], 2.0),
        (
            "rocketmq_messages_in_total",
            &[t, fifo, r#"is_system="false""#],
            1.0,
        ),
        ("rocketmq_messages_in_total", &delay, 1.0),
        (
            "rocketmq_messages_out_total",
            &[t, g, r#"is_retry="false",is_system="false""#],
            3.0,
        ),
        ("rocketmq_message_size_count", &[t, normal], 2.0),
        (
            "rocketmq_message_size_bucket",
            &[t, normal, r#"le="1024.0""#],
            2.0,
        ),
        (
            "rocketmq_message_size_bucket",
            &[t, normal, r#"le="+Inf""#],
            2.0,
        ),
        ("rocketmq_consumer_lag_messages", &[t, g], 2.0),
        ("rocketmq_consumer_inflight_messages", &[t, g], 2.0),
        ("rocketmq_consumer_ready_messages", &[t, g], 0.0),
        ("rocketmq_consumer_queueing_latency", &[t, g], 0.0),
        ("rocketmq_consumer_lag_messages", &[t, h], 0.0),
        ("rocketmq_consumer_lag_latency", &[t, h], 0.0),
        ("rocketmq_broker_permission", &[common], 6.0),
        (
            "rocketmq_processor_watermark",
            &[r#"processor="send""#],
            0.0,
        ),
    ] {
        let found = value(&page, name, labels);
        assert!((found - wanted).abs() < 1e-9, "{name} {labels:?}: {found}");
    }
    let bytes = value(&page, "rocketmq_throughput_in_total", &[t, normal]);
    assert!((bytes - value(&page, "rocketmq_message_size_sum", &[t, normal])).abs() < 1e-9);
    // Java's exporter has the unit in the name, its documentation has not.
    for name in [
        "rocketmq_consumer_lag_latency",
        "rocketmq_consumer_queueing_latency",
    ] {
        value(&page, &format!("{name}_milliseconds"), &[t, g]);
    }
    value(
        &page,
        "rocketmq_storage_size_bytes",
        &[r#"storage_medium="disk""#],
    );
    value(
        &page,
        "rocketmq_storage_message_reserve_time_milliseconds",
        &[common],
    );
}

/// Lag times have been shown in another unit than their name says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_age_of_what_a_group_lags_is_that_of_its_oldest_message_in_milliseconds() {
    let broker = TestBroker::start().await;
    broker.topic("T", 2).await;
    broker.group("G").await;
    for queue in [0, 1] {
        ok(broker.send_to(("T", queue), "x", &[]).await);
        broker.commit("G", ("T", queue), 0).await;
    }
    let oldest = broker.pull("G", ("T", 0), 0).await.stored_at[0];
    let lag = || {
        let before = broker.now();
        let page = broker.metrics();
        let labels = [r#"topic="T""#, r#"consumer_group="G""#];
        let age = value(&page, "rocketmq_consumer_lag_latency", &labels);
        (before, age as i64, broker.now())
    };
    let (before, age, after) = lag();
    assert!(
        before - oldest <= age && age <= after - oldest,
        "{before} {age} {after}"
    );
    broker.commit("G", ("T", 0), 1).await;
    let newer = broker.pull("G", ("T", 1), 0).await.stored_at[0];
    let (before, age, after) = lag();
    assert!(
        before - newer <= age && age <= after - newer,
        "{before} {age} {after}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_requests_is_shown_by_code_answer_and_whether_they_waited() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker.send("T", "1").await;
    ok(broker.send_to(("T", 0), "2", &[]).await);
    assert_eq!(
        broker.send_to(("T", 7), "no such queue", &[]).await.code,
        29
    );
    let oneway = Command::oneway(code::SEND_MESSAGE_V2)
        .with_header(&send_header(("T", 0)))
        .with_body("3");
    broker.notify(oneway).await;
    assert_eq!(broker.pull("G", ("T", 0), 0).await.answer.code, 0);
    assert_eq!(broker.pull_for("G", ("T", 0), 3, 1).await.answer.code, 19);
    assert_eq!(broker.ask(9_876).await.code, 3);
    let page = broker.metrics();
    let name = "rocketmq_rpc_latency_count";
    let send = r#"protocol_type="remoting",request_code="send_message_v2""#;
    let pull = r#"request_code="pull_message""#;
    for (labels, wanted) in [
        (
            &[
                send,
                r#"response_code="success",is_long_polling="false",result="success""#,
            ][..],
            2.0,
        ),
        (
            &[send, r#"response_code="success""#, r#"result="oneway""#],
            1.0,
        ),
        (&[send, r#"response_code="invalid_parameter""#], 1.0),
        (
            &[pull, r#"response_code="success",is_long_polling="false""#],
            1.0,
        ),
        (
            &[
                pull,
                r#"response_code="pull_not_found",is_long_polling="true""#,
            ],
            1.0,
        ),
        (
            &[r#"request_code="update_and_create_topic",response_code="success""#],
            1.0,
        ),
        (
            &[r#"request_code="other",response_code="request_code_not_supported""#],
            1.0,
        ),
    ] {
        let found = value(&page, name, labels);
        assert!((found - wanted).abs() < 1e-9, "{labels:?}: {found}");
        let all = [labels, &[r#"le="+Inf""#]].concat();
        let unit = "rocketmq_rpc_latency_milliseconds_bucket";
        assert!((value(&page, unit, &all) - wanted).abs() < 1e-9);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_that_waits_for_the_disk_is_timed_until_its_answer() {
    let broker = TestBroker::start_with("flushDiskType=SYNC_FLUSH").await;
    broker.topic("T", 1).await;
    broker.send("T", "1").await;
    let labels = [
        r#"request_code="send_message_v2""#,
        r#"response_code="success""#,
    ];
    // The answer may be here before the broker has noted that it sent it.
    while !broker.metrics().contains(labels[0]) {}
    let found = value(&broker.metrics(), "rocketmq_rpc_latency_count", &labels);
    assert!((found - 1.0).abs() < 1e-9, "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn making_topics_and_groups_is_timed_with_its_outcome() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    let bad = rmq_protocol::body::TopicConfig {
        perm: 99,
        ..rmq_protocol::body::TopicConfig::named("U")
    };
    assert_eq!(broker.put_topic(bad, None).await.code, 29);
    let page = broker.metrics();
    let topic = "rocketmq_topic_create_execution_time_count";
    let group = "rocketmq_consumer_group_create_execution_time_milliseconds_count";
    let done = r#"invocation_status="success",is_system="false""#;
    let failed = r#"invocation_status="failure",is_system="false""#;
    for (name, labels, wanted) in [(topic, done, 1.0), (topic, failed, 1.0), (group, done, 1.0)] {
        assert!((value(&page, name, &[labels]) - wanted).abs() < 1e-9);
    }
    has_none(&page, group, failed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_shown_by_language_version_and_way_to_consume() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.beat("me", "G", &["T"]).await;
    let page = broker.metrics();
    let version = r#"version="v5_5_0""#;
    let labels = [r#"language="java""#, version, r#"protocol_type="remoting""#];
    assert!((value(&page, "rocketmq_producer_connections", &labels) - 1.0).abs() < 1e-9);
    let name = "rocketmq_consumer_connections";
    let labels = [
        r#"consumer_group="G",language="java""#,
        version,
        r#"consume_mode="push",protocol_type="remoting",is_system="false""#,
    ];
    assert!((value(&page, name, &labels) - 1.0).abs() < 1e-9);
    // Online and without a commit: behind by nothing, as in Java.
    let labels = [r#"consumer_group="G""#, r#"topic="T""#];
    assert!(value(&page, "rocketmq_consumer_lag_messages", &labels).abs() < 1e-9);
}

/// The lag of groups whose members keep their own progress has been shown as all messages there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broadcasting_group_a_deleted_one_and_a_subscription_given_up_have_no_lag() {
    let broker = TestBroker::start().await;
    for topic in ["T", "U"] {
        broker.topic(topic, 1).await;
        broker.send(topic, "x").await;
    }
    for group in ["cast", "gone", "moved"] {
        broker.group(group).await;
        for topic in ["T", "U"] {
            broker.commit(group, (topic, 0), 0).await;
        }
    }
    broker.broadcast("me", "cast", &["T"]).await;
    broker.beat("me too", "moved", &["U"]).await;
    let delete = [("groupName", "gone"), ("cleanOffset", "false")];
    ok(broker
        .ask_with(code::DELETE_SUBSCRIPTIONGROUP, &delete)
        .await);
    let page = broker.metrics();
    for name in [
        "rocketmq_consumer_lag_messages",
        "rocketmq_consumer_lag_latency",
    ] {
        has_none(&page, name, r#"consumer_group="cast""#);
        has_none(&page, name, r#"consumer_group="gone""#);
        has_none(&page, name, r#"consumer_group="moved",topic="T""#);
    }
    let labels = [r#"consumer_group="moved",topic="U""#];
    assert!((value(&page, "rocketmq_consumer_lag_messages", &labels) - 1.0).abs() < 1e-9);
}

/// Retries are not shown as messages of users, as in Java.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_counted_by_group_and_first_topic() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker.send("T", "bad").await;
    let offset = broker.pull("G", ("T", 0), 0).await.offsets[0].to_string();
    ok(broker.send_back("G", &offset, "-1").await);
    broker.pull("G", ("%DLQ%G", 0), 0).await;
    let page = broker.metrics();
    let labels = [r#"consumer_group="G",topic="T",is_system="false""#];
    let found = value(&page, "rocketmq_send_to_dlq_messages_total", &labels);
    assert!((found - 1.0).abs() < 1e-9);
    for name in ["rocketmq_messages_in_total", "rocketmq_messages_out_total"] {
        has_none(&page, name, "%DLQ%");
    }
}

/// Exporters have shown a series twice, which Prometheus refuses, and counters that fell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_series_of_the_metrics_page_stands_there_twice_and_counters_only_rise() {
    let broker = TestBroker::start().await;
    broker.topic("T", 2).await;
    broker.group("G").await;
    broker.beat("client", "G", &["T"]).await;
    let scrape = || {
        let page = broker.metrics();
        let (mut series, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        for line in page.lines() {
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!(kinds.insert(name.to_owned(), kind.to_owned()), None);
            } else if !line.starts_with('#') {
                let (labels, value) = line.rsplit_once(' ').unwrap();
                let value: f64 = value.parse().unwrap();
                assert_eq!(series.insert(labels.to_owned(), value), None, "{line}");
            }
        }
        (series, kinds)
    };
    let rises = |name: &str| {
        let of = ["_bucket", "_sum", "_count"];
        let family = of.iter().find_map(|suffix| name.strip_suffix(suffix));
        (family.unwrap_or(name).to_owned(), family.is_some())
    };
    for queue in [0, 1] {
        ok(broker.send_to(("T", queue), "x", &[]).await);
        broker.pull("G", ("T", queue), 0).await;
        broker.commit("G", ("T", queue), 1).await;
    }
    let (before, kinds) = scrape();
    broker.send("T", "y").await;
    let (after, _) = scrape();
    for (labels, value) in before {
        let name = labels.split('{').next().unwrap();
        let (family, is_part) = rises(name);
        let kind = kinds.get(name).or_else(|| kinds.get(&family));
        let kind = kind.unwrap_or_else(|| panic!("no type of {name}"));
        if kind == "counter" || (kind == "histogram" && is_part) {
            assert!(after[&labels] >= value, "{labels}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_users_own_labels_stand_on_every_series() {
    let broker = TestBroker::start_with("metricsLabel=zone:a,team:pay").await;
    let page = broker.metrics();
    let mut series = page.lines().filter(|line| !line.starts_with('#'));
    let own = r#"node_id="b",zone="a",team="pay""#;
    assert!(series.by_ref().count() > 10);
    assert!(
        page.lines()
            .all(|line| line.starts_with('#') || line.contains(own))
    );
}
