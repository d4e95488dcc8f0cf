//! What each queue had in flight, kept where a killed process does not lose it: a file of slots
//! that are written in place, so a pop costs one small write into the page cache and no flush.
//!
//! | bytes of a slot | |
//! |---|---|
//! | 4 | CRC-32 of the next 36 |
//! | 4 | bit 0: there is a mark, 1: there is a committed offset, 2: in order |
//! | 8, 8, 8, 4, 4 | committed, next, until, span, 0 |
//! | 4 | CRC-32 of the names |
//! | 2, 2, 4 | length of topic, of group; queue |
//! | … | stored topic, group |
//!
//! **Invariant:** a slot that cannot be read is no slot: its queue then reads again from its
//! committed offset, which brings messages twice and loses none.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use rmq_pop::InFlightMark;
use rmq_types::{QueueOffset, Timestamp};

use super::cell::Place;
use crate::core::lock;

/// The file, under `config/`.
pub(super) const FILE: &str = "popInFlight";
const SLOT: usize = 576;
const FIGURES: usize = 40;
const NAMES_AT: usize = 52;
/// Slots of one file; queues beyond have no mark.
const SLOTS_MAX: u32 = 1_000_000;

/// Place of a queue in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// What a slot says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) committed: Option<u64>,
    pub(super) mark: Option<InFlightMark>,
    pub(super) ordered: bool,
}

/// A slot of the process before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Former {
    pub(super) stored: String,
    pub(super) group: String,
    pub(super) queue: u32,
    pub(super) kept: Kept,
}

#[derive(Debug, Default)]
struct Slots {
    count: u32,
    free: Vec<u32>,
}

/// The file of this process; it takes the place of the former one when everything is recovered.
#[derive(Debug)]
pub(super) struct Marks {
    file: File,
    path: PathBuf,
    former: Mutex<Vec<Former>>,
    slots: Mutex<Slots>,
    failed: AtomicBool,
}

impl Marks {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(FILE);
        let former = match fs::read(&path) {
            Ok(bytes) => bytes.chunks_exact(SLOT).filter_map(read_slot).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let file = File::create(fresh(&path))?;
        Ok(Self {
            file,
            path,
            former: Mutex::new(former),
            slots: Mutex::default(),
            failed: AtomicBool::new(false),
        })
    }

    /// What the process before left.
    pub(super) fn take_former(&self) -> Vec<Former> {
        std::mem::take(&mut lock(&self.former))
    }

    /// Everything of the process before is in this file now.
    pub(super) fn adopt(&self) -> io::Result<()> {
        fs::rename(fresh(&self.path), &self.path)
    }

    /// Nothing is in flight that only this file knows of.
    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    pub(super) fn take_slot(&self, place: &Place) -> Option<Slot> {
        let slot = {
            let mut slots = lock(&self.slots);
            match slots.free.pop() {
                Some(slot) => slot,
                None if slots.count < SLOTS_MAX => {
                    slots.count += 1;
                    slots.count - 1
                }
                None => return None,
            }
        };
        let mut bytes = vec![0; SLOT];
        put_figures(&mut bytes, &Kept::default());
        put_names(&mut bytes, place)?;
        self.write_at(&bytes, slot);
        Some(Slot(slot))
    }

    pub(super) fn write(&self, slot: Slot, kept: &Kept) {
        let mut bytes = [0; FIGURES];
        put_figures(&mut bytes, kept);
        self.write_at(&bytes, slot.0);
    }

    pub(super) fn free(&self, slot: Slot) {
        self.write_at(&[0; SLOT], slot.0);
        lock(&self.slots).free.push(slot.0);
    }

    fn write_at(&self, bytes: &[u8], slot: u32) {
        let at = u64::from(slot) * SLOT as u64;
        if let Err(error) = self.file.write_all_at(bytes, at)
            && !self.failed.swap(true, Ordering::Relaxed)
        {
            let path = self.path.display();
            tracing::error!(%path, %error, "marks of messages in flight cannot be written: after a \
                kill such messages would come again at once");
        }
    }
}

fn fresh(path: &Path) -> PathBuf {
    path.with_extension("new")
}

fn put_figures(out: &mut [u8], kept: &Kept) {
    let mark = kept.mark;
    let flags = u32::from(mark.is_some())
        | u32::from(kept.committed.is_some()) << 1
        | u32::from(kept.ordered) << 2;
    out[4..8].copy_from_slice(&flags.to_le_bytes());
    out[8..16].copy_from_slice(&kept.committed.unwrap_or(0).to_le_bytes());
    let next = mark.map_or(0, |mark| mark.next.get());
    out[16..24].copy_from_slice(&next.to_le_bytes());
    let until = mark.map_or(0, |mark| mark.until.millis());
    out[24..32].copy_from_slice(&until.to_le_bytes());
    let span = mark.map_or(0, |mark| mark.span_millis);
    out[32..36].copy_from_slice(&span.to_le_bytes());
    let crc = crc32fast::hash(&out[4..FIGURES]);
    out[..4].copy_from_slice(&crc.to_le_bytes());
}

