//! The only module with `unsafe`: memory-mapped files behind safe types.
//!
//! [`Region`] is an append-only mapping with one [`Writer`]; readers see bytes below a watermark that
//! the writer publishes (Release) and they read (Acquire). Bytes below the watermark never change,
//! bytes above it are reachable through the writer alone, so no byte is ever shared while it is
//! written. [`Pages`] is a mapping with one owner, for files that are changed in place.
//!
//! **Invariant:** a file is never cut while it is mapped, and its blocks are allocated before they
//! are written ([`Region::prepare`]), so no access faults: the folder lock keeps other owners out.
//! Knows nothing of records.
#![expect(unsafe_code, reason = "the one place that maps files")]

use std::{
    fmt,
    fs::File,
    io,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use memmap2::{Advice, MmapMut, MmapOptions, MmapRaw, UncheckedAdvice};
use rustix::fs::FallocateFlags;

/// Granularity of sync and advice calls.
pub(crate) const PAGE: usize = 4096;

/// How a writer's bytes come into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By stores into the mapping, whose pages are made ready before.
    Mapped,
    /// By one write call for what was gathered. A flush then writes only the blocks that changed; a
    /// store into the mapping would make the whole folio dirty, which may be megabytes.
    Written,
}

/// Gathered bytes whose room is kept for the next round.
const STAGED_KEPT: usize = 1024 * 1024;

/// A mapped file that grows by appending.
pub(crate) struct Region {
    map: MmapRaw,
    file: File,
    published: AtomicUsize,
    has_writer: AtomicBool,
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("len", &self.map.len())
            .field("published", &self.published())
            .finish_non_exhaustive()
    }
}

impl Region {
    /// Maps the first `len` bytes of `file`; those below `published` may be read.
    pub(crate) fn open(file: File, len: usize, published: usize) -> io::Result<Arc<Self>> {
        if file.metadata()?.len() < len as u64 || published > len {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "file is shorter than its mapping",
            ));
        }
        let map = MmapOptions::new().len(len).map_raw(&file)?;
        Ok(Arc::new(Self {
            map,
            file,
            published: AtomicUsize::new(published),
            has_writer: AtomicBool::new(false),
        }))
    }

    /// The writer, which starts at the watermark; `None` if there was one already.
    pub(crate) fn writer(self: &Arc<Self>, way: Way) -> Option<Writer> {
        if self.has_writer.swap(true, Ordering::AcqRel) {
            return None;
        }
        Some(Writer {
            at: self.published(),
            region: Arc::clone(self),
            staged: match way {
                Way::Mapped => None,
                Way::Written => Some(Vec::new()),
            },
        })
    }

    /// Bytes that may be read.
    pub(crate) fn published(&self) -> usize {
        self.published.load(Ordering::Acquire)
    }

    /// Length of the mapping.
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// The published bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        let len = self.published();
        // SAFETY: the mapping is at least `len` long and lives as long as `self`; bytes below the
        // watermark were written before it was published (Release/Acquire) and never change again.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr(), len) }
    }

    /// A part of the published bytes that keeps the mapping alive.
    pub(crate) fn slice(self: &Arc<Self>, start: usize, len: usize) -> Option<RecordSlice> {
        self.bytes().get(start..start.checked_add(len)?)?;
        Some(RecordSlice {
            region: Arc::clone(self),
            start,
            len,
        })
    }

    /// Allocates the blocks of a range.
    pub(crate) fn allocate(&self, start: usize, len: usize) -> io::Result<()> {
        match rustix::fs::fallocate(
            &self.file,
            FallocateFlags::empty(),
            start as u64,
            len as u64,
        ) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::OPNOTSUPP) => self.allocate_by_writing(start, len),
            Err(error) => Err(error.into()),
        }
    }

    /// For file systems without `fallocate`: writing each page's own bytes back would race with the
    /// writer, so only ranges above the watermark come here and they hold zeros.
    fn allocate_by_writing(&self, start: usize, len: usize) -> io::Result<()> {
        let first = start.max(self.published().next_multiple_of(PAGE));
        self.write_zeros(first, (start + len).saturating_sub(first))
    }

    /// Writes zeros, so that the blocks of a range exist with content: what is written over them later
    /// changes no metadata, and its flush waits for no journal. The range must hold no record, written
    /// or gathered.
    pub(crate) fn write_zeros(&self, start: usize, len: usize) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        static ZEROS: [u8; 16 * PAGE] = [0; 16 * PAGE];
        for at in (start..start + len).step_by(ZEROS.len()) {
            let part = ZEROS.len().min(start + len - at);
            self.file.write_all_at(&ZEROS[..part], at as u64)?;
        }
        Ok(())
    }

    /// Makes the pages of a range present and writable, so that the writer's copy does not fault.
    /// Without the advice (old kernels) the writer faults them in itself.
    pub(crate) fn populate(&self, start: usize, len: usize) {
        let first = start / PAGE * PAGE;
        let end = (start + len).min(self.map.len());
        if end > first {
            let _ = self
                .map
                .advise_range(Advice::PopulateWrite, first, end - first);
        }
    }

    /// Forces a range to the disk.
    pub(crate) fn sync(&self, start: usize, len: usize) -> io::Result<()> {
        self.map.flush_range(start, len)
    }

    /// Takes a range out of this process's page tables; the page cache keeps the bytes.
    pub(crate) fn release(&self, start: usize, len: usize) {
        let first = start.next_multiple_of(PAGE);
        let end = (start + len).min(self.map.len()) / PAGE * PAGE;
        if end > first {
            // SAFETY: the mapping is shared and file-backed, so MADV_DONTNEED loses no data: the
            // next access reads the same bytes from the page cache.
            let _ = unsafe {
                self.map
                    .unchecked_advise_range(UncheckedAdvice::DontNeed, first, end - first)
            };
        }
    }
}

