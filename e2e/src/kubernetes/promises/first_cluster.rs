//! A first cluster: from `kubectl apply` to messages.
//!
//! **Invariant:** the time counts from the manifest to the condition that a user waits for, and
//! clients use the addresses that the status tells.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::rocketmq::RocketMq;
use serde_json::Value;

/// What the design promises of three NameServers and two groups once images are there.
const READY_SECONDS_MAX: f64 = 60.0;

/// Three NameServers and two groups of one broker.
pub(super) fn whole(kube: &KubeCluster) -> Found {
    let spec = "{version: 0.1.0, brokers: {groups: 2, replicasPerGroup: 0, storage: {size: 1Gi}}}";
    let (cluster, seconds) = RocketMq::up(kube, "whole", spec)?;
    let object = cluster.object()?;
    let status = &object["status"];
    anyhow::ensure!(status["nameServers"]["ready"] == 3, "{status}");
    anyhow::ensure!(status["groups"]["writable"] == 2, "{status}");
    let servers = cluster.name_servers()?;
    anyhow::ensure!(servers.split(';').count() == 3, "{servers}");
    cluster.admin(&["topic", "create", "hello", "--cluster", "whole"])?;
    cluster.send_and_count("hello", 20, 20)?;
    columns(&cluster)?;
    anyhow::ensure!(
        seconds <= READY_SECONDS_MAX,
        "Ready after {seconds:.1} s, {READY_SECONDS_MAX} s are promised"
    );
    Ok(format!("(Ready after {seconds:.1} s)"))
}

/// What `kubectl get` prints of it.
fn columns(cluster: &RocketMq<'_>) -> anyhow::Result<()> {
    let table = cluster
        .kube
        .kubectl(&["-n", cluster.namespace(), "get", "rmq"])?;
    for column in ["READY", "GROUPS", "WRITABLE", "VERSION", "STATUS", "AGE"] {
        anyhow::ensure!(table.contains(column), "no column {column}:\n{table}");
    }
    anyhow::ensure!(table.contains("2/2"), "{table}");
    let table = cluster
        .kube
        .kubectl(&["-n", cluster.namespace(), "get", "rmqbg"])?;
    for word in [
        "MASTER",
        "INSYNC",
        "LAG",
        "STEP",
        "whole-broker-0-0",
        "whole-broker-1-0",
    ] {
        anyhow::ensure!(table.contains(word), "no {word}:\n{table}");
    }
    Ok(())
}

/// Nothing but a version.
pub(super) fn minimal(kube: &KubeCluster) -> Found {
    let cluster = RocketMq::prepare(kube, "minimal")?;
    cluster.apply("{version: 0.1.0, brokers: {replicasPerGroup: 0}}")?;
    let object = cluster.until_ready(super::super::rocketmq::READY)?;
    let spec = &object["spec"];
    anyhow::ensure!(spec["nameServer"]["replicas"] == 3, "{spec}");
    anyhow::ensure!(spec["brokers"]["groups"] == 2, "{spec}");
    anyhow::ensure!(spec["brokers"]["storage"]["size"] == "20Gi", "{spec}");
    let phase: &Value = &object["status"]["phase"];
    anyhow::ensure!(phase == "Ready", "the phase is {phase}");
    Ok(String::new())
}
