//! A message outside its frame: the stored record, the properties text, batch bodies and ids.
//!
//! **Invariant:** every decoder checks bounds and totals before it hands out a slice, and none
//! panics on any input. Does not know remoting headers, and reads no clock.

pub mod batch;
mod hex;
pub mod offset_id;
pub mod properties;
pub mod record;
pub mod sys_flag;
pub mod unique_id;

pub use batch::{BatchError, BatchItem};
pub use hex::HexError;
pub use offset_id::OffsetId;
pub use record::{EncodeError, Record, RecordError};
pub use unique_id::{UniqueId, UniqueIds};

/// The masked CRC-32 of a body, as it stands in records (`UtilAll.crc32`).
#[must_use]
pub fn body_crc(body: &[u8]) -> i32 {
    rmq_types::crc32_masked(crc32fast::hash(body))
}