/// The one owner of the bytes above a region's watermark.
#[derive(Debug)]
pub(crate) struct Writer {
    region: Arc<Region>,
    at: usize,
    /// With [`Way::Written`], the bytes from the watermark to `at`.
    staged: Option<Vec<u8>>,
}

impl Writer {
    /// Position of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Bytes left in the region.
    pub(crate) fn remaining(&self) -> usize {
        self.region.len() - self.at
    }

    /// The next `len` bytes, to be filled and then [taken](Self::advance).
    pub(crate) fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        if len > self.remaining() {
            return None;
        }
        if let Some(staged) = &mut self.staged {
            let start = self.at - self.region.published();
            staged.truncate(start);
            staged.resize(start + len, 0);
            return staged.get_mut(start..);
        }
        // SAFETY: the range lies inside the mapping and above the watermark, where no reader looks;
        // this writer is the only one of its region and `&mut self` keeps the slice unique.
        Some(unsafe {
            std::slice::from_raw_parts_mut(self.region.map.as_mut_ptr().add(self.at), len)
        })
    }

    /// Takes `len` more bytes: readers see them at once if they are in the mapping, otherwise after
    /// the next [commit](Self::commit).
    pub(crate) fn advance(&mut self, len: usize) {
        self.at = (self.at + len).min(self.region.len());
        if self.staged.is_none() {
            self.publish();
        }
    }

    /// Writes what was gathered and lets readers see it. After an error nobody sees any of it, and the
    /// writer must not be used again: how much the file took is not known.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        let Some(staged) = &mut self.staged else {
            return Ok(());
        };
        let from = self.region.published();
        if self.at == from {
            return Ok(());
        }
        staged.truncate(self.at - from);
        self.region.file.write_all_at(staged, from as u64)?;
        staged.clear();
        staged.shrink_to(STAGED_KEPT);
        self.publish();
        Ok(())
    }

    fn publish(&self) {
        self.region.published.store(self.at, Ordering::Release);
    }
}

/// Bytes of a stored record; holds its mapping alive, also after the file was deleted.
#[derive(Clone)]
pub struct RecordSlice {
    region: Arc<Region>,
    start: usize,
    len: usize,
}

impl Deref for RecordSlice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `slice` checked the range against the watermark, which only grows.
        unsafe { std::slice::from_raw_parts(self.region.map.as_ptr().add(self.start), self.len) }
    }
}

impl AsRef<[u8]> for RecordSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<RecordSlice> for bytes::Bytes {
    fn from(slice: RecordSlice) -> Self {
        Self::from_owner(slice)
    }
}

impl fmt::Debug for RecordSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordSlice({} bytes at {})", self.len, self.start)
    }
}

