//! Two servers under the same load, in turn: R O R O … R, and the ratios of neighbours.
//!
//! Invariant: a figure is only set against runs of the reference just before and just after it;
//! where these two differ too much the computer was disturbed, and the pair does not count.

mod figures;
mod side;

use std::io::{Write, stdout};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::child::Server;
use crate::report::{Report, new_table, thousands};
use crate::{CompareArgs, Output, Workload};
pub use figures::Comparison;
use figures::{Pair, drift, figures};
use side::Side;

/// Attempts for each pair asked for.
const ATTEMPTS: usize = 3;

#[derive(Debug, Serialize)]
struct Outcome {
    title: String,
    ours: String,
    reference: String,
    pairs: usize,
    discarded: usize,
    clean: bool,
    figures: Vec<Comparison>,
    runs: Vec<Report>,
    reference_runs: Vec<Report>,
}

/// `bench compare`.
pub(crate) fn run(args: &CompareArgs, output: Output) -> Result<()> {
    ensure!(args.rounds > 0, "needs at least one round");
    let mut ours = Side::new(args, &address(args), args.load.pid)?;
    let command = args.command.as_deref();
    let broker = command
        .map(|command| Server::command(command, ours.addr))
        .transpose()?;
    if let Some(broker) = &broker {
        ours.load.pid = Some(args.load.pid.unwrap_or(broker.pid()));
    }
    let (reference, floor) = if let Some(against) = &args.against {
        (Side::new(args, against, args.against_pid)?, None)
    } else {
        let (floor, addr) = Server::floor(args)?;
        (Side::floor(args, addr, floor.pid()), Some(floor))
    };
    let outcome = measure(args, &ours, &reference)?;
    drop(floor);
    drop(broker);
    print(&outcome, output)
}

/// What was asked for, or the usual port of the workload's server.
fn address(args: &CompareArgs) -> String {
    let usual = match args.workload {
        Workload::Route => "127.0.0.1:9876",
        Workload::Send | Workload::Pull | Workload::Latency => "127.0.0.1:10911",
    };
    args.addr.clone().unwrap_or_else(|| usual.to_owned())
}

fn measure(args: &CompareArgs, ours: &Side, reference: &Side) -> Result<Outcome> {
    let run_ours = || ours.measure().context("the measured server");
    let run_reference = || reference.measure().context("the reference");
    ours.prepare().context("the measured server")?;
    reference.prepare().context("the reference")?;
    // The first runs warm both up and do not count.
    run_ours()?;
    let mut before = run_reference()?;
    let (mut pairs, mut discarded) = (Vec::new(), 0);
    while pairs.len() < args.rounds && pairs.len() + discarded < args.rounds * ATTEMPTS {
        let middle = run_ours()?;
        let after = run_reference()?;
        if drift(args.workload, &before, &after) * 100.0 > args.drift {
            discarded += 1;
        } else {
            pairs.push(Pair {
                before,
                ours: middle,
                after: after.clone(),
            });
        }
        before = after;
    }
    ensure!(
        !pairs.is_empty(),
        "every pair was disturbed: the reference drifted more than {} % each time",
        args.drift
    );
    let runs: Vec<_> = pairs.iter().map(|pair| pair.ours.clone()).collect();
    Ok(Outcome {
        title: runs
            .first()
            .map(|run| run.title.clone())
            .unwrap_or_default(),
        ours: ours.addr.to_string(),
        reference: reference.name(),
        pairs: pairs.len(),
        discarded,
        clean: runs.iter().all(Report::is_clean),
        figures: figures(args.workload, &pairs),
        runs,
        reference_runs: pairs.into_iter().map(|pair| pair.after).collect(),
    })
}

fn print(outcome: &Outcome, output: Output) -> Result<()> {
    let mut out = stdout().lock();
    if output == Output::Json {
        writeln!(out, "{}", serde_json::to_string(outcome)?)?;
        return Ok(());
    }
    writeln!(out, "{}", outcome.title)?;
    writeln!(
        out,
        "{} against {}: {} pairs, {} discarded{}",
        outcome.ours,
        outcome.reference,
        outcome.pairs,
        outcome.discarded,
        if outcome.clean { "" } else { ", WITH FAILURES" },
    )?;
    let mut table = new_table(&["figure", "ours", "reference", "ratio", "min – max"]);
    for row in &outcome.figures {
        let number = |value: f64| {
            if value < 100.0 {
                format!("{value:.2}")
            } else {
                thousands(value)
            }
        };
        let known = |value: Option<String>| value.unwrap_or_else(|| "not known".to_owned());
        let ratios = row.ratio_min.zip(row.ratio_max);
        table.add_row(vec![
            row.figure.to_owned(),
            known(row.ours.map(number)),
            known(row.reference.map(number)),
            row.ratio
                .map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            ratios.map_or_else(String::new, |(min, max)| format!("{min:.2} – {max:.2}")),
        ]);
    }
    writeln!(out, "{table}")?;
    Ok(())
}
