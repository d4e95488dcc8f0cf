//! The KV file: `{"configTable":{namespace:{key:value}}}`, replaced whole on each change.
//!
//! **Invariant:** at every moment either the file or its backup (`.bak`) holds a whole table: the
//! new one is written beside it, flushed, and takes its name. A start never begins empty while a
//! file is there that cannot be read.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rmq_protocol::body::KvConfigFile;

use super::KvTable;

/// Longest file read.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The system refuses it.
    #[error("cannot read the KV configuration {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Neither the file nor its backup holds a table.
    #[error("the KV configuration {path} is broken and has no whole backup: {problem}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// A file that could not be written; what was there before still is.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the KV configuration {path}: {source}")]
pub struct SaveError {
    path: PathBuf,
    source: io::Error,
}

pub(super) fn load(path: &Path) -> Result<KvTable, LoadError> {
    let main = read(path)?;
    if let Some(Ok(table)) = main {
        return Ok(table);
    }
    let backup_path = beside(path, ".bak");
    let backup = read(&backup_path)?;
    match (main, backup) {
        (problem, Some(Ok(table))) => {
            let problem = match problem {
                Some(Err(problem)) => problem,
                _ => "it is not there".to_owned(),
            };
            tracing::warn!(path = %path.display(), problem, "KV configuration read from its backup");
            Ok(table)
        }
        (Some(Err(problem)), _) => Err(LoadError::Broken {
            path: path.to_owned(),
            problem,
        }),
        (_, Some(Err(problem))) => Err(LoadError::Broken {
            path: backup_path,
            problem,
        }),
        (_, None) => Ok(KvTable::default()),
    }
}

/// `None` when there is no file; the inner error says why it holds no table.
fn read(path: &Path) -> Result<Option<Result<KvTable, String>>, LoadError> {
    let failed = |source| LoadError::Io {
        path: path.to_owned(),
        source,
    };
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
            return Ok(Some(Err(format!("it has {} bytes", metadata.len()))));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let text = fs::read(path).map_err(failed)?;
    // serde would also take a list for a table.
    if !text.trim_ascii_start().starts_with(b"{") {
        return Ok(Some(Err("it holds no JSON object".to_owned())));
    }
    let file = KvConfigFile::from_json(&text).map_err(|error| error.to_string());
    Ok(Some(file.map(KvTable::from_file)))
}

pub(super) fn save(path: &Path, table: &KvTable) -> Result<(), SaveError> {
    write(path, table).map_err(|source| SaveError {
        path: path.to_owned(),
        source,
    })
}

fn write(path: &Path, table: &KvTable) -> io::Result<()> {
    let text = table.as_file().to_json_pretty();
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder)?;
    }
    let new = beside(path, ".tmp");
    let mut file = File::create(&new)?;
    file.write_all(&text)?;
    file.sync_all()?;
    drop(file);
    match fs::rename(path, beside(path, ".bak")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(&new, path)?;
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
