//! Bugs that are planted on purpose are found: the checker can fail.

#![expect(clippy::print_stdout, reason = "a seed that fails is printed")]

use rmq_controller_fsm::AckPolicy;
use rmq_sim::{Bug, Fault, Plan, Violation, run};

/// The first seed of these that fails with the bug.
fn found(bug: Bug, ack: AckPolicy, seeds: u64) -> Option<(u64, Violation)> {
    (0..seeds).find_map(|seed| {
        let plan = Plan {
            bug: Some(bug),
            ..Plan::seeded(seed, ack)
        };
        let violation = run(&plan).violation?;
        (!matches!(violation, Violation::NotWritable { .. })).then_some((seed, violation))
    })
}

fn is_found(bug: Bug) {
    let with_all = found(bug, AckPolicy::AllInSync, 150);
    let with_quorum = found(bug, AckPolicy::Quorum(2), 150);
    println!("{bug:?}: {with_all:?}, {with_quorum:?}");
    assert!(
        with_all.is_some() || with_quorum.is_some(),
        "{bug:?} was not found"
    );
}

#[test]
fn a_master_that_counts_by_a_set_the_controllers_do_not_have_is_found() {
    is_found(Bug::AckBeforeSetChange);
}

#[test]
fn a_master_without_a_lease_is_found() {
    is_found(Bug::NoLeaseCheck);
}

#[test]
fn a_log_that_is_cut_in_memory_only_is_found() {
    is_found(Bug::CutInMemoryOnly);
}

#[test]
fn an_election_outside_the_set_is_found() {
    is_found(Bug::ElectOutsideSet);
}

#[test]
fn a_set_that_is_reset_by_elections_is_found_by_seeds() {
    is_found(Bug::ResetSetOnElection);
}

/// Three brokers, the master dies, and soon the next one.
fn two_failures(ack: AckPolicy, pause: u64, bug: Option<Bug>) -> Option<Violation> {
    let plan = Plan {
        seed: 1,
        ack,
        millis: 30_000,
        faults: Some(vec![
            (8000, Fault::KillMaster),
            (8000 + pause, Fault::KillMaster),
            (20_000, Fault::CalmFrom),
        ]),
        bug,
    };
    run(&plan).violation
}

#[test]
fn after_two_failures_the_third_broker_takes_over_unless_elections_reset_the_set() {
    let all = AckPolicy::AllInSync;
    let pauses = [60, 80, 100, 150, 200, 300, 500, 2000];
    for pause in pauses {
        assert_eq!(
            two_failures(all, pause, None),
            None,
            "{pause} ms between them"
        );
    }
    assert_eq!(two_failures(AckPolicy::Quorum(2), 2000, None), None);
    let reset = Some(Bug::ResetSetOnElection);
    let broken = pauses.map(|pause| two_failures(all, pause, reset));
    let stuck = |v: &Option<Violation>| matches!(v, Some(Violation::NotWritable { .. }));
    assert!(broken.iter().any(stuck), "{broken:?}");
}

/// A calm cluster in which somebody wants broker 2 to be master.
fn switchover(ack: AckPolicy, fence: Option<u64>) -> rmq_sim::Report {
    let plan = Plan {
        seed: 3,
        ack,
        millis: 20_000,
        faults: Some(vec![
            (8000, Fault::Switchover { broker: 2, fence }),
            (15_000, Fault::CalmFrom),
        ]),
        bug: None,
    };
    run(&plan)
}

#[test]
fn a_switchover_makes_one_new_master_with_a_fence_or_by_waiting_for_the_lease() {
    for ack in [AckPolicy::AllInSync, AckPolicy::Quorum(2), AckPolicy::Async] {
        for fence in [Some(5000), None] {
            let report = switchover(ack, fence);
            assert_eq!(report.violation, None, "{ack:?} {fence:?}");
            assert_eq!(
                report.promotions, 2,
                "{ack:?} {fence:?} {}",
                report.standing
            );
        }
    }
}
