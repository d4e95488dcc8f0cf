//! One header, whichever way it was written.

use std::borrow::Cow;

use bytes::BytesMut;

use super::{ExtFields, Language, Serializer, binary, json};

/// Flag bit 0: the frame answers a request.
pub const FLAG_RESPONSE: i32 = 1;
/// Flag bit 1: nobody waits for an answer.
pub const FLAG_ONEWAY: i32 = 2;

/// Why header bytes are no header. Java closes the connection; so do we.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The JSON text is broken at a byte.
    #[error("header is no JSON object: {problem} at byte {at}")]
    Json {
        /// What was wrong.
        problem: &'static str,
        /// Where.
        at: usize,
    },
    /// A part of the binary header claims more bytes than there are.
    #[error("binary header is cut short in its {part}")]
    Truncated {
        /// The part.
        part: &'static str,
    },
    /// A length of the binary header is negative.
    #[error("binary header has the negative length {length} in its {part}")]
    NegativeLength {
        /// The part.
        part: &'static str,
        /// What stood there.
        length: i32,
    },
}

/// The header of a request or response.
#[derive(Clone, Debug)]
pub struct Header<'a> {
    /// Request code, or response code when the response flag is set.
    pub code: i32,
    /// [`FLAG_RESPONSE`] and [`FLAG_ONEWAY`].
    pub flag: i32,
    /// Number that matches a response to its request on one connection.
    pub opaque: i32,
    /// What the sender is written in.
    pub language: Language,
    /// Ordinal of the sender's `MQVersion`.
    pub version: i32,
    /// Free text, an error's reason in responses.
    pub remark: Option<Cow<'a, str>>,
    /// The typed header's fields as text.
    pub ext: ExtFields<'a>,
    /// How the header was written.
    pub serializer: Serializer,
}

impl<'a> Header<'a> {
    /// Reads header bytes. Text that is no UTF-8 is taken with replacement characters, as Java does.
    pub fn decode(serializer: Serializer, bytes: &'a [u8]) -> Result<Self, HeaderError> {
        match serializer {
            Serializer::Binary => binary::decode(bytes),
            Serializer::Json => match std::str::from_utf8(bytes) {
                Ok(text) => json::decode(text),
                Err(_) => json::decode(&String::from_utf8_lossy(bytes)).map(Header::into_owned),
            },
        }
    }

    /// Whether the frame answers a request.
    #[must_use]
    pub const fn is_response(&self) -> bool {
        self.flag & FLAG_RESPONSE != 0
    }

    /// Whether nobody waits for an answer.
    #[must_use]
    pub const fn is_oneway(&self) -> bool {
        self.flag & FLAG_ONEWAY != 0
    }

    /// The same header, holding its own text.
    #[must_use]
    pub fn into_owned<'b>(self) -> Header<'b> {
        Header {
            remark: self.remark.map(|text| Cow::Owned(text.into_owned())),
            ext: self.ext.into_owned(),
            code: self.code,
            flag: self.flag,
            opaque: self.opaque,
            language: self.language,
            version: self.version,
            serializer: self.serializer,
        }
    }
}

/// The parts that every encoder needs.
pub(super) struct Parts<'a> {
    pub(super) code: i32,
    pub(super) flag: i32,
    pub(super) opaque: i32,
    pub(super) language: Language,
    pub(super) version: i32,
    pub(super) remark: Option<&'a str>,
    pub(super) ext: &'a ExtFields<'a>,
}

/// Appends the header bytes; says which serializer was really used: a binary header that cannot
/// hold its parts (code beyond 16 bits, key beyond 32,767 bytes) is written as JSON instead.
pub(super) fn encode(parts: &Parts<'_>, wanted: Serializer, out: &mut BytesMut) -> Serializer {
    if wanted == Serializer::Binary && binary::fits(parts) {
        binary::encode(parts, out);
        return Serializer::Binary;
    }
    json::encode(parts, out);
    Serializer::Json
}
