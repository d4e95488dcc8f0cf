//! The store's folder: lock, abort marker, tombstones and names of its parts.
//!
//! **Invariant:** the lock is taken before anything is read or written, and held until the store is
//! dropped. Java locks the same file with `fcntl`, so both kinds are taken. Layouts are in FORMAT.md.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustc_hash::FxHashMap;
use rustix::fs::FlockOperation;

use crate::error::OpenError;

/// The locked folder.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) root: PathBuf,
    pub(crate) log: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes what is missing and takes the lock.
    pub(crate) fn lock(root: &Path, log: Option<&Path>) -> Result<Self, OpenError> {
        let log = log.map_or_else(|| root.join("commitlog"), Path::to_path_buf);
        for dir in [root, &log, &root.join("consumequeue"), &root.join("index")] {
            fs::create_dir_all(dir).map_err(OpenError::io("create", dir))?;
        }
        let path = root.join("lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(OpenError::io("open", &path))?;
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        let locked = rustix::fs::flock(&file, exclusive)
            .and_then(|()| rustix::fs::fcntl_lock(&file, exclusive));
        match locked {
            Ok(()) => {}
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => {
                return Err(OpenError::InUse(root.to_path_buf()));
            }
            Err(error) => return Err(OpenError::io("lock", &path)(error.into())),
        }
        Ok(Self {
            root: root.to_path_buf(),
            log,
            _lock: file,
        })
    }

    fn abort(&self) -> PathBuf {
        self.root.join("abort")
    }

    /// Whether the last owner did not shut down in order.
    pub(crate) fn was_aborted(&self) -> bool {
        self.abort().exists()
    }

    /// Leaves the marker that stands while the store is open.
    pub(crate) fn mark_open(&self) -> Result<(), OpenError> {
        let path = self.abort();
        fs::write(&path, std::process::id().to_string()).map_err(OpenError::io("write", &path))
    }

    /// Takes the marker away.
    pub(crate) fn mark_closed(&self) -> io::Result<()> {
        match fs::remove_file(self.abort()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Replaces a file so that it is whole before and after a crash.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    if let Some(dir) = path.parent() {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// Topics that were deleted, with the end of the log at that time: recovery does not bring their
/// records back. One line each: offset, space, topic.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    path: PathBuf,
    below: FxHashMap<String, u64>,
}

impl Tombstones {
    /// Reads the file; a line that makes no sense is passed over.
    pub(crate) fn load(root: &Path) -> Self {
        let path = root.join("deletedtopics");
        let text = fs::read(&path).unwrap_or_default();
        let below = String::from_utf8_lossy(&text)
            .lines()
            .filter_map(|line| {
                let (offset, topic) = line.split_once(' ')?;
                Some((topic.to_string(), offset.parse().ok()?))
            })
            .collect();
        Self { path, below }
    }

    /// Records of `topic` below this offset are gone.
    pub(crate) fn below(&self, topic: &str) -> u64 {
        if self.below.is_empty() {
            return 0;
        }
        self.below.get(topic).copied().unwrap_or(0)
    }

    /// Notes that `topic` was deleted when the log ended at `offset`.
    pub(crate) fn add(&mut self, topic: &str, offset: u64) -> io::Result<()> {
        self.below.insert(topic.to_string(), offset);
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)?;
        file.write_all(format!("{offset} {topic}\n").as_bytes())
    }

    /// Forgets topics whose records the log no longer has.
    pub(crate) fn forget_below(&mut self, log_min: u64) -> io::Result<()> {
        let before = self.below.len();
        self.below.retain(|_, offset| *offset > log_min);
        if self.below.len() == before {
            return Ok(());
        }
        let mut text = Vec::new();
        for (topic, offset) in &self.below {
            writeln!(text, "{offset} {topic}")?;
        }
        replace(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_owner() {
        let dir = tempfile::tempdir().unwrap();
        let first = Folder::lock(dir.path(), None).unwrap();
        assert!(matches!(
            Folder::lock(dir.path(), None),
            Err(OpenError::InUse(_))
        ));
        drop(first);
        assert!(Folder::lock(dir.path(), None).is_ok());
    }

    #[test]
    fn tombstones_last_and_are_forgotten_with_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut stones = Tombstones::load(dir.path());
        stones.add("T", 10).unwrap();
        stones.add("T", 20).unwrap();
        stones.add("U", 5).unwrap();
        let mut stones = Tombstones::load(dir.path());
        assert_eq!(
            (stones.below("T"), stones.below("U"), stones.below("V")),
            (20, 5, 0)
        );
        stones.forget_below(5).unwrap();
        let stones = Tombstones::load(dir.path());
        assert_eq!((stones.below("T"), stones.below("U")), (20, 0));
    }
}
