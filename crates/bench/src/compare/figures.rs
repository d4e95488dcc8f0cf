//! Medians and ratios over pairs of runs. Pure.
//!
//! Invariant: a figure that a side did not measure is absent on that side, and so is its ratio.

use serde::Serialize;

use crate::Workload;
use crate::report::Report;

/// A run with its bracketing runs of the reference.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) before: Report,
    pub(super) ours: Report,
    pub(super) after: Report,
}

/// A figure on both sides over all pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Which figure.
    pub figure: &'static str,
    /// Median of the measured server.
    pub ours: Option<f64>,
    /// Median of the reference.
    pub reference: Option<f64>,
    /// Median of the pairs' ratios, ours to the reference.
    pub ratio: Option<f64>,
    /// Smallest ratio.
    pub ratio_min: Option<f64>,
    /// Largest ratio.
    pub ratio_max: Option<f64>,
}

/// How far two runs of the reference are apart, as a part of the larger: in their rate, or in their
/// usual latency where the generator sets the rate.
pub(super) fn drift(workload: Workload, before: &Report, after: &Report) -> f64 {
    let of = |report: &Report| match workload {
        Workload::Latency => report.latency_micros.p50,
        Workload::Send | Workload::Pull | Workload::Route => report.rate,
    };
    let (low, high) = (of(before).min(of(after)), of(before).max(of(after)));
    if high > 0.0 { (high - low) / high } else { 1.0 }
}

/// All figures that at least one side measured.
pub(super) fn figures(workload: Workload, pairs: &[Pair]) -> Vec<Comparison> {
    type Figure = (&'static str, fn(&Report) -> Option<f64>);
    let each = match workload {
        Workload::Route => "queries/s",
        Workload::Send | Workload::Pull | Workload::Latency => "messages/s",
    };
    let rows: [Figure; 8] = [
        (each, |report| Some(report.rate)),
        ("p50 µs", |report| Some(report.latency_micros.p50)),
        ("p99 µs", |report| Some(report.latency_micros.p99)),
        ("p99.9 µs", |report| Some(report.latency_micros.p999)),
        ("max µs", |report| Some(report.latency_micros.max)),
        ("CPU µs/message", |report| {
            report.server.map(|server| server.cpu_micros_per_message)
        }),
        ("resident MiB", |report| {
            report.server.map(|server| server.rss_mib)
        }),
        ("anonymous MiB", |report| {
            report.server.map(|server| server.anon_mib)
        }),
    ];
    rows.into_iter()
        // The generator sets this rate.
        .filter(|(figure, _)| workload != Workload::Latency || *figure != each)
        .filter_map(|(figure, of)| compare(figure, pairs, of))
        .collect()
}

/// `None` where neither side has the figure.
fn compare(
    figure: &'static str,
    pairs: &[Pair],
    of: impl Fn(&Report) -> Option<f64>,
) -> Option<Comparison> {
    let reference = |pair: &Pair| Some(f64::midpoint(of(&pair.before)?, of(&pair.after)?));
    let ratio = |pair: &Pair| Some(of(&pair.ours)? / reference(pair)?);
    let ratios = sorted(pairs.iter().filter_map(ratio));
    let comparison = Comparison {
        figure,
        ours: median(&sorted(pairs.iter().filter_map(|pair| of(&pair.ours)))),
        reference: median(&sorted(pairs.iter().filter_map(reference))),
        ratio: median(&ratios),
        ratio_min: ratios.first().copied(),
        ratio_max: ratios.last().copied(),
    };
    (comparison.ours.is_some() || comparison.reference.is_some()).then_some(comparison)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Measured;
    use crate::process::Usage;

    fn report(messages: u64, micros: u64, cpu: Option<u64>) -> Report {
        let mut measured = Measured::new().unwrap();
        measured.seconds = 1.0;
        measured.messages = messages;
        measured.latency.record(micros * 1000).unwrap();
        let usage = |cpu_micros| Usage {
            cpu_micros,
            ..Usage::default()
        };
        measured.server = cpu.map(|cpu| (usage(0), usage(cpu * messages)));
        Report::of(String::new(), String::new(), Some(1), &measured)
    }

    fn pair(cpu: Option<u64>) -> Pair {
        Pair {
            before: report(1000, 10, cpu),
            ours: report(900, 20, Some(8)),
            after: report(2000, 10, cpu),
        }
    }

    fn row(rows: &[Comparison], figure: &str) -> Comparison {
        rows.iter()
            .find(|row| row.figure == figure)
            .unwrap()
            .clone()
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(&[1.0, 2.0, 10.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 4.0, 10.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_run_is_set_against_the_mean_of_its_neighbours() {
        let rows = figures(Workload::Send, &[pair(Some(4))]);
        let rate = row(&rows, "messages/s");
        assert_eq!((rate.ours, rate.reference), (Some(900.0), Some(1500.0)));
        assert_eq!(rate.ratio, Some(0.6));
        assert_eq!(row(&rows, "CPU µs/message").ratio, Some(2.0));
    }

    #[test]
    fn processor_time_that_only_one_side_has_is_shown_without_a_ratio() {
        let rows = figures(Workload::Pull, &[pair(None)]);
        let cpu = row(&rows, "CPU µs/message");
        assert_eq!((cpu.ours, cpu.reference), (Some(8.0), None));
        assert_eq!(
            (cpu.ratio, cpu.ratio_min, cpu.ratio_max),
            (None, None, None)
        );
    }

    #[test]
    fn latency_has_no_rate_and_drifts_by_its_median() {
        let rows = figures(Workload::Latency, &[pair(None)]);
        assert!(rows.iter().all(|row| row.figure != "messages/s"));
        let (slow, fast) = (report(1000, 30, None), report(4000, 30, None));
        assert!(drift(Workload::Latency, &slow, &fast) < 0.01);
        assert!((drift(Workload::Route, &slow, &fast) - 0.75).abs() < 1e-9);
    }
}
