//! A cluster at rest is not written.
//!
//! **Invariant:** the API server counts, writes that change nothing included. What Kubernetes itself
//! writes about the same kinds (a StatefulSet's status) would count too: at rest there is none.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::rocketmq::RocketMq;
use anyhow::Context as _;
use std::time::{Duration, Instant};

/// How long it is watched, unless `E2E_REST_SECONDS` says otherwise; the design speaks of 600.
const WATCHED_SECONDS: u64 = 60;
const PAUSE: Duration = Duration::from_millis(500);
const WRITES: &[&str] = &[
    "POST",
    "PUT",
    "PATCH",
    "APPLY",
    "DELETE",
    "DELETECOLLECTION",
];
const KINDS: &[&str] = &[
    "rocketmqclusters",
    "brokergroups",
    "topics",
    "consumergroups",
    "operations",
    "statefulsets",
    "services",
    "configmaps",
    "serviceaccounts",
    "poddisruptionbudgets",
    "networkpolicies",
    "persistentvolumeclaims",
    "pods",
    "events",
];

pub(super) fn check(kube: &KubeCluster) -> Found {
    let spec = "{version: 0.1.0, brokers: {groups: 2, replicasPerGroup: 0, storage: {size: 1Gi}}}";
    let (cluster, _) = RocketMq::up(kube, "rest", spec)?;
    let limit = Duration::from_mins(2);
    cluster.until(limit, "nothing is left to do", |object| {
        super::super::rocketmq::is(object, "Quiesced")
    })?;
    cluster.until_alone()?;
    let seconds = std::env::var("E2E_REST_SECONDS").ok();
    let seconds = seconds
        .and_then(|text| text.parse().ok())
        .unwrap_or(WATCHED_SECONDS);
    // What became ready a moment ago may be told a last time.
    let mut before = writes(kube)?;
    let mut since = Instant::now();
    let mut tries = 0;
    while since.elapsed() < Duration::from_secs(seconds) {
        std::thread::park_timeout(PAUSE);
        let now = writes(kube)?;
        if now != before {
            tries += 1;
            let what = difference(&before, &now);
            anyhow::ensure!(tries <= 3, "written at rest: {what}");
            kube.progress.say(&format!("written: {what}"));
            (before, since) = (now, Instant::now());
        }
    }
    Ok(format!("(no write in {seconds} s)"))
}

/// Writes so far, by verb and kind.
fn writes(kube: &KubeCluster) -> anyhow::Result<Vec<(String, u64)>> {
    let metrics = kube.kubectl(&["get", "--raw", "/metrics"])?;
    let mut found = Vec::new();
    for line in metrics
        .lines()
        .filter(|line| line.starts_with("apiserver_request_total{"))
    {
        let (labels, count) = line.rsplit_once(' ').context("a figure without a value")?;
        let label = |name: &str| {
            let at = labels.split(&format!("{name}=\"")).nth(1)?;
            at.split('"').next()
        };
        let (Some(verb), Some(kind)) = (label("verb"), label("resource")) else {
            continue;
        };
        let part = label("subresource").unwrap_or_default();
        // A pod's status is its node's to write, whatever the operator does.
        let of_node = kind == "pods" && part == "status";
        if WRITES.contains(&verb) && KINDS.contains(&kind) && !of_node {
            let count: f64 = count.parse().context(line.to_owned())?;
            let code = label("code").unwrap_or_default();
            found.push((format!("{verb} {kind}/{part} {code}"), count as u64));
        }
    }
    found.sort();
    Ok(found)
}

fn difference(before: &[(String, u64)], now: &[(String, u64)]) -> String {
    let changed = now.iter().filter(|figure| !before.contains(figure));
    let names: Vec<_> = changed.map(|(name, _)| name.as_str()).collect();
    names.join(", ")
}
