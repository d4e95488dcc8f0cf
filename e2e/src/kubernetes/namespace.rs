//! A namespace of one test.
//!
//! **Invariant:** it goes with its owner, with all that is in it; nobody waits for that.

use super::cluster::KubeCluster;
use std::sync::atomic::{AtomicU32, Ordering};

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
        cluster.apply(&format!(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n  labels:\n    \
             rocketmq-e2e: test\n    pod-security.kubernetes.io/enforce: restricted\n"
        ))?;
        Ok(Self { cluster, name })
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
