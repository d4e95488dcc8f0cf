//! A version that cannot follow the one that runs.
//!
//! **Invariant:** it is refused with its reason, and no pod changes.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::rocketmq::{CHANGE, RocketMq, condition};

const SPEC: &str = "{version: 0.1.0, nameServer: {replicas: 1}, \
                    brokers: {groups: 1, replicasPerGroup: 0, storage: {size: 1Gi}}}";

pub(super) fn check(kube: &KubeCluster) -> Found {
    let (cluster, _) = RocketMq::up(kube, "older", SPEC)?;
    let before = cluster.pods()?;
    cluster.patch(r#"{"spec":{"version":"0.0.9"}}"#)?;
    let object = cluster.until(CHANGE, "the status refuses the version", |object| {
        condition(object, "VersionSupported") == ("False", "DowngradeForbidden")
    })?;
    let said = object["status"]["waitingOn"]["reason"].as_str();
    let said = said.unwrap_or_default().to_owned();
    anyhow::ensure!(
        said.contains("0.1.0") && said.contains("0.0.9"),
        "the reason names no version: {said:?}"
    );
    anyhow::ensure!(cluster.pods()? == before, "{:?}", cluster.pods()?);
    cluster.patch(r#"{"spec":{"version":"0.1.0"}}"#)?;
    cluster.until_ready(CHANGE)?;
    anyhow::ensure!(cluster.pods()? == before, "{:?}", cluster.pods()?);
    Ok(String::new())
}
