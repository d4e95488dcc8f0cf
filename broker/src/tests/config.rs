//! Configuration over the wire: 25 and 26.

use rmq_protocol::{
    body::{DataVersion, TopicConfigWrapper},
    java_properties,
    remoting::request_code as code,
};

use super::{TestBroker, ok, refused};

async fn value(broker: &TestBroker, key: &str) -> String {
    let answer = ok(broker.ask(code::GET_BROKER_CONFIG).await);
    java_properties::parse_map(&answer.body)
        .unwrap()
        .remove(key)
        .unwrap()
}

async fn version(broker: &TestBroker) -> DataVersion {
    let answer = ok(broker.ask(code::GET_BROKER_CONFIG).await);
    DataVersion::from_json(answer.ext.get("version").unwrap().as_bytes()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_counts_at_once_and_after_a_restart() {
    let mut broker = TestBroker::start().await;
    let before = version(&broker).await;
    ok(broker
        .ask_body(code::UPDATE_BROKER_CONFIG, "autoCreateTopicEnable=false\n")
        .await);
    ok(broker
        .ask_body(code::UPDATE_BROKER_CONFIG, "defaultQueryMaxNum=7\n")
        .await);
    assert_eq!(version(&broker).await.counter, before.counter + 2);
    refused(&broker.send_to(("new", 0), "x", &[]).await, 17, "new");
    broker.restart().await;
    assert_eq!(value(&broker, "autoCreateTopicEnable").await, "false");
    assert_eq!(value(&broker, "defaultQueryMaxNum").await, "7");
    ok(broker
        .ask_body(code::UPDATE_BROKER_CONFIG, "defaultQueryMaxNum=8\n")
        .await);
    broker.restart().await;
    assert_eq!(value(&broker, "autoCreateTopicEnable").await, "false");
    assert_eq!(value(&broker, "defaultQueryMaxNum").await, "8");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_changed_keys_are_kept_beside_the_users_own_file() {
    let broker = TestBroker::start().await;
    ok(broker
        .ask_body(code::UPDATE_BROKER_CONFIG, "traceOn=false")
        .await);
    let path = broker.folder().join("config/broker-overrides.properties");
    let text = std::fs::read(path).unwrap();
    let kept = java_properties::parse_map(&text).unwrap();
    assert_eq!(
        kept.into_iter().collect::<Vec<_>>(),
        [("traceOn".to_owned(), "false".to_owned())]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_changes_are_refused_whole_and_the_broker_still_starts() {
    let mut broker = TestBroker::start().await;
    let huge = format!("regionId={}", "x".repeat(1 << 20));
    for bad in [
        "traceOn=false\nmaxMessageSize=-1",
        "traceOn=false\nnoSuchKey=1",
        "traceOn=false\ndeleteWhen=25",
        "traceOn=false\nnamesrvAddr=host",
        "traceOn=false\nautoCreateTopicEnable=perhaps",
        "",
        "\n\n",
    ] {
        refused(
            &broker.ask_body(code::UPDATE_BROKER_CONFIG, bad).await,
            1,
            "",
        );
    }
    for bad in [
        "traceOn=false\nlistenPort=abc",
        "traceOn=false\nflushDiskType=FOO",
        &huge,
        "traceOn=false\nstorePathRootDir=/tmp/x",
        "traceOn=false\nrocketmqHome=/x",
        "traceOn=false\nconfigBlackList=",
        "traceOn=false\nbrokerConfigPath=/x",
    ] {
        refused(
            &broker
                .ask_body(code::UPDATE_BROKER_CONFIG, bad.to_owned())
                .await,
            16,
            "",
        );
    }
    let binary = broker
        .ask_body(code::UPDATE_BROKER_CONFIG, vec![0xff, 0xfe, b'=', 0])
        .await;
    refused(&binary, 1, "UTF-8");
    assert_eq!(value(&broker, "traceOn").await, "true");
    broker.restart().await;
    assert_eq!(value(&broker, "traceOn").await, "true");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_misspelt_key_is_refused_with_the_nearest_one() {
    let broker = TestBroker::start().await;
    let answer = broker
        .ask_body(code::UPDATE_BROKER_CONFIG, "autoCreateTopicEnabled=true")
        .await;
    refused(&answer, 1, "autoCreateTopicEnable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_of_the_store_count_from_the_next_message_on() {
    let broker = TestBroker::start_with("maxMessageSize=100").await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    let set = async |text: &'static str| {
        let answer = ok(broker.ask_body(code::UPDATE_BROKER_CONFIG, text).await);
        assert_eq!(answer.remark, None);
    };
    let long = "x".repeat(200);
    refused(&broker.send_to(("T", 0), &long, &[]).await, 13, "100");
    set("maxMessageSize=200").await;
    broker.send("T", &long).await;
    broker.send("T", "short").await;
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies.len(), 2);
    set("maxTransferCountOnMessageInMemory=1").await;
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies.len(), 1);
    set("fileReservedTime=1\ndeleteWhen=01;02\nflushIntervalCommitLog=10").await;
    assert_eq!(value(&broker, "deleteWhen").await, "01;02");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_pulls_wait_than_the_settings_say_now() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    let set = async |text: &'static str| {
        ok(broker.ask_body(code::UPDATE_BROKER_CONFIG, text).await);
    };
    set("pullThreadPoolQueueCapacity=1").await;
    let waiting = broker.pull_for("G", ("T", 0), 0, 25_000);
    let second = async {
        while broker.runtime("pullThreadPoolQueueSize").await != "1" {}
        let refused = broker.pull_for("G", ("T", 0), 0, 25_000).await;
        broker.send("T", "now").await;
        refused
    };
    let (first, second) = tokio::join!(waiting, second);
    assert_eq!((first.bodies, second.answer.code), (vec!["now".into()], 19));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taking_the_read_permission_stops_pulls_and_steps_the_topics_version() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker.send("T", "x").await;
    let topics = async || {
        let answer = ok(broker.ask(code::GET_ALL_TOPIC_CONFIG).await);
        TopicConfigWrapper::from_json(&answer.body)
            .unwrap()
            .data_version
    };
    let before = topics().await;
    ok(broker
        .ask_body(code::UPDATE_BROKER_CONFIG, "brokerPermission=2")
        .await);
    assert!(topics().await.compare(&before).is_gt());
    let pulled = broker.pull("G", ("T", 0), 0).await;
    assert_eq!(
        (pulled.answer.code, pulled.answer.ext.get("forbiddenType")),
        (16, Some("1"))
    );
    ok(broker
        .ask_body(code::UPDATE_BROKER_CONFIG, "brokerPermission=6")
        .await);
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies, ["x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_was_left_open_is_shown_as_the_one_in_use() {
    let broker = TestBroker::start().await;
    let port = broker.address().rsplit(':').next().unwrap().to_owned();
    assert_eq!(value(&broker, "listenPort").await, port);
}
