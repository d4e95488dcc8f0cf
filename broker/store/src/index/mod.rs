//! The key index (`IndexService`): files of hashed keys, built by a thread that follows the log.
//!
//! **Invariant:** the index is derived: it may lag or be built again, entries may repeat, and a query
//! checks each hit against the record itself. Building never touches the append path.

mod file;
mod query;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Mutex, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use file::{IndexFile, Shape};
use rmq_protocol::message::{Record, properties, sys_flag};
use rmq_types::Timestamp;

use crate::{
    checkpoint::Checkpoint,
    core::Core,
    lock::{lock, read_lock, write_lock},
    log::walk,
    options::StoreOptions,
    storage::Disk,
};
pub use query::Found;

/// Records indexed under one hold of the lock.
const BATCH: usize = 256;
/// Shortest time between two syncs of the newest file.
const SYNC_EVERY: Duration = Duration::from_secs(30);

/// The index files of a store.
#[derive(Debug)]
pub(crate) struct Index {
    dir: PathBuf,
    shape: Shape,
    enabled: bool,
    utc_offset: Duration,
    disk: Disk,
    /// Oldest first.
    files: RwLock<Vec<IndexFile>>,
    /// The log is indexed below this.
    seen: AtomicU64,
    synced: Mutex<Synced>,
}

#[derive(Debug)]
struct Synced {
    below: u64,
    time: i64,
    at: Instant,
}

impl Index {
    /// Opens the files there are; indexing goes on at `from`, or where the newest file ends.
    pub(crate) fn open(
        root: &Path,
        options: &StoreOptions,
        clean: bool,
        known: Option<u64>,
        log: std::ops::Range<u64>,
    ) -> io::Result<Self> {
        let shape = Shape {
            slots: options.index_slots,
            entries: options.index_entries,
        };
        let dir = root.join("index");
        let mut files = Vec::new();
        let mut from = known;
        for path in list(&dir)? {
            if fs::metadata(&path)?.len() != shape.bytes() as u64 {
                tracing::warn!(path = %path.display(), "index file of another size is dropped");
                fs::remove_file(&path)?;
                from = Some(log.start);
                continue;
            }
            files.push(IndexFile::open(&path, shape)?);
        }
        let synced = known.unwrap_or(0);
        if !clean && let Some(newest) = files.pop_if(|newest| !newest.is_consistent(synced)) {
            tracing::warn!(path = %newest.path().display(), "index file is torn: building it again");
            // The file before it was synced before this one was made.
            let begin = match files.last() {
                _ if !newest.is_empty() => newest.begin_offset(),
                Some(before) => before.end_offset(),
                None => log.start,
            };
            from = Some(from.map_or(begin, |from| from.min(begin)));
            fs::remove_file(newest.path())?;
        } else if let Some(newest) = files.last().filter(|newest| !newest.is_empty()) {
            if !clean {
                // Sound as it is read, but perhaps in memory only: from here on it counts as synced.
                newest.sync()?;
            }
            // Keys of the last record may be missing: it is indexed again.
            from = Some(from.unwrap_or(0).max(newest.end_offset()));
        }
        let seen = from.unwrap_or(log.start).clamp(log.start, log.end);
        let time = files.last().map_or(0, IndexFile::end_time);
        Ok(Self {
            dir,
            shape,
            enabled: options.index_enabled,
            utc_offset: options.utc_offset,
            disk: Disk(options.faults.clone()),
            files: RwLock::new(files),
            seen: AtomicU64::new(if options.index_enabled { seen } else { log.end }),
            synced: Mutex::new(Synced {
                below: seen,
                time,
                at: Instant::now(),
            }),
        })
    }

    /// The log is indexed below this.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    /// Notes in `checkpoint` what is on the disk; forces the newest file there now and then.
    pub(crate) fn checkpoint(&self, checkpoint: &mut Checkpoint) {
        let mut synced = lock(&self.synced);
        if synced.at.elapsed() >= SYNC_EVERY
            && let Err(error) = self.sync(&mut synced)
        {
            tracing::warn!(%error, "index is not on the disk");
        }
        checkpoint.index_below = Some(synced.below);
        checkpoint.index_time = synced.time;
    }

    fn sync(&self, synced: &mut Synced) -> io::Result<()> {
        let files = read_lock(&self.files);
        let seen = self.seen();
        if let Some(newest) = files.last() {
            newest.sync()?;
            synced.time = newest.end_time();
        }
        synced.below = seen;
        synced.at = Instant::now();
        Ok(())
    }

