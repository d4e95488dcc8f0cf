//! Deletes log files that are too old or for which there is no room, and queue and index files with
//! them (`CleanCommitLogService`).
//!
//! **Invariant:** the file being written is never deleted, nor the last file of a queue.

use std::time::Duration;

use crate::{core::Core, queue::unit::UNIT};

/// Most files of one round.
const FILES_MAX: usize = 10;

/// What a clean-up did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Log files deleted.
    pub log_files: usize,
    /// Queue files deleted.
    pub queue_files: usize,
    /// Index files deleted.
    pub index_files: usize,
}

/// Runs one round; `manual` deletes expired files at any hour.
pub(crate) fn run(core: &Core, manual: bool) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let used = core.disk_used.load(std::sync::atomic::Ordering::Relaxed);
    let options = core.tuned.get();
    let at_once = used > options.disk_force_clean_percent;
    let hour = hour_of_day(core);
    if !manual
        && !at_once
        && used <= options.disk_max_used_percent
        && !options.delete_when.contains(&hour)
    {
        return cleaned;
    }
    while cleaned.log_files < FILES_MAX {
        let oldest = {
            let segments = core.chain.segments();
            if segments.len() < 2 {
                break;
            }
            segments.first().map(|segment| segment.path.clone())
        };
        let Some(path) = oldest else { break };
        if !at_once && !is_expired(core, &path, options.reserved_for) {
            break;
        }
        match core.chain.remove_first() {
            Ok(true) => cleaned.log_files += 1,
            Ok(false) => break,
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "cannot delete log file");
                break;
            }
        }
    }
    if cleaned.log_files > 0 {
        let min = core.chain.min();
        tracing::info!(
            files = cleaned.log_files,
            log_min = min,
            used,
            "deleted old log files"
        );
        cleaned.queue_files = trim_queues(core, min);
        cleaned.index_files = core.index.trim(min);
        if let Err(error) = crate::lock::lock(&core.tombstones).forget_below(min) {
            tracing::warn!(%error, "cannot shorten the list of deleted topics");
        }
        crate::upkeep::check_disk(core);
    }
    cleaned
}

fn hour_of_day(core: &Core) -> u8 {
    let local = core.clock.now().millis() + core.options.utc_offset.as_millis() as i64;
    (local.div_euclid(3_600_000).rem_euclid(24)) as u8
}

fn is_expired(core: &Core, path: &std::path::Path, reserved_for: Duration) -> bool {
    let Ok(modified) = std::fs::metadata(path).and_then(|data| data.modified()) else {
        return false;
    };
    let modified = modified
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64);
    core.clock.now().millis() - modified > reserved_for.as_millis() as i64
}

/// Deletes queue files whose entries all name records below `log_min`; the last file stays.
fn trim_queues(core: &Core, log_min: u64) -> usize {
    let files = &core.table.files;
    let mut deleted = 0;
    for queue in core.table.all() {
        let Ok(min) = queue.min(files, log_min) else {
            continue;
        };
        let Ok(bases) = files.list(&queue.topic, queue.id) else {
            continue;
        };
        for pair in bases.windows(2) {
            let [base, next] = pair else { continue };
            if next / UNIT as u64 > min {
                break;
            }
            match core.table.with_io(|| files.delete(queue.name(), *base)) {
                Ok(()) => deleted += 1,
                Err(error) => {
                    tracing::warn!(%error, topic = %queue.topic, "cannot delete queue file");
                }
            }
        }
    }
    deleted
}
