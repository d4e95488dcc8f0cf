//! One file of the commit log.
//!
//! **Invariant:** `ready` never passes allocated bytes: whoever writes below it meets no full disk and
//! no missing page. Does not know which records it holds.

use std::{
    fs::OpenOptions,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    mmap::{PAGE, Region, Way, Writer},
    storage::{Disk, DiskAction},
};

/// A mapped log file.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Log offset of its first byte.
    pub(crate) base: u64,
    /// Its bytes.
    pub(crate) region: Arc<Region>,
    /// Where it lies.
    pub(crate) path: PathBuf,
    ready: AtomicU64,
    allocated: AtomicU64,
    preparing: Mutex<()>,
    way: Way,
}

/// Name of the file that starts at `base`.
pub(crate) fn file_name(base: u64) -> String {
    format!("{base:020}")
}

impl Segment {
    /// Opens a file whose first `published` bytes are records.
    pub(crate) fn open(
        path: &Path,
        base: u64,
        len: u64,
        published: u64,
        way: Way,
    ) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let region = Region::open(file, len as usize, published as usize)?;
        Ok(Self {
            base,
            region,
            path: path.to_path_buf(),
            ready: AtomicU64::new(0),
            allocated: AtomicU64::new(0),
            preparing: Mutex::new(()),
            way,
        })
    }

    /// Makes a new, empty file. One that exists is never touched: it may hold records.
    pub(crate) fn create(dir: &Path, base: u64, len: u64, way: Way) -> io::Result<Self> {
        let path = dir.join(file_name(base));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        let made = file
            .set_len(len)
            .and_then(|()| Region::open(file, len as usize, 0))
            .and_then(|region| std::fs::File::open(dir)?.sync_all().map(|()| region));
        match made {
            Ok(region) => Ok(Self {
                base,
                region,
                path,
                ready: AtomicU64::new(0),
                allocated: AtomicU64::new(0),
                preparing: Mutex::new(()),
                way,
            }),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// The writer of its bytes; `None` if there was one already.
    pub(crate) fn writer(&self) -> Option<Writer> {
        self.region.writer(self.way)
    }

    /// Length of the file.
    pub(crate) fn len(&self) -> u64 {
        self.region.len() as u64
    }

    /// Log offset behind its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.len()
    }

    /// Position inside the file up to which bytes may be written at once.
    pub(crate) fn ready(&self) -> u64 {
        self.ready.load(Ordering::Acquire)
    }

    /// Makes bytes ready up to `upto` (a position in the file): takes their space, then touches the
    /// pages if the writer stores into the mapping, or writes zeros if it writes by calls. `from` is
    /// where the writer stands, which spares pages that hold records already.
    pub(crate) fn prepare(&self, from: u64, upto: u64, disk: &Disk) -> io::Result<()> {
        let _one_at_a_time = crate::lock::lock(&self.preparing);
        let (start, upto) = self.unready(from, upto);
        if upto <= start {
            return Ok(());
        }
        self.take_space(start, upto, disk)?;
        match self.way {
            Way::Mapped => self
                .region
                .populate(start as usize, (upto - start) as usize),
            Way::Written => {
                // Records lie below the writer, and below what was ready when it gathered them.
                let blank = self
                    .ready()
                    .max(from.next_multiple_of(PAGE as u64))
                    .min(upto);
                self.region
                    .write_zeros(blank as usize, (upto - blank) as usize)?;
            }
        }
        self.ready.fetch_max(upto, Ordering::Release);
        Ok(())
    }

    /// Takes disk space up to `upto` without touching the pages; `from` as in [`Self::prepare`].
    pub(crate) fn allocate(&self, from: u64, upto: u64, disk: &Disk) -> io::Result<()> {
        let _one_at_a_time = crate::lock::lock(&self.preparing);
        let (start, upto) = self.unready(from, upto);
        self.take_space(start, upto, disk)
    }

    /// Forces zeros written ahead to the disk, up to `upto`, so that no flush of records has to.
    ///
    /// # Errors
    /// As for every failed sync: what is on the disk is not known.
    pub(crate) fn settle(&self, from: u64, upto: u64, disk: &Disk) -> io::Result<()> {
        if self.way == Way::Mapped || upto <= from {
            return Ok(());
        }
        disk.before(DiskAction::SettleLog)?;
        self.region.sync(from as usize, (upto - from) as usize)
    }

    /// Whole pages of `from..upto` that are not ready.
    fn unready(&self, from: u64, upto: u64) -> (u64, u64) {
        let start = self.ready().max(from / PAGE as u64 * PAGE as u64);
        (start, upto.next_multiple_of(PAGE as u64).min(self.len()))
    }

    fn take_space(&self, start: u64, upto: u64, disk: &Disk) -> io::Result<()> {
        let start = self.allocated.load(Ordering::Acquire).max(start);
        if upto <= start {
            return Ok(());
        }
        disk.before(DiskAction::AllocateLog)?;
        self.region
            .allocate(start as usize, (upto - start) as usize)?;
        self.allocated.fetch_max(upto, Ordering::Release);
        Ok(())
    }
}
