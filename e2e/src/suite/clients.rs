//! Starting the client suites of other languages against a cluster.
//!
//! **Invariant:** the exit code of the tool alone decides nothing: its report of single tests does;
//! a failing tool whose report shows no failure is an error.

use super::{Case, Outcome, go, surefire};
use crate::cluster::project_root;
use crate::control::Control;
use crate::java::surefire_reports;
use crate::target::{Against, Target};
use anyhow::Context as _;
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

/// Runs classes of the Java project.
pub(super) fn java(
    against: Against,
    tests: &str,
    jvm: &str,
    log: &Path,
) -> anyhow::Result<Vec<Case>> {
    let reports = surefire_reports();
    if reports.exists() {
        std::fs::remove_dir_all(&reports).context("cannot remove the reports of an earlier run")?;
    }
    let mut command = Command::new("mvn");
    command
        .args(["-B", "-ntp", "test", "-DfailIfNoTests=true"])
        .arg(format!("-Dtest={tests}"))
        .arg(format!("-De2e.jvm={jvm}"))
        .current_dir(project_root().join("e2e/java"));
    let status = run(against, command, log, Stdio::null())?;
    let cases = surefire::read(&reports)?;
    check(status, &cases, log)?;
    Ok(cases)
}

/// Runs the Go module's tests.
pub(super) fn go(against: Against, only: Option<&str>, log: &Path) -> anyhow::Result<Vec<Case>> {
    let events = log.with_extension("json");
    let mut command = Command::new("go");
    command
        .args(["test", "-count=1", "-timeout=20m", "-json"])
        .args(["-run", only.unwrap_or("."), "./..."])
        .current_dir(project_root().join("e2e/go"));
    let output = File::create(&events).context("cannot write the events of go test")?;
    let status = run(against, command, log, output.into())?;
    let text = std::fs::read_to_string(&events)?;
    let cases = go::read(&text);
    check(status, &cases, &events)?;
    Ok(cases)
}

/// Starts a cluster, runs the tool with its addresses, and stops the cluster.
fn run(
    against: Against,
    mut command: Command,
    log: &Path,
    stdout: Stdio,
) -> anyhow::Result<ExitStatus> {
    let target = Target::start(against)?;
    let environment = target.environment();
    let target = Arc::new(Mutex::new(Some(target)));
    let control = Control::serve(Arc::clone(&target))?;
    let errors = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    // Maven writes to standard output only, go test -json events there and the rest to the error stream.
    let is_maven = command.get_program() == "mvn";
    let stdout = if is_maven {
        errors.try_clone()?.into()
    } else {
        stdout
    };
    let status = command
        .envs(environment)
        .envs(control.environment()?)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(errors)
        .status()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    // Taken out of the control thread's hands, so that the server is stopped here.
    let target = target.lock().ok().and_then(|mut target| target.take());
    if let Some(target) = target.filter(|_| !status.success()) {
        eprintln!("the server's log ends with: {}", target.log_tail());
    }
    Ok(status)
}

fn check(status: ExitStatus, cases: &[Case], log: &Path) -> anyhow::Result<()> {
    let failed = cases.iter().any(|case| case.outcome == Outcome::Failed);
    anyhow::ensure!(
        status.success() || failed,
        "the tool ended with {status} and reports no failed test: {}",
        crate::process::tail(log, 40)
    );
    Ok(())
}
