//! Starting the client suites of other languages against a cluster.
//!
//! **Invariant:** the exit code of the tool alone decides nothing: its report of single tests does;
//! a failing tool whose report shows no failure is an error.

use super::{Case, Outcome, go, surefire};
use crate::cluster::{program, project_root};
use crate::control::Control;
use crate::java::surefire_reports;
use crate::target::{Against, Target};
use anyhow::Context as _;
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

const JAVA: &str = "e2e/java";
const JAVA_GRPC: &str = "e2e/java-grpc";

/// Runs classes of the Java project.
pub(super) fn java(
    against: Against,
    tests: &str,
    jvm: &str,
    log: &Path,
) -> anyhow::Result<Vec<Case>> {
    maven(JAVA, against, tests, jvm, log)
}

/// Runs classes of the project with the Java client of gRPC, which has its own dependencies.
pub(super) fn java_grpc(
    against: Against,
    only: Option<&str>,
    log: &Path,
) -> anyhow::Result<Vec<Case>> {
    needs_gateway(against)?;
    maven(
        JAVA_GRPC,
        against,
        only.unwrap_or("rmq.e2e.grpc.*Test"),
        "",
        log,
    )
}

fn needs_gateway(against: Against) -> anyhow::Result<()> {
    anyhow::ensure!(
        against == Against::Ours,
        "the Java server of the suites runs without a gateway"
    );
    Ok(())
}

fn maven(
    project: &str,
    against: Against,
    tests: &str,
    jvm: &str,
    log: &Path,
) -> anyhow::Result<Vec<Case>> {
    let reports = surefire_reports(project);
    if reports.exists() {
        std::fs::remove_dir_all(&reports).context("cannot remove the reports of an earlier run")?;
    }
    let mut command = Command::new("mvn");
    command
        .args(["-B", "-ntp", "test", "-DfailIfNoTests=true"])
        .arg(format!("-Dtest={tests}"))
        .arg(format!("-De2e.jvm={jvm}"))
        .current_dir(project_root().join(project));
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

/// Runs the script with the Python client; its lines are those of `go test -json`.
pub(super) fn python_grpc(
    against: Against,
    only: Option<&str>,
    log: &Path,
) -> anyhow::Result<Vec<Case>> {
    needs_gateway(against)?;
    let project = project_root().join("e2e/python");
    let venv = project.join("target/venv");
    let python = venv.join("bin/python");
    if !python.is_file() {
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(&venv);
        done(
            make,
            "python3 -m venv (Debian: apt-get install python3-venv)",
        )?;
    }
    let mut install = Command::new(&python);
    install
        .args(["-m", "pip", "install", "-q", "--disable-pip-version-check"])
        .args(["-r", "requirements.txt"])
        .current_dir(&project);
    done(install, "pip install")?;
    let events = log.with_extension("json");
    let mut command = Command::new(&python);
    command.arg("gateway.py").args(only).current_dir(&project);
    let output = File::create(&events).context("cannot write the events of the script")?;
    let status = run(against, command, log, output.into())?;
    let cases = go::read(&std::fs::read_to_string(&events)?);
    check(status, &cases, log)?;
    Ok(cases)
}

fn done(mut command: Command, what: &str) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot start {what}"))?;
    anyhow::ensure!(status.success(), "{what} ended with {status}");
    Ok(())
}

/// Starts a cluster, runs the tool with its addresses, and stops the cluster.
fn run(
    against: Against,
    mut command: Command,
    log: &Path,
    stdout: Stdio,
) -> anyhow::Result<ExitStatus> {
    // The suite's folder is not ours: a path must hold there as well.
    if let Some(program) = program().ok().and_then(|path| path.canonicalize().ok()) {
        command.env("ROCKETMQ_BIN", program);
    }
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
