//! Running the programs that people use: docker, kubectl, helm.
//!
//! **Invariant:** a program that fails is an error with its words and what it was asked; its output
//! is never half read.

use anyhow::Context as _;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// What a program said, and whether it was content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// Whether it ended with 0.
    pub(super) ok: bool,
    /// Its standard output.
    pub(super) out: String,
    /// Its standard error.
    pub(super) err: String,
}

/// Runs to the end; an error only if it could not be started.
pub(super) fn said(mut command: Command, input: Option<&str>) -> anyhow::Result<Said> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
        // A program that does not read its input to the end says why itself.
        let _ = pipe.write_all(input.as_bytes());
    }
    let Output {
        status,
        stdout,
        stderr,
    } = child
        .wait_with_output()
        .with_context(|| format!("cannot wait for {program}"))?;
    Ok(Said {
        ok: status.success(),
        out: String::from_utf8_lossy(&stdout).into_owned(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
    })
}

/// Runs to the end and gives the standard output.
pub(super) fn output(command: Command, input: Option<&str>) -> anyhow::Result<String> {
    let asked = words(&command);
    let said = said(command, input)?;
    anyhow::ensure!(said.ok, "{asked}: {}", said.err.trim());
    Ok(said.out)
}

fn words(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let arguments = command.get_args().map(|word| word.to_string_lossy());
    let mut text = name.to_string_lossy().into_owned();
    for word in arguments {
        text.push(' ');
        text.push_str(&word);
    }
    text
}

/// Says on standard error what is being done and how long it has taken so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress(Instant);

impl Progress {
    /// Starts its clock.
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// One line.
    pub(super) fn say(self, what: &str) {
        eprintln!("[{:>4} s] {what}", self.0.elapsed().as_secs());
    }
}
