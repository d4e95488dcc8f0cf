//! A cluster of ours, started as the README starts it.
//!
//! **Invariant:** ports are free ones, data is in a folder of its own that goes with the fixture,
//! and only the `rocketmq up` process is this fixture's child: the roles are its children.

use crate::poll::until_every;
use crate::process::{End, Process};
use crate::report::ClusterReport;
use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const START: Duration = Duration::from_mins(1);
const QUICKLY: Duration = Duration::from_millis(1);
const RESTART: Duration = Duration::from_secs(90);

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    up: Process,
    report: ClusterReport,
    broker_pid: u32,
    data: tempfile::TempDir,
}

impl Cluster {
    /// Starts `examples/quickstart.yaml` and waits until all is ready.
    pub fn up() -> anyhow::Result<Self> {
        Self::up_manifest(&project_root().join("examples/quickstart.yaml"))
    }

    /// Starts a manifest and waits until all is ready.
    pub fn up_manifest(manifest: &Path) -> anyhow::Result<Self> {
        Self::up_with(manifest, &[])
    }

    /// Starts a manifest with more arguments of `rocketmq up`.
    pub(crate) fn up_with(manifest: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        let data = tempfile::tempdir().context("no temporary folder")?;
        let mut command = Command::new(program()?);
        command
            .arg("up")
            .arg(manifest)
            .args(arguments)
            .args(["--ports", "free", "-o", "json", "--data"])
            .arg(data.path().join("cluster"));
        let mut up = Process::start("rocketmq up", command, &data.path().join("up.log"))?;
        let line = up.wait_for_line(START, "line that says what runs", |line| {
            line.starts_with('{').then(|| line.to_owned())
        })?;
        let report: ClusterReport =
            serde_json::from_str(&line).with_context(|| format!("cannot read {line}"))?;
        let master = report.brokers.first().context("a cluster without broker")?;
        Ok(Self {
            broker_pid: master.pid,
            up,
            report,
            data,
        })
    }

    /// What runs and where, as it was at the start.
    pub fn report(&self) -> &ClusterReport {
        &self.report
    }

    /// NameServer addresses as clients want them.
    pub fn name_servers(&self) -> String {
        let addresses = self
            .report
            .name_servers
            .iter()
            .map(|ns| ns.address.as_str());
        addresses.collect::<Vec<_>>().join(";")
    }

    /// Address of the first gateway.
    pub fn gateway(&self) -> &str {
        let proxies = self.report.proxies.first();
        proxies.map_or("", |proxy| &proxy.address)
    }

    /// Address of the first broker.
    pub fn broker(&self) -> &str {
        self.report
            .brokers
            .first()
            .map_or("", |broker| &broker.address)
    }

    /// Ends the first broker and waits until `up` has started it again.
    pub fn restart_broker(&mut self, how: End) -> anyhow::Result<()> {
        let signal = match how {
            End::Orderly => Signal::TERM,
            End::Kill => Signal::KILL,
        };
        self::signal(self.broker_pid, signal)?;
        let old = self.broker_pid;
        crate::until(RESTART, "the broker started again", || {
            self.broker_pid = self.latest_broker_pid()?.unwrap_or(old);
            Ok(self.broker_pid != old && TcpStream::connect(self.broker()).is_ok())
        })
        .with_context(|| format!("the log of `rocketmq up` ends with: {}", self.up.log_tail()))
    }

    /// Kills the first broker, and then once for each of `again` what is started in its place, so
    /// long after it took its folder; then waits until one is ready.
    pub(crate) fn kill_broker(&mut self, again: &[Duration]) -> anyhow::Result<()> {
        let lock = self.broker_data_dir().join("process.lock");
        let mut killed = Vec::new();
        let mut victim = self.broker_pid;
        let mut rest = again.iter();
        loop {
            signal(victim, Signal::KILL)?;
            killed.push(victim);
            let Some(delay) = rest.next() else {
                break;
            };
            until_every(QUICKLY, RESTART, "the broker's next process", || {
                let owner = std::fs::read_to_string(&lock).unwrap_or_default();
                victim = owner.trim().parse().unwrap_or(victim);
                Ok(!killed.contains(&victim))
            })?;
            std::thread::park_timeout(*delay);
        }
        self.await_other_broker(&killed)
    }

    /// Kills the first broker, lets `meanwhile` change its folder while nothing runs there, and
    /// waits until it is ready again.
    pub(crate) fn kill_broker_and(
        &mut self,
        meanwhile: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let folder = self.broker_data_dir();
        let lock = File::open(folder.join("process.lock")).context("the broker has no lock")?;
        let killed = self.broker_pid;
        signal(self.up.pid(), Signal::STOP)?;
        let changed = signal(killed, Signal::KILL)
            .and_then(|()| {
                until_every(QUICKLY, RESTART, "the end of the broker", || {
                    Ok(lock.try_lock().is_ok())
                })
            })
            .and_then(|()| meanwhile(&folder));
        // The next broker needs it.
        drop(lock);
        signal(self.up.pid(), Signal::CONT)?;
        changed?;
        self.await_other_broker(&[killed])
    }

    fn await_other_broker(&mut self, killed: &[u32]) -> anyhow::Result<()> {
        until_every(QUICKLY, RESTART, "the broker ready again", || {
            let ready = self.latest_broker_pid()?.unwrap_or_default();
            self.broker_pid = ready;
            Ok(ready != 0 && !killed.contains(&ready))
        })
        .with_context(|| format!("the log of `rocketmq up` ends with: {}", self.up.log_tail()))
    }

    /// Folder of the cluster's data and logs.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.data.path().join("cluster")
    }

    /// Folder of the first broker's data.
    pub(crate) fn broker_data_dir(&self) -> PathBuf {
        let brokers = self.report.brokers.first();
        let name = brokers.map_or("", |broker| &broker.name);
        self.data_dir().join(name).join("data")
    }

    /// Leaves the data when this value goes.
    pub(crate) fn keep_data(&mut self) {
        self.data.disable_cleanup(true);
    }

    /// `up` writes "NAME is ready (pid N, …)" for a process that came back.
    fn latest_broker_pid(&self) -> anyhow::Result<Option<u32>> {
        let name = self
            .report
            .brokers
            .first()
            .map_or("", |broker| &broker.name);
        let start = format!("{name} is ready (pid ");
        let log = std::fs::read_to_string(self.up.log())?;
        let mut pids = log.lines().filter_map(|line| {
            let rest = line.strip_prefix(&start)?;
            rest.split(',').next()?.parse().ok()
        });
        Ok(pids.next_back())
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        self.up.log_tail()
    }
}

fn signal(process: u32, signal: Signal) -> anyhow::Result<()> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    kill_process(pid.context("a pid that is no pid")?, signal)
        .with_context(|| format!("cannot signal process {process}"))
}

/// The binary under test: `ROCKETMQ_BIN`, else the newest build of this workspace.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("ROCKETMQ_BIN") {
        let path = PathBuf::from(path);
        anyhow::ensure!(
            path.is_file(),
            "ROCKETMQ_BIN is no file: {}",
            path.display()
        );
        return Ok(path);
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| project_root().join("target"), PathBuf::from);
    ["release/rocketmq", "debug/rocketmq"]
        .iter()
        .map(|path| target.join(path))
        .find(|path| path.is_file())
        .context("no rocketmq binary: run `cargo build --release`, or set ROCKETMQ_BIN")
}

/// The folder of the workspace.
pub(crate) fn project_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}
