//! One index file (`IndexFile`, `IndexHeader`).
//!
//! | field | bytes | at |
//! |---|---|---|
//! | store time of the first, last indexed record | 8, 8 | 0, 8 |
//! | log offset of the first, last indexed record | 8, 8 | 16, 24 |
//! | slots in use | 4 | 32 |
//! | next entry number, from 1 on | 4 | 36 |
//! | slots: number of the newest entry, 0 = none | 4 each | 40 |
//! | entries: hash i32, log offset i64, seconds since the first record i32, number of the next older entry of the slot i32 | 20 each | 40 + 4 · slots |
//!
//! **Invariant:** an entry's link is smaller than its own number, so chains end. Blocks are allocated
//! before they are written. Knows hashes only, no keys.

use std::{
    fs::OpenOptions,
    io,
    path::{Path, PathBuf},
};

use crate::{
    mmap::Pages,
    storage::{Disk, DiskAction},
};

const HEADER: usize = 40;
const SLOT: usize = 4;
const ENTRY: usize = 20;
/// Entry bytes allocated in one step.
const STEP: usize = 4 * 1024 * 1024;

const BEGIN_TIME: usize = 0;
const END_TIME: usize = 8;
const BEGIN_OFFSET: usize = 16;
const END_OFFSET: usize = 24;
const SLOTS_USED: usize = 32;
const COUNT: usize = 36;

/// Sizes of all files of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) slots: u32,
    pub(super) entries: u32,
}

impl Shape {
    pub(super) const fn bytes(self) -> usize {
        HEADER + self.slots as usize * SLOT + self.entries as usize * ENTRY
    }

    const fn entry_at(self, number: i32) -> usize {
        HEADER + self.slots as usize * SLOT + number as usize * ENTRY
    }

    const fn slot_at(self, hash: i32) -> usize {
        HEADER + (hash as u32 % self.slots) as usize * SLOT
    }
}

/// An entry of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) offset: u64,
    /// Store time of the record, cut to seconds after the file's first record.
    pub(super) about: i64,
}

/// An open file.
#[derive(Debug)]
pub(super) struct IndexFile {
    pages: Pages,
    path: PathBuf,
    shape: Shape,
    allocated: usize,
}

impl IndexFile {
    pub(super) fn create(path: &Path, shape: Shape, disk: &Disk) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        file.set_len(shape.bytes() as u64)?;
        let pages = Pages::open(file, shape.bytes())?;
        let mut made = Self {
            pages,
            path: path.to_path_buf(),
            shape,
            allocated: 0,
        };
        if let Err(error) = made.allocate(HEADER + shape.slots as usize * SLOT + ENTRY, disk) {
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        made.set_i32(COUNT, 1);
        Ok(made)
    }