/// `None`: names longer than a slot.
fn put_names(out: &mut [u8], place: &Place) -> Option<()> {
    let (topic, group) = (place.stored.as_str(), place.group.as_str());
    let end = NAMES_AT + topic.len() + group.len();
    out[44..46].copy_from_slice(&(topic.len() as u16).to_le_bytes());
    out[46..48].copy_from_slice(&(group.len() as u16).to_le_bytes());
    out[48..52].copy_from_slice(&place.queue.to_le_bytes());
    out.get_mut(NAMES_AT..NAMES_AT + topic.len())?
        .copy_from_slice(topic.as_bytes());
    out.get_mut(NAMES_AT + topic.len()..end)?
        .copy_from_slice(group.as_bytes());
    let crc = crc32fast::hash(&out[44..end]);
    out[40..44].copy_from_slice(&crc.to_le_bytes());
    Some(())
}

fn read_slot(bytes: &[u8]) -> Option<Former> {
    let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..at + 4)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..at + 8)?.first_chunk()?));
    let short = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..at + 2)?.first_chunk()?));
    let (topic, group) = (usize::from(short(44)?), usize::from(short(46)?));
    let end = NAMES_AT + topic + group;
    if crc32fast::hash(bytes.get(44..end)?) != number(40)? || topic == 0 {
        return None;
    }
    let text = |from: usize, to: usize| {
        let text = std::str::from_utf8(bytes.get(from..to)?).ok()?;
        Some(text.to_owned())
    };
    let mut kept = Kept::default();
    // Torn figures are no figures: the names alone bring back what records have.
    if crc32fast::hash(&bytes[4..FIGURES]) == number(0)? {
        let flags = number(4)?;
        kept.ordered = flags & 4 != 0;
        kept.committed = (flags & 2 != 0).then_some(long(8)?);
        let mark = InFlightMark {
            next: QueueOffset::new(long(16)?),
            until: Timestamp::from_millis(long(24)? as i64),
            span_millis: number(32)?,
        };
        kept.mark = (flags & 1 != 0).then_some(mark);
    }
    Some(Former {
        stored: text(NAMES_AT, NAMES_AT + topic)?,
        group: text(NAMES_AT + topic, end)?,
        queue: number(48)?,
        kept,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_types::pop::PopTopic;

    fn kept(next: u64) -> Kept {
        let mark = InFlightMark {
            next: QueueOffset::new(next),
            until: Timestamp::from_millis(77),
            span_millis: 5,
        };
        Kept {
            committed: Some(3),
            mark: Some(mark),
            ordered: true,
        }
    }

    fn place(topic: &str, queue: u32) -> Place {
        Place::parse(topic, PopTopic::RetryV1, "g", queue).unwrap()
    }

    #[test]
    fn a_new_process_finds_the_last_mark_of_each_queue_and_no_freed_slot() {
        let folder = tempfile::tempdir().unwrap();
        let marks = Marks::open(folder.path()).unwrap();
        let slots: Vec<Slot> = (0..3)
            .map(|queue| marks.take_slot(&place("t", queue)).unwrap())
            .collect();
        marks.write(slots[0], &kept(9));
        marks.write(slots[0], &kept(11));
        marks.free(slots[1]);
        marks.adopt().unwrap();
        let former = Marks::open(folder.path()).unwrap().take_former();
        let found: Vec<_> = former.iter().map(|one| (one.queue, one.kept)).collect();
        assert_eq!(found, [(0, kept(11)), (2, Kept::default())]);
        assert_eq!((&*former[0].stored, &*former[0].group), ("%RETRY%g_t", "g"));
        let again = marks.take_slot(&place("t", 7)).unwrap();
        assert_eq!(again, slots[1], "a freed slot is used again");
    }

    #[test]
    fn a_start_that_is_cut_short_leaves_the_former_marks_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let marks = Marks::open(folder.path()).unwrap();
        let slot = marks.take_slot(&place("t", 0)).unwrap();
        marks.write(slot, &kept(9));
        marks.adopt().unwrap();
        for _ in 0..2 {
            assert_eq!(Marks::open(folder.path()).unwrap().take_former().len(), 1);
        }
    }

    #[test]
    fn torn_figures_are_none_and_torn_names_no_slot() {
        let mut bytes = vec![0; SLOT];
        put_figures(&mut bytes, &kept(9));
        put_names(&mut bytes, &place("t", 4)).unwrap();
        assert_eq!(read_slot(&bytes).unwrap().kept, kept(9));
        for at in 0..FIGURES {
            let mut torn = bytes.clone();
            torn[at] ^= 1;
            assert_eq!(read_slot(&torn).unwrap().kept, Kept::default(), "{at}");
        }
        for at in FIGURES..NAMES_AT + 11 {
            let mut torn = bytes.clone();
            torn[at] ^= 1;
            assert_eq!(read_slot(&torn), None, "{at}");
        }
        assert_eq!(read_slot(&[0; SLOT]), None);
    }
}
