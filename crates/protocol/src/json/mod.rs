//! JSON as fastjson writes it: read under limits, turned into strict JSON for serde.
//!
//! fastjson leaves numeric map keys unquoted (`{0:"a"}`) and writes an object where a map's key is
//! one (`{{"topic":"T"}:{…}}`); both are quoted here. `null` members are dropped, so that a field
//! that is `null` takes the same default as a field that is missing.
//!
//! **Invariant:** depth, size and number of containers are bounded before anything is built from
//! the text. This module knows no body; `body` does.

pub mod de;
mod error;
mod lenient;
mod raw;
mod reference;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::{Serialize, de::DeserializeOwned};

pub use error::{JsonError, SyntaxFault};
pub use lenient::lenient;
pub(crate) use raw::{object_map, without_key_quotes};

/// Longest text taken, frames and files alike. Frames are bounded far below by their own limit.
pub const BYTES_MAX: usize = 512 * 1024 * 1024;
/// Longest number or word (`true`, `null`) taken; Java's longest `double` has 24 characters.
pub const WORD_BYTES_MAX: usize = 64;
/// Objects and arrays a text may always hold, however short it is.
pub const CONTAINERS_FREE: usize = 1024;
/// Beyond [`CONTAINERS_FREE`], a text needs this many bytes for each object or array.
///
/// An empty object of two bytes may cost a few hundred bytes of memory once decoded; real bodies
/// spend 30 to 100 bytes for each.
pub const BYTES_PER_CONTAINER: usize = 12;

/// Reads a value from text as Java, Go, C++ or strict writers make it.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    let strict: Cow<'_, [u8]> = lenient(text)?;
    serde_json::from_slice(&strict).map_err(JsonError::Shape)
}

/// As [`from_slice`], for values that are objects: serde would also take a list of the fields.
pub(crate) fn object_from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    let at = text
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    if text.get(at).is_some_and(|&byte| byte != b'{') {
        return Err(JsonError::Syntax {
            at,
            fault: SyntaxFault::Object,
        });
    }
    from_slice(text)
}

/// Strict JSON of a value that always has one: string or number map keys, nothing that fails.
pub(crate) fn to_vec<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("bodies have string or integer map keys and no failing parts")
}

/// Strict JSON with line breaks, for files that people read.
pub(crate) fn to_vec_pretty<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    serde_json::to_vec_pretty(value)
        .expect("bodies have string or integer map keys and no failing parts")
}
