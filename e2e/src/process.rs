//! A child process whose output is read and which does not outlive its owner.
//!
//! **Invariant:** dropping a [`Process`] ends the child: first with the signal for an orderly stop,
//! then by force. Only this very child is ever signalled, by its pid, while it has not been reaped.

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Lines of standard output that nobody has read yet; more are dropped.
const LINES_MAX: usize = 1024;
const ORDERLY: Duration = Duration::from_secs(30);

/// How a process is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// SIGTERM: an orderly stop.
    Orderly,
    /// SIGKILL: a crash.
    Kill,
}

/// A running child.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Process {
    /// Starts a command; standard error goes to `log`, standard output is read line by line.
    pub fn start(name: &str, mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let errors =
            File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {name}: {}", command.get_program().display()))?;
        let stdout = child.stdout.take().context("no standard output")?;
        let (sender, lines) = sync_channel(LINES_MAX);
        std::thread::Builder::new()
            .name(format!("{name}-output"))
            .spawn(move || forward(stdout, &sender))
            .context("cannot start a thread")?;
        Ok(Self {
            name: name.to_owned(),
            child,
            lines,
            log: log.to_owned(),
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its standard error goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The first line of standard output for which `pick` has an answer.
    pub fn wait_for_line<T>(
        &mut self,
        limit: Duration,
        what: &str,
        pick: impl Fn(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    if let Some(found) = pick(&line) {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) => anyhow::bail!(
                    "{} gave no {what} within {} s; its log ends with: {}",
                    self.name,
                    limit.as_secs(),
                    self.log_tail()
                ),
                Err(RecvTimeoutError::Disconnected) => anyhow::bail!(
                    "{} ended ({}) before its {what}; its log ends with: {}",
                    self.name,
                    self.child.wait()?,
                    self.log_tail()
                ),
            }
        }
    }

    /// Ends the process and waits until it is gone.
    pub fn end(&mut self, how: End) -> anyhow::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        if how == End::Orderly {
            let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            kill_process(pid.context("a pid that is no pid")?, Signal::TERM)?;
            let ended = crate::until(ORDERLY, "the end of a process", || {
                Ok(self.child.try_wait()?.is_some())
            });
            if ended.is_ok() {
                return Ok(());
            }
        }
        self.child.kill()?;
        self.child.wait()?;
        anyhow::ensure!(
            how == End::Kill,
            "{} did not stop within {} s of SIGTERM; its log ends with: {}",
            self.name,
            ORDERLY.as_secs(),
            self.log_tail()
        );
        Ok(())
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        tail(&self.log, 30)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.end(End::Orderly) {
            eprintln!("{error:#}");
        }
    }
}

fn forward(stdout: impl Read, sender: &std::sync::mpsc::SyncSender<String>) {
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { return };
        // A full queue means that nobody waits for lines any more; reading goes on all the same.
        let _ = sender.try_send(line);
    }
}

/// The last lines of a text file, or why it cannot be read.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    match std::fs::read(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let all: Vec<&str> = text.lines().collect();
            let from = all.len().saturating_sub(lines);
            format!("\n{}", all.get(from..).unwrap_or_default().join("\n"))
        }
        Err(error) => format!("({error})"),
    }
}
