//! A Kubernetes cluster as its users see it: through kubectl and helm.
//!
//! **Invariant:** a test changes nothing outside the namespaces that it made, but for what is meant
//! for all tests: the kinds and one operator.

use super::command::{self, Progress, Said};
use super::docker::{Docker, docker, load_into_node};
use super::own::OwnCluster;
use super::source::Source;
use super::tools;
use anyhow::Context as _;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Name under which the product's image is put into nodes.
const IMAGE: &str = "localhost/rocketmq";

/// A cluster to test on.
#[derive(Debug)]
pub(super) struct KubeCluster {
    kubectl: PathBuf,
    helm: PathBuf,
    kubeconfig: PathBuf,
    /// Repository and tag of the product's image.
    image: (String, String),
    /// Containers that are its nodes, where they are containers of this computer.
    nodes: Vec<String>,
    // In the order in which they are dropped: nodes, daemon, folder.
    own: Option<OwnCluster>,
    docker_daemon: Option<Docker>,
    folder: tempfile::TempDir,
    /// Tells how far a test is.
    pub(super) progress: Progress,
}

impl KubeCluster {
    /// Gets a cluster with the product's image in its nodes.
    pub(super) fn ready(source: &Source) -> anyhow::Result<Self> {
        let progress = Progress::start();
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let mut cluster = Self {
            kubectl: PathBuf::new(),
            helm: tools::helm()?,
            kubeconfig: folder.path().join("kubeconfig"),
            image: (IMAGE.to_owned(), version),
            nodes: Vec::new(),
            own: None,
            docker_daemon: None,
            folder,
            progress,
        };
        match source {
            Source::Own { keep } => cluster.start_own(*keep)?,
            Source::Kind(name) => cluster.find_kind(name)?,
            Source::Given { kubeconfig, image } => {
                cluster.kubectl = tools::own_kubectl()?;
                kubeconfig.clone_into(&mut cluster.kubeconfig);
                let (repository, tag) = image
                    .rsplit_once(':')
                    .context("E2E_IMAGE needs a tag: NAME:TAG")?;
                cluster.image = (repository.to_owned(), tag.to_owned());
            }
        }
        Ok(cluster)
    }

    fn start_own(&mut self, keep: bool) -> anyhow::Result<()> {
        let archive = tools::image_archive()?;
        let mut daemon = Docker::ready(self.folder.path(), self.progress)?;
        if keep {
            daemon.keep();
        }
        self.docker_daemon = Some(daemon);
        self.progress.say("node image");
        let (image, kubectl) = tools::node_image()?;
        self.kubectl = kubectl;
        let own = OwnCluster::up(&image, keep, self.progress)?;
        self.kubeconfig = own.kubeconfig(self.folder.path())?;
        self.nodes = own.nodes();
        self.own = Some(own);
        self.load(&archive)
    }

    fn find_kind(&mut self, name: &str) -> anyhow::Result<()> {
        let archive = tools::image_archive()?;
        self.kubectl = tools::own_kubectl()?;
        let filter = format!("label=io.x-k8s.kind.cluster={name}");
        let nodes = docker(&["ps", "--filter", &filter, "--format", "{{.Names}}"])?;
        self.nodes = nodes.lines().map(str::to_owned).collect();
        anyhow::ensure!(!self.nodes.is_empty(), "no kind cluster {name} runs here");
        let mut command = Command::new("kind");
        command.args(["get", "kubeconfig", "--name", name]);
        std::fs::write(&self.kubeconfig, command::output(command, None)?)?;
        self.load(&archive)
    }

    fn load(&self, archive: &Path) -> anyhow::Result<()> {
        self.progress.say("the product's image into every node");
        for node in &self.nodes {
            load_into_node(node, archive)?;
        }
        Ok(())
    }

    /// The containers of this run, when the cluster is made of them.
    pub(super) fn own(&self) -> Option<&OwnCluster> {
        self.own.as_ref()
    }

