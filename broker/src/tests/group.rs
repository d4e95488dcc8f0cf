//! Subscription groups: 200, 225, 352, 201, 207, 353.

use rmq_protocol::{
    body::{ConsumerOffsets, GroupForbidden, SubscriptionGroupConfig, SubscriptionGroupWrapper},
    header::PULL_SUBSCRIPTION,
    remoting::request_code as code,
};

use super::{TestBroker, ok, pull_header, refused};

async fn table(broker: &TestBroker) -> SubscriptionGroupWrapper {
    let answer = ok(broker.ask(code::GET_ALL_SUBSCRIPTIONGROUP_CONFIG).await);
    let table = SubscriptionGroupWrapper::from_json(&answer.body).unwrap();
    let total: usize = answer.ext.get("totalGroupNum").unwrap().parse().unwrap();
    assert_eq!(total, table.subscription_group_table.len());
    table
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_shown_as_it_was_set_and_is_there_after_a_restart() {
    let mut broker = TestBroker::start().await;
    let body = r#"{"groupName":"G","retryMaxTimes":3,"consumeBroadcastEnable":false}"#;
    ok(broker
        .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body)
        .await);
    broker.restart().await;
    let answer = ok(broker
        .ask_with(code::GET_SUBSCRIPTIONGROUP_CONFIG, &[("group", "G")])
        .await);
    let group = SubscriptionGroupConfig::from_json(&answer.body).unwrap();
    assert_eq!(
        (group.retry_max_times, group.consume_broadcast_enable),
        (3, false)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looking_at_a_group_does_not_make_it() {
    let broker = TestBroker::start().await;
    let answer = broker
        .ask_with(code::GET_SUBSCRIPTIONGROUP_CONFIG, &[("group", "none")])
        .await;
    refused(&answer, 26, "none");
    assert!(
        !table(&broker)
            .await
            .subscription_group_table
            .contains_key("none")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn illegal_groups_are_refused_and_a_list_with_one_makes_none() {
    let broker = TestBroker::start().await;
    let long = "g".repeat(121);
    for name in ["", " ", "a b", "a.b", "组", &long] {
        let body = format!(r#"{{"groupName":"{name}"}}"#);
        let answer = broker
            .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body)
            .await;
        refused(&answer, 29, "group");
    }
    let body = r#"{"groupName":"G","retryQueueNums":2000000000}"#;
    let answer = broker
        .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body)
        .await;
    refused(&answer, 29, "retryQueueNums");
    let body = r#"{"groupConfigList":[{"groupName":"G1"},{"groupName":"a b"}]}"#;
    let answer = broker
        .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body)
        .await;
    refused(&answer, 29, "a b");
    assert!(
        !table(&broker)
            .await
            .subscription_group_table
            .contains_key("G1")
    );
    let body = r#"{"groupConfigList":[{"groupName":"G1"},{"groupName":"G2"}]}"#;
    ok(broker
        .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body)
        .await);
    let table = table(&broker).await.subscription_group_table;
    assert!(table.contains_key("G1") && table.contains_key("G2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_may_not_consume_gets_nothing() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    let body = r#"{"groupName":"G","consumeEnable":false}"#;
    ok(broker
        .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body)
        .await);
    let pulled = broker.pull("G", ("T", 0), 0).await;
    refused(&pulled.answer, 16, "G");
    assert_eq!(pulled.answer.ext.get("forbiddenType"), Some("2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_may_not_broadcast_gets_nothing_while_its_members_do() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.send("T", "x").await;
    let body = r#"{"groupName":"G","consumeBroadcastEnable":false}"#;
    ok(broker
        .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body)
        .await);
    let mut header = pull_header("G", ("T", 0), 0);
    header.sys_flag &= !PULL_SUBSCRIPTION;
    header.subscription = None;
    broker.broadcast("me", "G", &["T"]).await;
    let pulled = broker.pull_as(&header).await;
    refused(&pulled.answer, 16, "broadcast");
    assert_eq!(pulled.answer.ext.get("forbiddenType"), Some("4"));
    broker.beat("me", "G", &["T"]).await;
    assert_eq!(broker.pull_as(&header).await.bodies, ["x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_forbidden_to_a_group_is_not_read_until_it_is_allowed_again() {
    let mut broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker.group("H").await;
    broker.send("T", "x").await;
    let set = |readable| [("group", "G"), ("topic", "T"), ("readable", readable)];
    let answer = ok(broker
        .ask_with(code::UPDATE_AND_GET_GROUP_FORBIDDEN, &set("false"))
        .await);
    assert_eq!(
        GroupForbidden::from_json(&answer.body).unwrap().readable,
        Some(false)
    );
    broker.restart().await;
    // Where a Java broker on this folder would find it.
    let text = std::fs::read(broker.folder().join("config/subscriptionGroup.json")).unwrap();
    let file = SubscriptionGroupWrapper::from_json(&text).unwrap();
    assert_eq!(file.forbidden_table["G"]["T"], 4);
    assert!(file.subscription_group_table.contains_key("H"));
    let pulled = broker.pull("G", ("T", 0), 0).await;
    assert_eq!(
        (pulled.answer.code, pulled.answer.ext.get("forbiddenType")),
        (16, Some("5"))
    );
    assert_eq!(broker.pull("H", ("T", 0), 0).await.bodies, ["x"]);
    assert_eq!(table(&broker).await.forbidden_table["G"]["T"], 4);
    let ask = [("group", "G"), ("topic", "T")];
    let answer = ok(broker
        .ask_with(code::UPDATE_AND_GET_GROUP_FORBIDDEN, &ask)
        .await);
    assert_eq!(
        GroupForbidden::from_json(&answer.body).unwrap().readable,
        Some(false)
    );
    ok(broker
        .ask_with(code::UPDATE_AND_GET_GROUP_FORBIDDEN, &set("true"))
        .await);
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies, ["x"]);
    let unknown = [("group", "none"), ("topic", "T"), ("readable", "false")];
    refused(
        &broker
            .ask_with(code::UPDATE_AND_GET_GROUP_FORBIDDEN, &unknown)
            .await,
        26,
        "none",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_group_leaves_no_settings_offsets_or_counters() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker.send("T", "x").await;
    broker.pull("G", ("T", 0), 0).await;
    broker.commit("G", ("T", 0), 1).await;
    let stats = [("statsName", "GROUP_GET_NUMS"), ("statsKey", "T@G")];
    ok(broker.ask_with(code::VIEW_BROKER_STATS_DATA, &stats).await);
    let delete = [("groupName", "G"), ("cleanOffset", "true")];
    ok(broker
        .ask_with(code::DELETE_SUBSCRIPTIONGROUP, &delete)
        .await);
    assert!(
        !table(&broker)
            .await
            .subscription_group_table
            .contains_key("G")
    );
    let answer = ok(broker.ask(code::GET_ALL_CONSUMER_OFFSET).await);
    let offsets = ConsumerOffsets::from_json(&answer.body).unwrap();
    assert!(!offsets.offset_table.contains_key("T@G"));
    refused(
        &broker.ask_with(code::VIEW_BROKER_STATS_DATA, &stats).await,
        1,
        "not exist",
    );
    ok(broker
        .ask_with(code::DELETE_SUBSCRIPTIONGROUP, &delete)
        .await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_deleted_without_cleaning_keeps_its_offsets() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker.commit("G", ("T", 0), 1).await;
    ok(broker
        .ask_with(code::DELETE_SUBSCRIPTIONGROUP, &[("groupName", "G")])
        .await);
    let answer = ok(broker.ask(code::GET_ALL_CONSUMER_OFFSET).await);
    let offsets = ConsumerOffsets::from_json(&answer.body).unwrap();
    assert_eq!(offsets.offset_table["T@G"][&0], 1);
}
