//! Two servers under the same load, in turn: R O R O … R, and the ratios of neighbours.
//!
//! Invariant: a figure is only set against runs of the reference just before and just after it;
//! where these two differ too much the computer was disturbed, and the pair does not count.

use std::io::{Write, stdout};
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::child::Server;
use crate::control::{Control, resolve};
use crate::frames::topic_names;
use crate::report::{Report, new_table, thousands};
use crate::{CompareArgs, LoadArgs, Output, load};

/// Attempts for each pair asked for.
const ATTEMPTS: usize = 3;

/// A run with its bracketing runs of the reference.
#[derive(Clone, Debug)]
struct Pair {
    before: Report,
    ours: Report,
    after: Report,
}

/// A figure on both sides over all pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Which figure.
    pub figure: &'static str,
    /// Median of the measured server.
    pub ours: f64,
    /// Median of the reference.
    pub reference: f64,
    /// Median of the pairs' ratios, ours to the reference.
    pub ratio: f64,
    /// Smallest ratio.
    pub ratio_min: f64,
    /// Largest ratio.
    pub ratio_max: f64,
}

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
}

#[derive(Clone, Debug)]
struct Target {
    addr: SocketAddr,
    load: LoadArgs,
}

/// `bench compare`.
pub(crate) fn run(args: &CompareArgs, output: Output) -> Result<()> {
    ensure!(args.rounds > 0, "needs at least one round");
    let addr = resolve(&args.addr)?;
    let command = args.command.as_deref();
    let broker = command
        .map(|command| Server::command(command, addr))
        .transpose()?;
    let mut ours = Target {
        addr,
        load: args.load.clone(),
    };
    ours.load.pid = args.load.pid.or(broker.as_ref().map(Server::pid));
    let mut reference = Target {
        addr,
        load: args.load.clone(),
    };
    reference.load.pid = args.with_pid;
    let floor = if let Some(with) = &args.with {
        reference.addr = resolve(with)?;
        None
    } else {
        let (floor, addr) = Server::floor(args)?;
        reference.addr = addr;
        reference.load.pid = Some(floor.pid());
        Some(floor)
    };
    let outcome = measure(args, &ours, &reference)?;
    drop(floor);
    drop(broker);
    print(&outcome, output)
}

fn measure(args: &CompareArgs, ours: &Target, reference: &Target) -> Result<Outcome> {
    if !args.message.no_create {
        let topics = topic_names(&args.message.topic, args.message.topics);
        for addr in [ours.addr, reference.addr] {
            Control::connect(addr)?.create_topics(&topics, args.message.queues, |_| {})?;
        }
    }
    let run = |target: &Target| load::send::measure(target.addr, &target.load, &args.message);
    // The first runs warm both up and do not count.
    run(ours).context("the measured server")?;
    let mut before = run(reference).context("the reference")?;
    let (mut pairs, mut discarded) = (Vec::new(), 0);
    while pairs.len() < args.rounds && pairs.len() + discarded < args.rounds * ATTEMPTS {
        let middle = run(ours).context("the measured server")?;
        let after = run(reference).context("the reference")?;
        if drift(&before, &after) * 100.0 > args.drift {
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
        reference: args
            .with
            .clone()
            .unwrap_or_else(|| "floor broker".to_owned()),
        pairs: pairs.len(),
        discarded,
        clean: runs.iter().all(Report::is_clean),
        figures: figures(&pairs),
        runs,
    })
}

/// How far two runs of the reference are apart, as a part of the larger.
fn drift(before: &Report, after: &Report) -> f64 {
    let (low, high) = (before.rate.min(after.rate), before.rate.max(after.rate));
    if high > 0.0 { (high - low) / high } else { 1.0 }
}

fn figures(pairs: &[Pair]) -> Vec<Comparison> {
    let cpu = |report: &Report| report.server.map_or(f64::NAN, |s| s.cpu_micros_per_message);
    let rss = |report: &Report| report.server.map_or(f64::NAN, |s| s.rss_mib);
    [
        compare("messages/s", pairs, |report| report.rate),
        compare("p50 µs", pairs, |report| report.latency_micros.p50),
        compare("p99 µs", pairs, |report| report.latency_micros.p99),
        compare("p99.9 µs", pairs, |report| report.latency_micros.p999),
        compare("max µs", pairs, |report| report.latency_micros.max),
        compare("CPU µs/message", pairs, cpu),
        compare("resident MiB", pairs, rss),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `None` where the figure was not measured.
fn compare(
    figure: &'static str,
    pairs: &[Pair],
    of: impl Fn(&Report) -> f64,
) -> Option<Comparison> {
    let reference = |pair: &Pair| f64::midpoint(of(&pair.before), of(&pair.after));
    let ratios = sorted(pairs.iter().map(|pair| of(&pair.ours) / reference(pair)));
    let comparison = Comparison {
        figure,
        ours: median(&sorted(pairs.iter().map(|pair| of(&pair.ours))))?,
        reference: median(&sorted(pairs.iter().map(reference)))?,
        ratio: median(&ratios)?,
        ratio_min: *ratios.first()?,
        ratio_max: *ratios.last()?,
    };
    comparison.ratio.is_finite().then_some(comparison)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(middle.checked_sub(1)?)?, upper))
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
        table.add_row(vec![
            row.figure.to_owned(),
            number(row.ours),
            number(row.reference),
            format!("{:.2}", row.ratio),
            format!("{:.2} – {:.2}", row.ratio_min, row.ratio_max),
        ]);
    }
    writeln!(out, "{table}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(&[1.0, 2.0, 10.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 4.0, 10.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
