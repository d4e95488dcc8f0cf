//! Bits of a message's system flag (`MessageSysFlag`).
//!
//! **Invariant:** the two host bits describe the record's own layout and are set by the encoder
//! only. Does not interpret pull or topic flags.

/// Body is compressed.
pub const COMPRESSED: i32 = 0x1;
/// The topic takes several tags a message.
pub const MULTI_TAGS: i32 = 0x2;
/// Half message of a transaction.
pub const TRANSACTION_PREPARED: i32 = 0x4;
/// Committed transactional message.
pub const TRANSACTION_COMMIT: i32 = 0x8;
/// Rolled back transactional message.
pub const TRANSACTION_ROLLBACK: i32 = 0xC;
/// The two transaction bits.
pub const TRANSACTION_MASK: i32 = 0xC;
/// Born host has 16 address bytes.
pub const BORN_HOST_V6: i32 = 0x10;
/// Store host has 16 address bytes.
pub const STORE_HOST_V6: i32 = 0x20;
/// The body is a batch that clients unwrap.
pub const NEED_UNWRAP: i32 = 0x40;
/// One record holds a whole batch.
pub const INNER_BATCH: i32 = 0x80;
/// Compression LZ4.
pub const COMPRESSION_LZ4: i32 = 0x100;
/// Compression zstd.
pub const COMPRESSION_ZSTD: i32 = 0x200;
/// Compression zlib.
pub const COMPRESSION_ZLIB: i32 = 0x300;
/// The compression bits.
pub const COMPRESSION_MASK: i32 = 0x700;

/// The transaction bits of a flag.
#[must_use]
pub const fn transaction(flag: i32) -> i32 {
    flag & TRANSACTION_MASK
}

/// Whether a record of this flag gets an entry in its consume queue: plain or committed ones do.
#[must_use]
pub const fn enters_queue(flag: i32) -> bool {
    matches!(transaction(flag), 0 | TRANSACTION_COMMIT)
}

/// `flag` with its transaction bits replaced.
#[must_use]
pub const fn with_transaction(flag: i32, kind: i32) -> i32 {
    (flag & !TRANSACTION_MASK) | (kind & TRANSACTION_MASK)
}
