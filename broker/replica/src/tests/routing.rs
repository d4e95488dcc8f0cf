//! Whom slow readers are sent to.

use std::collections::BTreeMap;

use super::machine::{at, follow, grow, id, master, offset, options};
use crate::{AckRule, LinkId, Master, Reader, Reason, RoutingOptions, suggest_at_replica};

const OPTIONS: RoutingOptions = RoutingOptions {
    enabled: true,
    slow_bytes: 1000,
    lag_bytes_max: 500,
    lag_time_max: 10_000,
};

/// A master with the replicas 2, 3 and 4 in sync, whose log ends at 5000.
fn busy() -> Master {
    let mut master = master(options(AckRule::AllInSync), &[1, 2, 3, 4]);
    grow(&mut master, 5000);
    for broker in 2..=4 {
        follow(&mut master, 0, broker, 5000);
    }
    master
}

fn reader(group: &str, next: u64) -> Reader<'_> {
    Reader {
        group,
        next: offset(next),
        when_slow: 1,
    }
}

#[test]
fn a_reader_near_the_end_and_every_reader_without_the_switch_stay_with_the_master() {
    let master = busy();
    let choice = master.suggest(at(1), &OPTIONS, reader("g", 4000));
    assert_eq!((choice.broker, choice.reason), (id(0), Reason::NotSlow));
    let off = RoutingOptions {
        enabled: false,
        ..OPTIONS
    };
    let choice = master.suggest(at(1), &off, reader("g", 0));
    assert_eq!((choice.broker, choice.reason), (id(0), Reason::Off));
}

#[test]
fn slow_groups_are_spread_over_all_fit_replicas_and_stay_where_they_are() {
    let mut master = busy();
    let groups: Vec<String> = (0..300).map(|n| format!("group-{n}")).collect();
    let choose = |master: &Master| -> BTreeMap<String, u64> {
        let choices = groups.iter().map(|group| {
            let choice = master.suggest(at(1), &OPTIONS, reader(group, 10));
            assert_eq!(choice.reason, Reason::Spread);
            (group.clone(), choice.broker.get())
        });
        choices.collect()
    };
    let before = choose(&master);
    for broker in 2..=4 {
        let share = before.values().filter(|chosen| **chosen == broker).count();
        assert!(
            (60..=140).contains(&share),
            "broker {broker} has {share} of 300"
        );
    }
    master.unlinked(at(1), LinkId(3));
    let after = choose(&master);
    for (group, chosen) in &before {
        let moved = after[group] != *chosen;
        assert_eq!(moved, *chosen == 3, "{group}");
        assert_ne!(after[group], 3);
    }
}

#[test]
fn a_replica_that_is_far_behind_or_out_of_the_set_is_not_named() {
    let mut master = master(options(AckRule::AllInSync), &[1, 2]);
    grow(&mut master, 5000);
    follow(&mut master, 0, 2, 4499);
    follow(&mut master, 0, 3, 5000);
    let choice = master.suggest(at(1), &OPTIONS, reader("g", 10));
    assert_eq!((choice.broker, choice.reason), (id(0), Reason::NobodyFit));
    master.acked(at(2), LinkId(2), offset(4500)).unwrap();
    let choice = master.suggest(at(3), &OPTIONS, reader("g", 10));
    assert_eq!(choice.broker, id(2));
    // Not caught up for too long.
    let choice = master.suggest(at(10_003), &OPTIONS, reader("g", 10));
    assert_eq!(choice.broker, id(0));
}

#[test]
fn a_groups_own_choice_is_honoured_while_its_replica_is_fit() {
    let mut master = busy();
    let chosen = Reader {
        when_slow: 3,
        ..reader("g", 10)
    };
    let choice = master.suggest(at(1), &OPTIONS, chosen);
    assert_eq!((choice.broker, choice.reason), (id(3), Reason::Configured));
    master.unlinked(at(1), LinkId(3));
    let choice = master.suggest(at(1), &OPTIONS, chosen);
    assert_eq!(choice.reason, Reason::Spread);
    let never = Reader {
        when_slow: 0,
        ..reader("g", 10)
    };
    let choice = master.suggest(at(1), &OPTIONS, never);
    assert_eq!((choice.broker, choice.reason), (id(0), Reason::Configured));
}

#[test]
fn a_replica_sends_a_reader_back_once_it_is_well_inside_the_memory() {
    assert_eq!(suggest_at_replica(1000, offset(5000), offset(4400)), None);
    assert_eq!(
        suggest_at_replica(1000, offset(5000), offset(4500)),
        Some(id(0))
    );
    assert_eq!(
        suggest_at_replica(1000, offset(5000), offset(9000)),
        Some(id(0))
    );
}
