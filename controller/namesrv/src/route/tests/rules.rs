//! The numbered rules of registration, one test or more for each.

use super::*;

#[test]
fn rule_1_a_registration_makes_cluster_group_and_zone() {
    let mut table = RouteTable::default();
    let mut registration = broker("a", 0);
    registration.zone = Some("z1".into());
    registration.acting_master = Some(true);
    assert!(accepted(&mut table, registration.clone()).is_new);
    assert_eq!(
        (
            table.cluster_count(),
            table.group_count(),
            table.broker_count()
        ),
        (1, 1, 1)
    );
    let data = route(&table, "T").unwrap().broker_datas.remove(0);
    assert_eq!(data.cluster, "c");
    assert_eq!(data.zone_name.as_deref(), Some("z1"));
    assert!(data.enable_acting_master);

    registration.zone = None;
    registration.acting_master = None;
    assert!(!accepted(&mut table, registration).is_new);
    let data = route(&table, "T").unwrap().broker_datas.remove(0);
    assert_eq!(data.zone_name, None);
    assert!(!data.enable_acting_master);
}

#[test]
fn rule_1_a_broker_name_belongs_to_one_cluster_until_its_members_are_gone() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    let mut other = broker("a", 1);
    other.cluster = ClusterName::parse("other").unwrap();
    let error = table.register(at(0), &other).unwrap_err();
    assert!(
        matches!(error, RegisterError::NameOfOtherCluster { .. }),
        "{error}"
    );

    let mut moved = broker("a", 0);
    moved.cluster = ClusterName::parse("other").unwrap();
    accepted(&mut table, moved);
    assert_eq!(table.system_topics().collect::<Vec<_>>(), ["other", "a"]);
}

#[test]
fn rule_2_an_address_that_comes_with_another_id_leaves_its_former_id() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    accepted(&mut table, broker("a", 1));
    let mut promoted = broker("a", 0);
    promoted.addr = "a-1:10911".into();
    promoted.version.state_version = 1;
    accepted(&mut table, promoted);
    assert_eq!(addresses(&table, "T", "a"), [(0, "a-1:10911".to_owned())]);
}

#[test]
fn rule_3_an_older_state_does_not_take_the_id_from_a_newer_one() {
    let mut table = RouteTable::default();
    let mut holder = broker("a", 0);
    holder.version.state_version = 5;
    accepted(&mut table, holder);
    let mut late = broker("a", 0);
    late.addr = "late:10911".into();
    late.version.state_version = 4;
    let outcome = table.register(at(0), &late).unwrap();
    assert_eq!(
        outcome,
        Registered::Superseded {
            holder: "a-0:10911".into()
        }
    );
    assert_eq!(addresses(&table, "T", "a"), [(0, "a-0:10911".to_owned())]);
    assert_eq!(table.data_version("c", "a", "late:10911"), None);
}

#[test]
fn rule_3_an_equal_or_newer_state_takes_the_id_and_the_old_address_is_forgotten() {
    for state in [5, 6] {
        let mut table = RouteTable::default();
        let mut holder = broker("a", 0);
        holder.version.state_version = 5;
        accepted(&mut table, holder);
        let mut newer = broker("a", 0);
        newer.addr = "newer:10911".into();
        newer.version.state_version = state;
        accepted(&mut table, newer);
        assert_eq!(addresses(&table, "T", "a"), [(0, "newer:10911".to_owned())]);
        assert_eq!(table.data_version("c", "a", "a-0:10911"), None);
    }
}

#[test]
fn rule_4_a_broker_that_is_not_there_cannot_begin_with_one_topic() {
    let mut table = RouteTable::default();
    let mut single = broker("a", 0);
    single.topics.truncate(1);
    let error = table.register(at(0), &single).unwrap_err();
    assert!(matches!(error, RegisterError::NotYetRegistered { .. }));
    assert_eq!(
        (
            table.cluster_count(),
            table.group_count(),
            table.topic_count()
        ),
        (0, 0, 0)
    );

    accepted(&mut table, broker("a", 0));
    single.topics = vec![topic("V")];
    single.version = version(2);
    accepted(&mut table, single);
    assert!(route(&table, "V").is_some());
}

#[test]
fn rule_4_a_refusal_leaves_the_broker_under_its_former_id() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 1));
    let mut single = broker("a", 0);
    single.addr = "a-1:10911".into();
    single.topics.truncate(1);
    assert!(table.register(at(0), &single).is_err());
    assert_eq!(table.members("a").addresses, [(1, "a-1:10911".to_owned())]);
}

#[test]
fn rule_4_no_topic_at_all_is_a_whole_table() {
    let mut table = RouteTable::default();
    let mut empty = broker("a", 0);
    empty.topics.clear();
    accepted(&mut table, empty);
    assert_eq!(table.broker_count(), 1);
}

#[test]
fn rule_5_topics_of_a_plain_replica_are_not_taken() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 1));
    assert!(route(&table, "T").is_none());
    accepted(&mut table, broker("a", 0));
    let mut replica = broker("a", 1);
    replica.acting_master = Some(true);
    replica.topics.push(topic("OnlyOnReplica"));
    replica.version = version(9);
    accepted(&mut table, replica);
    assert!(route(&table, "OnlyOnReplica").is_none());
}

