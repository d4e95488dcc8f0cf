//! The life of kept messages, and random schedules against a plain list of what is kept.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const T0: Timestamp = Timestamp::from_millis(1_000_000);

fn owner() -> Owner {
    Owner {
        client: "c".into(),
        group: "g".into(),
    }
}

fn kept(handle: &str, visible_in: i64) -> Kept {
    Kept {
        topic: "t".into(),
        handle: handle.into(),
        visible_at: T0.plus_millis(visible_in),
        consumed: 0,
    }
}

#[test]
fn a_message_is_renewed_ten_seconds_ahead_and_its_first_handle_leads_to_the_newest() {
    let mut table = Renewals::new(10);
    table.keep(&owner(), kept("h1", 60_000), T0);
    assert!(table.due(T0.plus_millis(49_999)).is_empty());
    let now = T0.plus_millis(50_000);
    let due = table.due(now);
    assert_eq!(due[0].step, Step::Renew(Duration::from_mins(1)));
    assert!(table.due(now).is_empty(), "one renewal at a time");
    assert_eq!(table.take(&owner(), "h1"), Taken::Busy);
    table.done(&due[0], Some(("h2".into(), now.plus_millis(60_000))), now);
    assert_eq!(table.take(&owner(), "h1"), Taken::Newest("h2".into()));
    assert_eq!(table.take(&owner(), "h1"), Taken::Unknown);
    assert_eq!(table.len(), 0);
}

#[test]
fn renewals_grow_longer_up_to_an_hour_and_end_after_three() {
    let mut table = Renewals::new(10);
    table.keep(&owner(), kept("h", 60_000), T0);
    let (mut now, mut steps) = (T0.plus_millis(50_000), Vec::new());
    while table.len() > 0 {
        let due = table.due(now);
        steps.push(due[0].step);
        let visible = now.plus_millis(match due[0].step {
            Step::Renew(time) => time.as_millis() as i64,
            Step::GiveUp => 1_000,
        });
        table.done(&due[0], Some(("h".into(), visible)), now);
        now = visible.plus_millis(-5_000);
    }
    let minutes = |step: &Step| match step {
        Step::Renew(time) => time.as_secs() / 60,
        Step::GiveUp => 0,
    };
    let minutes: Vec<_> = steps.iter().map(minutes).collect();
    assert_eq!(minutes, [1, 3, 5, 10, 30, 60, 60, 60, 0]);
}

#[test]
fn a_message_that_cannot_be_renewed_three_times_is_left_to_its_time() {
    let mut table = Renewals::new(10);
    table.keep(&owner(), kept("h", 10_000), T0);
    for _ in 0..3 {
        let due = table.due(T0);
        table.done(&due[0], None, T0);
    }
    assert_eq!(table.len(), 0);
}

#[test]
fn a_message_whose_time_has_passed_is_not_kept_after_a_failure() {
    let mut table = Renewals::new(10);
    table.keep(&owner(), kept("h", 1_000), T0);
    let due = table.due(T0);
    table.done(&due[0], None, T0.plus_millis(1_000));
    assert_eq!(table.len(), 0);
}

#[test]
fn a_full_table_takes_no_more_and_a_client_that_leaves_makes_room() {
    let mut table = Renewals::new(2);
    assert!(table.keep(&owner(), kept("a", 60_000), T0));
    assert!(table.keep(&owner(), kept("b", 60_000), T0));
    assert!(!table.keep(&owner(), kept("c", 60_000), T0));
    assert_eq!(table.leave("other").len(), 0);
    let left: BTreeSet<_> = table
        .leave("c")
        .into_iter()
        .map(|(_, kept)| kept.handle)
        .collect();
    assert_eq!(left, ["a".to_owned(), "b".to_owned()].into());
    assert_eq!(table.len(), 0);
}

#[test]
fn an_outcome_for_a_client_that_left_changes_nothing() {
    let mut table = Renewals::new(2);
    table.keep(&owner(), kept("a", 0), T0);
    let due = table.due(T0);
    assert!(
        table.leave("c").is_empty(),
        "what is being renewed stays out"
    );
    table.done(&due[0], Some(("b".into(), T0)), T0);
    assert_eq!(table.len(), 0);
}

proptest! {
    #[test]
    fn every_kept_message_is_taken_once_given_up_or_left(
        steps in proptest::collection::vec((0u8..5, 0usize..4, any::<bool>()), 0..80)
    ) {
        let (mut table, mut model) = (Renewals::new(3), BTreeSet::new());
        let (mut now, mut open): (_, Vec<Due>) = (T0, Vec::new());
        for (kind, name, good) in steps {
            let handle = format!("h{name}");
            match kind {
                0 => {
                    // A handle is never given twice while it is known.
                    if !model.contains(&handle) && table.keep(&owner(), kept(&handle, 60_000), now) {
                        model.insert(handle);
                    }
                }
                1 => match table.take(&owner(), &handle) {
                    Taken::Newest(_) => prop_assert!(model.remove(&handle)),
                    Taken::Busy => prop_assert!(model.contains(&handle)),
                    Taken::Unknown => prop_assert!(!model.contains(&handle)),
                },
                2 => now = now.plus_millis(30_000),
                3 => open.extend(table.due(now)),
                _ => if let Some(due) = open.pop() {
                    let visible = now.plus_millis(60_000);
                    table.done(&due, good.then(|| ("new".to_owned(), visible)), now);
                    let known = table.owners.get(&owner()).is_some_and(|e| e.contains_key(&due.first));
                    if !known {
                        model.remove(&due.first);
                    }
                },
            }
            prop_assert_eq!(table.len(), model.len());
            prop_assert!(table.len() <= 3);
        }
    }
}
