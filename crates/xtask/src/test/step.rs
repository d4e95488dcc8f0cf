//! One step of the test run, and what came of it.
//!
//! **Invariant:** a step's own output goes to a log of its name; what a person needs of it (counts,
//! failures, where the log is) is in its [`Outcome`].

use super::process;
use crate::workspace::{self, root};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const FAILURE_LINES_MAX: usize = 60;

/// What a step starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `cargo test`, counted by its result lines.
    Unit,
    /// A build: all or nothing.
    Cargo(&'static [&'static str]),
    /// A suite of the runner in `e2e` that needs other languages, counted by its report.
    Suite(&'static str),
    /// A suite of the runner that needs Rust alone.
    OwnSuite(&'static str),
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    title: &'static str,
    kind: Kind,
}

/// What came of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
    pub(super) seconds: u64,
    /// What a person needs to see, already in lines.
    pub(super) failures: Vec<String>,
}

impl Outcome {
    /// In words.
    pub(super) fn summary(&self, counts: bool) -> String {
        if !counts {
            let word = if self.failed == 0 {
                "built"
            } else {
                "not built"
            };
            return word.to_owned();
        }
        format!(
            "{} tests passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }

    fn broken(why: Vec<String>) -> Self {
        Self {
            failed: 1,
            failures: why,
            ..Self::default()
        }
    }
}

/// The report of the runner.
#[derive(Deserialize)]
struct Report {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    outcome: String,
    detail: String,
}

impl Step {
    pub(super) const fn unit(title: &'static str) -> Self {
        let kind = Kind::Unit;
        Self { title, kind }
    }

    pub(super) const fn cargo(title: &'static str, arguments: &'static [&'static str]) -> Self {
        let kind = Kind::Cargo(arguments);
        Self { title, kind }
    }

    pub(super) const fn suite(title: &'static str, name: &'static str) -> Self {
        let kind = Kind::Suite(name);
        Self { title, kind }
    }

    pub(super) const fn own_suite(title: &'static str, name: &'static str) -> Self {
        let kind = Kind::OwnSuite(name);
        Self { title, kind }
    }

    pub(super) fn title(&self) -> &'static str {
        self.title
    }

    /// Whether it runs tests; a build does not.
    pub(super) fn counts(&self) -> bool {
        !matches!(self.kind, Kind::Cargo(_))
    }

    /// Whether it needs a JDK, Maven or Go.
    pub(super) fn needs_other_languages(&self) -> bool {
        matches!(self.kind, Kind::Suite(_))
    }

    /// Runs it; says on the way that it still does.
    pub(super) fn run(&self, logs: &Path, place: &str) -> Outcome {
        let started = Instant::now();
        let name: String = self
            .title
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_lowercase()
                } else {
                    '-'
                }
            })
            .collect();
        let log = logs.join(format!("{name}.log"));
        let mut outcome = match self.kind {
            Kind::Unit => unit(&log, place),
            Kind::Cargo(arguments) => build(arguments, &log, place),
            Kind::Suite(suite) | Kind::OwnSuite(suite) => clients(suite, &log, place),
        }
        .unwrap_or_else(|error| Outcome::broken(vec![format!("{error:#}")]));
        outcome.seconds = started.elapsed().as_secs();
        if outcome.failed > 0 {
            outcome.failures.push(format!("log: {}", log.display()));
        }
        outcome
    }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(root());
    command
}

fn build(arguments: &[&str], log: &Path, place: &str) -> anyhow::Result<Outcome> {
    let status = process::run(cargo(arguments), log, place)?;
    if status.success() {
        return Ok(Outcome::default());
    }
    Ok(Outcome::broken(process::tail(log, FAILURE_LINES_MAX)))
}

fn unit(log: &Path, place: &str) -> anyhow::Result<Outcome> {
    let arguments = ["test", "--workspace", "--no-fail-fast"];
    let status = process::run(cargo(&arguments), log, place)?;
    let text = process::text(log)?;
    let mut outcome = count_unit_tests(&text);
    if !status.success() && outcome.failed == 0 {
        // It did not compile, or a test ended its process.
        return Ok(Outcome {
            failed: 1,
            failures: process::tail(log, FAILURE_LINES_MAX),
            ..outcome
        });
    }
    let failed = text
        .lines()
        .filter(|line| line.starts_with("test ") && line.ends_with("... FAILED"));
    outcome.failures = failed.take(FAILURE_LINES_MAX).map(str::to_owned).collect();
    Ok(outcome)
}

/// Adds up the lines `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn count_unit_tests(text: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let results = text
        .lines()
        .filter_map(|line| line.strip_prefix("test result: "));
    for line in results {
        let counted = line.split_once(". ").map_or(line, |(_, counted)| counted);
        for part in counted.split("; ") {
            let mut words = part.split_whitespace();
            let number = words.next().and_then(|word| word.parse::<u64>().ok());
            match (number, words.next()) {
                (Some(number), Some("passed")) => outcome.passed += number,
                (Some(number), Some("failed")) => outcome.failed += number,
                (Some(number), Some("ignored")) => outcome.skipped += number,
                _ => {}
            }
        }
    }
    outcome
}

fn clients(suite: &str, log: &Path, place: &str) -> anyhow::Result<Outcome> {
    let target = workspace::target();
    let report = log.with_extension("report.json");
    // A report of an earlier run must not speak for this one.
    let _ = std::fs::remove_file(&report);
    let mut command = Command::new(target.join("debug/rmq-e2e"));
    command
        .args(["run", suite, "--log"])
        .arg(log.with_extension("tools.log"))
        .arg("--report")
        .arg(&report)
        .env("ROCKETMQ_BIN", target.join("release/rocketmq"))
        .current_dir(root());
    process::run(command, log, place)?;
    let Ok(text) = std::fs::read_to_string(&report) else {
        return Ok(Outcome::broken(process::tail(log, FAILURE_LINES_MAX)));
    };
    let report: Report = serde_json::from_str(&text)?;
    Ok(count_cases(&report))
}

fn count_cases(report: &Report) -> Outcome {
    let mut outcome = Outcome::default();
    for case in &report.cases {
        match case.outcome.as_str() {
            "passed" => outcome.passed += 1,
            "skipped" => outcome.skipped += 1,
            _ => {
                outcome.failed += 1;
                outcome.failures.push(format!("FAILED {}", case.name));
                let detail = case.detail.lines().take(12);
                outcome
                    .failures
                    .extend(detail.map(|line| format!("    {line}")));
            }
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_test_programs_are_added_up() {
        let text = "test a ... ok\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
            test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let outcome = count_unit_tests(text);
        assert_eq!((outcome.passed, outcome.failed, outcome.skipped), (5, 4, 1));
    }

    #[test]
    fn a_failed_case_is_named_with_what_it_said() {
        let text = r#"{"cases":[{"name":"a","outcome":"passed","detail":""},
            {"name":"b","outcome":"failed","detail":"why\nmore"}],"seconds":3}"#;
        let report: Report = serde_json::from_str(text).unwrap();
        let outcome = count_cases(&report);
        assert_eq!((outcome.passed, outcome.failed), (1, 1));
        assert_eq!(outcome.failures, ["FAILED b", "    why", "    more"]);
    }
}
