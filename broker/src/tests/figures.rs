//! Figures and sessions: 28, 315, 203, 204, 328, and clean-up requests 306, 316, 329, 37, 370.

use rmq_protocol::{
    body::{BrokerStatsData, ConsumerConnection, KvTable, ProducerConnection, ProducerTable},
    remoting::request_code as code,
};

use super::{TestBroker, ok, refused};

/// Keys that `clusterList`, `brokerStatus`, `exportMetrics` and the dashboard read.
const KEYS: [&str; 30] = [
    "brokerVersionDesc",
    "brokerVersion",
    "putTps",
    "getTransferredTps",
    "getTotalTps",
    "getFoundTps",
    "getMissTps",
    "msgPutTotalTodayNow",
    "msgPutTotalTodayMorning",
    "msgPutTotalYesterdayMorning",
    "msgGetTotalTodayNow",
    "msgGetTotalTodayMorning",
    "msgGetTotalYesterdayMorning",
    "commitLogDiskRatio",
    "consumeQueueDiskRatio",
    "commitLogMinOffset",
    "commitLogMaxOffset",
    "commitLogDirCapacity",
    "earliestMessageTimeStamp",
    "sendThreadPoolQueueSize",
    "sendThreadPoolQueueCapacity",
    "pullThreadPoolQueueSize",
    "sendThreadPoolQueueHeadWaitTimeMills",
    "pageCacheLockTimeMills",
    "remainHowManyDataToFlush",
    "dispatchBehindBytes",
    "bootTimestamp",
    "runtime",
    "putMessageTimesTotal",
    "timerReadBehind",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_runtime_table_has_what_the_tools_read() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.send("T", "hello").await;
    let answer = ok(broker.ask(code::GET_BROKER_RUNTIME_INFO).await);
    let table = KvTable::from_json(&answer.body).unwrap().table;
    for key in KEYS {
        assert!(table.contains_key(key), "{key}");
    }
    for key in [
        "putTps",
        "getTotalTps",
        "getFoundTps",
        "getMissTps",
        "getTransferredTps",
    ] {
        let numbers: Vec<f64> = table[key]
            .split(' ')
            .map(|text| text.parse().unwrap())
            .collect();
        assert_eq!(numbers.len(), 3, "{key}");
    }
    assert_eq!(table["putMessageTimesTotal"], "1");
    assert_eq!(table["msgPutTotalTodayNow"], "1");
    assert_eq!(table["brokerVersionDesc"], "V5_5_0");
    assert_eq!(table["brokerVersion"], "513");
    assert!(table["commitLogMaxOffset"].parse::<u64>().unwrap() > 0);
    assert!(table["earliestMessageTimeStamp"].parse::<i64>().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_is_shown_in_three_windows_and_an_unknown_one_is_refused() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.send("T", "hello").await;
    let fields = [("statsName", "TOPIC_PUT_NUMS"), ("statsKey", "T")];
    let answer = ok(broker.ask_with(code::VIEW_BROKER_STATS_DATA, &fields).await);
    BrokerStatsData::from_json(&answer.body).unwrap();
    for (name, key) in [("NOPE", "T"), ("TOPIC_PUT_NUMS", "none")] {
        let fields = [("statsName", name), ("statsKey", key)];
        refused(
            &broker.ask_with(code::VIEW_BROKER_STATS_DATA, &fields).await,
            1,
            "not exist",
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_a_group_are_listed_while_they_are_online() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    let group = [("consumerGroup", "G")];
    refused(
        &broker
            .ask_with(code::GET_CONSUMER_CONNECTION_LIST, &group)
            .await,
        206,
        "G",
    );
    broker.beat("me", "G", &["T"]).await;
    let answer = ok(broker
        .ask_with(code::GET_CONSUMER_CONNECTION_LIST, &group)
        .await);
    let members = ConsumerConnection::from_json(&answer.body).unwrap();
    assert_eq!(members.connection_set.len(), 1);
    assert_eq!(members.connection_set[0].client_id, "me");
    assert!(
        members.connection_set[0]
            .client_addr
            .starts_with("127.0.0.1:")
    );
    assert_eq!(members.subscription_table["T"].sub_string, "*");
    let producers = [("producerGroup", "p")];
    let answer = ok(broker
        .ask_with(code::GET_PRODUCER_CONNECTION_LIST, &producers)
        .await);
    assert_eq!(
        ProducerConnection::from_json(&answer.body)
            .unwrap()
            .connection_set
            .len(),
        1
    );
    let answer = ok(broker.ask(code::GET_ALL_PRODUCER_INFO).await);
    assert_eq!(
        ProducerTable::from_json(&answer.body).unwrap().data["p"][0].client_id,
        "me"
    );
    let none = [("producerGroup", "none")];
    refused(
        &broker
            .ask_with(code::GET_PRODUCER_CONNECTION_LIST, &none)
            .await,
        1,
        "none",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn enum_fields_of_a_heartbeat_may_be_numbers() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    let body = r#"{"clientID":"me","consumerDataSet":[{"groupName":"G","consumeType":1,
        "messageModel":1,"consumeFromWhere":0,"subscriptionDataSet":[{"topic":"T","subString":"*"}]}],
        "producerDataSet":[]}"#;
    ok(broker.ask_body(code::HEART_BEAT, body).await);
    ok(broker
        .ask_with(
            code::GET_CONSUMER_CONNECTION_LIST,
            &[("consumerGroup", "G")],
        )
        .await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clean_up_leaves_known_topics_alone() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker.send("T", "x").await;
    for request in [
        code::CLEAN_UNUSED_TOPIC,
        code::DELETE_EXPIRED_COMMITLOG,
        code::CLEAN_EXPIRED_CONSUMEQUEUE,
    ] {
        ok(broker.ask(request).await);
    }
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies, ["x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_not_served_yet_say_so() {
    let broker = TestBroker::start().await;
    let end = [
        ("producerGroup", "p"),
        ("tranStateTableOffset", "0"),
        ("commitLogOffset", "0"),
        ("commitOrRollback", "8"),
        ("msgId", "x"),
    ];
    refused(
        &broker.ask_with(code::END_TRANSACTION, &end).await,
        1,
        "not supported yet",
    );
    let recall = [("topic", "T"), ("recallHandle", "x")];
    refused(
        &broker.ask_with(code::RECALL_MESSAGE, &recall).await,
        16,
        "recall",
    );
    refused(&broker.ask(301).await, 3, "301 not supported");
}
