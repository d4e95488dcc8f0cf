//! Where the floor broker puts bodies: a memory area, or a file that is flushed once a round.
//!
//! Invariant: all room exists before the first request; it is used in a circle and never grows.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

const ZEROS: usize = 1024 * 1024;

/// See the module.
#[derive(Debug)]
pub(crate) enum FloorLog {
    /// Bodies are copied into pages that were touched before.
    Memory { area: Vec<u8>, at: usize },
    /// Bodies of a round are gathered, written in one piece and flushed.
    File {
        file: File,
        at: u64,
        bytes: u64,
        round: Vec<u8>,
    },
}

impl FloorLog {
    pub(crate) fn memory(bytes: usize) -> Self {
        // Not zero: pages of zeros would be handed out only when first written.
        Self::Memory {
            area: vec![1; bytes.max(1)],
            at: 0,
        }
    }

    pub(crate) fn file(path: &Path, bytes: usize) -> io::Result<Self> {
        let options = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .open(path);
        let mut file = options?;
        let zeros = vec![0; ZEROS];
        for _ in 0..bytes.div_ceil(ZEROS) {
            file.write_all(&zeros)?;
        }
        file.sync_all()?;
        Ok(Self::File {
            file,
            at: 0,
            bytes: bytes as u64,
            round: Vec::new(),
        })
    }

    /// Copies a body.
    pub(crate) fn append(&mut self, body: &[u8]) {
        match self {
            Self::Memory { area, at } => {
                if *at + body.len() > area.len() {
                    *at = 0;
                }
                if let Some(room) = area.get_mut(*at..*at + body.len()) {
                    room.copy_from_slice(body);
                    *at += body.len();
                }
            }
            Self::File { round, .. } => round.extend_from_slice(body),
        }
    }

    /// True if answers must wait for [`Self::commit`].
    pub(crate) fn holds_answers(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// Makes everything appended durable.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        let Self::File {
            file,
            at,
            bytes,
            round,
        } = self
        else {
            return Ok(());
        };
        if round.is_empty() {
            return Ok(());
        }
        if *at + round.len() as u64 > *bytes {
            *at = 0;
        }
        file.write_all_at(round, *at)?;
        *at += round.len() as u64;
        round.clear();
        file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_area_is_used_in_a_circle() {
        let mut log = FloorLog::memory(10);
        for body in [&b"aaaa"[..], b"bbbb", b"cccc", b"too long for it"] {
            log.append(body);
        }
        let FloorLog::Memory { area, .. } = log else {
            panic!("not memory")
        };
        assert_eq!(&area[..8], b"ccccbbbb");
    }

    #[test]
    fn a_round_is_in_the_file_after_its_commit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("floor.log");
        let mut log = FloorLog::file(&path, 1 << 20).unwrap();
        log.append(b"one");
        log.append(b"two");
        log.commit().unwrap();
        assert_eq!(&std::fs::read(&path).unwrap()[..7], b"onetwo\0");
    }
}
