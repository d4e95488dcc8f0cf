//! Deleting a cluster.
//!
//! **Invariant:** a protected cluster stays until its name is said; disks follow their policy; and
//! nothing else is left behind.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::rocketmq::{CHANGE, RocketMq, is};
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(30);

pub(super) fn check(kube: &KubeCluster) -> Found {
    for (policy, kept) in [("Retain", true), ("Delete", false)] {
        let name = if kept { "kept" } else { "wiped" };
        let spec = format!(
            "{{version: 0.1.0, nameServer: {{replicas: 1}}, deletionPolicy: {{protect: true, pvc: \
             {policy}}}, brokers: {{groups: 1, replicasPerGroup: 0, storage: {{size: 1Gi, \
             retainPolicy: {policy}}}, terminationGracePeriod: 5s}}}}"
        );
        let (cluster, _) = RocketMq::up(kube, name, &spec)?;
        let object = format!("rmq/{name}");
        let namespace = cluster.namespace();
        let before = cluster.pods()?;
        kube.kubectl(&["-n", namespace, "delete", &object, "--wait=false"])?;
        kube.until_object(
            (namespace, "rmq", name),
            GRACE,
            "the deletion waits",
            |object| is(object, "DeletionBlocked"),
        )?;
        anyhow::ensure!(cluster.pods()? == before, "a protected cluster lost pods");
        let word = format!("rocketmq.rs/allow-deletion={name}");
        kube.kubectl(&["-n", namespace, "annotate", &object, &word])?;
        let labels = format!("rocketmq.rs/cluster={name}");
        let kinds =
            "rmqbg,statefulsets,services,configmaps,serviceaccounts,pods,pdb,networkpolicies";
        crate::until(CHANGE, "everything is gone", || {
            Ok(kube.get(namespace, "rmq", name)?.is_none()
                && kube.list(namespace, kinds, &labels)?.is_empty())
        })?;
        crate::until(GRACE, "the disk follows its policy", || {
            let claims = kube.kubectl(&["-n", namespace, "get", "pvc", "-o", "name"])?;
            Ok(claims.contains("data-") == kept)
        })?;
    }
    Ok(String::new())
}
