//! The stored form of a timestamp: its milliseconds.
//!
//! **Invariant:** what was written is read back; nothing is checked, since no decision uses it.

use rmq_types::Timestamp;
use serde::{Deserialize, Deserializer, Serializer};

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
pub(crate) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(at.millis())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Timestamp, D::Error> {
    i64::deserialize(deserializer).map(Timestamp::from_millis)
}
