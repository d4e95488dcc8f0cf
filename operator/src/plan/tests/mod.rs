//! Plans of whole lives of clusters, and of single situations.

mod day2;
mod lives;
pub(crate) mod world;

use super::*;
use world::{World, desired};

/// Passes until nothing is left to do; panics when that does not come.
fn run(world: &mut World, desired: &Desired) -> Vec<Step> {
    let mut all = Vec::new();
    for _ in 0..400 {
        world.settle(desired, 5_000);
        let plan = plan(&world.observed, desired, world.now);
        if plan.is_idle() {
            return all;
        }
        for step in &plan.steps {
            world.apply(step, desired);
        }
        all.extend(plan.steps);
    }
    let plan = plan(&world.observed, desired, world.now);
    unreachable!("no end: {plan:?}");
}

/// Some passes; what was done, and the last plan.
fn pass(world: &mut World, desired: &Desired, passes: usize) -> (Vec<Step>, Plan) {
    let mut all = Vec::new();
    let mut last = Plan::default();
    for _ in 0..passes {
        world.settle(desired, 5_000);
        last = plan(&world.observed, desired, world.now);
        for step in &last.steps {
            world.apply(step, desired);
        }
        all.extend(last.steps.clone());
    }
    (all, last)
}

fn restarts(steps: &[Step]) -> Vec<&str> {
    steps
        .iter()
        .filter_map(|step| match step {
            Step::RestartPod { pod, .. } => Some(pod.as_str()),
            _ => None,
        })
        .collect()
}
