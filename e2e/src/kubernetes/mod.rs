//! The suite `kubernetes`: what is promised of RocketMQ on Kubernetes, on a real cluster.
//!
//! **Invariant:** the cluster is had once and shared; each promise has a file in `promises/`, works
//! in namespaces of its own, and says the figure that it found.

mod charts;
mod cluster;
mod command;
mod docker;
mod namespace;
mod operator;
mod own;
mod pod;
mod promises;
mod rocketmq;
mod source;
mod tools;

use crate::suite::{Case, Outcome};
use cluster::KubeCluster;
use source::Source;
use std::time::Instant;

pub(crate) use charts::run as run_charts;

/// What came of a promise: figures of a success.
type Found = anyhow::Result<String>;

/// Gets a cluster and tries every promise whose name contains `only`.
pub(crate) fn run(only: Option<&str>) -> anyhow::Result<Vec<Case>> {
    let cluster = KubeCluster::ready(&Source::from_environment()?)?;
    let mut cases = Vec::new();
    let chosen =
        |promise: &promises::Promise| only.is_none_or(|only| promise.title().contains(only));
    for (at, promise) in promises::ALL.iter().enumerate() {
        // What later ones stand on is tried when one of them was chosen.
        let later = promises::ALL.get(at + 1..).unwrap_or_default();
        if chosen(promise) || promise.always && later.iter().any(chosen) {
            let case = try_one(&cluster, promise);
            let broken = promise.always && case.outcome == Outcome::Failed;
            cases.push(case);
            if broken {
                break;
            }
        }
    }
    Ok(cases)
}

fn try_one(cluster: &KubeCluster, promise: &promises::Promise) -> Case {
    let name = promise.title();
    cluster.progress.say(&name);
    let started = Instant::now();
    let found = (promise.check)(cluster);
    let seconds = started.elapsed().as_secs_f64();
    let (outcome, detail) = match found {
        Ok(figures) => (Outcome::Passed, format!("{seconds:.1} s {figures}")),
        Err(error) => (Outcome::Failed, format!("{error:#}")),
    };
    if outcome == Outcome::Failed {
        cluster.progress.say(&format!("FAILED: {detail}"));
    }
    Case {
        name,
        outcome,
        detail,
    }
}
