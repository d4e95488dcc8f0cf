//! One run of the product's tools inside the cluster, as a client there.
//!
//! **Invariant:** a pod's name is used once; a run that fails is an error with what it said.

use super::cluster::KubeCluster;
use anyhow::Context as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A pod without rights, as YAML in one line.
pub(super) const SECURITY: &str = "{runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, \
                                   fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}";
/// Its containers.
pub(super) const CONTAINER_SECURITY: &str =
    "{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}";

const END: Duration = Duration::from_secs(90);
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Runs `rocketmq` with these words to its end and gives what it printed.
pub(super) fn run(
    cluster: &KubeCluster,
    namespace: &str,
    words: &[&str],
) -> anyhow::Result<String> {
    let name = start(cluster, namespace, words)?;
    let pod = cluster.until_object((namespace, "pod", &name), END, "the end of a pod", |pod| {
        matches!(
            pod["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        )
    })?;
    let log = cluster.kubectl(&["-n", namespace, "logs", &name])?;
    cluster.kubectl(&["-n", namespace, "delete", "pod", &name, "--wait=false"])?;
    anyhow::ensure!(
        pod["status"]["phase"] == "Succeeded",
        "rocketmq {} in a pod: {}",
        words.join(" "),
        log.trim()
    );
    Ok(log)
}

/// Starts `rocketmq` with these words and gives the pod's name.
pub(super) fn start(
    cluster: &KubeCluster,
    namespace: &str,
    words: &[&str],
) -> anyhow::Result<String> {
    let name = format!("tool-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let arguments = serde_json::to_string(words).context("words as JSON")?;
    let image = cluster.image_name();
    cluster.apply(&format!(
        r"
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{app: tool}}}}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 1
  securityContext: {SECURITY}
  containers:
  - name: tool
    image: {image}
    imagePullPolicy: IfNotPresent
    args: {arguments}
    securityContext: {CONTAINER_SECURITY}
"
    ))?;
    Ok(name)
}
