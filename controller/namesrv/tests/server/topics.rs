//! Topics by name: lists, deleting, registering one.

use rmq_protocol::{
    body::{QueueData, TopicList, TopicRouteData},
    remoting::{Command, request_code as code},
};

use crate::rig::{Rig, body, registration, registration_of};

async fn list(rig: &Rig, request: Command) -> Vec<String> {
    let answer = rig.done(request).await;
    TopicList::from_json(&answer.body)
        .unwrap()
        .topic_list
        .into_iter()
        .collect()
}

fn of_cluster(cluster: &str) -> Command {
    Command::request(code::GET_TOPICS_BY_CLUSTER).with_ext("cluster", cluster)
}

#[tokio::test]
async fn lists_name_the_topics_they_are_about() {
    let rig = Rig::start();
    let mut flags = body(1, &["F0", "F1", "F2", "F3"]);
    for (at, topic) in (0..).zip(
        flags
            .topic_config_serialize_wrapper
            .topic_config_table
            .values_mut(),
    ) {
        topic.topic_sys_flag = at;
    }
    rig.done(registration("a", 0).with_body(flags.to_json()))
        .await;
    let all = Command::request(code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER);
    assert_eq!(list(&rig, all).await.len(), 4);
    assert_eq!(list(&rig, of_cluster("c")).await.len(), 4);
    assert!(list(&rig, of_cluster("nowhere")).await.is_empty());
    let by_flag = async |request| list(&rig, Command::request(request)).await;
    assert_eq!(by_flag(code::GET_UNIT_TOPIC_LIST).await, ["F1", "F3"]);
    assert_eq!(
        by_flag(code::GET_HAS_UNIT_SUB_TOPIC_LIST).await,
        ["F2", "F3"]
    );
    assert_eq!(
        by_flag(code::GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST).await,
        ["F2"]
    );
    let system = rig
        .done(Command::request(code::GET_SYSTEM_TOPIC_LIST_FROM_NS))
        .await;
    let system = TopicList::from_json(&system.body).unwrap();
    assert_eq!(
        system.topic_list.into_iter().collect::<Vec<_>>(),
        ["a", "c"]
    );
    assert_eq!(system.broker_addr.as_deref(), Some("a-0:10911"));
}

#[tokio::test]
async fn lists_that_are_switched_off_say_so() {
    let rig = Rig::with("enableAllTopicList=false\nenableTopicList=false");
    let requests = [
        Command::request(code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER),
        of_cluster("c"),
        Command::request(code::GET_UNIT_TOPIC_LIST),
        Command::request(code::GET_HAS_UNIT_SUB_TOPIC_LIST),
        Command::request(code::GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST),
    ];
    for request in requests {
        let answer = rig.call(request).await;
        assert_eq!(
            (answer.code, answer.remark.as_deref()),
            (1, Some("disable"))
        );
    }
}

#[tokio::test]
async fn a_deleted_topic_is_gone_in_one_cluster_or_everywhere() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    let delete =
        |topic: &str| Command::request(code::DELETE_TOPIC_IN_NAMESRV).with_ext("topic", topic);
    rig.done(delete("T").with_ext("clusterName", "other")).await;
    assert!(rig.route("T").await.is_some());
    rig.done(delete("T").with_ext("clusterName", "c")).await;
    assert!(rig.route("T").await.is_none());
    rig.done(delete("U").with_ext("clusterName", "")).await;
    rig.done(delete("never")).await;
    assert_eq!(rig.server.metrics().topics, 0);
    rig.done(registration("a", 0)).await;
    assert!(
        rig.route("T").await.is_some(),
        "a live broker brings it back"
    );
}

#[tokio::test]
async fn a_topic_missing_in_a_complete_table_leaves_that_broker() {
    for (option, field) in [
        ("deleteTopicWithBrokerRegistration=true", "x"),
        ("", "topicTableComplete"),
    ] {
        let rig = Rig::with(option);
        rig.done(registration("a", 0)).await;
        rig.done(registration("b", 0)).await;
        rig.done(registration_of("a", 0, 2, &["T"]).with_ext(field, "true"))
            .await;
        let route = rig.route("U").await.unwrap();
        let brokers: Vec<_> = route
            .queue_datas
            .iter()
            .map(|one| one.broker_name.as_str())
            .collect();
        assert_eq!(brokers, ["b"]);
    }
}

#[tokio::test]
async fn a_topic_is_registered_for_brokers_that_are_there() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    let register = |topic: &str, broker: &str, queues: i32| {
        let data = QueueData {
            broker_name: broker.to_owned(),
            perm: 6,
            read_queue_nums: queues,
            topic_sys_flag: 0,
            write_queue_nums: queues,
        };
        let route = TopicRouteData {
            queue_datas: vec![data],
            ..TopicRouteData::default()
        };
        Command::request(code::REGISTER_TOPIC_IN_NAMESRV)
            .with_ext("topic", topic)
            .with_body(route.to_json())
    };
    rig.done(register("New", "a", 0)).await;
    assert_eq!(
        rig.route("New").await.unwrap().queue_datas[0].write_queue_nums,
        0
    );
    for bad in [
        register("Half", "ghost", 4),
        register("Half", "a", -4),
        register("a/b", "a", 4),
    ] {
        assert_eq!(rig.call(bad).await.code, 1);
    }
    assert!(rig.route("Half").await.is_none());
}
