//! Writing a file whole: temporary file, flush, rename; the former text stays as `.bak`.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Why a table could not be written. The change was not taken.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}")]
pub struct PersistError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Why a table could not be read at start.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file system refused.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Neither the file nor its copy can be read.
    #[error(
        "{path} is broken ({problem}) and so is its .bak: restore one of them, or remove both to \
         start with an empty table"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

pub(super) fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".bak");
    PathBuf::from(name)
}

/// Replaces `path` by `text`. A crash leaves the old text or the new one, never a half.
pub(crate) fn replace(path: &Path, text: &[u8]) -> Result<(), PersistError> {
    write_all(path, text).map_err(|source| PersistError {
        path: path.to_owned(),
        source,
    })
}

fn write_all(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    let temporary = PathBuf::from(name);
    let mut file = File::create(&temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    drop(file);
    if path.exists() {
        fs::rename(path, backup_of(path))?;
    }
    fs::rename(&temporary, path)?;
    sync_folder(path)
}

/// Makes the renames of a folder durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, LoadError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(LoadError::Io {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Reads `path`, or its copy when it is missing, empty or broken. `None`: neither exists.
pub(crate) fn read<T, E: std::fmt::Display>(
    path: &Path,
    parse: impl Fn(&[u8]) -> Result<T, E>,
) -> Result<Option<T>, LoadError> {
    let mut problem = None;
    for candidate in [path.to_owned(), backup_of(path)] {
        match read_if_there(&candidate)? {
            None => {}
            Some(bytes)
                if bytes
                    .iter()
                    .all(|byte| byte.is_ascii_whitespace() || *byte == 0) =>
            {
                problem.get_or_insert_with(|| "it is empty".to_owned());
            }
            Some(bytes) => match parse(&bytes) {
                Ok(value) => {
                    if let Some(problem) = &problem {
                        tracing::warn!(file = %path.display(), problem, "read the .bak instead");
                    }
                    return Ok(Some(value));
                }
                Err(error) => {
                    problem.get_or_insert_with(|| error.to_string());
                }
            },
        }
    }
    match problem {
        None => Ok(None),
        Some(problem) => Err(LoadError::Corrupt {
            path: path.to_owned(),
            problem,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<String, String> {
        let text = String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())?;
        if text.ends_with('!') {
            Ok(text)
        } else {
            Err("cut short".to_owned())
        }
    }

    #[test]
    fn a_broken_or_empty_file_falls_back_to_its_copy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        replace(&path, b"one!").unwrap();
        replace(&path, b"two!").unwrap();
        assert_eq!(read(&path, text).unwrap().unwrap(), "two!");
        for broken in [&b"tw"[..], b"", b"\0\0"] {
            fs::write(&path, broken).unwrap();
            assert_eq!(read(&path, text).unwrap().unwrap(), "one!");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(read(&path, text).unwrap().unwrap(), "one!");
    }

    #[test]
    fn two_broken_files_are_an_error_and_no_files_an_empty_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        assert!(read(&path, text).unwrap().is_none());
        fs::write(&path, "x").unwrap();
        fs::write(backup_of(&path), "").unwrap();
        assert!(matches!(read(&path, text), Err(LoadError::Corrupt { .. })));
    }
}
