//! One running process: started with its own log, asked to stop, and its end told in words.
//!
//! **Invariant:** the child holds the other end of a pipe as its standard input and stops when that
//! closes, so it cannot outlive this process, however this one ends. It is in a process group of
//! its own: Ctrl-C reaches it only through us, in order.

use crate::local::folder::{self, ClaimError};
use crate::local::plan::ProcessPlan;
use crate::local::ready_line::{LINE_BYTES_MAX, ReadyLine};
use rustix::process::{Pid, Signal, kill_process};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child as Process, ChildStdin, ChildStdout, Command};

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    /// Its folder.
    #[error(transparent)]
    Folder(#[from] ClaimError),
    /// The program.
    #[error("cannot run {program}: {source}")]
    Run {
        /// Which.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    pub(crate) pid: u32,
    /// Closed when this value goes: the child then stops.
    _stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    log: PathBuf,
    log_from: u64,
}

/// Where a child listens, and who its NameServers are.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    pub(crate) listen: SocketAddr,
    pub(crate) health: SocketAddr,
    pub(crate) name_servers: String,
}

impl Child {
    pub(crate) fn spawn(
        program: &Path,
        plan: &ProcessPlan,
        at: &Addresses,
    ) -> Result<Self, SpawnError> {
        let log = folder::prepare(plan)?;
        let log_from = log.metadata().map_or(0, |meta| meta.len());
        let mut process = Command::new(program)
            .args(plan.args(at.listen, at.health, &at.name_servers))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .spawn()
            .map_err(|source| SpawnError::Run {
                program: program.to_owned(),
                source,
            })?;
        Ok(Self {
            pid: process.id().unwrap_or_default(),
            _stdin: process.stdin.take(),
            stdout: process.stdout.take(),
            process,
            log: plan.log_path(),
            log_from,
        })
    }

    /// Waits for the line that says where the child listens. `None`: it will never come.
    pub(crate) fn listening(&mut self) -> impl Future<Output = Option<ReadyLine>> + use<> {
        let stdout = self.stdout.take();
        async move {
            let mut line = String::new();
            BufReader::new(stdout?.take(LINE_BYTES_MAX))
                .read_line(&mut line)
                .await
                .ok()?;
            ReadyLine::from_line(&line).ok()
        }
    }

    /// Waits for the child's end.
    pub(crate) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Asks for an orderly stop.
    pub(crate) fn terminate(&self) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // An error means that it has ended already.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Ends it without asking.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.start_kill();
    }

    /// How it ended, in words.
    pub(crate) fn epitaph(&self, status: std::io::Result<ExitStatus>) -> String {
        let end = match status {
            Ok(status) => describe(status),
            Err(error) => format!("lost: {error}"),
        };
        if end.starts_with("was killed") {
            return end;
        }
        match folder::last_words(&self.log, self.log_from) {
            Some(words) => format!("{end}: {words}"),
            None => format!("{end} without a word (log: {})", self.log.display()),
        }
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
