//! Edits of a running cluster: what takes effect at once, what by a roll, what is refused, and what
//! stops.
//!
//! **Invariant:** a live key changes no pod; a roll that meets a broken pod touches no second one.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::rocketmq::{CHANGE, RocketMq, condition};
use std::time::{Duration, Instant};

const TWO: &str = "{version: 0.1.0, nameServer: {replicas: 1}, \
                   brokers: {groups: 2, replicasPerGroup: 0, storage: {size: 1Gi}, \
                   terminationGracePeriod: 10s}, updateStrategy: {canary: {soak: 1s}}}";
/// What the design promises of a live key.
const LIVE: Duration = Duration::from_secs(10);
/// What the design promises of a pod that cannot run.
const TOLD: Duration = Duration::from_secs(30);

/// A key that brokers take while they run, then one that they read when they start.
pub(super) fn configuration(kube: &KubeCluster) -> Found {
    let (cluster, _) = RocketMq::up(kube, "config", TWO)?;
    let before = cluster.pods()?;
    let started = Instant::now();
    cluster.patch(r#"{"spec":{"brokers":{"config":{"fileReservedTime":"17"}}}}"#)?;
    cluster.until(LIVE, "the live key is applied", |object| {
        super::super::rocketmq::is(object, "ConfigApplied")
    })?;
    let live = started.elapsed().as_secs_f64();
    anyhow::ensure!(cluster.pods()? == before, "a live key changed pods");
    cluster.patch(r#"{"spec":{"brokers":{"config":{"maxHashSlotNum":"100000"}}}}"#)?;
    cluster.until(CHANGE, "the roll is over", |object| {
        let rollout = &object["status"]["rollout"];
        super::super::rocketmq::is(object, "ConfigApplied")
            && rollout["updated"] == rollout["total"]
            && condition(object, "Progressing").0 == "False"
    })?;
    cluster.until_ready(CHANGE)?;
    let after = cluster.pods()?;
    let brokers = |pods: &[(String, u64, String)]| -> Vec<String> {
        let brokers = pods.iter().filter(|pod| pod.0.contains("broker"));
        brokers.map(|pod| pod.2.clone()).collect()
    };
    let (old, new) = (brokers(&before), brokers(&after));
    anyhow::ensure!(
        new.len() == 2 && !new.iter().any(|uid| old.contains(uid)),
        "{after:?}"
    );
    Ok(format!("(live key after {live:.1} s)"))
}

/// An image that is not there: the first pod stops, the roll stops, the second is left alone.
pub(super) fn broken_image(kube: &KubeCluster) -> Found {
    let (cluster, _) = RocketMq::up(kube, "broken", TWO)?;
    let before = cluster.pods()?;
    let (repository, tag) = kube.image();
    let patch = |tag: &str| {
        format!(
            r#"{{"spec":{{"image":{{"repository":"{repository}","tag":"{tag}","pullPolicy":"Never"}}}}}}"#
        )
    };
    cluster.patch(&patch("0.0.0-not-there"))?;
    let started = Instant::now();
    let object = cluster.until(TOLD, "the status says that an image is missing", |object| {
        condition(object, "Degraded") == ("True", "ImagePullFailed")
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let changed =
        |now: &[(String, u64, String)]| before.iter().filter(|pod| !now.contains(pod)).count();
    anyhow::ensure!(changed(&cluster.pods()?) <= 1, "{:?}", cluster.pods()?);
    let waiting = &object["status"]["rollout"]["waitingOn"];
    anyhow::ensure!(
        waiting["pod"].is_string(),
        "nothing says what is waited for: {object}"
    );
    cluster.patch(&patch(tag))?;
    cluster.until_ready(CHANGE)?;
    Ok(format!("(told after {seconds:.1} s)"))
}

/// A disk grows, and never shrinks.
pub(super) fn disk(kube: &KubeCluster) -> Found {
    let (cluster, _) = RocketMq::up(kube, "disk", TWO)?;
    let before = cluster.pods()?;
    cluster.patch(r#"{"spec":{"brokers":{"storage":{"size":"2Gi"}}}}"#)?;
    let claim = (cluster.namespace(), "pvc", "data-disk-broker-0-0");
    kube.until_object(claim, CHANGE, "the claim has grown", |claim| {
        claim["status"]["capacity"]["storage"] == "2Gi"
    })?;
    cluster.until_ready(CHANGE)?;
    anyhow::ensure!(cluster.pods()? == before, "growing a disk changed pods");
    let shrunk = cluster.patch(r#"{"spec":{"brokers":{"storage":{"size":"1Gi"}}}}"#);
    let refusal = shrunk
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    anyhow::ensure!(
        refusal.contains("storage"),
        "shrinking was not refused: {refusal:?}"
    );
    Ok(String::new())
}

/// Nothing is written while the cluster is paused, and all of it after.
pub(super) fn pause(kube: &KubeCluster) -> Found {
    let (cluster, _) = RocketMq::up(kube, "paused", TWO)?;
    cluster.patch(r#"{"spec":{"operation":{"paused":true}}}"#)?;
    cluster.until(CHANGE, "the status says so", |object| {
        super::super::rocketmq::is(object, "Paused")
    })?;
    let words = [
        "-n",
        cluster.namespace(),
        "delete",
        "service",
        "paused-namesrv",
    ];
    kube.kubectl(&words)?;
    // A status that speaks of the newer generation shows that the operator has looked since.
    cluster.patch(r#"{"spec":{"nameServer":{"replicas":2}}}"#)?;
    cluster.until(CHANGE, "the edit was seen", |_| true)?;
    let service = kube.get(cluster.namespace(), "service", "paused-namesrv")?;
    anyhow::ensure!(service.is_none(), "a Service was made while paused");
    cluster.patch(r#"{"spec":{"operation":{"paused":false}}}"#)?;
    let place = (cluster.namespace(), "service", "paused-namesrv");
    kube.until_object(place, CHANGE, "the Service is there again", |_| true)?;
    cluster.until_ready(CHANGE)?;
    Ok(String::new())
}
