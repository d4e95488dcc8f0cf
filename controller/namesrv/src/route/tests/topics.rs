//! Requests about topics by name, permissions, and lists.

use super::*;

fn queues() -> QueueSettings {
    topic("x").queues
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names
}

#[test]
fn a_topic_registered_by_name_must_be_of_brokers_that_are_there() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    let name = TopicName::parse("New").unwrap();
    let both = [("a".to_owned(), queues()), ("ghost".to_owned(), queues())];
    let error = table.register_topic(&name, &both).unwrap_err();
    assert_eq!(
        error.to_string(),
        "broker ghost of topic New is not registered"
    );
    assert!(route(&table, "New").is_none());
    table.register_topic(&name, &both[..1]).unwrap();
    assert_eq!(addresses(&table, "New", "a").len(), 1);
    table
        .register_topic(&TopicName::parse("None").unwrap(), &[])
        .unwrap();
    assert!(route(&table, "None").is_none());
}

#[test]
fn a_deleted_topic_is_gone_everywhere_or_in_one_cluster() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    let mut other = broker("b", 0);
    other.cluster = ClusterName::parse("d").unwrap();
    accepted(&mut table, other);
    table.delete_topic("T", Some("nowhere"));
    table.delete_topic("T", Some("d"));
    assert_eq!(perm(&table, "T", "b"), None);
    assert_eq!(perm(&table, "T", "a"), Some(6));
    table.delete_topic("U", None);
    assert!(route(&table, "U").is_none());
    table.delete_topic("T", Some("c"));
    assert_eq!(table.topic_count(), 0);
}

#[test]
fn a_deleted_topic_comes_back_with_the_next_registration() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    table.delete_topic("T", None);
    accepted(&mut table, broker("a", 0));
    assert!(route(&table, "T").is_some());
}

#[test]
fn topics_missing_in_a_complete_table_are_removed_from_that_broker_only() {
    for by_policy in [true, false] {
        let mut table = RouteTable::new(Policy {
            delete_topic_with_registration: by_policy,
            ..Policy::default()
        });
        accepted(&mut table, broker("a", 0));
        accepted(&mut table, broker("b", 0));
        let mut fewer = broker("a", 0);
        fewer.version = version(2);
        fewer.topics = vec![topic("T"), topic("V")];
        fewer.topics_complete = !by_policy;
        accepted(&mut table, fewer);
        assert_eq!(perm(&table, "U", "a"), None);
        assert_eq!(perm(&table, "U", "b"), Some(6));
        assert_eq!(perm(&table, "V", "a"), Some(6));
    }
}

#[test]
fn topics_missing_in_an_increment_stay() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    let mut increment = broker("a", 0);
    increment.version = version(2);
    increment.topics = vec![topic("V")];
    accepted(&mut table, increment);
    assert_eq!(perm(&table, "U", "a"), Some(6));
}

#[test]
fn a_wiped_write_permission_stays_wiped_until_the_topics_change() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    accepted(&mut table, broker("b", 0));
    assert_eq!(table.wipe_write_perm("a"), 2);
    for _ in 0..3 {
        accepted(&mut table, broker("a", 0));
    }
    assert_eq!(
        (perm(&table, "T", "a"), perm(&table, "T", "b")),
        (Some(4), Some(6))
    );
    let mut changed = broker("a", 0);
    changed.version = version(2);
    accepted(&mut table, changed);
    assert_eq!(perm(&table, "T", "a"), Some(6));
}

#[test]
fn giving_write_permission_sets_exactly_read_and_write() {
    let mut table = RouteTable::default();
    let mut registration = broker("a", 0);
    registration.topics[0].queues.perm = 7;
    accepted(&mut table, registration);
    assert_eq!(table.wipe_write_perm("a"), 2);
    assert_eq!(perm(&table, "T", "a"), Some(5));
    assert_eq!(table.add_write_perm("a"), 2);
    assert_eq!(perm(&table, "T", "a"), Some(6));
    assert_eq!(table.wipe_write_perm("nobody"), 0);
}

#[test]
fn lists_by_cluster_name_each_topic_once() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    accepted(&mut table, broker("b", 0));
    assert_eq!(sorted(table.topics_of_cluster("c")), ["T", "U"]);
    assert!(sorted(table.topics_of_cluster("nowhere")).is_empty());
    assert_eq!(sorted(table.topics(TopicSummary::All)), ["T", "U"]);
    assert_eq!(sorted(table.system_topics()), ["a", "b", "c"]);
    assert!(table.any_address().is_some());
}

#[test]
fn lists_by_unit_flag_look_at_the_flag() {
    let mut table = RouteTable::default();
    let mut registration = broker("a", 0);
    registration.topics = (0..4)
        .map(|flag| {
            let mut topic = topic(&format!("F{flag}"));
            topic.queues.sys_flag = flag;
            topic
        })
        .collect();
    accepted(&mut table, registration);
    assert_eq!(sorted(table.topics(TopicSummary::Unit)), ["F1", "F3"]);
    assert_eq!(sorted(table.topics(TopicSummary::UnitSub)), ["F2", "F3"]);
    assert_eq!(sorted(table.topics(TopicSummary::UnitSubNotUnit)), ["F2"]);
}

#[test]
fn members_are_listed_by_broker_name() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 2));
    accepted(&mut table, broker("a", 0));
    let expected = [(0, "a-0:10911".to_owned()), (2, "a-2:10911".to_owned())];
    assert_eq!(table.members("a").addresses, expected);
    assert!(table.members("b").addresses.is_empty());
}
