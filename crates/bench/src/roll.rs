//! Where a broker's commit log stands, and runs that go over into its next file.
//!
//! Invariant: offsets come from the broker, the place inside the window is worked out from what was
//! acknowledged; a broker that does not tell its offsets gives nothing, not zeros.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use rmq_protocol::body::KvTable;
use rmq_protocol::java_properties;
use rmq_protocol::remoting::{Command, request_code};
use serde::Serialize;

use crate::control::Control;
use crate::engine::{self, Measured};
use crate::frames::topic_names;
use crate::load::{fill_plan, send::Sends};
use crate::{LoadArgs, MessageArgs};

/// Messages of one request when filling.
const FILL_BATCH: usize = 32;
/// Tries to come close: each goes nine tenths of what is left.
const FILL_STEPS: usize = 6;
/// Overhead of a record assumed before any was seen.
const OVERHEAD_BYTES: u64 = 250;

/// End of a commit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    pub(crate) offset: u64,
    /// Bytes of one file of the log.
    pub(crate) segment: Option<u64>,
}

/// The part of the commit log that was written in the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LogSpan {
    /// Its start, as a byte offset of the log.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// Bytes of one file of the log.
    pub segment_bytes: Option<u64>,
    /// How often the log went on to its next file.
    pub rolls: Option<u64>,
    /// When it did so first, in seconds from the start of the window.
    pub first_roll_seconds: Option<f64>,
}

impl LogEnd {
    /// Asks the broker; `None` if it does not tell.
    pub(crate) fn ask(addr: SocketAddr) -> Option<Self> {
        let mut control = Control::connect(addr).ok()?;
        let info = Command::request(request_code::GET_BROKER_RUNTIME_INFO);
        let info = KvTable::from_json(&control.call(info).ok()?.body).ok()?;
        let offset = info.table.get("commitLogMaxOffset")?.parse().ok()?;
        let config = Command::request(request_code::GET_BROKER_CONFIG);
        let config = control.call(config).ok();
        let config = config.and_then(|answer| java_properties::parse_map(&answer.body).ok());
        let segment = config
            .and_then(|config| config.get("mappedFileSizeCommitLog")?.parse().ok())
            .filter(|bytes| *bytes > 0);
        Some(Self { offset, segment })
    }
}

/// What the window of a run wrote, between the ends `before` and `after` the whole run.
pub(crate) fn span(before: LogEnd, after: LogEnd, run: &Measured) -> LogSpan {
    let grown = after.offset.saturating_sub(before.offset) as f64;
    let each = grown / run.acknowledged.max(1) as f64;
    let at = |messages: u64| before.offset + (each * messages as f64) as u64;
    let from = at(run.acknowledged_before);
    let to = at(run.acknowledged_before + run.messages);
    let rolls = after.segment.map(|segment| to / segment - from / segment);
    let first_roll_seconds = after.segment.zip(rolls).and_then(|(segment, rolls)| {
        let next = (from / segment + 1) * segment;
        (rolls > 0).then(|| (next - from) as f64 / (to - from).max(1) as f64 * run.seconds)
    });
    LogSpan {
        from,
        to,
        segment_bytes: after.segment,
        rolls,
        first_roll_seconds,
    }
}

/// Bytes to write before a run that writes `ahead` bytes up to the middle of its window, so that the
/// middle meets the end of a file.
fn missing(end: u64, segment: u64, ahead: u64) -> u64 {
    if ahead >= segment {
        // Such a run goes over an end whatever stands before it.
        return 0;
    }
    let left = segment - end % segment;
    if left >= ahead {
        left - ahead
    } else {
        left + segment - ahead
    }
}

/// Fills the log until the middle of the window of a run like this one will meet the end of a file.
pub(crate) fn fill(addr: SocketAddr, load: &LoadArgs, message: &MessageArgs) -> Result<()> {
    let rate = load.rate.context("needs a rate")?;
    let ask = || LogEnd::ask(addr).context("the broker does not tell where its commit log ends");
    let seconds = load.warmup.as_secs_f64() + load.duration.as_secs_f64() / 2.0;
    let ahead_messages = rate * message.batch as f64 * seconds;
    let filler = MessageArgs {
        batch: FILL_BATCH,
        ..message.clone()
    };
    let mut sends = Sends::new(&topic_names(&message.topic, message.topics), &filler)?;
    let mut each = message.size as u64 + OVERHEAD_BYTES;
    let mut end = ask()?;
    for _ in 0..FILL_STEPS {
        let segment = end
            .segment
            .context("the broker does not tell the size of its commit log files")?;
        let ahead = (ahead_messages * each as f64) as u64;
        let requests = missing(end.offset, segment, ahead) * 9 / 10 / (each * FILL_BATCH as u64);
        if requests == 0 {
            break;
        }
        let filled = engine::run(&fill_plan(addr, requests), &mut sends).context("filling")?;
        ensure!(
            filled.errors.is_empty() && filled.acknowledged > 0,
            "filling failed: {:?} {}",
            filled.errors,
            filled.first_error.unwrap_or_default()
        );
        let before = end.offset;
        end = ask()?;
        each = (end.offset.saturating_sub(before) / filled.acknowledged).max(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(offset: u64, segment: u64) -> LogEnd {
        LogEnd {
            offset,
            segment: Some(segment),
        }
    }

    fn run(acknowledged: u64, before: u64, messages: u64) -> Measured {
        let mut run = Measured::new().unwrap();
        (run.acknowledged, run.acknowledged_before) = (acknowledged, before);
        (run.messages, run.seconds) = (messages, 10.0);
        run
    }

    #[test]
    fn only_what_the_window_wrote_counts() {
        // 1,000 messages of 100 bytes, 200 of them before the window and 100 after it.
        let found = span(end(0, 50_000), end(100_000, 50_000), &run(1000, 200, 700));
        assert_eq!((found.from, found.to), (20_000, 90_000));
        assert_eq!(found.rolls, Some(1));
        let second = found.first_roll_seconds.unwrap();
        assert!((second - 30.0 / 7.0).abs() < 0.01, "{second}");
    }

    #[test]
    fn a_roll_before_the_window_is_none_of_it() {
        let found = span(end(0, 10_000), end(100_000, 95_000), &run(1000, 960, 10));
        assert_eq!((found.rolls, found.first_roll_seconds), (Some(0), None));
    }

    #[test]
    fn a_broker_that_does_not_tell_its_file_size_has_no_rolls() {
        let after = LogEnd {
            offset: 100_000,
            segment: None,
        };
        let found = span(end(0, 1), after, &run(1000, 0, 1000));
        assert_eq!((found.to, found.rolls), (100_000, None));
    }

    #[test]
    fn what_is_missing_brings_the_middle_of_the_window_to_the_end_of_a_file() {
        assert_eq!(missing(0, 1000, 300), 700);
        assert_eq!(missing(5_600, 1000, 300), 100);
        assert_eq!(missing(5_800, 1000, 300), 900);
        assert_eq!(missing(5_700, 1000, 300), 0);
        assert_eq!(missing(5_000, 1000, 1000), 0);
    }
}
