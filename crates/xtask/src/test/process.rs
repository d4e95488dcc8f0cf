//! Running a command with its output in a log, and saying that it still runs.
//!
//! **Invariant:** nothing of the command's output is lost, and a person who watches sees a sign of
//! life at least every half minute.

use crate::workspace::say;
use anyhow::Context as _;
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(200);
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);
const LINE_CHARS_MAX: usize = 100;

/// Runs to the end.
pub(super) fn run(mut command: Command, log: &Path, place: &str) -> anyhow::Result<ExitStatus> {
    let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let started = Instant::now();
    let mut next_sign = SIGN_OF_LIFE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if started.elapsed() >= next_sign {
            next_sign += SIGN_OF_LIFE;
            let last = tail(log, 1).pop().unwrap_or_default();
            let last: String = last.chars().take(LINE_CHARS_MAX).collect();
            say(&format!(
                "{place}   {} s  {last}",
                started.elapsed().as_secs()
            ));
        }
        std::thread::park_timeout(PAUSE);
    }
}

/// The whole log.
pub(super) fn text(log: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Its last lines that are not blank.
pub(super) fn tail(log: &Path, lines: usize) -> Vec<String> {
    let text = text(log).unwrap_or_default();
    let all: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = all.len().saturating_sub(lines);
    all.iter()
        .skip(from)
        .map(|line| (*line).to_owned())
        .collect()
}
