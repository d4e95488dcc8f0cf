//! Silence: who is dropped when, and what counts as a sign of life.

use super::*;

const SCAN: i64 = 5_000;

/// Scans every five seconds up to and including `until`.
fn scan(table: &mut RouteTable, from: i64, until: i64) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut now = from;
    while now <= until {
        actions.extend(table.expire(at(now), SCAN));
        now += SCAN;
    }
    actions
}

#[test]
fn a_silent_broker_is_dropped_after_120_seconds_and_its_connection_closed() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    assert!(scan(&mut table, 0, 120_000).is_empty());
    assert!(route(&table, "T").is_some());
    assert_eq!(
        scan(&mut table, 125_000, 125_000),
        [Action::Close(ConnectionToken(1))]
    );
    assert!(route(&table, "T").is_none());
}

#[test]
fn a_broker_may_name_a_shorter_time_and_nonsense_is_120_seconds() {
    for (said, dropped) in [(Some(10_000), true), (Some(0), false), (Some(-1), false)] {
        let mut table = RouteTable::default();
        let mut registration = broker("a", 0);
        registration.silence_millis_max = said;
        accepted(&mut table, registration);
        scan(&mut table, 0, 15_000);
        assert_eq!(route(&table, "T").is_none(), dropped, "{said:?}");
    }
}

#[test]
fn heartbeats_and_registrations_are_signs_of_life() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    scan(&mut table, 0, 100_000);
    assert!(table.heartbeat(at(100_000), "c", "a", "a-0:10911"));
    scan(&mut table, 105_000, 220_000);
    table.register(at(220_000), &broker("a", 0)).unwrap();
    scan(&mut table, 225_000, 340_000);
    assert!(route(&table, "T").is_some());
    scan(&mut table, 345_000, 345_000);
    assert!(route(&table, "T").is_none());
}

#[test]
fn a_heartbeat_of_an_unknown_broker_changes_nothing() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    assert!(!table.heartbeat(at(1), "c", "a", "elsewhere:1"));
    assert!(!table.heartbeat(at(1), "other", "a", "a-0:10911"));
    assert!(!table.heartbeat(at(1), "c", "b", "a-0:10911"));
}

#[test]
fn a_connection_with_a_living_broker_behind_it_is_not_closed() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    accepted(&mut table, broker("b", 0));
    for now in [50_000, 100_000, 150_000] {
        scan(&mut table, now - 45_000, now);
        table.heartbeat(at(now), "c", "b", "b-0:10911");
    }
    assert!(route(&table, "T").is_some_and(|route| route.queue_datas.len() == 1));
    assert!(table.connections.contains_key(&ConnectionToken(1)));
}

#[test]
fn time_in_which_the_process_did_not_run_counts_against_nobody() {
    let mut table = RouteTable::default();
    accepted(&mut table, broker("a", 0));
    scan(&mut table, 0, 60_000);
    assert!(
        table.expire(at(600_000), SCAN).is_empty(),
        "stopped for nine minutes"
    );
    assert!(route(&table, "T").is_some());
    scan(&mut table, 605_000, 700_000);
    assert!(
        route(&table, "T").is_none(),
        "but it has to be heard again afterwards"
    );
}

#[test]
fn a_clock_that_goes_back_drops_nobody() {
    let mut table = RouteTable::default();
    table.register(at(1_000_000), &broker("a", 0)).unwrap();
    scan(&mut table, 0, 50_000);
    assert!(route(&table, "T").is_some());
}
