//! What others change or delete is put right.
//!
//! **Invariant:** each repair is timed from the change to the object as it was, by its UID or its
//! content, and told in an event.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::rocketmq::RocketMq;
use anyhow::Context as _;
use serde_json::Value;
use std::time::{Duration, Instant};

/// What the design promises.
const REPAIR: Duration = Duration::from_secs(5);

pub(super) fn check(kube: &KubeCluster) -> Found {
    let spec = "{version: 0.1.0, nameServer: {replicas: 1}, \
                brokers: {groups: 1, replicasPerGroup: 0, storage: {size: 1Gi}}}";
    let (cluster, _) = RocketMq::up(kube, "drift", spec)?;
    let slowest = [
        deleted_service(&cluster)?,
        edited_config(&cluster)?,
        stripped_labels(&cluster)?,
    ]
    .into_iter()
    .max()
    .unwrap_or_default();
    crate::until(REPAIR, "an event DriftCorrected", || {
        cluster.has_event("DriftCorrected")
    })?;
    cluster.until_ready(REPAIR)?;
    Ok(format!("(slowest repair {:.1} s)", slowest.as_secs_f64()))
}

fn deleted_service(cluster: &RocketMq<'_>) -> anyhow::Result<Duration> {
    let name = "drift-namesrv";
    let before = object(cluster, "service", name)?;
    cluster
        .kube
        .kubectl(&["-n", cluster.namespace(), "delete", "service", name])?;
    let started = Instant::now();
    let place = (cluster.namespace(), "service", name);
    cluster
        .kube
        .until_object(place, REPAIR, "the Service is there again", |now| {
            now["metadata"]["uid"] != before["metadata"]["uid"]
                && now["spec"]["selector"] == before["spec"]["selector"]
        })?;
    Ok(started.elapsed())
}

fn edited_config(cluster: &RocketMq<'_>) -> anyhow::Result<Duration> {
    let name = "drift-broker-0";
    let before = object(cluster, "configmap", name)?;
    let key = before["data"]
        .as_object()
        .and_then(|data| data.keys().next());
    let key = key.with_context(|| format!("configmap {name} is empty"))?;
    let patch = serde_json::json!({ "data": { key: "edited = true\n" } }).to_string();
    let words = [
        "-n",
        cluster.namespace(),
        "patch",
        "configmap",
        name,
        "--type=merge",
        "-p",
        &patch,
    ];
    cluster.kube.kubectl(&words)?;
    let started = Instant::now();
    let place = (cluster.namespace(), "configmap", name);
    cluster
        .kube
        .until_object(place, REPAIR, "the ConfigMap is as it was", |now| {
            now["data"] == before["data"]
        })?;
    Ok(started.elapsed())
}

fn stripped_labels(cluster: &RocketMq<'_>) -> anyhow::Result<Duration> {
    let name = "drift-broker-0";
    let before = object(cluster, "statefulset", name)?;
    let labels = before["metadata"]["labels"]
        .as_object()
        .context("no labels")?;
    let removals: Vec<String> = labels.keys().map(|label| format!("{label}-")).collect();
    let mut words = vec!["-n", cluster.namespace(), "label", "statefulset", name];
    words.extend(removals.iter().map(String::as_str));
    cluster.kube.kubectl(&words)?;
    let started = Instant::now();
    let place = (cluster.namespace(), "statefulset", name);
    cluster
        .kube
        .until_object(place, REPAIR, "the labels are there again", |now| {
            now["metadata"]["labels"] == before["metadata"]["labels"]
        })?;
    Ok(started.elapsed())
}

fn object(cluster: &RocketMq<'_>, kind: &str, name: &str) -> anyhow::Result<Value> {
    let object = cluster.kube.get(cluster.namespace(), kind, name)?;
    object.with_context(|| format!("{kind} {name} is not there"))
}
