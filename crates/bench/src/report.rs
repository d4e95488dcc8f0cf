//! Results: figures out of what was counted, as a table for people or JSON for scripts.
//!
//! Invariant: a figure that was not measured is absent, not zero.

use std::collections::BTreeMap;
use std::io::{Write, stdout};

use anyhow::Result;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::Output;
use crate::engine::Measured;
use crate::process::Usage;
use crate::roll::LogSpan;
use crate::stalls::Stalls;

/// Microseconds at the usual places of a distribution.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Latencies {
    /// Half of the requests were at most this long.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Latencies {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1e3,
        }
    }
}

/// What the server's process used.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ServerUse {
    /// Its number.
    pub pid: u32,
    /// Processor time for each message, in microseconds.
    pub cpu_micros_per_message: f64,
    /// Processor time in percent of one core.
    pub cpu_percent: f64,
    /// Resident memory at the end, in MiB.
    pub rss_mib: f64,
    /// The part of it that no file stands behind.
    pub anon_mib: f64,
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was measured.
    pub title: String,
    /// Where.
    pub target: String,
    /// Length of the measured window.
    pub seconds: f64,
    /// Requests answered with success.
    pub requests: u64,
    /// Messages these stand for.
    pub messages: u64,
    /// Messages a second.
    pub rate: f64,
    /// Latency of requests in microseconds.
    pub latency_micros: Latencies,
    /// Failures by response code, over the whole run.
    pub errors: BTreeMap<i32, u64>,
    /// What the server said to the first failure.
    pub first_error: Option<String>,
    /// Connections lost.
    pub lost_connections: usize,
    /// Requests never answered.
    pub unanswered: u64,
    /// Messages acknowledged over the whole run, warm-up included.
    pub acknowledged: u64,
    /// With verification: by how much the queues grew.
    pub stored: Option<i64>,
    /// Processor and memory of the server.
    pub server: Option<ServerUse>,
    /// Processor time of the generator for each message.
    pub own_cpu_micros_per_message: Option<f64>,
    /// Seconds the preparation took (topics created, messages filled in).
    pub setup_seconds: Option<f64>,
    /// Times in which no answer came.
    pub stalls: Option<Stalls>,
    /// Of sends: the part of the broker's commit log that was written in the window.
    pub commit_log: Option<LogSpan>,
    /// Messages of every second.
    pub series: Vec<u64>,
}

impl Report {
    pub(crate) fn of(title: String, target: String, pid: Option<u32>, m: &Measured) -> Self {
        let seconds = m.seconds.max(1e-9);
        let each = |usage: &(Usage, Usage)| {
            let micros = usage.1.cpu_micros.saturating_sub(usage.0.cpu_micros) as f64;
            (micros / (m.messages.max(1)) as f64, micros / seconds / 1e4)
        };
        let server = pid.zip(m.server.as_ref()).map(|(pid, usage)| {
            let (cpu_micros_per_message, cpu_percent) = each(usage);
            ServerUse {
                pid,
                cpu_micros_per_message,
                cpu_percent,
                rss_mib: usage.1.rss_kib as f64 / 1024.0,
                anon_mib: usage.1.anon_kib as f64 / 1024.0,
            }
        });
        Self {
            title,
            target,
            seconds: m.seconds,
            requests: m.requests,
            messages: m.messages,
            rate: m.messages as f64 / seconds,
            latency_micros: Latencies::of(&m.latency),
            errors: m.errors.clone(),
            first_error: m.first_error.clone(),
            lost_connections: m.lost,
            unanswered: m.unanswered,
            acknowledged: m.acknowledged,
            stored: None,
            server,
            own_cpu_micros_per_message: m.own.as_ref().map(|usage| each(usage).0),
            setup_seconds: None,
            stalls: m.gaps.as_ref().map(|gaps| gaps.stalls(&m.latency)),
            commit_log: None,
            series: m.series.clone(),
        }
    }

    /// False if anything was not as it should be.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty()
            && self.lost_connections == 0
            && self.unanswered == 0
            && self
                .stored
                .is_none_or(|stored| stored == self.acknowledged as i64)
    }

    fn failures(&self) -> String {
        if self.errors.is_empty() {
            return "none".to_owned();
        }
        let counts: Vec<_> = self
            .errors
            .iter()
            .map(|(code, count)| format!("{count} × code {code}"))
            .collect();
        let reason = self.first_error.as_deref().unwrap_or("no remark");
        format!("{} ({reason})", counts.join(", "))
    }
}

