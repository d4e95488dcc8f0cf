//! A power cut takes what no sync has put on the disk: under sync flush every acknowledged message is
//! there all the same, in its queue and under its key.
//!
//! The disk after a cut is made up: of the commit log, the bytes that were synced; of everything else
//! that was written, page by page, the new or the old content, by chance. Queue files are at least as
//! they were when the checkpoint began to be written, index files as they were when the newest one was
//! begun; the checkpoint is that of the moment.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

mod common;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use common::*;
use rmq_store::*;

const CUTS: u64 = 25;
const PAGE: usize = 4096;
const SEGMENT: u64 = 64 * 1024;
const QUEUES: u32 = 3;
/// Three pages of them.
const INDEX_SLOTS: u32 = 3_000;

/// Files by their path below the store's folder.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn read_all(root: &Path, below: &str, files: &mut Files) {
    let Ok(entries) = fs::read_dir(root.join(below)) else {
        return;
    };
    for entry in entries {
        let entry = entry.unwrap();
        let path = Path::new(below).join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            read_all(root, path.to_str().unwrap(), files);
        } else if let Ok(bytes) = fs::read(entry.path()) {
            files.insert(path, bytes);
        }
    }
}

/// What the disk has for certain.
struct Platter {
    root: PathBuf,
    /// Log files, zero where nothing was synced.
    log: Mutex<Files>,
    /// Queue files as they were when the last checkpoint began to be written.
    queues: Mutex<Files>,
    /// Index files as they were when a new one was begun.
    index: Mutex<Files>,
    /// Queues are written, but no sync comes to its end: what is known to be on the disk stays behind.
    stuck: AtomicBool,
}

impl Platter {
    /// The disk as it is at a start: everything that is there is on it.
    fn new(root: &Path) -> Arc<Self> {
        let (mut log, mut queues, mut index) = (Files::new(), Files::new(), Files::new());
        read_all(root, "commitlog", &mut log);
        read_all(root, "index", &mut index);
        read_all(root, "consumequeue", &mut queues);
        Arc::new(Self {
            root: root.to_owned(),
            log: Mutex::new(log),
            queues: Mutex::new(queues),
            index: Mutex::new(index),
            stuck: AtomicBool::new(false),
        })
    }
}

impl FaultHook for Platter {
    fn before(&self, action: DiskAction) -> io::Result<()> {
        let (below, kept) = match action {
            DiskAction::SyncQueue if self.stuck.load(Ordering::Relaxed) => {
                return Err(io::Error::other("stuck"));
            }
            DiskAction::WriteCheckpoint => ("consumequeue", &self.queues),
            DiskAction::WriteIndex => ("index", &self.index),
            _ => return Ok(()),
        };
        let mut files = Files::new();
        read_all(&self.root, below, &mut files);
        *kept.lock().unwrap() = files;
        Ok(())
    }

    fn log_synced(&self, from: u64, to: u64) {
        let base = from / SEGMENT * SEGMENT;
        let path = Path::new("commitlog").join(format!("{base:020}"));
        let (start, end) = ((from - base) as usize, (to - base) as usize);
        let mut file = fs::File::open(self.root.join(&path)).unwrap();
        file.seek(SeekFrom::Start(start as u64)).unwrap();
        let mut log = self.log.lock().unwrap();
        let bytes = log.entry(path).or_insert_with(|| vec![0; SEGMENT as usize]);
        file.read_exact(&mut bytes[start..end]).unwrap();
    }

    fn all_synced(&self) {
        let now = Self::new(&self.root);
        for (kept, now) in [
            (&self.log, &now.log),
            (&self.queues, &now.queues),
            (&self.index, &now.index),
        ] {
            *kept.lock().unwrap() = std::mem::take(&mut *now.lock().unwrap());
        }
    }
}

/// A stream of numbers that look random.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// Of a file that was written and perhaps not synced: each page old or new.
fn mix(old: Option<&Vec<u8>>, new: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = vec![0; new.len()];
    let old = old.map_or(&[][..], Vec::as_slice);
    for (page, target) in bytes.chunks_mut(PAGE).enumerate() {
        let from = if chance.below(2) == 0 { new } else { old };
        let part = from.get(page * PAGE..).unwrap_or_default();
        let len = part.len().min(target.len());
        target[..len].copy_from_slice(&part[..len]);
    }
    bytes
}

/// The folder as the power cut leaves it. Files are taken in an order in which a running store could
/// have left them: nothing that depends on another file is taken after it.
fn cut(platter: &Platter, chance: &mut Chance) -> tempfile::TempDir {
    let mut files = Files::new();
    for name in ["checkpoint", "abort", "config", "queuetails"] {
        let path = platter.root.join(name);
        if path.is_dir() {
            read_all(&platter.root, name, &mut files);
        } else if let Ok(bytes) = fs::read(&path) {
            files.insert(name.into(), bytes);
        }
    }
    let parts = [
        ("index", &platter.index),
        ("consumequeue", &platter.queues),
        ("commitlog", &platter.log),
    ];
    for (below, synced) in parts {
        let mut now = Files::new();
        read_all(&platter.root, below, &mut now);
        let synced = synced.lock().unwrap();
        for (path, new) in now {
            files.insert(path.clone(), mix(synced.get(&path), &new, chance));
        }
    }
    let dir = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    dir
}

