//! The text of `epochFileCheckpoint`: where each epoch of the commit log begins.
//!
//! ```text
//! 2
//! 773307083
//! 7-7000
//! 8-8000
//! ```
//!
//! Line 1 is the number of entries, line 2 the masked CRC-32 of the lines after it (0: not checked,
//! as in Java), then `epoch-startOffset`. Java writes it to a file of its own first and keeps the
//! former one as `.bak`; so do shells here.
//!
//! **Invariant:** a text whose checksum, count or order is wrong is corruption and gives nothing.

use std::fmt::Write;

use rmq_types::crc32_masked;

use super::{EPOCHS_MAX, EpochStart, HaError, check_epochs};

/// Longest text that is read.
pub const EPOCH_FILE_BYTES_MAX: usize = EPOCHS_MAX * 32;

/// Why a text gives no epochs. All of it is corruption: the caller tries the `.bak` file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EpochFileError {
    /// Longer than [`EPOCH_FILE_BYTES_MAX`].
    #[error("an epoch file of {0} bytes")]
    TooLong(usize),
    /// No number in one of the first two lines.
    #[error("line {0} of the epoch file is no number")]
    Head(usize),
    /// A line that is no entry.
    #[error("line {0} of the epoch file is no entry")]
    Entry(usize),
    /// Another number of entries than line 1 says.
    #[error("the epoch file says {said} entries and has {found}")]
    Count {
        /// Line 1.
        said: usize,
        /// Lines.
        found: usize,
    },
    /// The checksum is another one.
    #[error("the epoch file says checksum {said}, its entries have {found}")]
    Checksum {
        /// Line 2.
        said: i32,
        /// Of the entries.
        found: i32,
    },
    /// Epochs that do not rise, or offsets that fall.
    #[error("the epoch file is out of order")]
    Order(#[source] HaError),
}

/// The text for `entries`.
#[must_use]
pub fn write_epoch_file(entries: &[EpochStart]) -> String {
    let mut lines = String::new();
    for entry in entries {
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{}-{}", entry.epoch, entry.start_offset);
    }
    let checksum = crc32_masked(crc32fast::hash(lines.as_bytes()));
    format!("{}\n{checksum}\n{lines}", entries.len())
}

/// The entries of a text.
pub fn read_epoch_file(bytes: &[u8]) -> Result<Vec<EpochStart>, EpochFileError> {
    if bytes.len() > EPOCH_FILE_BYTES_MAX {
        return Err(EpochFileError::TooLong(bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| EpochFileError::Head(1))?;
    let mut lines = text.lines();
    let said = lines.next().and_then(|line| line.trim().parse().ok());
    let said: usize = said.ok_or(EpochFileError::Head(1))?;
    let checksum = lines.next().and_then(|line| line.trim().parse().ok());
    let checksum: i32 = checksum.ok_or(EpochFileError::Head(2))?;
    let mut entries = Vec::new();
    let mut summed = String::new();
    for (at, line) in lines.enumerate() {
        entries.push(entry(line).ok_or(EpochFileError::Entry(at + 3))?);
        summed.push_str(line);
        summed.push('\n');
    }
    if said != entries.len() {
        return Err(EpochFileError::Count {
            said,
            found: entries.len(),
        });
    }
    let found = crc32_masked(crc32fast::hash(summed.as_bytes()));
    if checksum != 0 && checksum != found {
        return Err(EpochFileError::Checksum {
            said: checksum,
            found,
        });
    }
    check_epochs(&entries).map_err(EpochFileError::Order)?;
    Ok(entries)
}

fn entry(line: &str) -> Option<EpochStart> {
    let (epoch, start) = line.split_once('-')?;
    Some(EpochStart {
        epoch: epoch.parse().ok()?,
        start_offset: start.parse().ok()?,
    })
}