/// Prints reports in the form asked for.
pub(crate) fn print(reports: &[Report], output: Output) -> Result<()> {
    let mut out = stdout().lock();
    match output {
        Output::Json => writeln!(out, "{}", serde_json::to_string(reports)?)?,
        Output::Table => {
            for report in reports {
                writeln!(out, "{} at {}", report.title, report.target)?;
                writeln!(out, "{}", table(report))?;
            }
        }
    }
    Ok(())
}

/// A table with the crate's look.
pub(crate) fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(header.to_vec());
    table
}

fn table(report: &Report) -> Table {
    let mut table = new_table(&["figure", "value"]);
    let mut row = |name: &str, value: String| {
        table.add_row(vec![name.to_owned(), value]);
    };
    row("messages/s", thousands(report.rate));
    let l = report.latency_micros;
    row(
        "p50 / p90 / p99 µs",
        format!("{:.0} / {:.0} / {:.0}", l.p50, l.p90, l.p99),
    );
    row("p99.9 / max µs", format!("{:.0} / {:.0}", l.p999, l.max));
    row(
        "messages, seconds",
        format!("{} in {:.1} s", report.messages, report.seconds),
    );
    if let Some(stalls) = &report.stalls {
        stall_rows(stalls, &mut row);
    }
    if let Some(span) = &report.commit_log {
        row("commit log", log_span(span));
    }
    row("failures", report.failures());
    if report.lost_connections > 0 || report.unanswered > 0 {
        let (lost, open) = (report.lost_connections, report.unanswered);
        row(
            "lost",
            format!("{lost} connections, {open} requests without an answer"),
        );
    }
    if let Some(stored) = report.stored {
        let verdict = if stored == report.acknowledged as i64 {
            "equal"
        } else {
            "NOT EQUAL"
        };
        row(
            "acknowledged / stored",
            format!("{} / {stored}: {verdict}", report.acknowledged),
        );
    }
    if let Some(setup) = report.setup_seconds {
        row("preparation", format!("{setup:.1} s"));
    }
    if let Some(server) = &report.server {
        row(
            "server CPU",
            format!(
                "{:.2} µs/message, {:.0} % of a core",
                server.cpu_micros_per_message, server.cpu_percent
            ),
        );
        row(
            "server memory",
            format!(
                "{:.0} MiB resident, {:.0} MiB anonymous (pid {})",
                server.rss_mib, server.anon_mib, server.pid
            ),
        );
    }
    if let Some(own) = report.own_cpu_micros_per_message {
        row("generator CPU", format!("{own:.2} µs/message"));
    }
    table
}

fn stall_rows(stalls: &Stalls, row: &mut impl FnMut(&str, String)) {
    let mut text = format!(
        "{} times, the longest {:.1} ms",
        stalls.gaps, stalls.longest_gap_millis
    );
    let places: Vec<_> = stalls
        .first_gaps
        .iter()
        .map(|gap| format!("{:.2} s", gap.at_seconds))
        .collect();
    if !places.is_empty() {
        text = format!("{text} (at {})", places.join(", "));
    }
    if stalls.own_pauses > 0 {
        text = format!(
            "{text}; {} times this generator itself was not running",
            stalls.own_pauses
        );
    }
    let limit = stalls.limit_millis;
    row(&format!("no answer for {limit:.0} ms"), text);
    row(
        &format!("requests above {limit:.0} ms"),
        stalls.slow_requests.to_string(),
    );
}

fn log_span(span: &LogSpan) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let rolls = match (span.rolls, span.first_roll_seconds) {
        (None, _) => "size of its files not known".to_owned(),
        (Some(rolls), Some(second)) => format!("{rolls} new files, the first at {second:.1} s"),
        (Some(rolls), None) => format!("{rolls} new files"),
    };
    format!(
        "{} to {} ({:.0} MiB), {rolls}",
        span.from,
        span.to,
        mib(span.to - span.from)
    )
}

/// `1234567.8` as `1,234,567`.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(thousands(0.4), "0");
        assert_eq!(thousands(999.6), "1,000");
        assert_eq!(thousands(1_234_567.0), "1,234,567");
    }
}