#[test]
fn rule_5_topics_of_the_smallest_replica_are_taken_without_write_permission() {
    let mut table = RouteTable::default();
    let mut replica = broker("a", 1);
    replica.acting_master = Some(true);
    accepted(&mut table, replica);
    assert_eq!(perm(&table, "T", "a"), Some(4));
}

#[test]
fn rule_5_a_replica_that_says_no_to_acting_master_keeps_its_permissions() {
    let mut table = RouteTable::default();
    let mut replica = broker("a", 1);
    replica.acting_master = Some(false);
    accepted(&mut table, replica);
    assert_eq!(perm(&table, "T", "a"), Some(6));
}

#[test]
fn rule_6_topics_change_only_with_the_data_version() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    let mut same = broker("a", 0);
    same.topics[0].queues.write_queues = 4;
    same.topics.push(topic("New"));
    accepted(&mut table, same.clone());
    let first = |table: &RouteTable| route(table, "T").unwrap().queue_datas[0].write_queue_nums;
    assert_eq!(first(&table), 8);
    assert!(
        route(&table, "New").is_some(),
        "a topic that is missing here is always taken"
    );

    same.version = version(2);
    accepted(&mut table, same);
    assert_eq!(first(&table), 4);
}

#[test]
fn rule_6_static_topics_bring_their_mapping() {
    let mut table = RouteTable::default();
    let mut registration = broker("a", 0);
    let mapping = Mapping {
        bname: Some("a".into()),
        ..Mapping::default()
    };
    registration.mappings = vec![(TopicName::parse("T").unwrap(), mapping)];
    accepted(&mut table, registration);
    let by_broker = route(&table, "T")
        .unwrap()
        .topic_queue_mapping_by_broker
        .unwrap();
    assert!(by_broker.contains_key("a"));
    assert!(
        route(&table, "U")
            .unwrap()
            .topic_queue_mapping_by_broker
            .is_none()
    );
}

#[test]
fn rule_7_the_live_entry_is_by_address_and_holds_the_version() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    assert_eq!(table.data_version("c", "a", "a-0:10911"), Some(version(1)));
    assert_eq!(table.data_version("other", "a", "a-0:10911"), None);
    assert_eq!(table.data_version("c", "b", "a-0:10911"), None);
}

#[test]
fn rule_8_filter_servers_are_kept_replaced_and_removed() {
    let mut table = RouteTable::default();
    let mut registration = broker("a", 0);
    registration.filter_servers = Some(vec!["f:1".into()]);
    accepted(&mut table, registration);
    let filters = |table: &RouteTable| route(table, "T").unwrap().filter_server_table;
    assert_eq!(
        filters(&table).get("a-0:10911"),
        Some(&vec!["f:1".to_owned()])
    );

    accepted(&mut table, broker("a", 0));
    assert_eq!(filters(&table).len(), 1, "not said means unchanged");

    let mut registration = broker("a", 0);
    registration.filter_servers = Some(Vec::new());
    accepted(&mut table, registration);
    assert!(filters(&table).is_empty());
}

#[test]
fn rule_9_only_a_replica_is_told_of_the_master() {
    let mut table = RouteTable::default();
    let master = accepted(&mut table, broker("a", 0));
    assert_eq!((master.master_addr, master.master_ha_addr), (None, None));
    let replica = accepted(&mut table, broker("a", 1));
    assert_eq!(replica.master_addr.as_deref(), Some("a-0:10911"));
    assert_eq!(replica.master_ha_addr.as_deref(), Some("a-0:10912"));
    let orphan = accepted(&mut table, broker("b", 1));
    assert_eq!(orphan.master_addr, None);
}

#[test]
fn rule_10_a_new_smallest_id_is_told_to_all_the_others() {
    let mut table = RouteTable::new(Policy {
        notify_min_broker_id_changed: true,
        ..Policy::default()
    });
    assert!(accepted(&mut table, broker("a", 2)).actions.is_empty());
    accepted(&mut table, broker("a", 3));
    let actions = accepted(&mut table, broker("a", 1)).actions;
    let [Action::Notify(change)] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!(change.min_id, BrokerId::new(1));
    assert_eq!(change.min_addr, "a-1:10911");
    assert_eq!(change.ha_addr.as_deref(), Some("a-1:10912"));
    assert_eq!(change.offline_addr, None);
    assert_eq!(change.receivers, ["a-2:10911", "a-3:10911"]);
}

#[test]
fn rule_10_a_replica_promoted_alone_is_told_itself() {
    let mut table = RouteTable::new(Policy {
        notify_min_broker_id_changed: true,
        ..Policy::default()
    });
    accepted(&mut table, broker("a", 1));
    let mut promoted = broker("a", 0);
    promoted.addr = "a-1:10911".into();
    let actions = accepted(&mut table, promoted).actions;
    let [Action::Notify(change)] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!(change.receivers, ["a-1:10911"]);
}

#[test]
fn nobody_is_told_unless_the_policy_says_so() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 2));
    assert!(accepted(&mut table, broker("a", 1)).actions.is_empty());
}
