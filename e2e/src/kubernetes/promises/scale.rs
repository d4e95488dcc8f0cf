//! NameServers and broker groups come and go while clients work.
//!
//! **Invariant:** a pod that is not asked to change is the same pod after it, by its UID, and was
//! not started again.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::rocketmq::{CHANGE, RocketMq};
use std::time::Instant;

const SMALL: &str = "{version: 0.1.0, nameServer: {replicas: 3}, \
                     brokers: {groups: 1, replicasPerGroup: 0, storage: {size: 1Gi}}, \
                     scaleIn: {policy: WaitConsumed}}";

/// NameServers 3 → 5 → 3.
pub(super) fn name_servers(kube: &KubeCluster) -> Found {
    let (cluster, _) = RocketMq::up(kube, "servers", SMALL)?;
    cluster.admin(&["topic", "create", "t", "--cluster", "servers"])?;
    cluster.send_and_count("t", 5, 5)?;
    let before = cluster.pods()?;
    for (count, sent) in [(5_i64, 10), (3, 15)] {
        cluster.patch(&format!(
            "{{\"spec\":{{\"nameServer\":{{\"replicas\":{count}}}}}}}"
        ))?;
        cluster.until(
            CHANGE,
            "as many NameServers as were asked for know the broker",
            |object| {
                let servers = &object["status"]["nameServers"];
                let pods = servers["pods"]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                servers["ready"] == count
                    && pods.len() == usize::try_from(count).unwrap_or_default()
                    && pods.iter().all(|pod| pod["registeredBrokers"] == 1)
            },
        )?;
        cluster.until_ready(CHANGE)?;
        cluster.send_and_count("t", 5, sent)?;
        same_pods(&before, &cluster.pods()?)?;
    }
    anyhow::ensure!(
        cluster.pods()?.len() == before.len(),
        "{:?}",
        cluster.pods()?
    );
    Ok(String::new())
}

/// Groups 1 → 2, with a topic that the new one must know before it takes sends.
pub(super) fn groups_out(kube: &KubeCluster) -> Found {
    let (cluster, _) = RocketMq::up(kube, "out", SMALL)?;
    cluster.admin(&[
        "topic",
        "create",
        "orders",
        "--cluster",
        "out",
        "--queues",
        "3",
    ])?;
    cluster.send_and_count("orders", 5, 5)?;
    let before = cluster.pods()?;
    let started = Instant::now();
    cluster.patch(r#"{"spec":{"brokers":{"groups":2}}}"#)?;
    cluster.until(CHANGE, "both groups take sends", |object| {
        object["status"]["groups"]["writable"] == 2
    })?;
    let seconds = started.elapsed().as_secs_f64();
    same_pods(&before, &cluster.pods()?)?;
    cluster.until_ready(CHANGE)?;
    cluster.admin(&["send", "orders", "of the new group", "--broker", "broker-1"])?;
    let route = cluster.admin(&["topic", "route", "orders"])?;
    anyhow::ensure!(
        route.contains("broker-0") && route.contains("broker-1"),
        "{route}"
    );
    Ok(format!("(writable after {seconds:.1} s)"))
}

/// Groups 2 → 1: the messages that are not consumed yet are waited for.
pub(super) fn groups_in(kube: &KubeCluster) -> Found {
    let spec = SMALL.replace("groups: 1", "groups: 2");
    let (cluster, _) = RocketMq::up(kube, "in", &spec)?;
    cluster.admin(&[
        "topic",
        "create",
        "orders",
        "--cluster",
        "in",
        "--queues",
        "2",
    ])?;
    cluster.admin(&["group", "create", "billing", "--cluster", "in"])?;
    // The group has read something once, so that what comes then is its backlog.
    cluster.admin(&["send", "orders", "first", "--broker", "broker-1"])?;
    let read = ["consume", "orders", "--group", "billing", "--from", "first"];
    cluster.admin(&[&read[..], &["--max", "1"]].concat())?;
    cluster.admin(&[
        "send", "orders", "late", "--broker", "broker-1", "--count", "4",
    ])?;
    cluster.patch(r#"{"spec":{"brokers":{"groups":1}}}"#)?;
    let group = (cluster.namespace(), "rmqbg", "in-broker-1");
    kube.until_object(group, CHANGE, "the group drains", |group| {
        matches!(
            group["status"]["drain"]["phase"].as_str(),
            Some("Cordoned" | "Draining")
        )
    })?;
    let refused = cluster.try_admin(&["send", "orders", "too late", "--broker", "broker-1"])?;
    anyhow::ensure!(
        !refused.ok,
        "a group that drains took a send: {}",
        refused.out
    );
    cluster.admin(&[&read[..], &["--max", "4"]].concat())?;
    crate::until(CHANGE, "the group is gone", || {
        Ok(kube
            .get(cluster.namespace(), "rmqbg", "in-broker-1")?
            .is_none())
    })?;
    cluster.until_ready(CHANGE)?;
    let brokers = cluster.admin(&["cluster", "list"])?;
    anyhow::ensure!(!brokers.contains("broker-1"), "{brokers}");
    let claims = kube.kubectl(&["-n", cluster.namespace(), "get", "pvc", "-o", "name"])?;
    anyhow::ensure!(
        claims.contains("in-broker-1-0"),
        "its disk is gone: {claims}"
    );
    Ok(String::new())
}

fn same_pods(
    before: &[(String, u64, String)],
    now: &[(String, u64, String)],
) -> anyhow::Result<()> {
    for pod in before {
        anyhow::ensure!(now.contains(pod), "{pod:?} was there, now: {now:?}");
    }
    Ok(())
}
