//! A cluster of our own: one control plane and two workers as containers of the node image.
//!
//! **Invariant:** nothing of a node leaves the computer: the host drops what comes from the nodes'
//! bridge and would go anywhere else. Containers, network and that rule go with the owner, and what
//! a run that was killed left behind goes with the next one.

use super::command::Progress;
use super::docker::docker;
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const WORKERS: usize = 2;
const START: Duration = Duration::from_mins(10);
const LABEL: &str = "rocketmq-e2e";
/// Name of a cluster that is kept between runs.
const KEPT: &str = "rmq-e2e";

/// A running cluster.
#[derive(Debug)]
pub(super) struct OwnCluster {
    name: String,
    image: String,
    keep: bool,
}

impl OwnCluster {
    /// Starts one, or finds the one that an earlier run kept.
    pub(super) fn up(image: &str, keep: bool, progress: Progress) -> anyhow::Result<Self> {
        remove_leftovers()?;
        let name = if keep {
            KEPT.to_owned()
        } else {
            format!("rmq-e2e-{}", std::process::id())
        };
        let cluster = Self {
            name,
            image: image.to_owned(),
            keep,
        };
        if keep && cluster.runs()? {
            progress.say("the cluster of an earlier run is still there");
            return Ok(cluster);
        }
        progress.say("starting a control plane and two workers");
        cluster.remove()?;
        cluster.make_network()?;
        for number in 0..=WORKERS {
            cluster.start_node(number)?;
        }
        for number in 0..=WORKERS {
            cluster.await_node(number)?;
        }
        progress.say("every node is Ready");
        Ok(cluster)
    }

    /// Names of its nodes, the control plane first.
    pub(super) fn nodes(&self) -> Vec<String> {
        (0..=WORKERS).map(|number| self.node(number)).collect()
    }

    /// Writes a kubeconfig into `folder`.
    pub(super) fn kubeconfig(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let node = self.node(0);
        let text = docker(&["exec", &node, "cat", "/etc/kubernetes/admin.conf"])?;
        let server = format!("server: https://{}:6443", address(&node)?);
        let text: Vec<String> = text
            .lines()
            .map(|line| match line.split_once("server: ") {
                Some((indent, _)) => format!("{indent}{server}"),
                None => line.to_owned(),
            })
            .collect();
        let path = folder.join("kubeconfig");
        std::fs::write(&path, text.join("\n"))?;
        Ok(path)
    }

