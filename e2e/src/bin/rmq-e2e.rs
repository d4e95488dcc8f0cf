//! The runner of the suites: starts a cluster, runs one suite of official clients against it, and
//! says what came of it.
//!
//! **Invariant:** the last line is `N passed, N failed`, with the skipped ones when there are some;
//! the exit code is 0 only if nothing failed.

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use rmq_e2e::suite::{self, Outcome, Results, Suite};
use rmq_e2e::{Against, send_command};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(about = "Runs the official clients against a cluster")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one suite
    Run {
        /// Which one
        #[arg(value_enum)]
        suite: Suite,
        /// The server: ours, or the Java one (to test the suite itself)
        #[arg(long, value_enum, default_value = "ours")]
        against: Against,
        /// Only these tests: Surefire's -Dtest, Go's -run, or a part of a scenario's name
        #[arg(long)]
        only: Option<String>,
        /// How many kills the suite `kill` makes [default: 25, or E2E_KILL_ROUNDS]
        #[arg(long)]
        rounds: Option<u32>,
        /// Where the tools' own output goes [default: a file in the temporary folder]
        #[arg(long, value_name = "FILE")]
        log: Option<PathBuf>,
        /// Also write the results as JSON
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
    },
    /// Used by the suites: ask the runner to restart the broker
    Restart {
        /// The runner's socket
        #[arg(long)]
        socket: PathBuf,
        /// orderly or kill
        how: String,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Restart { socket, how } => send_command(&socket, &how).map(|()| true),
        Command::Run {
            suite,
            against,
            only,
            rounds,
            log,
            report,
        } => {
            let log = log.unwrap_or_else(|| {
                std::env::temp_dir().join(format!("rmq-e2e-{}.log", std::process::id()))
            });
            suite::run(suite, against, only.as_deref(), rounds, &log)
                .and_then(|results| show(&results, report, &log))
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn show(results: &Results, report: Option<PathBuf>, log: &std::path::Path) -> anyhow::Result<bool> {
    let mut out = std::io::stdout().lock();
    for case in &results.cases {
        let mark = match case.outcome {
            Outcome::Passed => "ok     ",
            Outcome::Failed => "FAILED ",
            Outcome::Skipped => "skipped",
        };
        writeln!(out, "{mark} {}", case.name)?;
        for line in case.detail.lines() {
            writeln!(out, "          {line}")?;
        }
    }
    if let Some(path) = report {
        std::fs::write(&path, serde_json::to_vec_pretty(results)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let failed = results.count(Outcome::Failed);
    let skipped = results.count(Outcome::Skipped);
    if failed > 0 {
        writeln!(out, "the tools' own output: {}", log.display())?;
    }
    write!(
        out,
        "{} passed, {failed} failed",
        results.count(Outcome::Passed)
    )?;
    if skipped > 0 {
        write!(out, ", {skipped} skipped")?;
    }
    writeln!(out)?;
    Ok(failed == 0)
}
