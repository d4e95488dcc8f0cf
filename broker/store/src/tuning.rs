//! Options that may change while the store is open.
//!
//! **Invariant:** a round of clean-up and a read see one set of them, never a mixture.

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::options::{FlushMode, ReadLimits, StoreOptions};

/// The options; see [`StoreOptions`] for their meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// How long log files are kept after their last write.
    pub reserved_for: Duration,
    /// Hours of the day in which old files are deleted.
    pub delete_when: Vec<u8>,
    /// Disk use from which expired files go at any hour.
    pub disk_max_used_percent: u8,
    /// Disk use from which files go before they expire.
    pub disk_force_clean_percent: u8,
    /// Disk use from which writes are refused.
    pub disk_full_percent: u8,
    /// Longest message body.
    pub message_bytes_max: usize,
    /// Limits of reads.
    pub read_limits: ReadLimits,
    /// Time between flushes of [`FlushMode::Async`].
    pub flush_interval: Duration,
}

impl StoreOptions {
    /// Takes the options of `tuning`.
    pub fn tune(&mut self, tuning: Tuning) {
        self.reserved_for = tuning.reserved_for;
        self.delete_when = tuning.delete_when;
        self.disk_max_used_percent = tuning.disk_max_used_percent;
        self.disk_force_clean_percent = tuning.disk_force_clean_percent;
        self.disk_full_percent = tuning.disk_full_percent;
        self.message_bytes_max = tuning.message_bytes_max;
        self.read_limits = tuning.read_limits;
        if let FlushMode::Async { interval } = &mut self.flush {
            *interval = tuning.flush_interval;
        }
    }

    fn tuning(&self) -> Tuning {
        Tuning {
            reserved_for: self.reserved_for,
            delete_when: self.delete_when.clone(),
            disk_max_used_percent: self.disk_max_used_percent,
            disk_force_clean_percent: self.disk_force_clean_percent,
            disk_full_percent: self.disk_full_percent,
            message_bytes_max: self.message_bytes_max,
            read_limits: self.read_limits,
            flush_interval: match self.flush {
                FlushMode::Async { interval } => interval,
                FlushMode::Sync => Duration::from_secs(1),
            },
        }
    }
}

/// The options in force.
#[derive(Debug)]
pub(crate) struct Tuned {
    current: RwLock<Arc<Tuning>>,
    /// Beside the rest because every append asks.
    message_bytes_max: AtomicUsize,
}

impl Tuned {
    pub(crate) fn new(options: &StoreOptions) -> Self {
        Self {
            current: RwLock::new(Arc::new(options.tuning())),
            message_bytes_max: AtomicUsize::new(options.message_bytes_max),
        }
    }

    pub(crate) fn get(&self) -> Arc<Tuning> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn message_bytes_max(&self) -> usize {
        self.message_bytes_max.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, tuning: Tuning) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        self.message_bytes_max
            .store(tuning.message_bytes_max, Ordering::Relaxed);
        *current = Arc::new(tuning);
    }
}
