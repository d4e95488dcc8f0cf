//! Seeds: whatever goes wrong, the cluster keeps its word and comes back by itself.
//!
//! `SIM_SEEDS=2000 cargo test -p rmq-sim --test seeds` runs more of them; `SIM_FIRST=17` begins
//! there. A seed that fails is printed.

#![expect(clippy::print_stdout, reason = "a seed that fails is printed")]

use rmq_controller_fsm::AckPolicy;
use rmq_sim::{Plan, run};

fn number(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok().and_then(|text| text.parse().ok());
    value.unwrap_or(otherwise)
}

fn seeds(ack: AckPolicy) {
    let first = number("SIM_FIRST", 0);
    let count = number("SIM_SEEDS", 40);
    let mut failed = Vec::new();
    let (mut acknowledged, mut promotions) = (0, 0);
    for seed in first..first + count {
        let report = run(&Plan::seeded(seed, ack));
        if let Some(violation) = report.violation {
            println!("seed {seed} {ack:?}: {violation:?}\n{}", report.standing);
            failed.push(seed);
        }
        acknowledged += report.acknowledged;
        promotions += report.promotions;
    }
    println!("{count} seeds {ack:?}: {acknowledged} acknowledged, {promotions} masters");
    assert!(failed.is_empty(), "{ack:?}: seeds {failed:?} fail");
    assert!(promotions > count, "masters changed");
    assert!(acknowledged > count * 500, "messages were acknowledged");
}

#[test]
fn acknowledgement_by_the_whole_set_keeps_its_word_over_all_seeds() {
    seeds(AckPolicy::AllInSync);
}

#[test]
fn acknowledgement_by_two_of_three_keeps_its_word_over_all_seeds() {
    seeds(AckPolicy::Quorum(2));
}

#[test]
fn with_asynchronous_acknowledgement_there_are_never_two_masters_over_all_seeds() {
    seeds(AckPolicy::Async);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..5 {
        let plan = Plan::seeded(seed, AckPolicy::Quorum(2));
        assert_eq!(run(&plan), run(&plan), "seed {seed}");
    }
    let other = run(&Plan::seeded(6, AckPolicy::AllInSync));
    assert_ne!(
        run(&Plan::seeded(7, AckPolicy::AllInSync)).trace,
        other.trace
    );
}
