//! The thread that makes log pages ready ahead of the writer, and takes those behind it out of the
//! page tables.
//!
//! **Invariant:** an append meets a page that was never touched only when it has caught up with this
//! thread; then it makes the pages itself. What is made ahead follows the pace of the appends.
//! With sync flush, zeros are written and forced to the disk ahead: the flush of a group then changes
//! no metadata and waits for no journal.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    core::{Core, NO_SPACE},
    lock::lock,
    log::Segment,
    storage,
    upkeep::{Stop, check_disk},
};

/// Log behind the writer that stays in the page tables.
const KEEP_MAPPED: u64 = 32 * 1024 * 1024;
/// How often log that readers mapped again is taken out of the page tables.
const RELEASE_ALL: Duration = Duration::from_secs(10);
/// Log prepared in one step: some tenths of a millisecond, after which whoever waits for the
/// processor gets it. A longer one holds a thread that serves clients up for its whole time slice.
const PREPARE_STEP: u64 = 64 * 1024;
/// Most that is made ahead.
const AHEAD_MAX: u64 = 128 * 1024 * 1024;
/// Appends of this many milliseconds are made ahead: longer than the file system's journal makes
/// an allocation wait on a disk that is busy.
const AHEAD_MILLIS: u64 = 500;

/// The loop of the thread.
pub(crate) fn run(core: &Core, stop: &Stop) {
    let mut released = Released {
        below: 0,
        all_at: Instant::now(),
    };
    let mut pace = Pace::new(core.end());
    let mut disk_seen = Instant::now();
    while !stop.is_set() {
        if disk_seen.elapsed() >= Duration::from_secs(1) {
            check_disk(core);
            disk_seen = Instant::now();
        }
        let ahead = pace.ahead(core.end(), core.options.prepare_bytes);
        if let Err(error) = prepare(core, ahead) {
            if storage::is_full(&error) {
                core.note_full();
            } else {
                tracing::warn!(%error, "cannot prepare log space");
            }
            core.prepare_at.store(u64::MAX - 1, Ordering::Relaxed);
            if stop.wait(Duration::from_secs(1)) {
                break;
            }
            continue;
        }
        if core.set_refusal(NO_SPACE, false) {
            tracing::info!("disk has room again: appends are taken");
        }
        released.advance(core);
        thread::park_timeout(Duration::from_secs(1));
    }
}

/// Makes pages ready ahead of the writer, in this file and the next.
fn prepare(core: &Core, ahead: u64) -> io::Result<()> {
    let end = core.end();
    let Some(segment) = core.chain.find(end) else {
        return Ok(());
    };
    let from = end - segment.base;
    let upto = (from + ahead).min(segment.len());
    step(core, &segment, from, upto)?;
    let beyond = (from + ahead).saturating_sub(segment.len());
    if beyond > 0 {
        let next = {
            let mut next = lock(&core.next);
            match next.as_ref().filter(|next| next.base == segment.end()) {
                Some(next) => Arc::clone(next),
                None if core.chain.find(segment.end()).is_some() => return Ok(()),
                None => {
                    let made = Segment::create(
                        core.chain.dir(),
                        segment.end(),
                        segment.len(),
                        core.options.log_way(),
                    )?;
                    let made = Arc::new(made);
                    *next = Some(Arc::clone(&made));
                    made
                }
            }
        };
        step(core, &next, 0, beyond.min(next.len()))?;
    }
    core.prepare_at.store(end + ahead / 2, Ordering::Relaxed);
    Ok(())
}

fn step(core: &Core, segment: &Segment, from: u64, upto: u64) -> io::Result<()> {
    // Space in one go, since each one may wait for the file system's journal; pages in steps, so
    // that an append that has caught up waits for no more than one.
    segment.allocate(from, upto, &core.disk)?;
    let first = segment.ready().max(from);
    let mut at = first;
    while at < upto {
        at = (at + PREPARE_STEP).min(upto);
        segment.prepare(from, at, &core.disk)?;
        thread::yield_now();
    }
    // The kernel tells of a failed write once: it may have been one of records.
    segment
        .settle(first, upto, &core.disk)
        .inspect_err(|error| core.poison(&format!("commit log sync failed: {error}")))
}

/// How fast the log grows.
struct Pace {
    end: u64,
    at: Instant,
    ahead: u64,
}

impl Pace {
    fn new(end: u64) -> Self {
        Self {
            end,
            at: Instant::now(),
            ahead: 0,
        }
    }

    /// Bytes to make ready ahead of `end`: at least `least`, twice as slow to shrink as to grow.
    fn ahead(&mut self, end: u64, least: u64) -> u64 {
        let millis = (self.at.elapsed().as_millis() as u64).max(1);
        let wanted = end.saturating_sub(self.end).saturating_mul(AHEAD_MILLIS) / millis;
        (self.end, self.at) = (end, Instant::now());
        self.ahead = wanted
            .max(self.ahead / 2)
            .clamp(least, AHEAD_MAX.max(least));
        self.ahead
    }
}

/// Which log was taken out of the page tables.
struct Released {
    below: u64,
    all_at: Instant,
}

impl Released {
    /// Takes log that is behind the writer out of the page tables, so that this process's memory does
    /// not grow with the log; readers map it again by looking at it.
    fn advance(&mut self, core: &Core) {
        let keep = core.end().saturating_sub(KEEP_MAPPED);
        let all = self.all_at.elapsed() >= RELEASE_ALL;
        if !all && keep < self.below + KEEP_MAPPED / 4 {
            return;
        }
        // Not under the chain's lock, which a new log file needs.
        let segments = core.chain.segments().clone();
        for segment in segments {
            let upto = keep.min(segment.end());
            let from = if all {
                segment.base
            } else {
                self.below.max(segment.base)
            };
            if upto > from {
                let start = (from - segment.base) as usize;
                segment.region.release(start, (upto - from) as usize);
            }
        }
        self.below = self.below.max(keep);
        if all {
            self.all_at = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_ahead_grows_with_the_pace_and_stays_within_bounds() {
        let mut pace = Pace::new(0);
        assert_eq!(pace.ahead(0, 1024), 1024);
        assert_eq!(pace.ahead(u64::MAX / 2, 1024), AHEAD_MAX);
        let mut after = AHEAD_MAX;
        for _ in 0..64 {
            after = pace.ahead(u64::MAX / 2, 1024);
        }
        assert_eq!(after, 1024, "at rest it is the least again");
        assert_eq!(pace.ahead(0, 1024), 1024, "a log that was cut is no pace");
    }
}
