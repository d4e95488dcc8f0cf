//! What the parts of an open store share: files, tables, positions and the refusal state.
//!
//! **Invariant:** `durable <= log_end`; both only grow. Once poisoned, a store refuses appends for as
//! long as it is open. Locks are taken in the order appender, queue; nothing waits for the disk while
//! it holds the appender's lock, except where the log itself has no room.

use std::{
    io,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering, fence},
    },
    thread::Thread,
};

use rmq_types::{Clock, CommitLogOffset};
use smallvec::SmallVec;

use crate::{
    append::Appender,
    error::AppendError,
    index::Index,
    lock::lock,
    log::{Chain, Segment},
    mmap::Writer,
    options::{Arrival, FlushMode, StoreListener, StoreOptions},
    queue::{Queue, table::Table},
    storage::Disk,
    tuning::Tuned,
};

/// The disk is fuller than allowed.
pub(crate) const OVER_LIMIT: u8 = 1;
/// The disk had no room for the log.
pub(crate) const NO_SPACE: u8 = 2;
/// A flush failed.
pub(crate) const POISONED: u8 = 4;
/// The store was shut down.
pub(crate) const SHUT_DOWN: u8 = 8;

/// An open store.
pub(crate) struct Core {
    pub(crate) options: StoreOptions,
    pub(crate) tuned: Tuned,
    pub(crate) listener: Arc<dyn StoreListener>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) disk: Disk,
    pub(crate) chain: Chain,
    pub(crate) table: Table,
    pub(crate) appender: Mutex<Appender>,
    pub(crate) index: Index,
    /// Behind the last record.
    pub(crate) log_end: AtomicU64,
    /// Store time of the last record, milliseconds; beside the appender, whose lock a stalled disk
    /// holds.
    pub(crate) last_stored_at: AtomicI64,
    /// Everything below is on the disk.
    pub(crate) durable: AtomicU64,
    /// Up to here queue entries are in their files and on the disk.
    pub(crate) queues_durable: AtomicU64,
    /// The file after the last one, made ahead.
    pub(crate) next: Mutex<Option<Arc<Segment>>>,
    /// Log offset at which the preparer wants to be woken.
    pub(crate) prepare_at: AtomicU64,
    pub(crate) preparer: OnceLock<Thread>,
    pub(crate) flusher: OnceLock<Thread>,
    pub(crate) flusher_waits: AtomicBool,
    /// Percent of the disk in use, as last seen.
    pub(crate) disk_used: AtomicU8,
    /// One flush of the log at a time; holds the emptied buffer of arrivals for the next round.
    flushing: Mutex<Vec<(Arc<Queue>, Arrival)>>,
    /// One round of queue writes at a time.
    pub(crate) rounds: Mutex<crate::upkeep::Rounds>,
    pub(crate) tombstones: Mutex<crate::folder::Tombstones>,
    refusals: AtomicU8,
    poison: OnceLock<String>,
}

/// The parts recovery made.
pub(crate) struct Parts {
    pub(crate) chain: Chain,
    pub(crate) table: Table,
    pub(crate) appender: Appender,
    pub(crate) index: Index,
    pub(crate) log_end: u64,
    pub(crate) rounds: crate::upkeep::Rounds,
    pub(crate) tombstones: crate::folder::Tombstones,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("root", &self.options.root)
            .finish_non_exhaustive()
    }
}

impl Core {
    pub(crate) fn new(
        options: StoreOptions,
        listener: Arc<dyn StoreListener>,
        clock: Arc<dyn Clock>,
        parts: Parts,
    ) -> Self {
        Self {
            disk: Disk(options.faults.clone()),
            tuned: Tuned::new(&options),
            options,
            listener,
            clock,
            chain: parts.chain,
            table: parts.table,
            last_stored_at: AtomicI64::new(parts.appender.last_stored_at),
            appender: Mutex::new(parts.appender),
            index: parts.index,
            log_end: AtomicU64::new(parts.log_end),
            durable: AtomicU64::new(parts.log_end),
            queues_durable: AtomicU64::new(parts.log_end),
            next: Mutex::new(None),
            prepare_at: AtomicU64::new(u64::MAX),
            preparer: OnceLock::new(),
            flusher: OnceLock::new(),
            flusher_waits: AtomicBool::new(false),
            disk_used: AtomicU8::new(0),
            flushing: Mutex::new(Vec::new()),
            rounds: Mutex::new(parts.rounds),
            tombstones: Mutex::new(parts.tombstones),
            refusals: AtomicU8::new(0),
            poison: OnceLock::new(),
        }
    }

    /// Behind the last record.
    pub(crate) fn end(&self) -> u64 {
        self.log_end.load(Ordering::Acquire)
    }

    /// Messages below may be read (`CommitLog.getConfirmOffset`).
    pub(crate) fn confirmed(&self) -> u64 {
        match self.options.flush {
            FlushMode::Sync => self.durable.load(Ordering::Acquire),
            FlushMode::Async { .. } => self.end(),
        }
    }

