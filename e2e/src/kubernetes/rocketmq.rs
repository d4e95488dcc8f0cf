//! A `RocketMQCluster` of a test, and a client beside it.
//!
//! **Invariant:** looks and changes as a user does: manifests, `kubectl get`, and the product's own
//! tools in a pod.

use super::cluster::KubeCluster;
use super::command::Said;
use super::namespace::Namespace;
use super::pod::{CONTAINER_SECURITY, SECURITY};
use anyhow::Context as _;
use serde_json::Value;
use std::time::{Duration, Instant};

/// From a manifest to Ready.
pub(super) const READY: Duration = Duration::from_mins(2);
/// From an edit to its end, where pods are started.
pub(super) const CHANGE: Duration = Duration::from_mins(3);
const TOOLBOX: &str = "toolbox";

/// A cluster in a namespace of its own.
#[derive(Debug)]
pub(super) struct RocketMq<'a> {
    pub(super) kube: &'a KubeCluster,
    namespace: Namespace<'a>,
    name: String,
}

impl<'a> RocketMq<'a> {
    /// A namespace with a client in it, and no cluster yet.
    pub(super) fn prepare(kube: &'a KubeCluster, name: &str) -> anyhow::Result<Self> {
        let namespace = Namespace::new(kube, name)?;
        let image = kube.image_name();
        // A NameServer that nobody asks, for its image has the tools and no shell.
        kube.apply(&format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{name: {TOOLBOX}, namespace: {}, labels: {{app: {TOOLBOX}}}}}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 1
  securityContext: {SECURITY}
  containers:
  - name: {TOOLBOX}
    image: {image}
    imagePullPolicy: IfNotPresent
    args: [namesrv, --data, /tmp/namesrv, --http, "127.0.0.1:0"]
    securityContext: {CONTAINER_SECURITY}
    volumeMounts: [{{name: tmp, mountPath: /tmp}}]
  volumes: [{{name: tmp, emptyDir: {{}}}}]
"#,
            namespace.name()
        ))?;
        Ok(Self {
            kube,
            namespace,
            name: name.to_owned(),
        })
    }

    /// Applies a manifest with this spec, in YAML or JSON of one line.
    pub(super) fn apply(&self, spec: &str) -> anyhow::Result<()> {
        self.kube.apply(&format!(
            "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata:\n  name: {}\n  \
             namespace: {}\nspec: {spec}\n",
            self.name,
            self.namespace()
        ))
    }

    /// Applies a manifest and waits until it is Ready; gives the seconds that took.
    pub(super) fn up(kube: &'a KubeCluster, name: &str, spec: &str) -> anyhow::Result<(Self, f64)> {
        let cluster = Self::prepare(kube, name)?;
        let started = Instant::now();
        cluster.apply(spec)?;
        cluster.until_ready(READY)?;
        Ok((cluster, started.elapsed().as_secs_f64()))
    }

    /// Its namespace.
    pub(super) fn namespace(&self) -> &str {
        self.namespace.name()
    }

    /// Waits until nothing of earlier tests is left.
    pub(super) fn until_alone(&self) -> anyhow::Result<()> {
        self.namespace.until_alone()
    }

    /// The object.
    pub(super) fn object(&self) -> anyhow::Result<Value> {
        let object = self.kube.get(self.namespace(), "rmq", &self.name)?;
        object.with_context(|| format!("rmq/{} is gone", self.name))
    }

    /// Waits until its status speaks of this generation and holds.
    pub(super) fn until(
        &self,
        limit: Duration,
        what: &str,
        mut holds: impl FnMut(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let object = (self.namespace(), "rmq", self.name.as_str());
        self.kube.until_object(object, limit, what, |object| {
            object["status"]["observedGeneration"] == object["metadata"]["generation"]
                && holds(object)
        })
    }

    /// Waits until everything that was asked for runs and answers.
    pub(super) fn until_ready(&self, limit: Duration) -> anyhow::Result<Value> {
        self.until(limit, "the cluster is Ready", |object| {
            is(object, "Ready") && condition(object, "Progressing").0 != "True"
        })
        .with_context(|| self.what_runs())
    }

    /// Waits until [`Self::admin`] can be asked.
    fn until_toolbox(&self) -> anyhow::Result<()> {
        let pod = format!("pod/{TOOLBOX}");
        let words = [
            "-n",
            self.namespace(),
            "wait",
            "--for=condition=Ready",
            &pod,
            "--timeout=25s",
        ];
        self.kube.kubectl(&words).map(|_| ())
    }

    /// Changes the spec by a merge patch.
    pub(super) fn patch(&self, patch: &str) -> anyhow::Result<()> {
        let words = [
            "-n",
            self.namespace(),
            "patch",
            "rmq",
            &self.name,
            "--type=merge",
            "-p",
            patch,
        ];
        self.kube.kubectl(&words).map(|_| ())
    }

    /// The list of NameServers that clients are told.
    pub(super) fn name_servers(&self) -> anyhow::Result<String> {
        let object = self.object()?;
        let list = object["status"]["endpoints"]["nameServer"].as_str();
        list.map(str::to_owned)
            .context("no endpoints in the status")
    }

    /// `rocketmq admin` with these words in a pod of the namespace, whatever it answers.
    pub(super) fn try_admin(&self, words: &[&str]) -> anyhow::Result<Said> {
        let servers = self.name_servers()?;
        self.until_toolbox()?;
        let mut all = vec![
            "-n",
            self.namespace(),
            "exec",
            TOOLBOX,
            "--",
            "rocketmq",
            "admin",
        ];
        all.extend(words);
        all.extend(["--namesrv", &servers]);
        self.kube.try_kubectl(&all, None)
    }

    /// `rocketmq admin` with these words, which must succeed.
    pub(super) fn admin(&self, words: &[&str]) -> anyhow::Result<String> {
        let said = self.try_admin(words)?;
        let what = words.join(" ");
        anyhow::ensure!(
            said.ok,
            "rocketmq admin {what}: {}{}",
            said.err.trim(),
            said.out.trim()
        );
        Ok(said.out)
    }

    /// Sends `count` messages to a topic that is there, and counts them as somebody who reads from
    /// the first.
    pub(super) fn send_and_count(
        &self,
        topic: &str,
        count: u32,
        in_all: u32,
    ) -> anyhow::Result<()> {
        self.admin(&["send", topic, "hello", "--count", &count.to_string()])?;
        let words = [
            "consume",
            topic,
            "--from",
            "first",
            "--max",
            &in_all.to_string(),
            "-o",
            "json",
        ];
        let text = self.admin(&words)?;
        let read = text.lines().filter(|line| line.starts_with('{')).count();
        anyhow::ensure!(
            u32::try_from(read)? == in_all,
            "{read} messages of {in_all} in {topic}: {text}"
        );
        Ok(())
    }

    /// Its pods by name, with how often their containers were started again and their UIDs.
    pub(super) fn pods(&self) -> anyhow::Result<Vec<(String, u64, String)>> {
        let labels = format!("rocketmq.rs/cluster={}", self.name);
        let pods = self.kube.list(self.namespace(), "pods", &labels)?;
        let mut seen: Vec<_> = pods
            .iter()
            .map(|pod| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
                (
                    text(&pod["metadata"]["name"]),
                    restarts.as_u64().unwrap_or_default(),
                    text(&pod["metadata"]["uid"]),
                )
            })
            .collect();
        seen.sort();
        Ok(seen)
    }

    /// Whether the operator has written an event with this reason about this object.
    pub(super) fn has_event(&self, reason: &str) -> anyhow::Result<bool> {
        let words = [
            "-n",
            self.namespace(),
            "get",
            "events.events.k8s.io",
            "-o",
            "json",
        ];
        let events: Value = serde_json::from_str(&self.kube.kubectl(&words)?)?;
        let items = events["items"].as_array().context("no list of events")?;
        Ok(items.iter().any(|event| event["reason"] == reason))
    }

    fn what_runs(&self) -> String {
        let words = [
            "-n",
            self.namespace(),
            "get",
            "rmq,rmqbg,sts,pods,pvc",
            "-o",
            "wide",
        ];
        let all = self.kube.try_kubectl(&words, None);
        all.map(|said| format!("{}{}", said.out, said.err))
            .unwrap_or_default()
    }
}

/// Status and reason of a condition; empty when it is not there.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> (&'a str, &'a str) {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|c| c["type"] == kind);
    found.map_or(("", ""), |c| {
        (
            c["status"].as_str().unwrap_or_default(),
            c["reason"].as_str().unwrap_or_default(),
        )
    })
}

/// Whether a condition is True.
pub(super) fn is(object: &Value, kind: &str) -> bool {
    condition(object, kind).0 == "True"
}
