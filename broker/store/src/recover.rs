//! Opening a folder: where the log ends, and queues that agree with it.
//!
//! The checkpoint says below which offset queue entries are on the disk. From there the log is walked,
//! each record checked, each missing entry made again; behind the first bad record the log is cut and
//! zeroed, so that a stale record can never follow a new one. Queue files are only probed for their
//! last trusted entry. If a queue turns out to lack more (its folder or a file was lost), the walk
//! starts again further back. **Invariant:** afterwards every queue is dense and unique and names only
//! records that are in the log, and everything is on the disk.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
};

use rmq_protocol::message::{Record, properties, sys_flag};
use rmq_types::TopicName;
use rustc_hash::FxHashMap;
use rustix::fs::FallocateFlags;

use crate::{
    append::Appender,
    checkpoint::Checkpoint,
    core::Parts,
    error::OpenError,
    folder::{Folder, Tombstones},
    index::Index,
    log::{self, Chain, Segment, walk},
    options::{RecoveryProgress, StoreListener, StoreOptions},
    queue::{
        Queue, Replayed,
        files::{Files, QueueName},
        load,
        table::{QUEUES_MAX, Table},
        unit::Unit,
    },
    storage::Disk,
    tails::Tails,
    upkeep::Rounds,
};

/// Entries made in memory before they are written.
const ADDED_MAX: usize = 2_000_000;
/// Bytes walked between two progress calls.
const PROGRESS_BYTES: u64 = 256 * 1024 * 1024;

/// What opening found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The last owner shut down in order.
    pub clean: bool,
    /// First byte of the log.
    pub log_min: u64,
    /// Behind its last record.
    pub log_end: u64,
    /// Bytes of log walked.
    pub scanned_bytes: u64,
    /// Records walked.
    pub records: u64,
    /// Queue entries made again.
    pub rebuilt_entries: u64,
    /// Bytes behind the last good record that were not zero ended the log early.
    pub torn_tail: bool,
    /// Ranges of the log that hold no readable record and were kept.
    pub damaged: Vec<(u64, u64)>,
    /// Topics with queues.
    pub topics: usize,
    /// Queues.
    pub queues: usize,
}

/// Recovers the folder.
pub(crate) fn recover(
    folder: &Folder,
    options: &StoreOptions,
    listener: &dyn StoreListener,
) -> Result<(Parts, RecoveryReport), OpenError> {
    let clean = !folder.was_aborted();
    folder.mark_open()?;
    let root = &folder.root;
    let checkpoint =
        Checkpoint::load(root).map_err(OpenError::io("read", root.join("checkpoint")))?;
    let found = log::list(&folder.log, options.segment_bytes)?;
    let mut segments = Vec::with_capacity(found.len());
    for file in &found {
        let bytes = options.segment_bytes;
        let segment = Segment::open(&file.path, file.base, bytes, bytes, options.log_way())
            .map_err(OpenError::io("map", &file.path))?;
        segments.push(Arc::new(segment));
    }
    let (trusted, known) = trusted_below(&segments, &checkpoint);
    let files = Files::new(root.join("consumequeue"), options.queue_file_units);
    let table = Table::new(files);
    let mut recovery = Recovery {
        options,
        listener,
        segments,
        table,
        tombstones: Tombstones::load(root),
        trusted,
        known,
        stale: Vec::new(),
        cut_queues: false,
        last_stored_at: checkpoint.log_time,
        report: RecoveryReport {
            clean,
            ..RecoveryReport::default()
        },
    };
    let io = |source| OpenError::Io {
        action: "recover",
        path: root.clone(),
        source,
    };
    let tails = Tails::load(root);
    recovery.load_queues(tails.as_ref()).map_err(io)?;
    let end = recovery.replay(tails).map_err(io)?;
    recovery.finish(folder, checkpoint, end, io)
}

/// Below which offset queues are complete on the disk, and whether a checkpoint says so.
fn trusted_below(segments: &[Arc<Segment>], checkpoint: &Checkpoint) -> (u64, bool) {
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
        return (0, false);
    };
    if let Some(below) = checkpoint.queues_below
        && (first.base..=last.end()).contains(&below)
    {
        return (below, true);
    }
    // Java's rule: the newest file whose first record is older than the checkpoint by three seconds.
    let time = checkpoint.safe_time();
    for segment in segments.iter().rev() {
        if let walk::Entry::Record(record, _) =
            walk::entry_at(segment.region.bytes(), segment.base, 0, false)
            && record.stored_at > 0
            && record.stored_at <= time
        {
            return (segment.base, true);
        }
    }
    (first.base, false)
}