    pub(super) fn open(path: &Path, shape: Shape) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let pages = Pages::open(file, shape.bytes())?;
        Ok(Self {
            pages,
            path: path.to_path_buf(),
            shape,
            allocated: 0,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn allocate(&mut self, upto: usize, disk: &Disk) -> io::Result<()> {
        if upto <= self.allocated {
            return Ok(());
        }
        let end = upto.next_multiple_of(STEP).min(self.shape.bytes());
        disk.before(DiskAction::WriteIndex)?;
        self.pages.allocate(self.allocated, end - self.allocated)?;
        self.allocated = end;
        Ok(())
    }

    fn i32(&self, at: usize) -> i32 {
        let bytes = self
            .pages
            .bytes()
            .get(at..at + 4)
            .and_then(|part| part.try_into().ok());
        bytes.map_or(0, i32::from_be_bytes)
    }

    fn i64(&self, at: usize) -> i64 {
        let bytes = self
            .pages
            .bytes()
            .get(at..at + 8)
            .and_then(|part| part.try_into().ok());
        bytes.map_or(0, i64::from_be_bytes)
    }

    fn set(&mut self, at: usize, value: &[u8]) {
        if let Some(part) = self.pages.bytes_mut().get_mut(at..at + value.len()) {
            part.copy_from_slice(value);
        }
    }

    fn set_i32(&mut self, at: usize, value: i32) {
        self.set(at, &value.to_be_bytes());
    }

    fn set_i64(&mut self, at: usize, value: i64) {
        self.set(at, &value.to_be_bytes());
    }

    /// Number of the next entry.
    fn count(&self) -> i32 {
        self.i32(COUNT).clamp(1, self.shape.entries as i32)
    }

    pub(super) fn is_full(&self) -> bool {
        self.count() >= self.shape.entries as i32
    }

    pub(super) fn begin_time(&self) -> i64 {
        self.i64(BEGIN_TIME)
    }

    pub(super) fn end_time(&self) -> i64 {
        self.i64(END_TIME)
    }

    pub(super) fn begin_offset(&self) -> u64 {
        self.i64(BEGIN_OFFSET).max(0) as u64
    }

    pub(super) fn end_offset(&self) -> u64 {
        self.i64(END_OFFSET).max(0) as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count() <= 1
    }

    /// Adds an entry; `false` if the file is full.
    pub(super) fn put(
        &mut self,
        hash: i32,
        offset: u64,
        stored_at: i64,
        disk: &Disk,
    ) -> io::Result<bool> {
        let number = self.count();
        if self.is_full() {
            return Ok(false);
        }
        let entry = self.shape.entry_at(number);
        self.allocate(entry + ENTRY, disk)?;
        let slot = self.shape.slot_at(hash);
        let before = self.i32(slot);
        let older = if before > 0 && before < number {
            before
        } else {
            0
        };
        let begin = self.begin_time();
        let seconds = if begin <= 0 {
            0
        } else {
            (stored_at - begin).max(0) / 1000
        };
        let mut bytes = [0; ENTRY];
        bytes[..4].copy_from_slice(&hash.to_be_bytes());
        bytes[4..12].copy_from_slice(&(offset as i64).to_be_bytes());
        let seconds = seconds.min(i64::from(i32::MAX)) as i32;
        bytes[12..16].copy_from_slice(&seconds.to_be_bytes());
        bytes[16..].copy_from_slice(&older.to_be_bytes());
        self.set(entry, &bytes);
        self.set_i32(slot, number);
        if number == 1 {
            self.set_i64(BEGIN_OFFSET, offset as i64);
            self.set_i64(BEGIN_TIME, stored_at);
        }
        if older == 0 {
            let used = self.i32(SLOTS_USED);
            self.set_i32(SLOTS_USED, used.saturating_add(1));
        }
        self.set_i64(END_OFFSET, offset as i64);
        self.set_i64(END_TIME, stored_at);
        self.set_i32(COUNT, number + 1);
        Ok(true)
    }

    /// The entries of a hash, newest first.
    pub(super) fn hits(&self, hash: i32) -> impl Iterator<Item = Hit> + '_ {
        let count = self.count();
        let begin = self.begin_time();
        let mut number = self.i32(self.shape.slot_at(hash));
        std::iter::from_fn(move || {
            while number > 0 && number < count {
                let at = self.shape.entry_at(number);
                let older = self.i32(at + 16);
                let found = self.i32(at) == hash;
                let offset = self.i64(at + 4).max(0) as u64;
                let about = begin + i64::from(self.i32(at + 12)) * 1000;
                number = if older < number { older } else { 0 };
                if found {
                    return Some(Hit { offset, about });
                }
            }
            None
        })
    }

    /// Whether the file may be built on after a crash. Any page that was not synced may be an old one:
    /// then a slot names an entry that was not counted, or not the newest of its chain, or an entry
    /// is blank or out of order. Entries of records below `synced` are on the disk for certain.
    pub(super) fn is_consistent(&self, synced: u64) -> bool {
        let count = self.i32(COUNT);
        if count < 1 || count > self.shape.entries as i32 {
            return false;
        }
        let slots_end = HEADER + self.shape.slots as usize * SLOT;
        let Some(slots) = self.pages.bytes().get(HEADER..slots_end) else {
            return false;
        };
        let slots_sound = slots.chunks_exact(SLOT).all(|slot| {
            slot.try_into()
                .is_ok_and(|slot| (0..count).contains(&i32::from_be_bytes(slot)))
        });
        slots_sound && self.newest_are_sound(count, synced)
    }

    fn newest_are_sound(&self, count: i32, synced: u64) -> bool {
        // One bit for each slot whose newest entry was met.
        let mut met = vec![0u64; self.shape.slots as usize / 64 + 1];
        let begin = self.i64(BEGIN_OFFSET).max(0);
        let mut later = self.i64(END_OFFSET);
        for number in (1..count).rev() {
            let at = self.shape.entry_at(number);
            let (hash, offset, older) = (self.i32(at), self.i64(at + 4), self.i32(at + 16));
            let blank = hash == 0 && offset == 0;
            let in_order = (begin..=later).contains(&offset) && (0..number).contains(&older);
            if blank || !in_order || (number == count - 1 && offset != later) {
                return false;
            }
            if (offset as u64) < synced {
                break;
            }
            let slot = hash as u32 % self.shape.slots;
            let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
            if met.get(word).is_some_and(|word| word & bit == 0) {
                if self.i32(self.shape.slot_at(hash)) != number {
                    return false;
                }
                if let Some(word) = met.get_mut(word) {
                    *word |= bit;
                }
            }
            later = offset;
        }
        true
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.pages.sync()
    }

    pub(super) fn release(&mut self) {
        self.pages.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        slots: 7,
        entries: 20,
    };

    fn file(dir: &Path) -> IndexFile {
        IndexFile::create(&dir.join("20260101000000000"), SHAPE, &Disk::default()).unwrap()
    }

    #[test]
    fn bytes_stand_where_the_table_says() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = file(dir.path());
        assert!(index.put(8, 1000, 50_000, &Disk::default()).unwrap());
        assert!(index.put(1, 2000, 52_999, &Disk::default()).unwrap());
        index.sync().unwrap();
        let bytes = std::fs::read(index.path()).unwrap();
        assert_eq!(bytes.len(), 40 + 28 + 400);
        let word = |at: usize| i64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
        let half = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(
            [word(0), word(8), word(16), word(24)],
            [50_000, 52_999, 1000, 2000]
        );
        assert_eq!((half(32), half(36)), (1, 3));
        assert_eq!(half(40 + 4), 2);
        let second = 40 + 28 + 2 * 20;
        assert_eq!(
            (
                half(second),
                word(second + 4),
                half(second + 12),
                half(second + 16)
            ),
            (1, 2000, 2, 1)
        );
    }

