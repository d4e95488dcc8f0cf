//! The operator that all promises share, installed as the README installs it.
//!
//! **Invariant:** one release in one namespace; a run that finds it upgrades it.

use super::cluster::KubeCluster;
use std::time::Duration;

/// Release and namespace.
pub(super) const RELEASE: &str = "rocketmq-operator";
pub(super) const NAMESPACE: &str = "rocketmq-e2e-operator";
const CRDS: &str = "rocketmq-operator-crds";
/// From an edit of the Deployment to its end.
pub(super) const ROLL: Duration = Duration::from_mins(2);

/// Installs or upgrades both charts and waits until the operator works.
pub(super) fn install(cluster: &KubeCluster) -> anyhow::Result<()> {
    cluster.helm(&[
        "upgrade",
        "--install",
        CRDS,
        "charts/operator-crds",
        "--wait",
    ])?;
    let (repository, tag) = cluster.image();
    let repository = format!("image.repository={repository}");
    let tag = format!("image.tag={tag}");
    cluster.helm(&[
        "upgrade",
        "--install",
        RELEASE,
        "charts/operator",
        "--namespace",
        NAMESPACE,
        "--create-namespace",
        "--set",
        "watch.mode=all",
        "--set",
        &repository,
        "--set-string",
        &tag,
        // A tag that means another image in every run.
        "--set-string",
        &format!("podAnnotations.run=\"{}\"", std::process::id()),
        "--wait",
        "--timeout",
        "120s",
    ])?;
    Ok(())
}

/// Name of the pod that holds the Lease.
pub(super) fn leader(cluster: &KubeCluster) -> anyhow::Result<Option<String>> {
    let lease = cluster.get(NAMESPACE, "lease", RELEASE)?;
    let holder =
        lease.and_then(|lease| lease["spec"]["holderIdentity"].as_str().map(str::to_owned));
    Ok(holder.filter(|holder| !holder.is_empty()))
}
