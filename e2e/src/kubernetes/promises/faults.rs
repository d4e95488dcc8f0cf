//! What breaks beside a cluster: a pod that cannot be placed, a disk that is lost, an API server
//! that is away.
//!
//! **Invariant:** each is told in the status; nothing that still works is touched; and what was asked
//! for in the meantime is done when the fault is over, by itself.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::docker::docker;
use super::super::rocketmq::{CHANGE, READY, RocketMq, condition};
use anyhow::Context as _;
use std::time::{Duration, Instant};

const TWO: &str = "{version: 0.1.0, nameServer: {replicas: 1}, brokers: {groups: 2, replicasPerGroup: \
                   0, storage: {size: 1Gi}, terminationGracePeriod: 10s}, updateStrategy: {canary: \
                   {soak: 1s}}}";
/// What the design promises of a fault that is over.
const RECOVERY: Duration = Duration::from_secs(30);
const STOPPED: &str = "/kind/kube-apiserver.yaml";
const MANIFEST: &str = "/etc/kubernetes/manifests/kube-apiserver.yaml";

/// Nodes that take no new pod, until it is dropped.
struct Cordon<'a>(&'a KubeCluster);

impl<'a> Cordon<'a> {
    fn all(kube: &'a KubeCluster) -> anyhow::Result<Self> {
        let cordon = Self(kube);
        kube.kubectl(&["cordon", "-l", "kubernetes.io/os=linux"])?;
        Ok(cordon)
    }
}

impl Drop for Cordon<'_> {
    fn drop(&mut self) {
        if let Err(error) = self
            .0
            .kubectl(&["uncordon", "-l", "kubernetes.io/os=linux"])
        {
            eprintln!("{error:#}");
        }
    }
}

/// A roll is asked for while a pod of another group cannot be placed.
pub(super) fn pod_down(kube: &KubeCluster) -> Found {
    let (cluster, _) = RocketMq::up(kube, "down", TWO)?;
    let uid_of = |name: &str| -> anyhow::Result<Option<String>> {
        let pods = cluster.pods()?;
        Ok(pods.into_iter().find(|pod| pod.0 == name).map(|pod| pod.2))
    };
    let healthy = uid_of("down-broker-0-0")?;
    let cordon = Cordon::all(kube)?;
    let victim = "down-broker-1-0";
    kube.kubectl(&[
        "-n",
        cluster.namespace(),
        "delete",
        "pod",
        victim,
        "--wait=false",
    ])?;
    cluster.until(
        CHANGE,
        "the status names the pod that cannot be placed",
        |object| condition(object, "Degraded") == ("True", "Unschedulable"),
    )?;
    cluster.patch(r#"{"spec":{"brokers":{"config":{"maxHashSlotNum":"100000"}}}}"#)?;
    let object = cluster.until(CHANGE, "the roll waits and says for what", |object| {
        let waiting = &object["status"]["rollout"]["waitingOn"];
        waiting["pod"].is_string() && waiting["reason"].is_string()
    })?;
    anyhow::ensure!(
        uid_of("down-broker-0-0")? == healthy,
        "a second group was disturbed: {}",
        object["status"]
    );
    drop(cordon);
    cluster.until(CHANGE, "the roll went on by itself", |object| {
        let rollout = &object["status"]["rollout"];
        rollout["updated"] == rollout["total"] && condition(object, "Progressing").0 == "False"
    })?;
    cluster.until_ready(CHANGE)?;
    anyhow::ensure!(
        uid_of("down-broker-0-0")? != healthy,
        "the roll left a pod out"
    );
    Ok(String::new())
}

/// The disk of the only member is lost: told, and replaced when the user says so, not before.
pub(super) fn disk_lost(kube: &KubeCluster) -> Found {
    let (cluster, _) = RocketMq::up(kube, "lost", TWO)?;
    let (namespace, claim) = (cluster.namespace(), "data-lost-broker-1-0");
    let object = kube.get(namespace, "pvc", claim)?.context("no claim")?;
    let volume = object["spec"]["volumeName"].as_str().context("not bound")?;
    kube.kubectl(&["delete", "pv", volume, "--wait=false"])?;
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    kube.kubectl(&["patch", "pv", volume, "--type=merge", "-p", patch])?;
    cluster.until(CHANGE, "the status names the lost disk", |object| {
        condition(object, "Degraded") == ("True", "VolumeLost")
    })?;
    let before = cluster.pods()?;
    cluster.patch(r#"{"spec":{"brokers":{"config":{"fileReservedTime":"17"}}}}"#)?;
    cluster.until(CHANGE, "the operator has looked again", |object| {
        condition(object, "ConfigApplied").0 == "True"
    })?;
    let same = kube.get(namespace, "pvc", claim)?.context("no claim")?;
    anyhow::ensure!(
        same["metadata"]["uid"] == object["metadata"]["uid"] && cluster.pods()? == before,
        "the only copy was given up without a word of the user"
    );
    let word = "rocketmq.rs/replace=pvc";
    kube.kubectl(&["-n", namespace, "annotate", "pod", "lost-broker-1-0", word])?;
    kube.until_object(
        (namespace, "pvc", claim),
        CHANGE,
        "another disk is there",
        |now| {
            now["metadata"]["uid"] != object["metadata"]["uid"] && now["status"]["phase"] == "Bound"
        },
    )?;
    cluster.until_ready(CHANGE)?;
    cluster.admin(&["topic", "create", "again", "--cluster", "lost"])?;
    cluster.send_and_count("again", 4, 4)?;
    Ok(String::new())
}

/// The API server goes away for some seconds and comes back.
pub(super) fn api_server_away(kube: &KubeCluster) -> Found {
    if kube.own().is_none() {
        return Ok("not asked: the cluster is not one of ours".to_owned());
    }
    let (cluster, _) = RocketMq::up(kube, "away", TWO)?;
    cluster.admin(&["topic", "create", "t", "--cluster", "away"])?;
    cluster.send_and_count("t", 3, 3)?;
    let before = cluster.pods()?;
    let node = kube.nodes().first().context("no node")?;
    docker(&["exec", node, "mv", MANIFEST, STOPPED])?;
    let away = crate::until(CHANGE, "the API server is away", || {
        Ok(!kube.try_kubectl(&["get", "--raw", "/readyz"], None)?.ok)
    });
    docker(&["exec", node, "mv", STOPPED, MANIFEST])?;
    away?;
    crate::until(CHANGE, "the API server is back", || {
        Ok(kube.try_kubectl(&["get", "--raw", "/readyz"], None)?.ok)
    })?;
    let started = Instant::now();
    cluster.patch(r#"{"spec":{"brokers":{"config":{"fileReservedTime":"17"}}}}"#)?;
    cluster.until(RECOVERY, "an edit is carried out", |object| {
        condition(object, "ConfigApplied").0 == "True"
    })?;
    let seconds = started.elapsed().as_secs_f64();
    cluster.until_ready(READY)?;
    anyhow::ensure!(cluster.pods()? == before, "{:?}", cluster.pods()?);
    cluster.send_and_count("t", 3, 6)?;
    Ok(format!(
        "(an edit was carried out {seconds:.1} s after it was back)"
    ))
}
