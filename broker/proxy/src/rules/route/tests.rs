//! Routes of a NameServer as clients see them, and the queues that messages go to.

use super::*;
use crate::proto::v2::MessageType;

fn route() -> Route {
    let text = br#"{"brokerDatas":[
        {"brokerAddrs":{"0":"h:1","1":"h:2"},"brokerName":"b","cluster":"c"},
        {"brokerAddrs":{"0":"h:3"},"brokerName":"a","cluster":"c"},
        {"brokerAddrs":{"1":"h:4"},"brokerName":"orphan","cluster":"c"}],
        "filterServerTable":{},"queueDatas":[
        {"brokerName":"b","perm":6,"readQueueNums":3,"writeQueueNums":2},
        {"brokerName":"a","perm":6,"readQueueNums":1,"writeQueueNums":1},
        {"brokerName":"orphan","perm":6,"readQueueNums":1,"writeQueueNums":1},
        {"brokerName":"gone","perm":6,"readQueueNums":1,"writeQueueNums":1}]}"#;
    Route::new(TopicRouteData::from_json(text).unwrap())
}

fn topic() -> Resource {
    Resource {
        resource_namespace: String::new(),
        name: "t".into(),
    }
}

#[test]
fn every_queue_of_every_broker_is_told_with_the_gateways_address() {
    let endpoints = Endpoints::default();
    let told = route().message_queues(&topic(), TopicKind::parse(None), &endpoints);
    let shown: Vec<_> = told
        .iter()
        .map(|queue| {
            let broker = queue.broker.as_ref().unwrap();
            (
                broker.name.as_str(),
                broker.id,
                queue.id,
                queue.permission(),
            )
        })
        .collect();
    let (rw, r) = (Permission::ReadWrite, Permission::Read);
    assert_eq!(
        shown,
        [
            ("b", 0, 0, rw),
            ("b", 0, 1, rw),
            ("b", 0, 2, r),
            ("b", 1, 0, rw),
            ("b", 1, 1, rw),
            ("b", 1, 2, r),
            ("a", 0, 0, rw),
            ("orphan", 1, 0, rw),
        ]
    );
    assert_eq!(
        told[0].accept_message_types,
        [i32::from(MessageType::Normal)]
    );
}

#[test]
fn ordered_groups_are_assigned_queues_and_others_brokers_with_a_master() {
    let ids = |ordered| -> Vec<i32> {
        route()
            .assignments(&topic(), ordered, &Endpoints::default())
            .iter()
            .map(|one| one.message_queue.as_ref().unwrap().id)
            .collect()
    };
    assert_eq!(ids(false), [-1, -1]);
    assert_eq!(ids(true), [0, 1, 2, 0]);
}

#[test]
fn messages_go_round_all_brokers_and_queues_and_around_a_broken_broker() {
    let route = route();
    let names: Vec<_> = (0..4)
        .map(|turn| route.in_turn(turn, None).unwrap())
        .map(|place| (place.broker, place.queue))
        .collect();
    assert_eq!(names, [("a", 0), ("b", 0), ("a", 0), ("b", 1)]);
    assert_eq!(route.in_turn(0, Some("a")).unwrap().broker, "b");
    let only = Route::new(TopicRouteData {
        broker_datas: route.data.broker_datas[1..2].to_vec(),
        queue_datas: route.data.queue_datas[1..2].to_vec(),
        ..TopicRouteData::default()
    });
    assert_eq!(only.in_turn(7, Some("a")).unwrap().broker, "a");
    assert_eq!(Route::new(TopicRouteData::default()).in_turn(0, None), None);
}

/// As printed by `Hashing.consistentHash(input, buckets)` of Guava's documentation of its algorithm:
/// buckets only ever grow into the last one.
#[test]
fn a_message_group_moves_only_to_queues_that_are_new() {
    for input in [0_i64, 1, -1, 97, i64::from(i32::MIN), i64::from(i32::MAX)] {
        let mut last = 0;
        for buckets in 1..200 {
            let now = consistent_hash(input, buckets);
            assert!(now == last || now == buckets - 1, "{input} {buckets}");
            last = now;
        }
    }
}

#[test]
fn a_message_group_always_has_the_same_queue() {
    let route = route();
    for group in ["g", "", "主题", "a-long-message-group"] {
        let place = route.of_group(group).unwrap();
        assert_eq!(route.of_group(group), Some(place));
    }
    let used: std::collections::BTreeSet<_> = (0..100)
        .filter_map(|i| route.of_group(&format!("g{i}")))
        .map(|place| (place.broker.to_owned(), place.queue))
        .collect();
    assert_eq!(used.len(), 3);
}

#[test]
fn a_receive_goes_to_its_broker_or_to_another_that_can_be_read() {
    let route = route();
    assert_eq!(route.reader("a"), Some(("a", "h:3")));
    assert_eq!(route.reader("nobody"), Some(("b", "h:1")));
    assert_eq!(route.reader("orphan"), Some(("b", "h:1")));
    assert_eq!(Route::new(TopicRouteData::default()).reader("a"), None);
}

#[test]
fn absurd_numbers_of_queues_are_bounded_and_a_closed_topic_has_one_without_rights() {
    let queues = |perm, read| QueueData {
        perm,
        read_queue_nums: read,
        write_queue_nums: -5,
        ..QueueData::default()
    };
    assert_eq!(
        permissions(&queues(6, i32::MAX)).len(),
        limits::QUEUES_MAX as usize
    );
    assert_eq!(permissions(&queues(0, 8)), [(0, Permission::None)]);
}
