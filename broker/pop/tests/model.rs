//! Random schedules of pops, acks, changes, time, failures and crashes against the reference model
//! in `world`: nothing lost, nothing before its time, no offset committed past what a crash would
//! lose, ordered groups never out of order. And a shell with a defect must be found out.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code outside of test functions"
)]

mod world;

use proptest::{
    prelude::*,
    test_runner::{Config, TestError, TestRunner},
};
use world::{Bug, RETRY, World, small};

#[derive(Clone, Debug)]
enum Step {
    Send {
        queue: u32,
        count: usize,
        wanted: bool,
    },
    Pop {
        queue: u32,
        max: usize,
        invisible: i64,
        attempt: bool,
    },
    /// Begun and never finished.
    Abandon {
        queue: u32,
    },
    Ack {
        pick: usize,
    },
    AckNewest {
        count: usize,
    },
    Change {
        pick: usize,
        invisible: i64,
    },
    Advance {
        millis: u64,
    },
    Run {
        count: usize,
    },
    Failing {
        on: bool,
    },
    SaveOrder,
    Crash {
        done: usize,
    },
}

fn queue() -> impl Strategy<Value = u32> {
    prop_oneof![3 => Just(0u32), 2 => Just(1u32), 2 => Just(RETRY)]
}

fn step(crashes: bool) -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u32..2, 1usize..6, prop::bool::weighted(0.8))
            .prop_map(|(queue, count, wanted)| Step::Send { queue, count, wanted }),
        8 => (queue(), 1usize..6, 1000i64..6000, prop::bool::weighted(0.2)).prop_map(
            |(queue, max, invisible, attempt)| Step::Pop { queue, max, invisible, attempt }
        ),
        1 => queue().prop_map(|queue| Step::Abandon { queue }),
        5 => any::<usize>().prop_map(|pick| Step::Ack { pick }),
        3 => (1usize..6).prop_map(|count| Step::AckNewest { count }),
        4 => (any::<usize>(), 0i64..9000)
            .prop_map(|(pick, invisible)| Step::Change { pick, invisible }),
        6 => (1u64..4000).prop_map(|millis| Step::Advance { millis }),
        8 => (1usize..6).prop_map(|count| Step::Run { count }),
        1 => any::<bool>().prop_map(|on| Step::Failing { on }),
        1 => Just(Step::SaveOrder),
        1 => (0usize..4).prop_map(move |done| if crashes {
            Step::Crash { done }
        } else {
            Step::Run { count: done + 1 }
        }),
    ]
}

fn apply(world: &mut World, step: &Step) {
    match *step {
        Step::Send {
            queue,
            count,
            wanted,
        } => {
            (0..count).for_each(|_| {
                world.send(queue, wanted);
            });
        }
        Step::Pop {
            queue,
            max,
            invisible,
            attempt,
        } => {
            let attempt = attempt.then_some("the same attempt");
            let _ = world.pop(queue, max, invisible, attempt);
        }
        Step::Abandon { queue } => {
            let ask = world.ask(3, 2000, None);
            let _ = world.begin(queue, &ask);
        }
        Step::Ack { pick } => {
            if let Some(&held) = world.held.get(pick % world.held.len().max(1)) {
                world.ack(held);
            }
        }
        Step::AckNewest { count } => {
            let newest: Vec<_> = world.held.iter().rev().take(count).copied().collect();
            for held in newest {
                world.ack(held);
            }
        }
        Step::Change { pick, invisible } => {
            if let Some(&held) = world.held.get(pick % world.held.len().max(1)) {
                world.change(held, invisible);
            }
        }
        Step::Advance { millis } => world.advance(millis),
        Step::Run { count } => world.run(count),
        Step::Failing { on } => world.fail_writes = on,
        Step::SaveOrder => world.save_order(),
        Step::Crash { done } => world.crash(done),
    }
    world.check_commits();
}

fn play(steps: &[Step], ordered: bool, retry_max: Option<u32>, bug: Bug) {
    let mut world = World::new(small(), ordered, 2);
    world.retry_max = retry_max;
    world.bug = bug;
    for step in steps {
        apply(&mut world, step);
    }
    world.drain();
}

fn steps(crashes: bool, most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(crashes), 1..most)
}

proptest! {
    #![proptest_config(Config { cases: 600, max_shrink_iters: 4000, ..Config::default() })]

    #[test]
    fn a_group_loses_nothing_and_sees_nothing_before_its_time(steps in steps(false, 120)) {
        play(&steps, false, None, Bug::None);
    }

    #[test]
    fn a_group_loses_nothing_over_crashes_and_sees_nothing_before_its_time(
        steps in steps(true, 120),
    ) {
        play(&steps, false, None, Bug::None);
    }

    #[test]
    fn a_group_with_dead_letters_loses_nothing_over_crashes(
        steps in steps(true, 120),
        retry_max in 0u32..3,
    ) {
        play(&steps, false, Some(retry_max), Bug::None);
    }

    #[test]
    fn an_ordered_group_stays_in_order_and_loses_nothing(steps in steps(false, 120)) {
        play(&steps, true, None, Bug::None);
    }

    #[test]
    fn an_ordered_group_stays_in_order_over_crashes_and_dead_letters(
        steps in steps(true, 120),
        retry_max in prop::option::of(0u32..3),
    ) {
        play(&steps, true, retry_max, Bug::None);
    }
}

/// The model finds the defect in some schedule.
fn found(bug: Bug, ordered: bool, crashes: bool) -> bool {
    let config = Config {
        cases: 400,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = runner.run(&steps(crashes, 120), |steps| {
        play(&steps, ordered, None, bug);
        Ok(())
    });
    std::panic::set_hook(quiet);
    matches!(result, Err(TestError::Fail(..)))
}

#[test]
fn the_model_finds_every_planted_defect_and_nothing_in_a_sound_shell() {
    assert!(found(Bug::LosesRedelivery, false, false));
    assert!(found(Bug::TicksEarly, false, false));
    assert!(found(Bug::CommitsAhead, false, false));
    assert!(found(Bug::ForgetsMarks, false, true));
    assert!(found(Bug::LosesRecords, false, true));
    assert!(found(Bug::IgnoresOrder, true, false));
    assert!(found(Bug::ForgetsMarks, true, true));
    assert!(!found(Bug::None, false, true));
}
