//! Topic and ConsumerGroup objects.
//!
//! **Invariant:** what an object says is on every group, later ones too; deleting it deletes no
//! message unless it said so.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::rocketmq::{CHANGE, RocketMq, is};

pub(super) fn check(kube: &KubeCluster) -> Found {
    let spec = "{version: 0.1.0, nameServer: {replicas: 1}, \
                brokers: {groups: 1, replicasPerGroup: 0, storage: {size: 1Gi}}}";
    let (cluster, _) = RocketMq::up(kube, "objects", spec)?;
    let namespace = cluster.namespace();
    kube.apply(&format!(
        r"
apiVersion: rocketmq.rs/v1alpha1
kind: Topic
metadata: {{name: kept, namespace: {namespace}}}
spec: {{cluster: objects, writeQueues: 3, readQueues: 3}}
---
apiVersion: rocketmq.rs/v1alpha1
kind: Topic
metadata: {{name: gone, namespace: {namespace}}}
spec: {{cluster: objects, topic: Gone_Topic, deletionPolicy: Delete}}
---
apiVersion: rocketmq.rs/v1alpha1
kind: ConsumerGroup
metadata: {{name: billing, namespace: {namespace}}}
spec: {{cluster: objects}}
"
    ))?;
    for (kind, name) in [("rmqt", "kept"), ("rmqt", "gone"), ("rmqcg", "billing")] {
        kube.until_object(
            (namespace, kind, name),
            CHANGE,
            "the object is Ready",
            |object| is(object, "Ready"),
        )?;
    }
    cluster.send_and_count("kept", 4, 4)?;
    cluster.patch(r#"{"spec":{"brokers":{"groups":2}}}"#)?;
    cluster.until_ready(CHANGE)?;
    let later = |topic: &str| cluster.admin(&["send", topic, "x", "--broker", "broker-1"]);
    later("kept")?;
    later("Gone_Topic")?;
    for object in ["rmqt/kept", "rmqt/gone"] {
        kube.kubectl(&["-n", namespace, "delete", object, "--timeout=25s"])?;
    }
    let topics = cluster.admin(&["topic", "list"])?;
    anyhow::ensure!(
        topics.contains("kept"),
        "a topic that should stay is gone: {topics}"
    );
    anyhow::ensure!(!topics.contains("Gone_Topic"), "{topics}");
    Ok(String::new())
}
