//! Where each queue ended at the last orderly stop: lets the next start notice lost queue files.
//!
//! | field | bytes |
//! |---|---|
//! | magic `RMQT` + version 1 | 8 |
//! | end of the log then | 8 |
//! | number of queues | 4 |
//! | per queue: topic length u8, topic, queue id u32, next index u64 | |
//! | CRC-32 of all before | 4 |
//!
//! **Invariant:** the file is whole or ignored. It is a hint: nothing is ever made from it but the
//! suspicion that a queue must be rebuilt. Java does not know it.

use std::{io, path::Path};

use crate::folder;

const MAGIC: u64 = 0x524D_5154_0000_0001;
const NAME: &str = "queuetails";

/// The file's content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tails {
    pub(crate) log_end: u64,
    pub(crate) queues: Vec<(String, u32, u64)>,
}

impl Tails {
    pub(crate) fn load(root: &Path) -> Option<Self> {
        Self::decode(&std::fs::read(root.join(NAME)).ok()?)
    }

    pub(crate) fn save(&self, root: &Path) -> io::Result<()> {
        folder::replace(&root.join(NAME), &self.encode())
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(24 + self.queues.len() * 40);
        bytes.extend_from_slice(&MAGIC.to_be_bytes());
        bytes.extend_from_slice(&self.log_end.to_be_bytes());
        bytes.extend_from_slice(&(self.queues.len() as u32).to_be_bytes());
        for (topic, id, next) in &self.queues {
            let topic = &topic.as_bytes()[..topic.len().min(255)];
            bytes.push(topic.len() as u8);
            bytes.extend_from_slice(topic);
            bytes.extend_from_slice(&id.to_be_bytes());
            bytes.extend_from_slice(&next.to_be_bytes());
        }
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, crc) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        if crc32fast::hash(body).to_be_bytes() != crc {
            return None;
        }
        let mut rest = body;
        let mut take = |count: usize| -> Option<&[u8]> {
            let (part, later) = rest.split_at_checked(count)?;
            rest = later;
            Some(part)
        };
        if take(8)? != MAGIC.to_be_bytes() {
            return None;
        }
        let log_end = u64::from_be_bytes(take(8)?.try_into().ok()?);
        let count = u32::from_be_bytes(take(4)?.try_into().ok()?);
        let mut queues = Vec::new();
        for _ in 0..count {
            let length = usize::from(*take(1)?.first()?);
            let topic = std::str::from_utf8(take(length)?).ok()?.to_string();
            let id = u32::from_be_bytes(take(4)?.try_into().ok()?);
            let next = u64::from_be_bytes(take(8)?.try_into().ok()?);
            queues.push((topic, id, next));
        }
        Some(Self { log_end, queues })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_tails_are_read_back_and_any_damage_ignores_them() {
        let dir = tempfile::tempdir().unwrap();
        let tails = Tails {
            log_end: 9,
            queues: vec![("T".into(), 0, 4), ("%RETRY%g".into(), 7, 5)],
        };
        tails.save(dir.path()).unwrap();
        assert_eq!(Tails::load(dir.path()), Some(tails.clone()));
        let bytes = tails.encode();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert_eq!(Tails::decode(&flipped), None);
            assert_eq!(Tails::decode(&bytes[..at]), None);
        }
    }
}
