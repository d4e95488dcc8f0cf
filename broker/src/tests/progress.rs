//! Progress: 208, 317, 303, 308, 43, 45, 300, 343, 345, 402.

use rmq_protocol::{
    body::{
        ConsumeStats, ConsumeStatsList, ConsumeTimeSpan, ConsumerOffsets, CorrectionOffsets,
        DelayOffsets, GroupList, MessageRequestModes, QuerySubscriptionResponse, TopicList,
    },
    remoting::request_code as code,
};

use super::{TestBroker, ok, refused};

async fn stats_of(broker: &TestBroker, fields: &[(&'static str, &str)]) -> ConsumeStats {
    let answer = ok(broker.ask_with(code::GET_CONSUME_STATS, fields).await);
    ConsumeStats::from_json(&answer.body).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_groups_progress_names_every_queue_of_its_topics() {
    let broker = TestBroker::with_backlog().await;
    broker.topic("%RETRY%G", 1).await;
    broker.commit("G", ("%RETRY%G", 0), 0).await;
    let stats = stats_of(&broker, &[("consumerGroup", "G")]).await;
    assert_eq!(stats.offset_table.len(), 3);
    let (_, first) = stats
        .offset_table
        .iter()
        .find(|(queue, _)| queue.topic == "T" && queue.queue_id == 0)
        .unwrap();
    assert_eq!((first.broker_offset, first.consumer_offset), (3, 1));
    assert!(first.last_timestamp > 0);
    let one = [("consumerGroup", "G"), ("topic", "T")];
    assert_eq!(stats_of(&broker, &one).await.offset_table.len(), 2);
    let list = [("consumerGroup", "G"), ("topicList", "%RETRY%G;none;")];
    assert_eq!(stats_of(&broker, &list).await.offset_table.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_never_consumed_has_an_empty_table() {
    let broker = TestBroker::with_backlog().await;
    let stats = stats_of(&broker, &[("consumerGroup", "none")]).await;
    assert!(stats.offset_table.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_that_an_online_group_left_are_not_counted() {
    let broker = TestBroker::with_backlog().await;
    broker.topic("U", 1).await;
    broker.beat("me", "G", &["U"]).await;
    let stats = stats_of(&broker, &[("consumerGroup", "G")]).await;
    assert!(stats.offset_table.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lag_of_all_groups_is_summed() {
    let broker = TestBroker::with_backlog().await;
    let answer = ok(broker
        .ask_with(code::GET_BROKER_CONSUME_STATS, &[("isOrder", "false")])
        .await);
    let list = ConsumeStatsList::from_json(&answer.body).unwrap();
    assert_eq!(list.broker_addr, broker.address());
    assert_eq!(list.total_diff, 2);
    assert!(
        list.consume_stats_list
            .iter()
            .any(|groups| groups.contains_key("G"))
    );
    let answer = ok(broker
        .ask_with(code::GET_BROKER_CONSUME_STATS, &[("isOrder", "true")])
        .await);
    assert_eq!(
        ConsumeStatsList::from_json(&answer.body)
            .unwrap()
            .total_diff,
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_of_consumption_are_shown_per_queue() {
    let broker = TestBroker::with_backlog().await;
    let fields = [("topic", "T"), ("group", "G")];
    let answer = ok(broker
        .ask_with(code::QUERY_CONSUME_TIME_SPAN, &fields)
        .await);
    let spans = ConsumeTimeSpan::from_json(&answer.body)
        .unwrap()
        .consume_time_span_set;
    assert_eq!(spans.len(), 2);
    let (full, empty) = (&spans[0], &spans[1]);
    assert!(full.min_time_stamp > 0 && full.max_time_stamp >= full.min_time_stamp);
    assert!(full.consume_time_stamp > 0 && full.delay_time >= 0);
    assert_eq!(
        (empty.min_time_stamp, empty.max_time_stamp, empty.delay_time),
        (-1, -1, 0)
    );
    let none = [("topic", "none"), ("group", "G")];
    refused(
        &broker.ask_with(code::QUERY_CONSUME_TIME_SPAN, &none).await,
        17,
        "none",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrections_give_the_least_offset_and_leave_groups_out_without_deleting_them() {
    let broker = TestBroker::with_backlog().await;
    broker.group("H").await;
    broker.commit("H", ("T", 0), 3).await;
    let least = async |left_out, compare| {
        let fields = [
            ("topic", "T"),
            ("compareGroup", compare),
            ("filterGroups", left_out),
        ];
        let answer = ok(broker
            .ask_with(code::QUERY_CORRECTION_OFFSET, &fields)
            .await);
        CorrectionOffsets::from_json(&answer.body)
            .unwrap()
            .correction_offsets
            .get(&0)
            .copied()
    };
    assert_eq!(least("", "none").await, Some(1));
    assert_eq!(least("G", "none").await, Some(3));
    assert_eq!(least("G", "G").await, Some(i64::MAX));
    let answer = ok(broker.ask(code::GET_ALL_CONSUMER_OFFSET).await);
    assert!(
        ConsumerOffsets::from_json(&answer.body)
            .unwrap()
            .offset_table
            .contains_key("T@G")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_tables_are_given_to_replicas_and_tools() {
    let broker = TestBroker::with_backlog().await;
    let answer = ok(broker.ask(code::GET_ALL_CONSUMER_OFFSET).await);
    let offsets = ConsumerOffsets::from_json(&answer.body).unwrap();
    assert_eq!(offsets.offset_table["T@G"][&0], 1);
    let answer = ok(broker.ask(code::GET_ALL_DELAY_OFFSET).await);
    DelayOffsets::from_json(&answer.body).unwrap();
    let answer = ok(broker.ask(code::GET_ALL_MESSAGE_REQUEST_MODE).await);
    MessageRequestModes::from_json(&answer.body).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_what_is_known_from_sessions_and_offsets() {
    let broker = TestBroker::with_backlog().await;
    broker.topic("U", 1).await;
    broker.beat("me", "online", &["T"]).await;
    let answer = ok(broker
        .ask_with(code::QUERY_TOPIC_CONSUME_BY_WHO, &[("topic", "T")])
        .await);
    let groups = GroupList::from_json(&answer.body).unwrap().group_list;
    assert_eq!(groups.into_iter().collect::<Vec<_>>(), ["G", "online"]);
    let answer = ok(broker
        .ask_with(code::QUERY_TOPICS_BY_CONSUMER, &[("group", "G")])
        .await);
    let topics = TopicList::from_json(&answer.body).unwrap();
    assert_eq!(topics.topic_list.into_iter().collect::<Vec<_>>(), ["T"]);
    assert_eq!(topics.broker_addr.as_deref(), Some(broker.address()));
    for (topic, known) in [("T", true), ("U", false)] {
        let fields = [("group", "online"), ("topic", topic)];
        let answer = ok(broker
            .ask_with(code::QUERY_SUBSCRIPTION_BY_CONSUMER, &fields)
            .await);
        let body = QuerySubscriptionResponse::from_json(&answer.body).unwrap();
        assert_eq!(body.subscription_data.is_some(), known);
    }
}
