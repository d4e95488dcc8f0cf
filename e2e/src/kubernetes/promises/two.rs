//! Two clusters of one name in two namespaces.
//!
//! **Invariant:** what is made in one is not seen in the other.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::rocketmq::{READY, RocketMq};

pub(super) fn check(kube: &KubeCluster) -> Found {
    let spec = "{version: 0.1.0, nameServer: {replicas: 1}, \
                brokers: {groups: 1, replicasPerGroup: 0, storage: {size: 1Gi}}}";
    let first = RocketMq::prepare(kube, "twin")?;
    let second = RocketMq::prepare(kube, "twin")?;
    first.apply(spec)?;
    second.apply(spec)?;
    first.until_ready(READY)?;
    second.until_ready(READY)?;
    for (cluster, topic) in [(&first, "of-first"), (&second, "of-second")] {
        cluster.admin(&["topic", "create", topic, "--cluster", "twin"])?;
        cluster.send_and_count(topic, 3, 3)?;
    }
    for (cluster, own, other) in [
        (&first, "of-first", "of-second"),
        (&second, "of-second", "of-first"),
    ] {
        let topics = cluster.admin(&["topic", "list"])?;
        anyhow::ensure!(topics.contains(own) && !topics.contains(other), "{topics}");
        let brokers = cluster.admin(&["cluster", "list", "-o", "json"])?;
        let count = brokers.lines().filter(|line| line.starts_with('{')).count();
        anyhow::ensure!(count == 1, "{count} brokers: {brokers}");
    }
    Ok(String::new())
}
