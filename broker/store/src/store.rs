//! The handle to a store: everything callers may ask.
//!
//! **Invariant:** cheap to clone; the last clone that is dropped without [`MessageStore::shutdown`]
//! leaves the folder as a crash would, and the next open recovers it.

use std::sync::{Arc, Mutex, atomic::Ordering};

use rmq_types::{Clock, CommitLogOffset, Timestamp};

use crate::{
    append::{self, Append, Appended},
    core::{Core, NO_SPACE, OVER_LIMIT, POISONED, SHUT_DOWN},
    error::{AppendError, OpenError, ReadAtError},
    expire::{self, Cleaned},
    folder::Folder,
    index::Found,
    lock::lock,
    mmap::RecordSlice,
    options::{StoreListener, StoreOptions},
    read::{self, Boundary, ReadOutcome, ReadRequest},
    recover::{self, RecoveryReport},
    tuning::Tuning,
    upkeep::{self, Threads},
};

/// A message store on one folder.
#[derive(Clone, Debug)]
pub struct MessageStore {
    owner: Arc<Owner>,
}

#[derive(Debug)]
struct Owner {
    core: Arc<Core>,
    threads: Mutex<Option<Threads>>,
    folder: Folder,
}

/// Why a store takes no messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotWritable {
    /// Disk use is over its limit.
    DiskOverLimit {
        /// Percent in use.
        percent: u8,
    },
    /// The disk had no room for the log.
    NoSpace,
    /// A flush failed: open the store again.
    Poisoned(String),
    /// It was shut down.
    ShutDown,
}

/// Numbers about a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreState {
    /// First byte of the log.
    pub log_min: u64,
    /// Behind its last record.
    pub log_end: u64,
    /// On the disk below this.
    pub durable: u64,
    /// Readable below this.
    pub confirmed: u64,
    /// Queue entries are on the disk below this.
    pub queues_durable: u64,
    /// Bytes of log that the index has not seen.
    pub index_behind: u64,
    /// Log files.
    pub log_files: usize,
    /// Topics with queues.
    pub topics: usize,
    /// Queues.
    pub queues: usize,
    /// Percent of the disk in use.
    pub disk_used_percent: u8,
    /// Store time of the last record.
    pub last_stored_at: Timestamp,
    /// Why it is not writable, if it is not.
    pub not_writable: Option<NotWritable>,
}

impl MessageStore {
    /// Opens a folder and recovers it.
    pub fn open(
        options: StoreOptions,
        listener: Arc<dyn StoreListener>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, RecoveryReport), OpenError> {
        check_options(&options)?;
        let folder = Folder::lock(&options.root, options.log_dir.as_deref())?;
        let (parts, report) = recover::recover(&folder, &options, &*listener)?;
        let root = options.root.clone();
        let core = Arc::new(Core::new(options, listener, clock, parts));
        upkeep::check_disk(&core);
        let threads = Threads::start(&core).map_err(OpenError::io("start threads for", root))?;
        let owner = Owner {
            core,
            threads: Mutex::new(Some(threads)),
            folder,
        };
        Ok((
            Self {
                owner: Arc::new(owner),
            },
            report,
        ))
    }

    fn core(&self) -> &Core {
        &self.owner.core
    }

