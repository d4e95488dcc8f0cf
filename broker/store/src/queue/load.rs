//! Finds out where a queue on the disk ends, without reading it.
//!
//! Entries whose records lie below `below` were written and forced before the checkpoint that says so,
//! and records of a queue ascend: so the last such entry is found by halving. Whatever stands behind
//! it, partly written units and files of odd length included, is written anew from the log.
//! **Invariant:** nothing at or beyond `below` is trusted. Changes no file.

use std::io;

use super::{
    files::{Files, QueueName},
    unit::UNIT,
};

/// What the files of a queue say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// First index in the files.
    pub(crate) min: u64,
    /// Index behind the last trusted entry.
    pub(crate) next: u64,
    /// Where the last trusted record starts.
    pub(crate) last_offset: Option<u64>,
    /// Whether something stands behind the trusted entries.
    pub(crate) stale: bool,
}

/// Looks at the files of a queue; `hint` is where it ended when it was last seen whole, which spares
/// most probes.
pub(crate) fn load(
    files: &Files,
    name: QueueName<'_>,
    below: u64,
    hint: Option<u64>,
) -> io::Result<Loaded> {
    let bases = files.list(name.topic, name.queue_id)?;
    let Some(first) = bases.first() else {
        return Ok(Loaded::default());
    };
    let min = first / UNIT as u64;
    let trusted = |index: u64| -> io::Result<bool> {
        let unit = files.unit(name, index)?;
        Ok(unit.is_some_and(|unit| unit.is_blank() || unit.offset < below))
    };
    for (age, base) in bases.iter().rev().enumerate() {
        let start = base / UNIT as u64;
        if !trusted(start)? {
            continue;
        }
        let end = start + files.file_units();
        let mut low = start + 1;
        if let Some(hint) = hint.filter(|hint| (low + 1..=end).contains(hint))
            && trusted(hint - 1)?
        {
            low = hint;
        }
        // Most queues end near where they were seen, or are short: steps double from there.
        let (mut high, mut stride) = (low, 1);
        while high < end && trusted(high)? {
            low = high + 1;
            high = (high + stride).min(end);
            stride *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if trusted(middle)? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let last = files.unit(name, low - 1)?.filter(|unit| !unit.is_blank());
        let stale = age > 0 || behind(files, name, low)?;
        let Some(last) = last else {
            // Only fillers: the entries behind them are gone.
            return Ok(Loaded {
                min: low,
                next: low,
                last_offset: None,
                stale,
            });
        };
        return Ok(Loaded {
            min,
            next: low,
            last_offset: Some(last.offset),
            stale,
        });
    }
    Ok(Loaded {
        min,
        next: min,
        last_offset: None,
        stale: true,
    })
}

/// Whether anything was written at `index`, whole or in part.
fn behind(files: &Files, name: QueueName<'_>, index: u64) -> io::Result<bool> {
    if index.is_multiple_of(files.file_units()) {
        return Ok(false);
    }
    Ok(files
        .raw(name, index)?
        .is_none_or(|bytes| bytes != [0; UNIT]))
}
