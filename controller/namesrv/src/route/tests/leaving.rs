//! Unregistering, closed connections, and what each leaves of routes.

use super::*;

fn leave(table: &mut RouteTable, id: u64, connection: u64) -> Option<Vec<Action>> {
    table.unregister(Unregister {
        cluster: "c",
        broker: "a",
        addr: &format!("a-{id}:10911"),
        connection: ConnectionToken(connection),
    })
}

fn over(mut registration: Registration, connection: u64) -> Registration {
    registration.connection = ConnectionToken(connection);
    registration
}

#[test]
fn the_last_member_takes_group_cluster_and_topics_along() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    accepted(&mut table, over(broker("b", 0), 2));
    assert!(leave(&mut table, 0, 1).is_some());
    assert_eq!(table.group_count(), 1);
    let route = route(&table, "T").unwrap();
    assert_eq!(route.queue_datas.len(), 1);
    assert_eq!(route.broker_datas[0].broker_name, "b");

    table.connection_closed(ConnectionToken(2));
    assert_eq!(
        (
            table.cluster_count(),
            table.topic_count(),
            table.connections.len()
        ),
        (0, 0, 0)
    );
}

#[test]
fn topics_stay_as_they_are_while_replicas_without_acting_master_remain() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    accepted(&mut table, over(broker("a", 1), 2));
    leave(&mut table, 0, 1).unwrap();
    assert_eq!(perm(&table, "T", "a"), Some(6));
    assert_eq!(addresses(&table, "T", "a"), [(1, "a-1:10911".to_owned())]);
}

#[test]
fn topics_lose_write_permission_when_the_master_leaves_acting_replicas() {
    let mut table = RouteTable::default();
    for id in [0, 1] {
        let mut registration = over(broker("a", id), id + 1);
        registration.acting_master = Some(true);
        accepted(&mut table, registration);
    }
    leave(&mut table, 0, 1).unwrap();
    assert_eq!(perm(&table, "T", "a"), Some(4));

    let mut back = over(broker("a", 0), 3);
    back.acting_master = Some(true);
    accepted(&mut table, back);
    assert_eq!(
        perm(&table, "T", "a"),
        Some(6),
        "a master that comes back brings it along"
    );
}

#[test]
fn a_closed_connection_does_not_touch_a_registration_renewed_over_a_newer_one() {
    let mut table = RouteTable::default();
    accepted(&mut table, over(broker("a", 0), 1));
    accepted(&mut table, over(broker("a", 0), 2));
    table.connection_closed(ConnectionToken(1));
    assert!(route(&table, "T").is_some());
    table.connection_closed(ConnectionToken(2));
    assert!(route(&table, "T").is_none());
}

#[test]
fn a_late_word_over_an_older_connection_does_not_remove_a_fresh_registration() {
    let mut table = RouteTable::default();
    accepted(&mut table, over(broker("a", 0), 5));
    assert_eq!(leave(&mut table, 0, 4), None);
    assert!(route(&table, "T").is_some());
    assert!(
        leave(&mut table, 0, 6).is_some(),
        "a newer connection may: the broker reconnected"
    );
    assert!(route(&table, "T").is_none());
}

#[test]
fn a_word_about_another_cluster_or_address_is_ignored() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    assert_eq!(leave(&mut table, 7, 9), None);
    let word = Unregister {
        cluster: "other",
        broker: "a",
        addr: "a-0:10911",
        connection: ConnectionToken(9),
    };
    assert_eq!(table.unregister(word), None);
    assert!(route(&table, "T").is_some());
}

#[test]
fn all_brokers_behind_one_connection_leave_with_it() {
    let mut table = RouteTable::default();
    for name in ["a", "b", "c"] {
        accepted(&mut table, broker(name, 0));
    }
    accepted(&mut table, over(broker("d", 0), 2));
    table.connection_closed(ConnectionToken(1));
    assert_eq!(table.broker_count(), 1);
}

#[test]
fn those_who_stay_hear_that_the_smallest_id_left() {
    let mut table = RouteTable::new(Policy {
        notify_min_broker_id_changed: true,
        ..Policy::default()
    });
    for id in [0, 1, 2] {
        let mut registration = over(broker("a", id), id + 1);
        registration.acting_master = Some(true);
        accepted(&mut table, registration);
    }
    assert!(leave(&mut table, 2, 3).unwrap().is_empty());
    let actions = leave(&mut table, 0, 1).unwrap();
    let [Action::Notify(change)] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!(change.offline_addr.as_deref(), Some("a-0:10911"));
    assert_eq!(
        (change.min_id, change.min_addr.as_str()),
        (BrokerId::new(1), "a-1:10911")
    );
    assert_eq!(change.receivers, ["a-1:10911"]);
}
