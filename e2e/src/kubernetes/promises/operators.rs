//! Operators come and go; clusters stay.
//!
//! **Invariant:** no pod of a cluster changes because an operator did.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::operator;
use super::super::rocketmq::{CHANGE, READY, RocketMq};
use anyhow::Context as _;
use std::time::Instant;

const SPEC: &str = "{version: 0.1.0, nameServer: {replicas: 1}, \
                    brokers: {groups: 1, replicasPerGroup: 0, storage: {size: 1Gi}}}";

/// The one that works is killed: the other one takes over and does what is asked then.
pub(super) fn leader_lost(kube: &KubeCluster) -> Found {
    let (cluster, _) = RocketMq::up(kube, "leader", SPEC)?;
    let before = cluster.pods()?;
    let leader = operator::leader(kube)?.context("nobody leads")?;
    let words = [
        "-n",
        operator::NAMESPACE,
        "delete",
        "pod",
        &leader,
        "--grace-period=0",
        "--force",
    ];
    kube.kubectl(&words)?;
    let started = Instant::now();
    cluster.patch(r#"{"spec":{"nameServer":{"replicas":2}}}"#)?;
    cluster.until(READY, "the edit was carried out", |object| {
        object["status"]["nameServers"]["ready"] == 2
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let now = operator::leader(kube)?.context("nobody leads")?;
    anyhow::ensure!(now != leader, "{now} leads still");
    let after = cluster.pods()?;
    anyhow::ensure!(before.iter().all(|pod| after.contains(pod)), "{after:?}");
    Ok(format!(
        "(an edit was carried out {seconds:.1} s after the kill)"
    ))
}

/// Installed again over clusters that run.
pub(super) fn reinstalled(kube: &KubeCluster) -> Found {
    let (cluster, _) = RocketMq::up(kube, "again", SPEC)?;
    cluster.admin(&["topic", "create", "t", "--cluster", "again"])?;
    cluster.send_and_count("t", 3, 3)?;
    let before = cluster.pods()?;
    kube.helm(&[
        "uninstall",
        operator::RELEASE,
        "-n",
        operator::NAMESPACE,
        "--wait",
    ])?;
    anyhow::ensure!(
        cluster.pods()? == before,
        "uninstalling the operator changed pods"
    );
    cluster.send_and_count("t", 3, 6)?;
    operator::install(kube)?;
    // An edit that is carried out shows that the new operator has looked at everything.
    cluster.patch(r#"{"spec":{"nameServer":{"replicas":2}}}"#)?;
    cluster.until_ready(CHANGE)?;
    let after = cluster.pods()?;
    anyhow::ensure!(before.iter().all(|pod| after.contains(pod)), "{after:?}");
    Ok(String::new())
}