    fn node(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    fn runs(&self) -> anyhow::Result<bool> {
        let filter = format!("label={LABEL}={}", self.label());
        let image = format!("ancestor={}", self.image);
        let words = ["ps", "-q", "--filter", &filter, "--filter", &image];
        Ok(docker(&words)?.lines().count() == WORKERS + 1)
    }

    /// Whom it belongs to: the process that started it, or nobody.
    fn label(&self) -> String {
        if self.keep {
            "kept".to_owned()
        } else {
            std::process::id().to_string()
        }
    }

    fn make_network(&self) -> anyhow::Result<()> {
        let label = format!("{LABEL}={}", self.label());
        let bridge = format!("com.docker.network.bridge.name={}", self.name);
        docker(&[
            "network", "create", "--label", &label, "-o", &bridge, &self.name,
        ])?;
        self.rule("-I")
    }

    /// Packets that the rule has kept on the computer so far.
    pub(super) fn dropped_packets(&self) -> anyhow::Result<u64> {
        let rules = self.iptables(&["-v", "-x", "-n", "-L", "FORWARD"])?;
        let rule = rules.lines().find(|line| {
            line.contains("DROP") && line.split_whitespace().any(|word| word == self.name)
        });
        let rule = rule.context("the rule that keeps packets on the computer is not there")?;
        let packets = rule.split_whitespace().next().unwrap_or_default();
        packets
            .parse()
            .with_context(|| format!("a rule without a count: {rule}"))
    }

    /// Adds or takes away the rule that keeps packets on the computer.
    fn rule(&self, verb: &str) -> anyhow::Result<()> {
        let name = &self.name;
        self.iptables(&[verb, "FORWARD", "-i", name, "!", "-o", name, "-j", "DROP"])
            .map(|_| ())
    }

    /// The node's iptables on the host's network.
    fn iptables(&self, words: &[&str]) -> anyhow::Result<String> {
        let mut all = vec!["run", "--rm", "--privileged", "--network", "host"];
        all.extend(["--entrypoint", "/usr/sbin/iptables", &self.image, "-w"]);
        all.extend(words);
        docker(&all)
    }

    fn start_node(&self, number: usize) -> anyhow::Result<()> {
        let name = self.node(number);
        let role = if number == 0 {
            "control-plane"
        } else {
            "worker"
        };
        let label = format!("{LABEL}={}", self.label());
        let role = format!("CLUSTER_ROLE={role}");
        let server = format!("CLUSTER_SERVER={}", self.node(0));
        docker(&[
            "run",
            "-d",
            "--name",
            &name,
            "--hostname",
            &name,
            "--network",
            &self.name,
            "--label",
            &label,
            "--privileged",
            "--cgroupns=private",
            "--tmpfs",
            "/run",
            "--tmpfs",
            "/tmp",
            "-e",
            &role,
            "-e",
            &server,
            &self.image,
        ])?;
        Ok(())
    }

    fn await_node(&self, number: usize) -> anyhow::Result<()> {
        let name = self.node(number);
        let what = format!("node {name} is Ready");
        let ready = crate::until(START, &what, || {
            let log = docker(&["logs", "--tail", "50", &name])?;
            anyhow::ensure!(
                docker(&["inspect", "-f", "{{.State.Running}}", &name])? == "true",
                "{name} stopped"
            );
            Ok(log
                .lines()
                .any(|line| line.starts_with("cluster-up: ready")))
        });
        ready.with_context(|| {
            let log = docker(&["logs", "--tail", "60", &name]);
            format!("its log ends with:\n{}", log.unwrap_or_default())
        })
    }

    fn remove(&self) -> anyhow::Result<()> {
        remove_containers(&format!("label={LABEL}={}", self.label()))?;
        if docker(&["network", "inspect", &self.name]).is_ok() {
            // It may be gone, when the run before was stopped in between.
            let _ = self.rule("-D");
            docker(&["network", "rm", &self.name])?;
        }
        Ok(())
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Err(error) = self.remove() {
            eprintln!("{error:#}");
        }
    }
}

/// The address of a node on its bridge.
pub(super) fn address(node: &str) -> anyhow::Result<String> {
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    docker(&["inspect", "-f", format, node])
}

fn remove_containers(filter: &str) -> anyhow::Result<()> {
    let ids = docker(&["ps", "-aq", "--filter", filter])?;
    if ids.is_empty() {
        return Ok(());
    }
    let mut words = vec!["rm", "-f", "-v"];
    words.extend(ids.lines());
    docker(&words).map(|_| ())
}

/// Removes what runs that are gone left behind.
fn remove_leftovers() -> anyhow::Result<()> {
    let format = format!("{{{{.Label \"{LABEL}\"}}}}");
    let filter = format!("label={LABEL}");
    let owners = docker(&["ps", "-a", "--filter", &filter, "--format", &format])?;
    let networks = docker(&["network", "ls", "--filter", &filter, "--format", &format])?;
    for owner in owners.lines().chain(networks.lines()) {
        let gone = owner.parse::<u32>().is_ok_and(|pid| {
            pid != std::process::id() && !Path::new(&format!("/proc/{pid}")).exists()
        });
        if gone {
            let filter = format!("label={LABEL}={owner}");
            remove_containers(&filter)?;
            for network in docker(&["network", "ls", "-q", "--filter", &filter])?.lines() {
                docker(&["network", "rm", network])?;
            }
        }
    }
    Ok(())
}
