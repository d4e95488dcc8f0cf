//! Topics: 17, 18, 215, 351, 21, 305, 202.

use rmq_protocol::{
    body::{
        TopicConfig, TopicConfigAndQueueMapping, TopicConfigWrapper, TopicList, TopicStatsTable,
    },
    remoting::request_code as code,
};

use super::{TestBroker, ok, refused};

async fn shown(broker: &TestBroker, topic: &str) -> TopicConfigAndQueueMapping {
    let answer = ok(broker
        .ask_with(code::GET_TOPIC_CONFIG, &[("topic", topic)])
        .await);
    TopicConfigAndQueueMapping::from_json(&answer.body).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_created_topic_is_shown_as_asked_and_is_there_after_a_restart() {
    let mut broker = TestBroker::start().await;
    let topic = TopicConfig {
        read_queue_nums: 3,
        write_queue_nums: 2,
        order: true,
        ..TopicConfig::named("T")
    };
    ok(broker.put_topic(topic, Some("+message.type=FIFO")).await);
    broker.restart().await;
    let topic = shown(&broker, "T").await;
    assert_eq!(
        (topic.read_queue_nums, topic.write_queue_nums, topic.order),
        (3, 2, true)
    );
    assert_eq!(topic.attributes["message.type"], "FIFO");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn illegal_settings_are_refused_and_nothing_is_made() {
    let broker = TestBroker::start().await;
    let named = TopicConfig::named;
    for perm in [0, 1, 8, -1] {
        refused(
            &broker
                .put_topic(TopicConfig { perm, ..named("T") }, None)
                .await,
            29,
            "perm",
        );
    }
    for count in [-1, 100_000] {
        let topic = TopicConfig {
            read_queue_nums: count,
            ..named("T")
        };
        refused(&broker.put_topic(topic, None).await, 29, "readQueueNums");
    }
    let long = "t".repeat(128);
    for name in [
        "a b", "a.b", "主题", "", " ", "../x", "a+b", "%RETRY%", "%DLQ%", &long,
    ] {
        refused(&broker.put_topic(named(name), None).await, 29, "");
    }
    for name in [
        "TBW102",
        "SCHEDULE_TOPIC_XXXX",
        "rmq_sys_x",
        "b",
        "c",
        "c_REPLY_TOPIC",
    ] {
        refused(
            &broker.put_topic(named(name), None).await,
            29,
            "system topic",
        );
    }
    refused(
        &broker
            .ask_with(code::GET_TOPIC_CONFIG, &[("topic", "T")])
            .await,
        17,
        "T",
    );
    ok(broker.put_topic(named(&long[..127]), None).await);
    ok(broker
        .put_topic(
            TopicConfig {
                perm: 7,
                ..named("U")
            },
            None,
        )
        .await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attributes_stay_when_none_are_named_and_bad_ones_are_refused() {
    let broker = TestBroker::start().await;
    let topic = || TopicConfig::named("T");
    ok(broker.put_topic(topic(), Some("+message.type=FIFO")).await);
    ok(broker
        .put_topic(
            TopicConfig {
                read_queue_nums: 5,
                ..topic()
            },
            None,
        )
        .await);
    for bad in [
        "+message.type=BAD",
        "-missing",
        "+a=1,-a",
        "-reserve.time",
        "nonsense",
    ] {
        refused(&broker.put_topic(topic(), Some(bad)).await, 1, "");
    }
    refused(
        &broker.put_topic(topic(), Some("+message.type=MIXED")).await,
        29,
        "MIXED",
    );
    let topic = shown(&broker, "T").await;
    assert_eq!(topic.attributes["message.type"], "FIFO");
    assert_eq!(topic.read_queue_nums, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_begins_with_an_unchanged_topic_is_created_to_its_end() {
    let broker = TestBroker::start().await;
    ok(broker.put_topic(TopicConfig::named("old"), None).await);
    let body = r#"{"topicConfigList":[{"topicName":"old"},{"topicName":"new1","perm":6},
        {"topicName":"new2","attributes":{"+message.type":"DELAY"}}]}"#;
    ok(broker
        .ask_body(code::UPDATE_AND_CREATE_TOPIC_LIST, body)
        .await);
    shown(&broker, "new1").await;
    assert_eq!(
        shown(&broker, "new2").await.attributes["message.type"],
        "DELAY"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_with_one_illegal_topic_creates_none() {
    let broker = TestBroker::start().await;
    let body = r#"{"topicConfigList":[{"topicName":"new1"},{"topicName":"a b"}]}"#;
    refused(
        &broker
            .ask_body(code::UPDATE_AND_CREATE_TOPIC_LIST, body)
            .await,
        29,
        "a b",
    );
    refused(
        &broker
            .ask_with(code::GET_TOPIC_CONFIG, &[("topic", "new1")])
            .await,
        17,
        "new1",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_made_again_after_its_deletion_knows_nothing_of_the_old_one() {
    let broker = TestBroker::start().await;
    broker.group("G").await;
    broker.topic("T", 1).await;
    for body in ["1", "2", "3"] {
        broker.send("T", body).await;
    }
    broker.commit("G", ("T", 0), 3).await;
    ok(broker
        .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", "T")])
        .await);
    refused(&broker.pull("G", ("T", 0), 0).await.answer, 17, "T");
    ok(broker
        .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", "T")])
        .await);
    broker.topic("T", 1).await;
    broker.send("T", "new").await;
    let offset = [("consumerGroup", "G"), ("topic", "T"), ("queueId", "0")];
    assert_eq!(
        ok(broker.ask_with(14, &offset).await).ext.get("offset"),
        Some("0")
    );
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies, ["new"]);
}

/// Deleted topics have come back with the next start, or with somebody who looked at them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_topic_stays_gone_after_reads_of_it_and_a_restart() {
    let mut broker = TestBroker::start().await;
    broker.group("G").await;
    for topic in ["T", "other"] {
        broker.topic(topic, 1).await;
        broker.send(topic, "x").await;
    }
    broker.commit("G", ("T", 0), 1).await;
    broker.restart().await;
    assert!(broker.folder().join("consumequeue/T").exists());
    ok(broker
        .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", "T")])
        .await);
    for restarts in 0..2 {
        let queue = [("topic", "T"), ("queueId", "0")];
        refused(
            &broker.ask_with(code::GET_TOPIC_STATS_INFO, &queue).await,
            17,
            "T",
        );
        refused(&broker.pull("G", ("T", 0), 0).await.answer, 17, "T");
        for request in [code::GET_MAX_OFFSET, code::GET_MIN_OFFSET] {
            let answer = ok(broker.ask_with(request, &queue).await);
            assert_eq!(answer.ext.get("offset"), Some("0"));
        }
        refused(
            &broker.ask_with(code::GET_TOPIC_CONFIG, &queue).await,
            17,
            "T",
        );
        let all = ok(broker.ask(code::GET_ALL_TOPIC_CONFIG).await);
        let all = TopicConfigWrapper::from_json(&all.body).unwrap();
        assert!(all.topic_config_table.contains_key("other"));
        assert!(!all.topic_config_table.contains_key("T"));
        assert!(broker.folder().join("consumequeue/other").exists());
        assert!(!broker.folder().join("consumequeue/T").exists());
        let offsets = ok(broker.ask(code::GET_ALL_CONSUMER_OFFSET).await);
        assert!(!String::from_utf8_lossy(&offsets.body).contains("T@G"));
        if restarts == 0 {
            broker.restart().await;
        }
    }
    assert_eq!(broker.pull("G", ("other", 0), 0).await.bodies, ["x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_that_waits_is_answered_when_its_topic_is_deleted() {
    let broker = TestBroker::start().await;
    broker.group("G").await;
    broker.topic("T", 1).await;
    let waiting = broker.pull_for("G", ("T", 0), 0, 25_000);
    let deleting = async {
        while broker.runtime("pullThreadPoolQueueSize").await != "1" {}
        ok(broker
            .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", "T")])
            .await)
    };
    let (pulled, _) = tokio::join!(waiting, deleting);
    refused(&pulled.answer, 17, "T");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn system_topics_and_paths_are_not_deleted_and_pop_retry_topics_are() {
    let broker = TestBroker::start().await;
    for name in ["TBW102", "c", "b", "rmq_sys_wheel_timer"] {
        let answer = broker
            .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", name)])
            .await;
        refused(&answer, 29, "system topic");
    }
    for name in ["", " ", "../../etc", "a/b"] {
        refused(
            &broker
                .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", name)])
                .await,
            29,
            "",
        );
    }
    broker.group("G").await;
    broker.topic("T", 1).await;
    broker.topic("%RETRY%G_T", 1).await;
    broker.topic("%RETRY%G", 1).await;
    broker.commit("G", ("T", 0), 0).await;
    ok(broker
        .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", "T")])
        .await);
    refused(
        &broker
            .ask_with(code::GET_TOPIC_CONFIG, &[("topic", "%RETRY%G_T")])
            .await,
        17,
        "",
    );
    shown(&broker, "%RETRY%G").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_comes_whole_to_old_callers_and_in_pages_to_new_ones() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    let read = |answer: rmq_protocol::remoting::Command| {
        let total: usize = answer.ext.get("totalTopicNum").unwrap().parse().unwrap();
        (total, TopicConfigWrapper::from_json(&answer.body).unwrap())
    };
    let (total, all) = read(ok(broker.ask(code::GET_ALL_TOPIC_CONFIG).await));
    assert_eq!(total, all.topic_config_table.len());
    assert!(all.topic_config_table.contains_key("T"));
    let version = String::from_utf8(all.data_version.to_json()).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seq in (0..total).step_by(4) {
        let fields = [
            ("topicSeq", seq.to_string()),
            ("maxTopicNum", "4".to_owned()),
            ("dataVersion", version.clone()),
        ];
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let (_, page) = read(ok(broker
            .ask_with(code::GET_ALL_TOPIC_CONFIG, &fields)
            .await));
        assert!(page.topic_config_table.len() <= 4);
        seen.extend(page.topic_config_table.into_keys());
    }
    assert_eq!(seen.len(), total);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn system_topics_are_listed_and_an_empty_topic_has_zeros() {
    let broker = TestBroker::start().await;
    broker.topic("T", 2).await;
    let answer = ok(broker.ask(code::GET_SYSTEM_TOPIC_LIST_FROM_BROKER).await);
    let list = TopicList::from_json(&answer.body).unwrap().topic_list;
    assert!(list.contains("TBW102") && list.contains("c") && !list.contains("T"));
    let answer = ok(broker
        .ask_with(code::GET_TOPIC_STATS_INFO, &[("topic", "T")])
        .await);
    let stats = TopicStatsTable::from_json(&answer.body).unwrap();
    assert_eq!(stats.offset_table.len(), 2);
    assert!(
        stats
            .offset_table
            .values()
            .all(|queue| *queue == rmq_protocol::body::TopicOffset::default())
    );
    broker.send("T", "x").await;
    let answer = ok(broker
        .ask_with(code::GET_TOPIC_STATS_INFO, &[("topic", "T")])
        .await);
    let stats = TopicStatsTable::from_json(&answer.body).unwrap();
    let first = stats
        .offset_table
        .iter()
        .find(|(queue, _)| queue.queue_id == 0)
        .unwrap()
        .1;
    assert_eq!((first.min_offset, first.max_offset), (0, 1));
    assert!(first.last_update_timestamp > 0);
    refused(
        &broker
            .ask_with(code::GET_TOPIC_STATS_INFO, &[("topic", "none")])
            .await,
        17,
        "none",
    );
}
