//! What a store is opened with, and the listener it tells about arrivals and durability.
//!
//! **Invariant:** options are values; the store reads no configuration and no environment.

use std::{fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use rmq_protocol::message::Record;
use rmq_types::{CommitLogOffset, QueueOffset, limits};

use crate::{mmap::Way, storage::FaultHook};

/// When appended bytes are forced to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushMode {
    /// At once, in groups; a message may be read when it is on the disk.
    Sync,
    /// Every `interval`; a message may be read when it is in the log.
    Async {
        /// Time between two flushes.
        interval: Duration,
    },
}

/// Limits of one read (`maxTransfer…OnMessageInMemory` / `…InDisk`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Most messages near the end of the log.
    pub memory_messages: usize,
    /// Most bytes near the end of the log.
    pub memory_bytes: usize,
    /// Most messages further back.
    pub disk_messages: usize,
    /// Most bytes further back.
    pub disk_bytes: usize,
    /// Most bytes of consume queue that one filtered read looks through.
    pub filter_bytes: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            memory_messages: 32,
            memory_bytes: 256 * 1024,
            disk_messages: 8,
            disk_bytes: 64 * 1024,
            filter_bytes: 16_000,
        }
    }
}

/// Gives the tags code of a record that is not the hash of its tag.
pub type TagsCodeOf = Arc<dyn Fn(&Record<'_>) -> Option<i64> + Send + Sync>;

/// Everything a store needs to know.
#[derive(Clone)]
pub struct StoreOptions {
    /// The folder (`storePathRootDir`).
    pub root: PathBuf,
    /// Folder of the log if it is not `<root>/commitlog` (`storePathCommitLog`).
    pub log_dir: Option<PathBuf>,
    /// Bytes of a log file (`mappedFileSizeCommitLog`).
    pub segment_bytes: u64,
    /// Entries of a consume queue file.
    pub queue_file_units: u32,
    /// When to flush.
    pub flush: FlushMode,
    /// Longest time between two writes of consume queues and checkpoint.
    pub queue_flush_interval: Duration,
    /// Longest message body.
    pub message_bytes_max: usize,
    /// Address that stands in records and offset ids.
    pub store_host: SocketAddr,
    /// How long log files are kept after their last write (`fileReservedTime`).
    pub reserved_for: Duration,
    /// Hours of the day (local time by `utc_offset`) in which old files are deleted (`deleteWhen`).
    pub delete_when: Vec<u8>,
    /// Local time minus UTC, for `delete_when`.
    pub utc_offset: Duration,
    /// Disk use from which expired files go at any hour.
    pub disk_max_used_percent: u8,
    /// Disk use from which files go before they expire.
    pub disk_force_clean_percent: u8,
    /// Disk use from which writes are refused.
    pub disk_full_percent: u8,
    /// Physical memory; 40 % of it behind the end of the log counts as cold.
    pub memory_bytes: u64,
    /// Whether recovery compares body CRCs.
    pub check_crc_on_recover: bool,
    /// Whether keys are indexed (`messageIndexEnable`).
    pub index_enabled: bool,
    /// Slots of an index file (`maxHashSlotNum`).
    pub index_slots: u32,
    /// Entries of an index file (`maxIndexNum`).
    pub index_entries: u32,
    /// Limits of reads.
    pub read_limits: ReadLimits,
    /// Bytes of the log whose pages are made ready ahead of the writer.
    pub prepare_bytes: u64,
    /// What stands in the queue entry of a record in place of its tag's hash, if anything: appends
    /// and recovery ask it for delayed messages, whose entries carry a delivery time.
    pub tags_code_of: Option<TagsCodeOf>,
    /// Lets tests make the disk fail.
    pub faults: Option<Arc<dyn FaultHook>>,
}

impl StoreOptions {
    /// How records come into the log. With sync flush a flush follows each group of appends, and only a
    /// write call keeps it small; with async flush pages made ready ahead cost the sender less.
    pub(crate) fn log_way(&self) -> Way {
        match self.flush {
            FlushMode::Sync => Way::Written,
            FlushMode::Async { .. } => Way::Mapped,
        }
    }

    /// Java's defaults for a folder and address.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, store_host: SocketAddr) -> Self {
        Self {
            root: root.into(),
            log_dir: None,
            segment_bytes: 1024 * 1024 * 1024,
            queue_file_units: 300_000,
            flush: FlushMode::Async {
                interval: Duration::from_millis(500),
            },
            queue_flush_interval: Duration::from_secs(5),
            message_bytes_max: limits::BODY_BYTES_MAX,
            store_host,
            reserved_for: Duration::from_hours(72),
            delete_when: vec![4],
            utc_offset: Duration::ZERO,
            disk_max_used_percent: 75,
            disk_force_clean_percent: 85,
            disk_full_percent: 90,
            memory_bytes: physical_memory(),
            check_crc_on_recover: true,
            index_enabled: true,
            index_slots: 5_000_000,
            index_entries: 20_000_000,
            read_limits: ReadLimits::default(),
            prepare_bytes: 8 * 1024 * 1024,
            tags_code_of: None,
            faults: None,
        }
    }
}

fn physical_memory() -> u64 {
    let info = rustix::system::sysinfo();
    u64::from(info.mem_unit).saturating_mul(info.totalram)
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("root", &self.root)
            .field("segment_bytes", &self.segment_bytes)
            .field("flush", &self.flush)
            .finish_non_exhaustive()
    }
}

/// One message that may be read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its index in the queue.
    pub queue_offset: QueueOffset,
    /// Hash of its tag.
    pub tags_code: i64,
}

/// How far the start of a store has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryProgress {
    /// Bytes of log looked at.
    pub scanned_bytes: u64,
    /// Bytes of log to look at.
    pub total_bytes: u64,
}

/// Who is told what happens in a store. Calls come from the appending thread or from the store's own
/// threads and must not block.
pub trait StoreListener: Send + Sync {
    /// Messages of one queue that may be read now: in the append round, or after its flush in
    /// [`FlushMode::Sync`].
    fn arrived(&self, topic: &str, queue_id: u32, arrivals: &[Arrival]);
    /// Everything below `upto` is on the disk.
    fn durable(&self, upto: CommitLogOffset);
    /// The store refuses writes from now on; said once.
    fn poisoned(&self, reason: &str);
    /// The start goes on.
    fn progress(&self, _progress: RecoveryProgress) {}
}

/// A listener that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoListener;

impl StoreListener for NoListener {
    fn arrived(&self, _topic: &str, _queue_id: u32, _arrivals: &[Arrival]) {}
    fn durable(&self, _upto: CommitLogOffset) {}
    fn poisoned(&self, _reason: &str) {}
}
