//! The docker command, and its daemon where none runs.
//!
//! **Invariant:** a daemon that was running is left running; one that was started here is ended with
//! its owner. Nothing is asked of a registry.

use super::command;
use super::command::Progress;
use super::tools;
use crate::process::Process;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const START: Duration = Duration::from_mins(1);
/// Bit of `CAP_SYS_RESOURCE`, without which Docker before 23 cannot start privileged containers.
const SYS_RESOURCE: u64 = 1 << 24;

/// A daemon that answers.
#[derive(Debug)]
pub(super) struct Docker {
    started: Option<Process>,
}

impl Docker {
    /// Finds the daemon, or starts it where that is allowed.
    pub(super) fn ready(logs: &Path, progress: Progress) -> anyhow::Result<Self> {
        if answers() {
            return Ok(Self { started: None });
        }
        anyhow::ensure!(
            is_root(),
            "no docker daemon answers: start it, or run this as root with docker installed"
        );
        progress.say("starting a docker daemon");
        let mut command = Command::new("dockerd");
        if lacks_capability() {
            let runtime = tools::bounded_runtime()?;
            let runtime = format!("bound={}", runtime.display());
            command.args(["--add-runtime", &runtime, "--default-runtime", "bound"]);
        }
        let process = Process::start("dockerd", command, &logs.join("dockerd.log"))?;
        let docker = Self {
            started: Some(process),
        };
        crate::until(START, "an answer of the docker daemon", || Ok(answers()))
            .map_err(|error| error.context(docker.log_tail()))?;
        Ok(docker)
    }

    /// Leaves a daemon that was started here running.
    pub(super) fn keep(&mut self) {
        if let Some(process) = self.started.take() {
            std::mem::forget(process);
        }
    }

    fn log_tail(&self) -> String {
        self.started
            .as_ref()
            .map(Process::log_tail)
            .unwrap_or_default()
    }
}

/// `docker` with these words.
pub(super) fn docker(words: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("docker");
    command.args(words);
    command::output(command, None).map(|text| text.trim().to_owned())
}

/// Puts an archive into the store of a node's containerd.
pub(super) fn load_into_node(node: &str, archive: &Path) -> anyhow::Result<()> {
    let file = std::fs::File::open(archive)?;
    let mut command = Command::new("docker");
    command.args([
        "exec", "-i", node, "ctr", "-n", "k8s.io", "images", "import",
    ]);
    command.args(["--digests=false", "-"]).stdin(file);
    let output = command.output()?;
    anyhow::ensure!(
        output.status.success(),
        "{node} does not take {}: {}",
        archive.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

fn answers() -> bool {
    docker(&["version", "--format", "{{.Server.Version}}"]).is_ok()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn lacks_capability() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bounding = status.lines().find_map(|line| line.strip_prefix("CapBnd:"));
    let bits = bounding.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & SYS_RESOURCE == 0)
}