    /// Forces everything to the disk.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.sync(&mut lock(&self.synced))
    }

    /// Takes the files out of this process's page tables.
    pub(crate) fn release(&self) {
        for file in write_lock(&self.files).iter_mut() {
            file.release();
        }
    }

    /// Deletes files whose records are all gone; the newest stays.
    pub(crate) fn trim(&self, log_min: u64) -> usize {
        let mut files = write_lock(&self.files);
        let mut deleted = 0;
        while files.len() > 1
            && files
                .first()
                .is_some_and(|first| first.end_offset() < log_min)
        {
            let first = files.remove(0);
            if let Err(error) = fs::remove_file(first.path()) {
                tracing::warn!(%error, path = %first.path().display(), "cannot delete index file");
                break;
            }
            deleted += 1;
        }
        deleted
    }

    /// Indexes what may be read and was not seen yet.
    pub(crate) fn follow(&self, core: &Core, stop: impl Fn() -> bool) -> io::Result<()> {
        if !self.enabled {
            self.seen.store(core.end(), Ordering::Release);
            return Ok(());
        }
        let mut key = String::new();
        while !stop() {
            let at = self.seen().max(core.chain.min());
            let end = core.confirmed();
            if at >= end {
                break;
            }
            let next = self.index_batch(core, at, end, &mut key)?;
            self.seen.store(next, Ordering::Release);
            // Whoever waits for the processor gets it: nobody waits for the index.
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Indexes a few records from `at` on; gives where to go on.
    fn index_batch(&self, core: &Core, mut at: u64, end: u64, key: &mut String) -> io::Result<u64> {
        let Some(segment) = core.chain.find(at) else {
            return Ok(end);
        };
        let bytes = segment.region.bytes();
        let mut files = write_lock(&self.files);
        for _ in 0..BATCH {
            if at >= end.min(segment.end()) {
                break;
            }
            match walk::entry_at(bytes, segment.base, (at - segment.base) as usize, false) {
                walk::Entry::Record(record, len) => {
                    if let Err(error) = self.put(core, &mut files, &record, key) {
                        self.seen.store(at, Ordering::Release);
                        return Err(error);
                    }
                    at += len as u64;
                }
                walk::Entry::Filler => at = segment.end(),
                // Damage that recovery kept: nothing to index before the next file.
                walk::Entry::End => at = segment.end().min(end),
            }
        }
        Ok(at)
    }

    fn put(
        &self,
        core: &Core,
        files: &mut Vec<IndexFile>,
        record: &Record<'_>,
        key: &mut String,
    ) -> io::Result<()> {
        if sys_flag::transaction(record.sys_flag) == sys_flag::TRANSACTION_ROLLBACK {
            return Ok(());
        }
        let words = properties::keys(record.properties);
        for (index, word) in words.clone().enumerate() {
            if words.clone().take(index).any(|earlier| earlier == word) {
                continue;
            }
            let hash = hash_of(record.topic, word, key);
            if files.last().is_none_or(IndexFile::is_full) {
                files.push(self.add_file(core, files.last())?);
            }
            if let Some(newest) = files.last_mut() {
                newest.put(
                    hash,
                    record.physical_offset as u64,
                    record.stored_at,
                    &self.disk,
                )?;
            }
        }
        Ok(())
    }

    fn add_file(&self, core: &Core, last: Option<&IndexFile>) -> io::Result<IndexFile> {
        if let Some(last) = last {
            last.sync()?;
        }
        let mut name = name_for(core.clock.now(), self.utc_offset);
        if let Some(before) = last.and_then(|last| number_of(last.path())) {
            name = name.max(before + 1);
        }
        IndexFile::create(
            &self.dir.join(format!("{name:017}")),
            self.shape,
            &self.disk,
        )
    }
}

/// The hash an entry carries (`IndexFile.indexKeyHashMethod` of `topic#key`).
fn hash_of(topic: &str, key: &str, buffer: &mut String) -> i32 {
    buffer.clear();
    buffer.push_str(topic);
    buffer.push('#');
    buffer.push_str(key);
    rmq_types::java_hash(buffer).checked_abs().unwrap_or(0)
}

fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    name.parse().ok()
}

fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if number_of(&path).is_some() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// `yyyyMMddHHmmssSSS` as a number.
fn name_for(now: Timestamp, utc_offset: Duration) -> u64 {
    let millis = now.millis() + utc_offset.as_millis() as i64;
    let (days, in_day) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    // Counting from 0000-03-01 makes the leap day the last of its year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1_000 % 60, in_day % 1_000);
    let date = (year * 100 + month) * 100 + day;
    let time = ((hour * 100 + minute) * 100 + second) * 1_000 + milli;
    (date * 1_000_000_000 + time).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dates() {
        let name = |millis| name_for(Timestamp::from_millis(millis), Duration::ZERO);
        assert_eq!(name(0), 19_700_101_000_000_000);
        assert_eq!(name(1_709_210_096_789), 20_240_229_123_456_789);
        assert_eq!(name(1_735_689_599_999), 20_241_231_235_959_999);
    }

    #[test]
    fn a_hash_is_never_negative() {
        let mut buffer = String::new();
        assert_eq!(
            hash_of("T", "k", &mut buffer),
            rmq_types::java_hash("T#k").abs()
        );
        for word in ["polygenelubricants", "k1", "k2", ""] {
            assert!(hash_of("T", word, &mut buffer) >= 0);
        }
    }
}