    /// Appends a group under one lock; `results` is cleared and gets one answer per message.
    pub fn append(&self, group: &[Append<'_>], results: &mut Vec<Result<Appended, AppendError>>) {
        append::append(self.core(), group, results);
    }

    /// Appends one message.
    pub fn append_one(&self, message: &Append<'_>) -> Result<Appended, AppendError> {
        let mut results = Vec::with_capacity(1);
        self.append(std::slice::from_ref(message), &mut results);
        results.pop().unwrap_or(Err(AppendError::ShutDown))
    }

    /// Reads a queue.
    pub fn read(&self, request: &ReadRequest<'_>) -> ReadOutcome {
        read::read(self.core(), request)
    }

    /// The record that starts at an offset of the log.
    pub fn read_at(&self, offset: CommitLogOffset) -> Result<RecordSlice, ReadAtError> {
        if offset.get() >= self.core().confirmed() {
            return Err(ReadAtError::Outside(offset));
        }
        self.core().chain.record_at(offset.get())
    }

    /// Everything below is on the disk.
    pub fn durable_offset(&self) -> CommitLogOffset {
        CommitLogOffset::new(self.core().durable.load(Ordering::Acquire))
    }

    /// Messages below may be read.
    pub fn confirm_offset(&self) -> CommitLogOffset {
        CommitLogOffset::new(self.core().confirmed())
    }

    /// Behind the last record.
    pub fn max_offset(&self) -> CommitLogOffset {
        CommitLogOffset::new(self.core().end())
    }

    /// First byte of the log.
    pub fn min_offset(&self) -> CommitLogOffset {
        CommitLogOffset::new(self.core().chain.min())
    }

    /// First index of a queue; `None` if there is no such queue.
    pub fn min_queue_offset(&self, topic: &str, queue_id: u32) -> Option<i64> {
        let core = self.core();
        let queue = core.table.get(topic, queue_id)?;
        let max = queue.visible(core.confirmed());
        let min = queue.min(&core.table.files, core.chain.min()).unwrap_or(0);
        Some(min.min(max) as i64)
    }

    /// Behind the last readable index of a queue; `None` if there is no such queue.
    pub fn max_queue_offset(&self, topic: &str, queue_id: u32) -> Option<i64> {
        let queue = self.core().table.get(topic, queue_id)?;
        Some(queue.visible(self.core().confirmed()) as i64)
    }

    /// Behind the last index of a queue, readable or not yet.
    pub fn next_queue_offset(&self, topic: &str, queue_id: u32) -> Option<i64> {
        Some(self.core().table.get(topic, queue_id)?.next() as i64)
    }

    /// Index for a time; `None` if there is no such queue.
    pub fn offset_by_time(
        &self,
        topic: &str,
        queue_id: u32,
        time: Timestamp,
        boundary: Boundary,
    ) -> Option<i64> {
        let queue = self.core().table.get(topic, queue_id)?;
        Some(read::offset_by_time(self.core(), &queue, time, boundary) as i64)
    }

    /// Store time of a message of a queue.
    pub fn store_time_of(&self, topic: &str, queue_id: u32, index: i64) -> Option<Timestamp> {
        let queue = self.core().table.get(topic, queue_id)?;
        read::time_of(self.core(), &queue, u64::try_from(index).ok()?)
    }

    /// Store time of the first message a queue still has.
    pub fn earliest_time_of(&self, topic: &str, queue_id: u32) -> Option<Timestamp> {
        let min = self.min_queue_offset(topic, queue_id)?;
        self.store_time_of(topic, queue_id, min)
    }

    /// Store time of the first record of the log.
    pub fn earliest_time(&self) -> Option<Timestamp> {
        read::stored_at(self.core(), self.core().chain.min()).ok()
    }

    /// Log offset of a message of a queue; `None` if there is no such message.
    ///
    /// # Errors
    /// If the queue's file cannot be read: whether there is a message is then not known.
    pub fn log_offset_of(
        &self,
        topic: &str,
        queue_id: u32,
        index: i64,
    ) -> std::io::Result<Option<CommitLogOffset>> {
        let core = self.core();
        let (Some(queue), Ok(index)) = (core.table.get(topic, queue_id), u64::try_from(index))
        else {
            return Ok(None);
        };
        let unit = queue.unit(&core.table.files, index)?;
        Ok(unit
            .filter(|unit| !unit.is_blank())
            .map(|unit| CommitLogOffset::new(unit.offset)))
    }

    /// One entry of a queue: log offset, record size, tags code. `None` if there is none.
    pub fn entry_of(
        &self,
        topic: &str,
        queue_id: u32,
        index: i64,
    ) -> Option<(CommitLogOffset, u32, i64)> {
        let core = self.core();
        let queue = core.table.get(topic, queue_id)?;
        let unit = queue
            .unit(&core.table.files, u64::try_from(index).ok()?)
            .ok()??;
        (!unit.is_blank()).then_some((CommitLogOffset::new(unit.offset), unit.size, unit.tags_code))
    }

    /// Bytes of the store's disk, all and free; `None` if the system does not say.
    pub fn disk_space(&self) -> Option<(u64, u64)> {
        let stat = rustix::fs::statvfs(&self.core().options.root).ok()?;
        Some((
            stat.f_blocks.saturating_mul(stat.f_frsize),
            stat.f_bfree.saturating_mul(stat.f_frsize),
        ))
    }

    /// Numbers of the queues a topic has messages in.
    pub fn queues(&self, topic: &str) -> Vec<u32> {
        self.core().table.ids(topic)
    }

    /// Topics that have queues.
    pub fn topics_on_disk(&self) -> Vec<String> {
        self.core()
            .table
            .topics()
            .iter()
            .map(|topic| String::from(&**topic))
            .collect()
    }

    /// Deletes a topic's queues; its records stay in the log, out of reach, until the log is cut.
    pub fn delete_topic(&self, topic: &str) -> std::io::Result<bool> {
        let core = self.core();
        if !core.table.detach(topic) {
            return core.table.delete_files(topic);
        }
        // Noted before the files go: a crash in between must not bring the topic back.
        let end = lock(&core.appender).at();
        lock(&core.tombstones).add(topic, end)?;
        core.table.delete_files(topic)?;
        Ok(true)
    }

    /// Deletes every topic that `keep` does not want; gives their names.
    pub fn retain_topics(&self, keep: impl Fn(&str) -> bool) -> std::io::Result<Vec<String>> {
        let gone: Vec<String> = self
            .topics_on_disk()
            .into_iter()
            .filter(|topic| !keep(topic))
            .collect();
        for topic in &gone {
            self.delete_topic(topic)?;
        }
        Ok(gone)
    }

    /// Messages of a topic with a key, stored within `[begin, end]`.
    pub fn query_by_key(
        &self,
        topic: &str,
        key: &str,
        max: usize,
        begin: Timestamp,
        end: Timestamp,
    ) -> Found {
        self.core()
            .index
            .query(self.core(), topic, key, max, begin..=end)
    }

    /// Deletes what is expired or for which there is no room; `manual` at any hour.
    pub fn delete_expired(&self, manual: bool) -> Cleaned {
        expire::run(self.core(), manual)
    }

    /// Forces everything appended so far to the disk.
    pub fn flush(&self) -> std::io::Result<()> {
        self.core().flush_log()
    }

    /// Writes queue entries and the checkpoint now instead of at the next interval.
    pub fn checkpoint(&self) -> std::io::Result<()> {
        upkeep::write_queues(self.core(), true)
    }

    /// Changes options while the store is open; they count from the next message, read or round.
    pub fn retune(&self, tuning: Tuning) {
        self.core().tuned.set(tuning);
        upkeep::check_disk(self.core());
    }

    /// Whether messages are taken now.
    pub fn is_writable(&self) -> bool {
        self.core().refusal().is_none()
    }

    /// Why the store is poisoned, if it is. Takes no lock: health checks ask this, and a disk that
    /// stalls is no reason to end the process.
    pub fn poison(&self) -> Option<String> {
        let core = self.core();
        let refusal = core.refuses(POISONED).then(|| core.refusal()).flatten();
        refusal.map(|refusal| refusal.to_string())
    }

    /// Numbers about the store; waits for no disk.
    pub fn state(&self) -> StoreState {
        let core = self.core();
        let percent = core.disk_used.load(Ordering::Relaxed);
        let not_writable = if core.refuses(SHUT_DOWN) {
            Some(NotWritable::ShutDown)
        } else if core.refuses(POISONED) {
            let reason = core
                .refusal()
                .map(|refusal| refusal.to_string())
                .unwrap_or_default();
            Some(NotWritable::Poisoned(reason))
        } else if core.refuses(NO_SPACE) {
            Some(NotWritable::NoSpace)
        } else if core.refuses(OVER_LIMIT) {
            Some(NotWritable::DiskOverLimit { percent })
        } else {
            None
        };
        let (topics, queues) = core.table.counts();
        let log_end = core.end();
        StoreState {
            log_min: core.chain.min(),
            log_end,
            durable: core.durable.load(Ordering::Acquire),
            confirmed: core.confirmed(),
            queues_durable: core.queues_durable.load(Ordering::Acquire),
            index_behind: log_end.saturating_sub(core.index.seen()),
            log_files: core.chain.segments().len(),
            topics,
            queues,
            disk_used_percent: percent,
            last_stored_at: Timestamp::from_millis(core.last_stored_at.load(Ordering::Relaxed)),
            not_writable,
        }
    }

    /// Stops in order: refuses appends, flushes everything, writes the checkpoint and takes the abort
    /// marker away. Later calls do nothing.
    pub fn shutdown(&self) -> std::io::Result<()> {
        let core = self.core();
        let Some(mut threads) = lock(&self.owner.threads).take() else {
            return Ok(());
        };
        core.set_refusal(SHUT_DOWN, true);
        threads.stop();
        if core.refuses(POISONED) {
            return Err(std::io::Error::other(
                "the store is poisoned: left for recovery",
            ));
        }
        core.flush_log()?;
        core.index.close()?;
        upkeep::write_queues(core, true)?;
        recover::tails_of(&core.table, core.end()).save(&core.options.root)?;
        if let Some(next) = lock(&core.next).take() {
            std::fs::remove_file(&next.path)?;
        }
        self.owner.folder.mark_closed()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(mut threads) = lock(&self.threads).take() {
            self.core.set_refusal(SHUT_DOWN, true);
            threads.stop();
        }
    }
}

fn check_options(options: &StoreOptions) -> Result<(), OpenError> {
    let wrong = |name, reason| Err(OpenError::Option { name, reason });
    if options.segment_bytes < 4096 || options.segment_bytes > i32::MAX as u64 {
        return wrong(
            "mappedFileSizeCommitLog",
            "must be between 4096 and 2147483647",
        );
    }
    if !options.segment_bytes.is_multiple_of(4096) {
        return wrong("mappedFileSizeCommitLog", "must be a multiple of 4096");
    }
    if options.queue_file_units == 0 {
        return wrong("mappedFileSizeConsumeQueue", "must hold at least one entry");
    }
    if options.index_slots == 0 || options.index_entries < 2 {
        return wrong("maxHashSlotNum/maxIndexNum", "must be positive");
    }
    Ok(())
}
