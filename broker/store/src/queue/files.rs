//! The files of consume queues: full length, sparse, read and written by position.
//!
//! **Invariant:** no file is mapped, and at most [`OPEN_FILES_MAX`] are kept open for all queues
//! together. Entries are 20 bytes and never straddle two files. Knows nothing of tails.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use rustc_hash::FxHashMap;

use super::unit::{UNIT, Unit};
use crate::lock::lock;

/// Most queue files kept open for readers.
const OPEN_FILES_MAX: usize = 256;

/// Names one queue's folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueName<'a> {
    pub(crate) topic: &'a str,
    pub(crate) queue_id: u32,
    /// Tells a queue from an earlier one of the same name.
    pub(crate) serial: u64,
}

/// All queue files of a store.
#[derive(Debug)]
pub(crate) struct Files {
    dir: PathBuf,
    file_units: u64,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    files: FxHashMap<(u64, u64), (Arc<File>, u64)>,
    clock: u64,
}

impl Files {
    pub(crate) fn new(dir: PathBuf, file_units: u32) -> Self {
        Self {
            dir,
            file_units: u64::from(file_units.max(1)),
            open: Mutex::default(),
        }
    }

    /// Entries of one file.
    pub(crate) fn file_units(&self) -> u64 {
        self.file_units
    }