/// A mapped file with one owner, changed in place.
pub(crate) struct Pages {
    map: MmapMut,
    file: File,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pages({} bytes)", self.map.len())
    }
}

impl Pages {
    /// Maps the whole of `file`.
    pub(crate) fn open(file: File, len: usize) -> io::Result<Self> {
        if file.metadata()?.len() < len as u64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "file is shorter than its mapping",
            ));
        }
        // SAFETY: the folder lock keeps other processes from changing or cutting the file, and this
        // value is the only owner of the mapping inside the process.
        let map = unsafe { MmapOptions::new().len(len).map_mut(&file)? };
        Ok(Self { map, file })
    }

    /// All bytes; those whose blocks are not allocated read as zero.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// All bytes, to be changed; only allocated blocks may be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }

    /// Allocates the blocks of a range; bytes that are there stay.
    pub(crate) fn allocate(&self, start: usize, len: usize) -> io::Result<()> {
        rustix::fs::fallocate(
            &self.file,
            FallocateFlags::empty(),
            start as u64,
            len as u64,
        )?;
        Ok(())
    }

    /// Forces everything to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.map.flush()
    }

    /// Takes all pages out of this process's page tables.
    pub(crate) fn release(&mut self) {
        // SAFETY: shared and file-backed: no data is lost, and `&mut self` excludes open slices.
        let _ = unsafe { self.map.unchecked_advise(UncheckedAdvice::DontNeed) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(len: usize) -> Arc<Region> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len as u64).unwrap();
        Region::open(file, len, 0).unwrap()
    }

    #[test]
    fn readers_see_only_what_was_published() {
        let region = region(8192);
        let mut writer = region.writer(Way::Mapped).unwrap();
        writer.room(5).unwrap().copy_from_slice(b"hello");
        assert!(region.slice(0, 5).is_none());
        writer.advance(5);
        assert_eq!(&*region.slice(0, 5).unwrap(), b"hello");
        assert!(region.slice(0, 6).is_none());
        assert!(region.slice(usize::MAX, 2).is_none());
    }

    #[test]
    fn gathered_bytes_are_seen_after_the_commit_alone() {
        let region = region(2 * PAGE);
        let mut writer = region.writer(Way::Written).unwrap();
        writer.room(100).unwrap().fill(9);
        writer.room(5).unwrap().copy_from_slice(b"hello");
        writer.advance(5);
        writer.room(1).unwrap().fill(b'!');
        writer.advance(1);
        writer.room(4).unwrap().fill(9);
        assert_eq!((writer.at(), region.published()), (6, 0));
        writer.commit().unwrap();
        assert_eq!(&*region.slice(0, 6).unwrap(), b"hello!");
        writer.room(3).unwrap().copy_from_slice(b"end");
        writer.advance(2 * PAGE - 6);
        writer.commit().unwrap();
        let rest = region.slice(6, 2 * PAGE - 6).unwrap();
        assert_eq!(&rest[..3], b"end");
        assert!(rest[3..].iter().all(|byte| *byte == 0));
        assert_eq!(writer.remaining(), 0);
    }

    #[test]
    fn there_is_one_writer() {
        let region = region(8192);
        assert!(region.writer(Way::Mapped).is_some());
        assert!(region.writer(Way::Mapped).is_none());
    }

    #[test]
    fn released_and_populated_pages_keep_their_bytes() {
        let region = region(16 * PAGE);
        region.allocate(0, 16 * PAGE).unwrap();
        region.populate(0, 16 * PAGE);
        let mut writer = region.writer(Way::Mapped).unwrap();
        writer.room(3 * PAGE).unwrap().fill(7);
        writer.advance(3 * PAGE);
        region.release(0, 16 * PAGE);
        assert!(region.bytes().iter().all(|byte| *byte == 7));
        region.sync(0, 3 * PAGE).unwrap();
    }

    #[test]
    fn a_slice_outlives_its_region_handle() {
        let region = region(PAGE);
        let mut writer = region.writer(Way::Mapped).unwrap();
        writer.room(3).unwrap().copy_from_slice(b"abc");
        writer.advance(3);
        let slice = region.slice(0, 3).unwrap();
        drop((region, writer));
        assert_eq!(bytes::Bytes::from(slice), b"abc"[..]);
    }
}
