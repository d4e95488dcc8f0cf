//! A namespace of one test.
//!
//! **Invariant:** it goes with its owner, with all that is in it; nobody waits for that.

use super::cluster::KubeCluster;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What all of them have.
const LABEL: &str = "rocketmq-e2e=test";
const GONE: Duration = Duration::from_mins(3);
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A namespace.
#[derive(Debug)]
pub(super) struct Namespace<'a> {
    cluster: &'a KubeCluster,
    name: String,
}

impl<'a> Namespace<'a> {
    /// Makes one in which only pods without rights may run.
    pub(super) fn new(cluster: &'a KubeCluster, purpose: &str) -> anyhow::Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("e2e-{purpose}-{}-{number}", std::process::id());
        let label = LABEL.replace('=', ": ");
        cluster.apply(&format!(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n  labels:\n    \
             {label}\n    pod-security.kubernetes.io/enforce: restricted\n"
        ))?;
        Ok(Self { cluster, name })
    }

    /// Waits until the namespaces of earlier tests are gone, with what Kubernetes writes about that.
    pub(super) fn until_alone(&self) -> anyhow::Result<()> {
        crate::until(GONE, "the namespaces of earlier tests are gone", || {
            let words = ["get", "namespaces", "-l", LABEL, "-o", "name"];
            let all = self.cluster.kubectl(&words)?;
            Ok(all.lines().all(|line| line.ends_with(&self.name)))
        })
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        let words = ["delete", "namespace", &self.name, "--wait=false"];
        if let Err(error) = self.cluster.kubectl(&words) {
            eprintln!("{error:#}");
        }
    }
}