    /// Containers that are its nodes; none where they are not ours to touch.
    pub(super) fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Repository and tag of the product's image.
    pub(super) fn image(&self) -> (&str, &str) {
        (&self.image.0, &self.image.1)
    }

    /// The product's image as pods name it.
    pub(super) fn image_name(&self) -> String {
        format!("{}:{}", self.image.0, self.image.1)
    }

    /// kubectl, whatever it answers.
    pub(super) fn try_kubectl(&self, words: &[&str], input: Option<&str>) -> anyhow::Result<Said> {
        let mut command = Command::new(&self.kubectl);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            // Before the words: what follows `exec … --` is not kubectl's.
            .args(["--request-timeout", "30s"])
            .args(words);
        command::said(command, input)
    }

    /// kubectl, which must succeed.
    pub(super) fn kubectl(&self, words: &[&str]) -> anyhow::Result<String> {
        let said = self.try_kubectl(words, None)?;
        anyhow::ensure!(said.ok, "kubectl {}: {}", words.join(" "), said.err.trim());
        Ok(said.out)
    }

    /// Applies a manifest.
    pub(super) fn apply(&self, manifest: &str) -> anyhow::Result<()> {
        let said = self.try_kubectl(&["apply", "-f", "-"], Some(manifest))?;
        anyhow::ensure!(said.ok, "kubectl apply: {}", said.err.trim());
        Ok(())
    }

    /// helm, whatever it answers.
    pub(super) fn try_helm(&self, words: &[&str]) -> anyhow::Result<Said> {
        let mut command = Command::new(&self.helm);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HELM_CACHE_HOME", self.folder.path().join("helm-cache"))
            .env("HELM_CONFIG_HOME", self.folder.path().join("helm-config"))
            .env("HELM_DATA_HOME", self.folder.path().join("helm-data"))
            .current_dir(tools::workspace())
            .args(words);
        command::said(command, None)
    }

    /// helm, which must succeed.
    pub(super) fn helm(&self, words: &[&str]) -> anyhow::Result<String> {
        let said = self.try_helm(words)?;
        anyhow::ensure!(
            said.ok,
            "helm {}: {}{}",
            words.join(" "),
            said.err.trim(),
            said.out.trim()
        );
        Ok(said.out)
    }

    /// An object, if it is there. `kind` and `name` as kubectl takes them.
    pub(super) fn get(
        &self,
        namespace: &str,
        kind: &str,
        name: &str,
    ) -> anyhow::Result<Option<Value>> {
        let words = [
            "-n",
            namespace,
            "get",
            kind,
            name,
            "-o",
            "json",
            "--ignore-not-found",
        ];
        let text = self.kubectl(&words)?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        serde_json::from_str(&text)
            .map(Some)
            .with_context(|| format!("kubectl get {kind} {name}"))
    }

    /// The objects of a kind, or of several separated by commas, with these labels.
    pub(super) fn list(
        &self,
        namespace: &str,
        kinds: &str,
        labels: &str,
    ) -> anyhow::Result<Vec<Value>> {
        let text = self.kubectl(&["-n", namespace, "get", kinds, "-l", labels, "-o", "json"])?;
        let mut list: Value = serde_json::from_str(&text)?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => anyhow::bail!("kubectl get {kinds}: no list"),
        }
    }

    /// Waits until an object is as it should be.
    pub(super) fn until_object(
        &self,
        (namespace, kind, name): (&str, &str, &str),
        limit: Duration,
        what: &str,
        mut holds: impl FnMut(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let mut last = None;
        crate::until(limit, what, || {
            last = self.get(namespace, kind, name)?;
            Ok(last.as_ref().is_some_and(&mut holds))
        })
        .with_context(|| match &last {
            Some(object) => format!("{kind}/{name} has the status {}", object["status"]),
            None => format!("{kind}/{name} is not there"),
        })?;
        last.with_context(|| format!("{kind}/{name} is gone"))
    }
}