    /// Why an append would be refused now.
    pub(crate) fn refusal(&self) -> Option<AppendError> {
        let bits = self.refusals.load(Ordering::Acquire);
        if bits == 0 {
            return None;
        }
        Some(if bits & SHUT_DOWN != 0 {
            AppendError::ShutDown
        } else if bits & POISONED != 0 {
            AppendError::Poisoned(self.poison.get().cloned().unwrap_or_default())
        } else {
            AppendError::DiskFull
        })
    }

    /// Whether a refusal is in force.
    pub(crate) fn refuses(&self, bit: u8) -> bool {
        self.refusals.load(Ordering::Acquire) & bit != 0
    }

    /// Puts a refusal in force or takes it back; `true` if that changed anything.
    pub(crate) fn set_refusal(&self, bit: u8, on: bool) -> bool {
        let before = if on {
            self.refusals.fetch_or(bit, Ordering::AcqRel)
        } else {
            self.refusals.fetch_and(!bit, Ordering::AcqRel)
        };
        (before & bit != 0) != on
    }

    /// The log met a full disk: refuse until the preparer finds room.
    pub(crate) fn note_full(&self) {
        if self.set_refusal(NO_SPACE, true) {
            tracing::warn!(root = %self.options.root.display(), "disk full: appends are refused");
        }
    }

    /// Refuses appends until the store is opened again.
    pub(crate) fn poison(&self, reason: &str) {
        let _ = self.poison.set(reason.to_string());
        if self.set_refusal(POISONED, true) {
            tracing::error!(reason, "store poisoned: appends are refused");
            self.listener.poisoned(reason);
        }
    }

    /// After a round of appends that ended at `end`.
    pub(crate) fn appended(&self, end: u64) {
        if end >= self.prepare_at.load(Ordering::Relaxed) {
            self.wake_preparer();
        }
        if self.options.flush == FlushMode::Sync {
            // The flusher announces its sleep before it looks at the end of the log a last time.
            fence(Ordering::SeqCst);
            if self.flusher_waits.load(Ordering::Relaxed)
                && self.flusher_waits.swap(false, Ordering::Relaxed)
                && let Some(thread) = self.flusher.get()
            {
                thread.unpark();
            }
        }
    }

    pub(crate) fn wake_preparer(&self) {
        if self.prepare_at.swap(u64::MAX, Ordering::Relaxed) != u64::MAX
            && let Some(thread) = self.preparer.get()
        {
            thread.unpark();
        }
    }

    /// Adds the file that follows the last one, made ahead or made now, to the chain. The lock is held
    /// throughout, so that the preparer cannot make the same file at the same time.
    pub(crate) fn next_segment(&self, base: u64) -> io::Result<(Arc<Segment>, Writer)> {
        let mut next = lock(&self.next);
        let segment = match next.take().filter(|next| next.base == base) {
            Some(segment) => segment,
            None => Arc::new(Segment::create(
                self.chain.dir(),
                base,
                self.chain.segment_bytes(),
                self.options.log_way(),
            )?),
        };
        let writer = segment
            .writer()
            .ok_or_else(|| io::Error::other("the next log file has a writer already"))?;
        self.chain.push(Arc::clone(&segment));
        Ok((segment, writer))
    }

    /// Forces everything appended so far to the disk and tells the listener.
    pub(crate) fn flush_log(&self) -> io::Result<()> {
        let mut spare = lock(&self.flushing);
        let from = self.durable.load(Ordering::Acquire);
        let (target, mut pending) = {
            let mut appender = lock(&self.appender);
            let empty = std::mem::take(&mut *spare);
            (
                appender.at(),
                std::mem::replace(&mut appender.pending, empty),
            )
        };
        if target <= from {
            return Ok(());
        }
        if self.refuses(POISONED) {
            return Err(io::Error::other("the store is poisoned"));
        }
        if let Err(error) = self.sync_range(from, target) {
            // After a failed sync the kernel may drop the pages: trying again would lie.
            self.poison(&format!("commit log sync failed: {error}"));
            return Err(error);
        }
        self.durable.store(target, Ordering::Release);
        let mut run: SmallVec<[Arrival; 32]> = SmallVec::new();
        for same in pending.chunk_by(|one, next| Arc::ptr_eq(&one.0, &next.0)) {
            run.clear();
            run.extend(same.iter().map(|(_, arrival)| *arrival));
            if let Some((queue, _)) = same.first() {
                self.listener.arrived(&queue.topic, queue.id, &run);
            }
        }
        pending.clear();
        *spare = pending;
        self.listener.durable(CommitLogOffset::new(target));
        Ok(())
    }

    fn sync_range(&self, from: u64, to: u64) -> io::Result<()> {
        let mut at = from;
        while at < to {
            let Some(segment) = self.chain.find(at) else {
                return Err(io::Error::other(format!("no log file holds offset {at}")));
            };
            let end = to.min(segment.end());
            self.disk.before(crate::storage::DiskAction::SyncLog)?;
            segment
                .region
                .sync((at - segment.base) as usize, (end - at) as usize)?;
            self.disk.log_synced(at, end);
            at = end;
        }
        Ok(())
    }
}
