//! A command that owns its parts: what clients send, and every answer off the hot path.

use std::sync::atomic::{AtomicI32, Ordering};

use bytes::{BufMut, Bytes, BytesMut};

use super::{
    ExtFields, FLAG_ONEWAY, FLAG_RESPONSE, Header, HeaderError, Language, RawFrame, Serializer,
    VERSION,
    header::{self, Parts},
    response::close_frame,
    response_code,
};
use crate::header::EncodeHeader;

static NEXT_OPAQUE: AtomicI32 = AtomicI32::new(1);

/// A request number that was not used for a long time by this process.
#[must_use]
pub fn next_opaque() -> i32 {
    NEXT_OPAQUE.fetch_add(1, Ordering::Relaxed) & i32::MAX
}

/// `RemotingCommand`: one request or response with its body.
#[derive(Clone, Debug)]
pub struct Command {
    /// Request code, or response code when the response flag is set.
    pub code: i32,
    /// See [`FLAG_RESPONSE`] and [`FLAG_ONEWAY`].
    pub flag: i32,
    /// Matches a response to its request.
    pub opaque: i32,
    /// What the sender is written in.
    pub language: Language,
    /// `MQVersion` ordinal of the sender.
    pub version: i32,
    /// Free text.
    pub remark: Option<String>,
    /// Fields as text.
    pub ext: ExtFields<'static>,
    /// Body bytes.
    pub body: Bytes,
}

impl Command {
    fn new(code: i32, flag: i32, opaque: i32) -> Self {
        Self {
            code,
            flag,
            opaque,
            language: Language::Java,
            version: VERSION,
            remark: None,
            ext: ExtFields::new(),
            body: Bytes::new(),
        }
    }

    /// A request with a fresh number.
    #[must_use]
    pub fn request(code: i32) -> Self {
        Self::new(code, 0, next_opaque())
    }

    /// A request that nobody answers.
    #[must_use]
    pub fn oneway(code: i32) -> Self {
        Self::new(code, FLAG_ONEWAY, next_opaque())
    }

    /// An answer to request `opaque`.
    #[must_use]
    pub fn response(opaque: i32, code: i32) -> Self {
        Self::new(code, FLAG_RESPONSE, opaque)
    }

    /// An answer of success.
    #[must_use]
    pub fn success(opaque: i32) -> Self {
        Self::response(opaque, response_code::SUCCESS)
    }

    /// Sets the remark.
    #[must_use]
    pub fn with_remark(mut self, remark: impl Into<String>) -> Self {
        self.remark = Some(remark.into());
        self
    }

    /// Adds the fields of a typed header.
    #[must_use]
    pub fn with_header(mut self, header: &impl EncodeHeader) -> Self {
        header.encode(&mut self.ext);
        self
    }

    /// Adds one field.
    #[must_use]
    pub fn with_ext(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.ext.push(name, value.into());
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Whether this answers a request.
    #[must_use]
    pub const fn is_response(&self) -> bool {
        self.flag & FLAG_RESPONSE != 0
    }

    /// Whether nobody waits for an answer.
    #[must_use]
    pub const fn is_oneway(&self) -> bool {
        self.flag & FLAG_ONEWAY != 0
    }

    /// Appends the whole frame to `out`.
    pub fn encode(&self, serializer: Serializer, out: &mut BytesMut) {
        let start = out.len();
        out.reserve(256 + self.body.len());
        out.put_u64(0);
        let parts = Parts {
            code: self.code,
            flag: self.flag,
            opaque: self.opaque,
            language: self.language,
            version: self.version,
            remark: self.remark.as_deref(),
            ext: &self.ext,
        };
        let used = header::encode(&parts, serializer, out);
        let header_bytes = out.len() - start - 8;
        out.put_slice(&self.body);
        close_frame(out, start, header_bytes, used.code());
    }

    /// Reads a frame into parts of its own.
    pub fn decode(frame: RawFrame<'_>) -> Result<Self, HeaderError> {
        let header = Header::decode(frame.serializer, frame.header)?;
        Ok(Self::from_parts(header, Bytes::copy_from_slice(frame.body)))
    }

    /// Joins a header that was already read with its body.
    #[must_use]
    pub fn from_parts(header: Header<'_>, body: Bytes) -> Self {
        Self {
            code: header.code,
            flag: header.flag,
            opaque: header.opaque,
            language: header.language,
            version: header.version,
            remark: header.remark.map(std::borrow::Cow::into_owned),
            ext: header.ext.into_owned(),
            body,
        }
    }
}
