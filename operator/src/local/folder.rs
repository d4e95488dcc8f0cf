//! The data folder of a run: who owns it, and what is written there for each process.
//!
//! **Invariant:** a folder has one owner, by a lock of the kernel that ends with its process, so a
//! crash leaves nothing to clean up. The text in the lock file is only for the message.

use crate::local::plan::ProcessPlan;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

const RUN_LOCK: &str = "up.lock";
const PROCESS_LOCK: &str = "process.lock";
/// A log beyond this is set aside when its process starts.
const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Why a folder could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// It has an owner.
    #[error("{path} is in use by process {owner}: end it, or choose another folder with --data")]
    InUse {
        /// The folder.
        path: PathBuf,
        /// Whoever wrote the lock file.
        owner: String,
    },
    /// It cannot be made or written.
    #[error("cannot use data folder {path}")]
    Unusable {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A folder held by this process until the value is dropped.
#[derive(Debug)]
pub struct ProcessLock {
    _file: File,
}

impl ProcessLock {
    /// Takes the folder of one role, which is made if it is not there.
    pub fn take(dir: &Path) -> Result<Self, ClaimError> {
        take(dir, PROCESS_LOCK)
    }

    /// Takes the folder of a whole run.
    pub(crate) fn take_run(dir: &Path) -> Result<Self, ClaimError> {
        take(dir, RUN_LOCK)
    }
}

fn take(dir: &Path, name: &str) -> Result<ProcessLock, ClaimError> {
    let unusable = |path: &Path| {
        let path = path.to_owned();
        move |source| ClaimError::Unusable { path, source }
    };
    std::fs::create_dir_all(dir).map_err(unusable(dir))?;
    let path = dir.join(name);
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .open(&path)
        .map_err(unusable(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(ClaimError::InUse {
                path: dir.to_owned(),
                owner: owner(&mut file),
            });
        }
        Err(TryLockError::Error(source)) => return Err(unusable(&path)(source)),
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(unusable(&path))?;
    Ok(ProcessLock { _file: file })
}

fn owner(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(32).read_to_string(&mut text);
    let digits = text.trim();
    if read.is_ok() && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        digits.to_owned()
    } else {
        "(unknown)".to_owned()
    }
}

/// Whether a process of an earlier run still holds its folder.
pub(crate) fn is_held(process: &ProcessPlan) -> bool {
    let Ok(file) = File::open(process.data_dir().join(PROCESS_LOCK)) else {
        return false;
    };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Writes the configuration of a process and opens its log for appending.
pub(crate) fn prepare(process: &ProcessPlan) -> Result<File, ClaimError> {
    let path = process.config_path();
    write(process, &path).map_err(|source| ClaimError::Unusable { path, source })?;
    let path = process.log_path();
    open_log(&path).map_err(|source| ClaimError::Unusable { path, source })
}

fn write(process: &ProcessPlan, path: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(&process.dir)?;
    std::fs::write(path, &process.config)
}

fn open_log(path: &Path) -> std::io::Result<File> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    if path.metadata().is_ok_and(|meta| meta.len() > LOG_BYTES_MAX) {
        std::fs::rename(path, path.with_extension("log.1"))?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

/// The last thing said in a log from byte `from` on: why a process ended.
pub(crate) fn last_words(path: &Path, from: u64) -> Option<String> {
    const TAIL_BYTES: u64 = 16 * 1024;
    let mut file = File::open(path).ok()?;
    let start = file
        .metadata()
        .ok()?
        .len()
        .saturating_sub(TAIL_BYTES)
        .max(from);
    file.seek(std::io::SeekFrom::Start(start)).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let text = String::from_utf8_lossy(&tail);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let error = lines.iter().rev().find(|line| line.starts_with("error: "));
    let line = error.or(lines.last())?;
    Some(
        line.strip_prefix("error: ")
            .unwrap_or(line)
            .trim()
            .chars()
            .take(500)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_owner_whose_process_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let held = ProcessLock::take_run(dir.path()).unwrap();
        let refusal = ProcessLock::take_run(dir.path()).unwrap_err().to_string();
        assert!(refusal.contains(&format!("in use by process {}", std::process::id())));
        assert!(refusal.contains("--data"));
        drop(held);
        assert!(ProcessLock::take_run(dir.path()).is_ok());
    }

    #[test]
    fn the_lock_of_a_run_and_of_its_processes_are_apart() {
        let dir = tempfile::tempdir().unwrap();
        let _run = ProcessLock::take_run(dir.path()).unwrap();
        assert!(ProcessLock::take(dir.path()).is_ok());
    }

    #[test]
    fn a_file_in_the_place_of_the_folder_is_named_in_the_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "").unwrap();
        let error = ProcessLock::take(&path).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()));
    }

    #[test]
    fn last_words_are_the_error_line_of_this_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "error: of an earlier start\n").unwrap();
        let from = path.metadata().unwrap().len();
        assert_eq!(last_words(&path, from), None);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"INFO a\nerror: port 1 is taken\nINFO b\n\n")
            .unwrap();
        assert_eq!(last_words(&path, from).as_deref(), Some("port 1 is taken"));
    }

    #[test]
    fn an_absent_log_has_no_last_words() {
        assert_eq!(last_words(Path::new("/nonexistent/log"), 0), None);
    }
}