    /// The folder of all queues.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn file_bytes(&self) -> u64 {
        self.file_units * UNIT as u64
    }

    /// A queue's folder.
    pub(crate) fn queue_dir(&self, topic: &str, queue_id: u32) -> PathBuf {
        self.dir.join(topic).join(queue_id.to_string())
    }

    /// First bytes of a queue's files, ascending; none if the folder is missing.
    pub(crate) fn list(&self, topic: &str, queue_id: u32) -> io::Result<Vec<u64>> {
        let mut bases = Vec::new();
        let entries = match fs::read_dir(self.queue_dir(topic, queue_id)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(bases),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let name = entry?.file_name();
            if let Some(base) = name.to_str().and_then(crate::log::parse_name)
                && base % self.file_bytes() == 0
            {
                bases.push(base);
            }
        }
        bases.sort_unstable();
        Ok(bases)
    }

    fn path(&self, name: QueueName<'_>, base: u64) -> PathBuf {
        self.queue_dir(name.topic, name.queue_id)
            .join(crate::log::file_name(base))
    }

    /// The open file that starts at byte `base` of a queue, if there is such a file.
    fn reader(&self, name: QueueName<'_>, base: u64) -> io::Result<Option<Arc<File>>> {
        let key = (name.serial, base);
        {
            let mut open = lock(&self.open);
            open.clock += 1;
            let now = open.clock;
            if let Some((file, used)) = open.files.get_mut(&key) {
                *used = now;
                return Ok(Some(Arc::clone(file)));
            }
        }
        let file = match OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path(name, base))
        {
            Ok(file) => Arc::new(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut open = lock(&self.open);
        if open.files.len() >= OPEN_FILES_MAX {
            let oldest = open
                .files
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                open.files.remove(&oldest);
            }
        }
        let now = open.clock;
        open.files.insert(key, (Arc::clone(&file), now));
        Ok(Some(file))
    }

    /// Reads up to `count` entries from `first` on into `out`, from one file only. Stops at an
    /// unwritten entry. `Ok(false)` if the file is missing.
    pub(crate) fn read(
        &self,
        name: QueueName<'_>,
        first: u64,
        count: u64,
        out: &mut Vec<Unit>,
    ) -> io::Result<bool> {
        let in_file = first % self.file_units;
        let base = (first - in_file) * UNIT as u64;
        let Some(file) = self.reader(name, base)? else {
            return Ok(false);
        };
        let mut left = count.min(self.file_units - in_file) as usize * UNIT;
        let mut at = in_file * UNIT as u64;
        let mut buffer = [0u8; 64 * UNIT];
        while left > 0 {
            let want = left.min(buffer.len());
            let got = read_up_to(&file, &mut buffer[..want], at)?;
            for bytes in buffer[..got].chunks_exact(UNIT) {
                match Unit::decode(bytes) {
                    Some(unit) if unit.is_written() => out.push(unit),
                    _ => return Ok(true),
                }
            }
            if got < want {
                break;
            }
            left -= want;
            at += want as u64;
        }
        Ok(true)
    }

    /// One entry; `None` if it is not written or its file is missing.
    pub(crate) fn unit(&self, name: QueueName<'_>, index: u64) -> io::Result<Option<Unit>> {
        let bytes = self.raw(name, index)?;
        Ok(bytes
            .and_then(|bytes| Unit::decode(&bytes))
            .filter(Unit::is_written))
    }

    /// The 20 bytes at an index; `None` if the file is missing or ends before them.
    pub(crate) fn raw(&self, name: QueueName<'_>, index: u64) -> io::Result<Option<[u8; UNIT]>> {
        let in_file = index % self.file_units;
        let base = (index - in_file) * UNIT as u64;
        let Some(file) = self.reader(name, base)? else {
            return Ok(None);
        };
        let mut bytes = [0; UNIT];
        let got = read_up_to(&file, &mut bytes, in_file * UNIT as u64)?;
        Ok((got == UNIT).then_some(bytes))
    }

    /// Writes encoded entries from index `first` on, over as many files as they take; gives the
    /// written files back so that the caller may force them to the disk.
    pub(crate) fn write(
        &self,
        name: QueueName<'_>,
        first: u64,
        mut bytes: &[u8],
    ) -> io::Result<Vec<File>> {
        let mut at = first;
        let mut written = Vec::with_capacity(1);
        while !bytes.is_empty() {
            let in_file = at % self.file_units;
            let base = (at - in_file) * UNIT as u64;
            let room = (self.file_units - in_file) as usize * UNIT;
            let (now, later) = bytes.split_at(bytes.len().min(room));
            let file = self.open_for_write(&self.path(name, base))?;
            file.write_all_at(now, in_file * UNIT as u64)?;
            written.push(file);
            at += (now.len() / UNIT) as u64;
            bytes = later;
        }
        Ok(written)
    }

    fn open_for_write(&self, path: &Path) -> io::Result<File> {
        let open = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
        };
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(dir) = path.parent() {
                    fs::create_dir_all(dir)?;
                }
                open()?
            }
            other => other?,
        };
        if file.metadata()?.len() != self.file_bytes() {
            file.set_len(self.file_bytes())?;
        }
        Ok(file)
    }

    /// Fills the entries before `first` in its file with blanks, as Java does for a queue that starts
    /// inside a file.
    pub(crate) fn fill_before(&self, name: QueueName<'_>, first: u64) -> io::Result<()> {
        let in_file = first % self.file_units;
        let blanks = Unit::BLANK.encode().repeat(in_file.min(4096) as usize);
        let mut at = first - in_file;
        while at < first {
            let count = (first - at).min(4096) as usize;
            self.write(name, at, &blanks[..count * UNIT])?;
            at += count as u64;
        }
        Ok(())
    }

    /// Zeroes every written entry from `first` on and deletes the files behind.
    pub(crate) fn cut(&self, name: QueueName<'_>, first: u64) -> io::Result<()> {
        let in_file = first % self.file_units;
        let base = (first - in_file) * UNIT as u64;
        for later in self.list(name.topic, name.queue_id)? {
            if later > base || (later == base && in_file == 0) {
                self.delete(name, later)?;
            }
        }
        if in_file > 0
            && let Some(file) = self.reader(name, base)?
        {
            // Cut and extended again, the rest is a hole of zeros.
            file.set_len(in_file * UNIT as u64)?;
            file.set_len(self.file_bytes())?;
        }
        Ok(())
    }

    /// Deletes one file.
    pub(crate) fn delete(&self, name: QueueName<'_>, base: u64) -> io::Result<()> {
        lock(&self.open).files.remove(&(name.serial, base));
        match fs::remove_file(self.path(name, base)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Forgets open files of a queue that is gone.
    pub(crate) fn close(&self, serial: u64) {
        lock(&self.open)
            .files
            .retain(|(owner, _), _| *owner != serial);
    }
}

fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
