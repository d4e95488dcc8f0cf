//! `cargo xtask test`: every test there is, with progress, a table and one closing line.
//!
//! **Invariant:** a step that cannot run counts as a failure; the closing line is the last one.

mod needs;
mod process;
mod step;

use crate::workspace::{root, say};
use anyhow::Context as _;
use std::fmt::Write as _;
use std::time::Instant;
use step::{Outcome, Step};

const UNIT: Step = Step::unit("unit and property tests");
const BUILD: Step = Step::cargo(
    "release build",
    &["build", "--release", "--package", "rocketmq"],
);
// Of the whole workspace, so that dependencies have the features that the unit tests built them with.
const RUNNER: Step = Step::cargo(
    "runner of the clients",
    &["build", "--workspace", "--bin", "rmq-e2e"],
);
const JAVA: Step = Step::suite("Java client", "java");
const JAVA_BINARY: Step = Step::suite("Java client, binary headers", "java-binary");
const MQADMIN: Step = Step::suite("mqadmin", "mqadmin");
const ADMIN_JAVA: Step = Step::suite("rocketmq admin on Java", "admin-java");
const GO: Step = Step::suite("Go client", "go");
const JAVA_GRPC: Step = Step::suite("Java client, gRPC", "java-grpc");
const PYTHON_GRPC: Step = Step::suite("Python client, gRPC", "python-grpc");
const SWAP: Step = Step::suite("store folders, Java and ours", "swap");
const KILL: Step = Step::own_suite("kills under load", "kill");
const CHARTS: Step = Step::own_suite("charts", "charts");
const IMAGE: Step = Step::cargo(
    "image",
    &["run", "--quiet", "--package", "xtask", "--", "image"],
);
const KUBERNETES: Step = Step::own_suite("Kubernetes", "kubernetes");

/// Runs the chosen steps; `Ok(false)` if a test failed.
pub(crate) fn run(only: &str) -> anyhow::Result<bool> {
    let steps: &[Step] = match only {
        "all" => &[
            UNIT,
            BUILD,
            RUNNER,
            KILL,
            JAVA,
            JAVA_BINARY,
            MQADMIN,
            ADMIN_JAVA,
            GO,
            JAVA_GRPC,
            PYTHON_GRPC,
            SWAP,
        ],
        "clients" => &[
            BUILD,
            RUNNER,
            JAVA,
            JAVA_BINARY,
            MQADMIN,
            ADMIN_JAVA,
            GO,
            JAVA_GRPC,
            PYTHON_GRPC,
            SWAP,
        ],
        "unit" => &[UNIT],
        "java" => &[BUILD, RUNNER, JAVA, JAVA_BINARY],
        "mqadmin" => &[BUILD, RUNNER, MQADMIN],
        "admin-java" => &[BUILD, RUNNER, ADMIN_JAVA],
        "go" => &[BUILD, RUNNER, GO],
        "grpc" => &[BUILD, RUNNER, JAVA_GRPC, PYTHON_GRPC],
        "swap" => &[BUILD, RUNNER, SWAP],
        "kill" => &[BUILD, RUNNER, KILL],
        "charts" => &[RUNNER, CHARTS],
        // Charts first: they need no cluster, and what is wrong with them would be wrong there too.
        "kubernetes" if given_image() => &[RUNNER, CHARTS, KUBERNETES],
        "kubernetes" => &[IMAGE, RUNNER, CHARTS, KUBERNETES],
        other => anyhow::bail!(
            "--only {other}: there are unit, kill, java, mqadmin, admin-java, go, grpc, swap, clients, \
             charts, kubernetes and all (which leaves charts and kubernetes out)"
        ),
    };
    if steps.iter().any(Step::needs_other_languages) {
        needs::provide_clients(steps.contains(&GO), steps.contains(&PYTHON_GRPC))?;
    }
    if steps.contains(&KUBERNETES) {
        needs::provide_cluster()?;
    } else if steps.contains(&CHARTS) {
        needs::provide_charts()?;
    }
    let logs = root().join("target/xtask");
    std::fs::create_dir_all(&logs).context("cannot make a folder for logs")?;
    let started = Instant::now();
    let mut done: Vec<(&Step, Outcome)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let place = format!("[{}/{}]", number + 1, steps.len());
        say(&format!("{place} {}", step.title()));
        let outcome = step.run(&logs, &place);
        for line in &outcome.failures {
            say(&format!("{place}   {line}"));
        }
        say(&format!(
            "{place} {} in {} s: {}",
            if outcome.failed == 0 {
                "done"
            } else {
                "FAILED"
            },
            outcome.seconds,
            outcome.summary(step.counts())
        ));
        let stop = outcome.failed > 0 && !step.counts();
        done.push((step, outcome));
        if stop {
            break;
        }
    }
    let seconds = started.elapsed().as_secs();
    say(&table(&done, seconds));
    say(&closing_line(&done));
    Ok(done.iter().all(|(_, outcome)| outcome.failed == 0))
}

/// Whether the image is there already: an archive of it, or one that a given cluster pulls.
fn given_image() -> bool {
    let given = |name| std::env::var_os(name).is_some();
    given("E2E_IMAGE_ARCHIVE") || given("E2E_IMAGE")
}

fn table(done: &[(&Step, Outcome)], seconds: u64) -> String {
    let mut text = format!(
        "\n{:<32} {:>7} {:>7} {:>7} {:>8}\n",
        "step", "passed", "failed", "skipped", "time"
    );
    for (step, outcome) in done {
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "{:<32} {:>7} {:>7} {:>7} {:>6} s",
            step.title(),
            outcome.passed,
            outcome.failed,
            outcome.skipped,
            outcome.seconds
        );
    }
    let _ = write!(text, "{:<32} {:>31} s", "all", seconds);
    text
}

fn closing_line(done: &[(&Step, Outcome)]) -> String {
    let sum =
        |part: fn(&Outcome) -> u64| done.iter().map(|(_, outcome)| part(outcome)).sum::<u64>();
    let skipped = sum(|outcome| outcome.skipped);
    let mut line = format!(
        "{} passed, {} failed",
        sum(|outcome| outcome.passed),
        sum(|outcome| outcome.failed)
    );
    if skipped > 0 {
        let _ = write!(line, ", {skipped} skipped");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_adds_up_all_steps() {
        let outcome = |passed, failed| Outcome {
            passed,
            failed,
            ..Outcome::default()
        };
        let done = [(&UNIT, outcome(3, 0)), (&JAVA, outcome(4, 1))];
        assert_eq!(closing_line(&done), "7 passed, 1 failed");
    }
}