fn small(root: &Path) -> StoreOptions {
    StoreOptions {
        segment_bytes: SEGMENT,
        // Several pages to a file, of which a cut may take any.
        queue_file_units: 1_000,
        index_slots: INDEX_SLOTS,
        ..options(root)
    }
}

/// A message that may be missed only while it is not durable.
struct Sent {
    queue: u32,
    index: usize,
    number: u32,
    key: String,
    end: u64,
}

/// Appends a few groups, waits for most of them, and gives those that are durable.
fn work(store: &MessageStore, heard: &Heard, chance: &mut Chance, last: &mut u32) -> Vec<Sent> {
    let (mut results, mut sent) = (Vec::new(), Vec::<Sent>::new());
    for _ in 0..=chance.below(60) {
        *last += 1;
        let number = *last;
        let body = number.to_be_bytes().repeat(1 + chance.below(800) as usize);
        let count = 1 + chance.below(4) as u32;
        let words: Vec<_> = (0..count).map(|at| format!("k{number}-{at}")).collect();
        let properties: Vec<_> = words.iter().map(|word| keys(word)).collect();
        let group: Vec<_> = (0..count)
            .zip(&properties)
            .map(|(at, text)| message("T", (number + at) % QUEUES, &body, text))
            .collect();
        store.append(&group, &mut results);
        for ((message, one), key) in group.iter().zip(&results).zip(words) {
            let one = one.as_ref().unwrap();
            sent.push(Sent {
                queue: message.queue_id,
                index: one.queue_offset.get() as usize,
                number,
                key,
                end: one.end.get(),
            });
        }
        if chance.below(4) != 0 {
            let end = sent.last().map_or(0, |last| last.end);
            heard.wait(|told| told.durable >= end);
        }
    }
    let durable = heard.told.lock().unwrap().durable;
    sent.retain(|one| one.end <= durable);
    sent
}

fn check(store: &MessageStore, sent: &[Sent], what: &str) {
    indexed(store);
    let queues: Vec<_> = (0..QUEUES).map(|queue| bodies(store, "T", queue)).collect();
    for sent in sent {
        let found = queues[sent.queue as usize].get(sent.index);
        assert_eq!(
            found.map(|body| &body[..4]),
            Some(&sent.number.to_be_bytes()[..]),
            "{what}: queue {} index {}",
            sent.queue,
            sent.index
        );
        let found = by_key(store, "T", &sent.key);
        assert_eq!(found.len(), 1, "{what}: key {}", sent.key);
        assert_eq!(found[0][..4], sent.number.to_be_bytes());
    }
}

fn cuts(flush: FlushMode) {
    let mut chance = Chance(1);
    let mut dir = tempfile::tempdir().unwrap();
    let mut platter = Platter::new(dir.path());
    let mut kept: Vec<Sent> = Vec::new();
    let mut last = 0;
    for round in 0..CUTS {
        let heard = Arc::new(Heard::default());
        let cuttable = StoreOptions {
            flush,
            queue_flush_interval: Duration::from_millis(2),
            faults: Some(platter.clone()),
            ..small(dir.path())
        };
        let (store, _) = MessageStore::open(cuttable, heard.clone(), HandClock::at(1)).unwrap();
        platter.stuck.store(false, Ordering::Relaxed);
        check(&store, &kept, &format!("before cut {round}"));
        let stuck = chance.below(3) == 0;
        platter.stuck.store(stuck, Ordering::Relaxed);
        kept.extend(work(&store, &heard, &mut chance, &mut last));
        if stuck {
            // All entries are written, and none is known to be on the disk.
            assert!(store.checkpoint().is_err());
        }
        if chance.below(3) == 0 {
            // Killed: the process is gone, the page cache is not; what is on the disk stays as it was.
            drop(store);
            continue;
        }
        let after = cut(&platter, &mut chance);
        drop(store);
        dir = after;
        platter = Platter::new(dir.path());
        let (store, report) = open_with(small(dir.path()));
        assert!(!report.clean);
        check(&store, &kept, &format!("cut {round}"));
        drop(store);
        platter.all_synced();
    }
    assert!(kept.len() > 500, "{}", kept.len());
}

#[test]
fn every_message_acknowledged_under_sync_flush_outlives_kills_and_power_cuts() {
    cuts(FlushMode::Sync);
}

#[test]
fn under_async_flush_a_power_cut_takes_only_what_was_not_durable_yet() {
    cuts(FlushMode::Async {
        interval: Duration::from_millis(3),
    });
}