struct Recovery<'a> {
    options: &'a StoreOptions,
    listener: &'a dyn StoreListener,
    segments: Vec<Arc<Segment>>,
    table: Table,
    tombstones: Tombstones,
    trusted: u64,
    known: bool,
    stale: Vec<Arc<Queue>>,
    cut_queues: bool,
    last_stored_at: i64,
    report: RecoveryReport,
}

/// One walk over the log.
struct Pass {
    from: u64,
    first: bool,
    force: bool,
    /// Where queues that lack entries need the next walk to start.
    needed: Option<u64>,
    added: usize,
    reported: u64,
}

impl Recovery<'_> {
    fn log_min(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.base)
    }

    fn load_queues(&mut self, tails: Option<&Tails>) -> io::Result<()> {
        let mut hints: FxHashMap<(&str, u32), u64> = FxHashMap::default();
        for (topic, id, next) in tails.iter().flat_map(|tails| &tails.queues) {
            hints.insert((topic, *id), *next);
        }
        for topic in fs::read_dir(self.table.files.dir())? {
            let topic = topic?;
            let name = topic.file_name();
            let Some(name) = name.to_str().filter(|name| TopicName::check(name).is_ok()) else {
                continue;
            };
            if !topic.file_type()?.is_dir() {
                continue;
            }
            for queue in fs::read_dir(topic.path())? {
                let id = queue?.file_name();
                let Some(queue_id) = id.to_str().and_then(|id| id.parse().ok()) else {
                    continue;
                };
                if queue_id >= QUEUES_MAX {
                    continue;
                }
                let hint = hints.get(&(name, queue_id)).copied();
                let serial = self.table.next_serial();
                let probe = QueueName {
                    topic: name,
                    queue_id,
                    serial,
                };
                let loaded = load::load(&self.table.files, probe, self.trusted, hint)?;
                self.table.files.close(serial);
                let queue = self.table.insert(name, queue_id, loaded);
                if loaded.stale {
                    self.stale.push(queue);
                }
            }
        }
        Ok(())
    }

    /// Where the first walk must start so that queues which lost files are whole again.
    fn start(&self, tails: Option<Tails>) -> u64 {
        let mut from = self.trusted;
        let Some(tails) = tails.filter(|tails| tails.log_end <= self.trusted) else {
            return from;
        };
        for (topic, id, next) in tails.queues {
            if self.tombstones.below(&topic) >= tails.log_end {
                continue;
            }
            let queue = self.table.get(&topic, id);
            if queue.as_ref().map_or(0, |queue| queue.next()) < next {
                tracing::warn!(
                    topic,
                    queue = id,
                    "queue files are missing: rebuilding from the log"
                );
                let last = queue.and_then(|queue| queue.last_offset());
                from = from.min(last.unwrap_or(0).max(self.log_min()));
            }
        }
        from
    }

    /// Walks until every queue is whole; gives the end of the log.
    fn replay(&mut self, tails: Option<Tails>) -> io::Result<u64> {
        let mut from = self.start(tails).max(self.log_min());
        let mut end = None;
        for force in [false, false, true] {
            let mut pass = Pass {
                from,
                first: end.is_none(),
                force,
                needed: None,
                added: 0,
                reported: from,
            };
            let reached = self.walk(&mut pass, end)?;
            end = Some(end.unwrap_or(reached));
            match pass.needed {
                None => break,
                Some(needed) => from = needed.max(self.log_min()),
            }
        }
        Ok(end.unwrap_or(from))
    }

    fn walk(&mut self, pass: &mut Pass, end: Option<u64>) -> io::Result<u64> {
        let mut at = pass.from;
        let total = self.segments.last().map_or(at, |last| last.end());
        while at < end.unwrap_or(total) {
            let Some(segment) = self.segment_of(at) else {
                break;
            };
            let position = (at - segment.base) as usize;
            let check_crc = pass.first && at >= self.trusted && self.options.check_crc_on_recover;
            let bytes = segment.region.bytes();
            match walk::entry_at(bytes, segment.base, position, check_crc) {
                walk::Entry::Record(record, len) => {
                    self.take(pass, &record, at, len)?;
                    at += len as u64;
                }
                walk::Entry::Filler => {
                    segment.region.release(0, segment.region.len());
                    at = segment.end();
                }
                walk::Entry::End => {
                    let Some(next) = self.after_damage(&segment, at) else {
                        let rest = bytes.get(position..).unwrap_or_default();
                        self.report.torn_tail |=
                            pass.first && rest.iter().take(4096).any(|byte| *byte != 0);
                        break;
                    };
                    self.note_damage(pass, bytes, at, segment.base, next);
                    at = next;
                }
            }
            if pass.first {
                self.progress(pass, at, total);
            }
        }
        if pass.first {
            self.report.scanned_bytes = at - pass.from;
        }
        Ok(at)
    }

    fn segment_of(&self, offset: u64) -> Option<Arc<Segment>> {
        let index = offset.checked_sub(self.log_min())? / self.options.segment_bytes;
        self.segments.get(index as usize).cloned()
    }

    /// Damage below the trusted offset, or anywhere in an old file when nothing says what may be
    /// trusted, does not end the log if what follows is sound.
    fn after_damage(&self, segment: &Segment, at: u64) -> Option<u64> {
        let next = if self.known && at < self.trusted {
            self.trusted.min(segment.end())
        } else if self.known {
            return None;
        } else {
            segment.end()
        };
        if next <= at {
            return None;
        }
        if next < segment.end() {
            return Some(next);
        }
        let follower = self.segment_of(next)?;
        let sound = matches!(
            walk::entry_at(follower.region.bytes(), next, 0, true),
            walk::Entry::Record(..)
        );
        (sound || next < self.trusted).then_some(next)
    }

    fn note_damage(&mut self, pass: &Pass, bytes: &[u8], at: u64, base: u64, next: u64) {
        let range = ((at - base) as usize)..((next - base) as usize).min(bytes.len());
        if pass.first
            && bytes
                .get(range)
                .is_some_and(|part| part.iter().any(|byte| *byte != 0))
        {
            tracing::error!(
                from = at,
                to = next,
                "commit log is damaged: records here are lost"
            );
            self.report.damaged.push((at, next));
        }
    }

    fn progress(&mut self, pass: &mut Pass, at: u64, total: u64) {
        if at - pass.reported >= PROGRESS_BYTES {
            pass.reported = at;
            self.listener.progress(RecoveryProgress {
                scanned_bytes: at - pass.from,
                total_bytes: total - pass.from,
            });
        }
    }

    fn take(
        &mut self,
        pass: &mut Pass,
        record: &Record<'_>,
        at: u64,
        len: usize,
    ) -> io::Result<()> {
        if pass.first {
            self.report.records += 1;
            self.last_stored_at = record.stored_at;
        }
        let id = record.queue_id as u32;
        if !sys_flag::enters_queue(record.sys_flag)
            || id >= QUEUES_MAX
            || TopicName::check(record.topic).is_err()
            || at < self.tombstones.below(record.topic)
        {
            return Ok(());
        }
        let queue = self.table.get_or_create(record.topic, id);
        let index = record.queue_offset as u64;
        let special = self
            .options
            .tags_code_of
            .as_ref()
            .and_then(|code| code(record));
        let tags_code = special.unwrap_or_else(|| properties::tags_code(record.properties));
        let unit = Unit {
            offset: at,
            size: len as u32,
            tags_code,
        };
        let lacks_start = queue.last_offset().is_none()
            && index > queue.next()
            && pass.from > self.log_min()
            && !pass.force;
        let replayed = if lacks_start {
            Replayed::Gap
        } else {
            queue.replay(&self.table.files, index, unit, pass.force)?
        };
        match replayed {
            Replayed::Known => {}
            Replayed::Added => {
                self.report.rebuilt_entries += 1;
                pass.added += 1;
                if pass.added >= ADDED_MAX {
                    pass.added = 0;
                    self.write_queues()?;
                }
            }
            Replayed::Gap => {
                let from = queue.last_offset().unwrap_or(0);
                pass.needed = Some(pass.needed.map_or(from, |needed| needed.min(from)));
            }
        }
        Ok(())
    }

    fn write_queues(&self) -> io::Result<()> {
        for queue in self.table.all() {
            queue.flush(&self.table.files, u64::MAX)?;
        }
        Ok(())
    }

    /// Makes the disk agree and hands the parts over.
    fn finish(
        mut self,
        folder: &Folder,
        mut checkpoint: Checkpoint,
        end: u64,
        io: impl Fn(io::Error) -> OpenError + Copy,
    ) -> Result<(Parts, RecoveryReport), OpenError> {
        let segments = self.cut_log(folder, end).map_err(io)?;
        self.write_queues().map_err(io)?;
        self.cut_queues = !self.stale.is_empty();
        for queue in std::mem::take(&mut self.stale) {
            self.table
                .files
                .cut(queue.name(), queue.next())
                .map_err(io)?;
        }
        self.force_to_disk(&segments, folder, end).map_err(io)?;
        checkpoint.log_time = self.last_stored_at;
        checkpoint.queue_time = self.last_stored_at;
        checkpoint.queues_below = Some(end);
        let log_min = self.log_min();
        let index = Index::open(
            &folder.root,
            self.options,
            self.report.clean,
            checkpoint.index_below,
            log_min..end,
        )
        .map_err(io)?;
        index.checkpoint(&mut checkpoint);
        checkpoint.save(&folder.root).map_err(io)?;
        tails_of(&self.table, end).save(&folder.root).map_err(io)?;
        let current = segments
            .last()
            .cloned()
            .ok_or_else(|| io(io::Error::other("no log file")))?;
        let writer = current
            .writer()
            .ok_or_else(|| io(io::Error::other("the last log file is in use")))?;
        self.report.log_min = log_min;
        self.report.log_end = end;
        (self.report.topics, self.report.queues) = self.table.counts();
        let parts = Parts {
            appender: Appender::new(current, writer, self.last_stored_at),
            chain: Chain::new(folder.log.clone(), self.options.segment_bytes, segments),
            table: self.table,
            index,
            log_end: end,
            rounds: Rounds::new(checkpoint),
            tombstones: self.tombstones,
        };
        Ok((parts, self.report))
    }

    /// Forces what the walk looked at or made to the disk: it may have been in memory only.
    fn force_to_disk(&self, log: &[Arc<Segment>], folder: &Folder, end: u64) -> io::Result<()> {
        let disk = Disk(self.options.faults.clone());
        for segment in log.iter().filter(|segment| segment.end() > self.trusted) {
            segment.region.release(0, segment.region.len());
            let from = self.trusted.max(segment.base) - segment.base;
            let upto = end.min(segment.end()).saturating_sub(segment.base);
            if upto > from {
                segment.region.sync(from as usize, (upto - from) as usize)?;
                disk.log_synced(segment.base + from, segment.base + upto);
            }
        }
        // After a crash, entries that the walk found in files may never have come to the disk either.
        let doubtful = !self.report.clean && self.report.records > 0;
        if doubtful || self.report.rebuilt_entries > 0 || self.cut_queues {
            rustix::fs::syncfs(File::open(&folder.root)?)?;
            disk.all_synced();
        }
        Ok(())
    }

    /// Deletes files behind the end, zeroes the rest of the last one and maps it for writing.
    fn cut_log(&mut self, folder: &Folder, end: u64) -> io::Result<Vec<Arc<Segment>>> {
        let bytes = self.options.segment_bytes;
        let mut kept = Vec::new();
        let mut current = None;
        for segment in std::mem::take(&mut self.segments) {
            if segment.end() <= end {
                kept.push(segment);
            } else if segment.base <= end {
                current = Some((segment.path.clone(), segment.base));
            } else {
                fs::remove_file(&segment.path)?;
            }
        }
        let last = match current {
            Some((path, base)) => {
                zero_from(&path, end - base, bytes)?;
                Segment::open(&path, base, bytes, end - base, self.options.log_way())?
            }
            None => Segment::create(&folder.log, end, bytes, self.options.log_way())?,
        };
        kept.push(Arc::new(last));
        self.segments.clone_from(&kept);
        Ok(kept)
    }
}

/// What the next start compares queue files with.
pub(crate) fn tails_of(table: &Table, log_end: u64) -> Tails {
    let queues = table
        .all()
        .iter()
        .map(|queue| (queue.topic.to_string(), queue.id, queue.next()))
        .collect();
    Tails { log_end, queues }
}

/// Zeroes a file's bytes `[from, len)` without changing its length.
fn zero_from(path: &Path, from: u64, len: u64) -> io::Result<()> {
    if from >= len {
        return Ok(());
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(&file, flags, from, len - from) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP) => {
            let zeros = vec![0u8; 64 * 1024];
            let mut at = from;
            while at < len {
                let part = (len - at).min(zeros.len() as u64);
                file.write_all_at(&zeros[..part as usize], at)?;
                at += part;
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
