//! What routes show beyond addresses: acting masters, zones, ordered topics, both JSON flavours.

use super::*;

fn acting(id: u64) -> Registration {
    let mut registration = broker("a", id);
    registration.acting_master = Some(true);
    registration
}

fn supporting() -> RouteTable {
    RouteTable::new(Policy {
        support_acting_master: true,
        ..Policy::default()
    })
}

#[test]
fn the_smallest_replica_stands_in_for_a_missing_master() {
    let mut table = supporting();
    accepted(&mut table, acting(2));
    accepted(&mut table, acting(1));
    let expected = [(0, "a-1:10911".to_owned()), (2, "a-2:10911".to_owned())];
    assert_eq!(addresses(&table, "T", "a"), expected);
    accepted(&mut table, acting(0));
    assert_eq!(addresses(&table, "T", "a").len(), 3);
}

#[test]
fn nobody_stands_in_without_the_policy_the_groups_word_or_where_it_is_writable() {
    let id_of_first = |table: &RouteTable, topic: &str| addresses(table, topic, "a")[0].0;

    let mut table = RouteTable::default();
    accepted(&mut table, acting(1));
    assert_eq!(id_of_first(&table, "T"), 1, "policy off");

    let mut table = supporting();
    let mut registration = broker("a", 1);
    registration.acting_master = Some(false);
    accepted(&mut table, registration);
    assert_eq!(id_of_first(&table, "T"), 1, "group says no");

    let mut table = supporting();
    accepted(&mut table, acting(1));
    table.add_write_perm("a");
    assert_eq!(id_of_first(&table, "T"), 1, "writable");

    let mut table = supporting();
    let mut registration = acting(1);
    registration
        .topics
        .push(topic("rmq_sys_SYNC_BROKER_MEMBER_a"));
    accepted(&mut table, registration);
    assert_eq!(
        id_of_first(&table, "rmq_sys_SYNC_BROKER_MEMBER_a"),
        1,
        "member topic"
    );
}

#[test]
fn a_zone_sees_its_own_groups_and_those_without_a_master() {
    let mut table = RouteTable::default();
    for (name, id, zone) in [
        ("near", 0, Some("Z1")),
        ("far", 0, Some("z2")),
        ("none", 0, None),
        ("orphan", 1, Some("z2")),
    ] {
        let mut registration = broker(name, id);
        registration.zone = zone.map(str::to_owned);
        registration.acting_master = Some(false);
        registration.filter_servers = Some(vec![format!("filter-{name}:1")]);
        accepted(&mut table, registration);
    }
    let route = table.route_in_zone("T", "z1", None).unwrap();
    let names = |route: &TopicRouteData| -> Vec<String> {
        route
            .broker_datas
            .iter()
            .map(|data| data.broker_name.clone())
            .collect()
    };
    assert_eq!(names(&route), ["near", "orphan"]);
    let queues: Vec<_> = route
        .queue_datas
        .iter()
        .map(|one| one.broker_name.as_str())
        .collect();
    assert_eq!(queues, ["near", "orphan"]);
    assert_eq!(route.filter_server_table.len(), 2);
}

#[test]
fn both_flavours_are_kept_and_rebuilt_after_any_change_they_show() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    for flavour in [Flavour::Standard, Flavour::Legacy] {
        assert!(table.prepared("T", flavour).is_none());
        let answer = table.answer("T", flavour, None).unwrap();
        assert_eq!(table.prepared("T", flavour), Some(&answer[..]));
    }
    let standard = table.answer("T", Flavour::Standard, None).unwrap();
    assert!(standard.windows(4).any(|part| part == b"\"0\":"));
    let legacy = table.answer("T", Flavour::Legacy, None).unwrap();
    assert!(legacy.windows(4).any(|part| part == b"{0:\""));

    accepted(&mut table, broker("a", 0));
    assert!(
        table.prepared("T", Flavour::Standard).is_some(),
        "nothing changed"
    );
    table.wipe_write_perm("a");
    assert!(
        table.prepared("T", Flavour::Standard).is_none(),
        "its own queues"
    );
    table.answer("T", Flavour::Standard, None).unwrap();
    accepted(&mut table, broker("a", 1));
    assert!(
        table.prepared("T", Flavour::Standard).is_none(),
        "a new member"
    );
    table.answer("T", Flavour::Standard, None).unwrap();
    table.forget_answers();
    assert!(table.prepared("T", Flavour::Standard).is_none(), "told to");
}

#[test]
fn an_ordered_topic_shows_its_configuration() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    let answer = table.answer("T", Flavour::Standard, Some("a:8")).unwrap();
    let text = String::from_utf8(answer.to_vec()).unwrap();
    assert!(text.contains(r#""orderTopicConf":"a:8""#), "{text}");
}

#[test]
fn the_cluster_answer_follows_the_table() {
    let mut table = RouteTable::default();
    let empty = table.cluster_answer();
    assert_eq!(
        &empty[..],
        br#"{"brokerAddrTable":{},"clusterAddrTable":{}}"#
    );
    accepted(&mut table, broker("a", 0));
    let text = String::from_utf8(table.cluster_answer().to_vec()).unwrap();
    assert!(text.contains(r#""clusterAddrTable":{"c":["a"]}"#), "{text}");
    table.connection_closed(ConnectionToken(1));
    assert_eq!(table.cluster_answer(), empty);
}

#[test]
fn unknown_topics_have_no_route() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    for name in ["", "nobody", &"x".repeat(300)] {
        assert!(table.answer(name, Flavour::Standard, None).is_none());
        assert!(table.route_in_zone(name, "z", None).is_none());
    }
}
