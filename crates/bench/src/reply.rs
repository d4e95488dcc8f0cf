//! Reading replies without parsing them: code, opaque, and one field when asked.
//!
//! Invariant: a frame is touched only as far as needed; nothing is allocated.

use rmq_protocol::remoting::{RawFrame, Serializer};

/// One reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) code: i32,
    pub(crate) opaque: i32,
    frame: RawFrame<'a>,
}

impl<'a> Reply<'a> {
    /// `None` if the frame has no code or opaque where every known writer puts them.
    pub(crate) fn scan(frame: RawFrame<'a>) -> Option<Self> {
        let (code, opaque) = match frame.serializer {
            Serializer::Json => {
                let code_at = find(frame.header, b"\"code\":")?;
                let opaque_at = rfind(frame.header, b"\"opaque\":")?;
                (
                    number(frame.header, code_at)?,
                    number(frame.header, opaque_at)?,
                )
            }
            Serializer::Binary => {
                let code = i16::from_be_bytes(*frame.header.first_chunk()?);
                let opaque = i32::from_be_bytes(*frame.header.get(5..)?.first_chunk()?);
                (i64::from(code), i64::from(opaque))
            }
        };
        Some(Self {
            code: code.try_into().ok()?,
            opaque: opaque.try_into().ok()?,
            frame,
        })
    }

    pub(crate) fn body(&self) -> &'a [u8] {
        self.frame.body
    }

    /// A number field of a JSON header; `key` with its quotes and colon, as `"offset":`.
    pub(crate) fn field(&self, key: &[u8]) -> Option<i64> {
        number(self.frame.header, find(self.frame.header, key)?)
    }

    /// A text field of a JSON header without escapes; `key` with quotes, colon and opening quote.
    pub(crate) fn text(&self, key: &[u8]) -> Option<&'a str> {
        let rest = self.frame.header.get(find(self.frame.header, key)?..)?;
        let end = rest.iter().position(|byte| *byte == b'"')?;
        std::str::from_utf8(rest.get(..end)?).ok()
    }

    /// The remark, as far as it is plain text.
    pub(crate) fn remark(&self) -> Option<String> {
        let start = find(self.frame.header, b"\"remark\":\"")?;
        let rest = self.frame.header.get(start..)?;
        let end = rest.iter().position(|byte| *byte == b'"')?;
        Some(String::from_utf8_lossy(rest.get(..end)?).into_owned())
    }
}

/// Position behind the first `key`.
pub(crate) fn find(text: &[u8], key: &[u8]) -> Option<usize> {
    text.windows(key.len())
        .position(|window| window == key)
        .map(|at| at + key.len())
}

/// Position behind the last `key`.
pub(crate) fn rfind(text: &[u8], key: &[u8]) -> Option<usize> {
    text.windows(key.len())
        .rposition(|window| window == key)
        .map(|at| at + key.len())
}

/// The number at `at`, with or without a quote before it.
pub(crate) fn number(text: &[u8], at: usize) -> Option<i64> {
    let mut rest = text.get(at..)?;
    if let Some((b'"', after)) = rest.split_first() {
        rest = after;
    }
    let (negative, digits) = match rest.split_first()? {
        (b'-', after) => (true, after),
        _ => (false, rest),
    };
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let mut value = 0_i64;
    for digit in digits.get(..count).filter(|digits| !digits.is_empty())? {
        value = value
            .checked_mul(10)?
            .checked_add(i64::from(digit - b'0'))?;
    }
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use rmq_protocol::remoting::{Command, Split, split_frame};

    use super::*;

    fn scanned<T>(serializer: Serializer, look: impl FnOnce(Reply<'_>) -> T) -> T {
        let mut bytes = BytesMut::new();
        Command::response(1_000_000_007, 17)
            .with_ext("nextBeginOffset", "42")
            .with_remark("no topic")
            .with_body("abc")
            .encode(serializer, &mut bytes);
        let Split::Frame { frame, .. } = split_frame(&bytes, 1 << 20).unwrap() else {
            panic!("no frame")
        };
        look(Reply::scan(frame).unwrap())
    }

    #[test]
    fn code_opaque_field_and_remark_are_found_in_json() {
        scanned(Serializer::Json, |reply| {
            assert_eq!((reply.code, reply.opaque), (17, 1_000_000_007));
            assert_eq!(reply.field(b"\"nextBeginOffset\":"), Some(42));
            assert_eq!(reply.remark().as_deref(), Some("no topic"));
            assert_eq!(reply.body(), b"abc");
        });
    }

    #[test]
    fn code_and_opaque_are_found_in_binary_headers() {
        scanned(Serializer::Binary, |reply| {
            assert_eq!((reply.code, reply.opaque), (17, 1_000_000_007));
        });
    }

    #[test]
    fn numbers_stop_at_what_is_no_digit() {
        assert_eq!(number(b"\"-12\",", 0), Some(-12));
        assert_eq!(number(b"7}", 0), Some(7));
        assert_eq!(number(b"x", 0), None);
        assert_eq!(number(b"99999999999999999999", 0), None);
    }
}
