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
    mmap::{PAGE, Region},
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
    preparing: Mutex<()>,
}

/// Name of the file that starts at `base`.
pub(crate) fn file_name(base: u64) -> String {
    format!("{base:020}")
}

impl Segment {
    /// Opens a file whose first `published` bytes are records.
    pub(crate) fn open(path: &Path, base: u64, len: u64, published: u64) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let region = Region::open(file, len as usize, published as usize)?;
        Ok(Self {
            base,
            region,
            path: path.to_path_buf(),
            ready: AtomicU64::new(0),
            preparing: Mutex::new(()),
        })
    }

    /// Makes a new, empty file; one that is there from an earlier attempt is used again.
    pub(crate) fn create(dir: &Path, base: u64, len: u64) -> io::Result<Self> {
        let path = dir.join(file_name(base));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        file.set_len(len)?;
        let region = Region::open(file, len as usize, 0)?;
        std::fs::File::open(dir)?.sync_all()?;
        Ok(Self {
            base,
            region,
            path,
            ready: AtomicU64::new(0),
            preparing: Mutex::new(()),
        })
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

    /// Allocates and populates up to `upto` (a position in the file); `from` is where the writer
    /// stands, which spares pages that hold records already.
    pub(crate) fn prepare(&self, from: u64, upto: u64, disk: &Disk) -> io::Result<()> {
        let upto = upto.next_multiple_of(PAGE as u64).min(self.len());
        let _one_at_a_time = crate::lock::lock(&self.preparing);
        let start = self.ready().max(from / PAGE as u64 * PAGE as u64);
        if upto <= start {
            return Ok(());
        }
        disk.before(DiskAction::AllocateLog)?;
        self.region
            .allocate(start as usize, (upto - start) as usize)?;
        self.region
            .populate(start as usize, (upto - start) as usize);
        self.ready.fetch_max(upto, Ordering::Release);
        Ok(())
    }
}
