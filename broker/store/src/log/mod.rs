//! The commit log: a chain of equally long mapped files.
//!
//! **Invariant:** files follow each other without a gap and only the last one is written. Offsets are
//! positions in the whole chain. Does not append or recover; see `append` and `recover`.

mod segment;
pub(crate) mod walk;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, RwLock, RwLockReadGuard},
};

use rmq_protocol::message::record;
use rmq_types::CommitLogOffset;
pub(crate) use segment::{Segment, file_name};

use crate::{
    error::{OpenError, ReadAtError},
    lock::read_lock,
    mmap::RecordSlice,
};

/// The files of a log, oldest first.
#[derive(Debug)]
pub(crate) struct Chain {
    dir: PathBuf,
    segment_bytes: u64,
    segments: RwLock<Vec<Arc<Segment>>>,
}

/// A log file found on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) base: u64,
}

/// The files of `dir`, checked as Java does: equal sizes, no gap; an empty last file is removed.
pub(crate) fn list(dir: &Path, segment_bytes: u64) -> Result<Vec<Found>, OpenError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(OpenError::io("list", dir))? {
        let entry = entry.map_err(OpenError::io("list", dir))?;
        let name = entry.file_name();
        let Some(base) = name.to_str().and_then(parse_name) else {
            continue;
        };
        let len = entry
            .metadata()
            .map_err(OpenError::io("stat", entry.path()))?
            .len();
        files.push((
            Found {
                path: entry.path(),
                base,
            },
            len,
        ));
    }
    files.sort_by_key(|(found, _)| found.base);
    if let Some((found, 0)) = files.last() {
        fs::remove_file(&found.path).map_err(OpenError::io("remove", &found.path))?;
        files.pop();
    }
    let mut expected = None;
    for (found, len) in &files {
        if *len != segment_bytes {
            return Err(OpenError::SegmentSize {
                path: found.path.clone(),
                found: *len,
                configured: segment_bytes,
            });
        }
        if let Some(expected) = expected.filter(|expected| *expected != found.base) {
            return Err(OpenError::Gap {
                path: found.path.clone(),
                found: found.base,
                expected,
            });
        }
        expected = Some(found.base + segment_bytes);
    }
    Ok(files.into_iter().map(|(found, _)| found).collect())
}

/// The offset in a file's name: 20 decimal digits.
pub(crate) fn parse_name(name: &str) -> Option<u64> {
    if name.len() != 20 || !name.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    name.parse().ok()
}

impl Chain {
    /// A chain of segments that follow each other; there is at least one.
    pub(crate) fn new(dir: PathBuf, segment_bytes: u64, segments: Vec<Arc<Segment>>) -> Self {
        Self {
            dir,
            segment_bytes,
            segments: RwLock::new(segments),
        }
    }

    /// The folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Bytes of each file.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// The files now.
    pub(crate) fn segments(&self) -> RwLockReadGuard<'_, Vec<Arc<Segment>>> {
        read_lock(&self.segments)
    }

    /// Offset of the first byte there is.
    pub(crate) fn min(&self) -> u64 {
        self.segments().first().map_or(0, |segment| segment.base)
    }

    /// The file that holds `offset`.
    pub(crate) fn find(&self, offset: u64) -> Option<Arc<Segment>> {
        let segments = self.segments();
        let first = segments.first()?.base;
        let index = offset.checked_sub(first)? / self.segment_bytes;
        segments.get(index as usize).cloned()
    }

    /// The file that starts where the last one ends.
    pub(crate) fn push(&self, segment: Arc<Segment>) {
        crate::lock::write_lock(&self.segments).push(segment);
    }

    /// Drops the oldest file from the chain and deletes it; the last file stays.
    pub(crate) fn remove_first(&self) -> io::Result<bool> {
        let first = {
            let mut segments = crate::lock::write_lock(&self.segments);
            if segments.len() < 2 {
                return Ok(false);
            }
            segments.remove(0)
        };
        fs::remove_file(&first.path)?;
        Ok(true)
    }

    /// The record that starts at `offset`.
    pub(crate) fn record_at(&self, offset: u64) -> Result<RecordSlice, ReadAtError> {
        let at = CommitLogOffset::new(offset);
        let segment = self.find(offset).ok_or(ReadAtError::Outside(at))?;
        record_in(&segment, offset)
    }
}

/// The record that starts at `offset` of a segment that holds it.
pub(crate) fn record_in(segment: &Segment, offset: u64) -> Result<RecordSlice, ReadAtError> {
    let at = CommitLogOffset::new(offset);
    let position = offset
        .checked_sub(segment.base)
        .ok_or(ReadAtError::Outside(at))? as usize;
    let bytes = segment.region.bytes();
    let head = bytes.get(position..).ok_or(ReadAtError::Outside(at))?;
    if head.is_empty() {
        return Err(ReadAtError::Outside(at));
    }
    let own = head
        .get(record::PHYSICAL_OFFSET_AT..record::PHYSICAL_OFFSET_AT + 8)
        .and_then(|field| field.try_into().ok())
        .map(i64::from_be_bytes);
    match record::peek(head) {
        Some((size, record::MAGIC_V1 | record::MAGIC_V2))
            if size >= record::RECORD_BYTES_MIN as i32 && own == Some(offset as i64) =>
        {
            segment
                .region
                .slice(position, size as usize)
                .ok_or(ReadAtError::NoRecord(at))
        }
        _ => Err(ReadAtError::NoRecord(at)),
    }
}
