//! One entry of a consume queue (`ConsumeQueue`).
//!
//! | field | bytes | at |
//! |---|---|---|
//! | commit log offset | 8 | 0 |
//! | record size | 4 | 8 |
//! | tags code | 8 | 12 |
//!
//! **Invariant:** an unwritten entry is all zeros, so size 0 means "none".

/// Bytes of an entry.
pub(crate) const UNIT: usize = 20;

/// Size that marks the entries before a queue's first one in its first file.
const BLANK_SIZE: u32 = 0x7FFF_FFFF;

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Where the record starts.
    pub(crate) offset: u64,
    /// Its bytes.
    pub(crate) size: u32,
    /// Hash of its tag.
    pub(crate) tags_code: i64,
}

impl Unit {
    /// The filler before a queue's first entry.
    pub(crate) const BLANK: Self = Self {
        offset: 0,
        size: BLANK_SIZE,
        tags_code: 0,
    };

    /// Whether it is a filler.
    pub(crate) const fn is_blank(&self) -> bool {
        self.size == BLANK_SIZE
    }

    /// Whether anything was written here; false for garbage as well.
    pub(crate) const fn is_written(&self) -> bool {
        self.size > 0 && self.size <= BLANK_SIZE && self.offset <= i64::MAX as u64
    }

    /// Offset behind the record.
    pub(crate) const fn end(&self) -> u64 {
        self.offset.saturating_add(self.size as u64)
    }

    pub(crate) fn encode(&self) -> [u8; UNIT] {
        let mut bytes = [0; UNIT];
        bytes[..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.size.to_be_bytes());
        bytes[12..].copy_from_slice(&self.tags_code.to_be_bytes());
        bytes
    }

    /// Reads an entry; `None` if there are fewer than 20 bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let offset = bytes.get(..8)?.try_into().ok()?;
        let size = bytes.get(8..12)?.try_into().ok()?;
        let tags = bytes.get(12..UNIT)?.try_into().ok()?;
        Some(Self {
            offset: u64::from_be_bytes(offset),
            size: u32::from_be_bytes(size),
            tags_code: i64::from_be_bytes(tags),
        })
    }
}