    #[test]
    fn all_keys_of_a_full_file_are_found_after_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = file(dir.path());
        for number in 1..20 {
            assert!(
                index
                    .put(number, number as u64 * 10, 1_000, &Disk::default())
                    .unwrap()
            );
        }
        assert!(index.is_full());
        assert!(!index.put(1, 1, 1, &Disk::default()).unwrap());
        let path = index.path().to_path_buf();
        drop(index);
        let index = IndexFile::open(&path, SHAPE).unwrap();
        assert!(index.is_consistent(0));
        for number in 1..20 {
            let offsets: Vec<_> = index.hits(number).map(|hit| hit.offset).collect();
            assert_eq!(offsets, [number as u64 * 10]);
        }
    }

    #[test]
    fn a_header_behind_its_slots_is_noticed_and_no_chain_runs_forever() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = file(dir.path());
        for number in 1..6 {
            index.put(3, number, 1_000, &Disk::default()).unwrap();
        }
        index.set_i32(COUNT, 3);
        assert!(!index.is_consistent(0));
        index.set_i32(COUNT, 6);
        let at = SHAPE.entry_at(5) + 16;
        index.set_i32(at, 5);
        assert!(!index.is_consistent(0));
        assert_eq!(index.hits(3).count(), 1);
    }

    #[test]
    fn old_pages_among_new_ones_are_noticed_whichever_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = file(dir.path());
        for number in 1..10 {
            index
                .put(number, number as u64 * 10, 1_000, &Disk::default())
                .unwrap();
        }
        assert!(index.is_consistent(0));
        // A slot that still names the entry before its newest one.
        let slot = SHAPE.slot_at(9);
        index.set_i32(slot, 2);
        assert!(!index.is_consistent(0));
        assert!(!index.is_consistent(90));
        assert!(index.is_consistent(91), "synced, so it is not looked at");
        index.set_i32(slot, 9);
        assert!(index.is_consistent(0));
        // Entries that were never written.
        for number in [1, 5, 9] {
            let at = SHAPE.entry_at(number);
            let kept: [u8; ENTRY] = index.pages.bytes()[at..at + ENTRY].try_into().unwrap();
            index.set(at, &[0; ENTRY]);
            assert!(!index.is_consistent(0), "entry {number}");
            index.set(at, &kept);
            assert!(index.is_consistent(0));
        }
        // Entries of an earlier life, out of order.
        index.set_i64(SHAPE.entry_at(4) + 4, 60);
        assert!(!index.is_consistent(0));
    }
}
