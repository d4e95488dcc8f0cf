//! Writing a response frame straight into the outgoing buffer: no map, no text per number.

use bytes::{BufMut, BytesMut};

use super::VERSION;

/// Writes one JSON response: code first, then fields, then [`ResponseWriter::finish`].
#[derive(Debug)]
pub struct ResponseWriter<'a> {
    out: &'a mut BytesMut,
    start: usize,
    has_fields: bool,
    opaque: i32,
}

impl<'a> ResponseWriter<'a> {
    /// Begins a response to request `opaque`.
    pub fn new(out: &'a mut BytesMut, opaque: i32, code: i32) -> Self {
        let start = out.len();
        out.put_u64(0);
        out.put_slice(b"{\"code\":");
        push_number(out, i64::from(code));
        Self {
            out,
            start,
            has_fields: false,
            opaque,
        }
    }

    fn key(&mut self, name: &'static str) {
        let open: &[u8] = if self.has_fields {
            b",\""
        } else {
            b",\"extFields\":{\""
        };
        self.has_fields = true;
        self.out.put_slice(open);
        self.out.put_slice(name.as_bytes());
        self.out.put_slice(b"\":\"");
    }

    /// A text field; `name` must need no escapes.
    pub fn text(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.key(name);
        push_escaped(self.out, value);
        self.out.put_u8(b'"');
        self
    }

    /// A number field.
    pub fn number(&mut self, name: &'static str, value: i64) -> &mut Self {
        self.key(name);
        push_number(self.out, value);
        self.out.put_u8(b'"');
        self
    }

    /// Closes the header, appends the parts of the body and sets both length words.
    pub fn finish<'b>(self, remark: Option<&str>, body: impl IntoIterator<Item = &'b [u8]>) {
        let Self {
            out,
            start,
            has_fields,
            opaque,
        } = self;
        if has_fields {
            out.put_u8(b'}');
        }
        out.put_slice(b",\"flag\":1,\"language\":\"JAVA\",\"opaque\":");
        push_number(out, i64::from(opaque));
        if let Some(remark) = remark {
            out.put_slice(b",\"remark\":\"");
            push_escaped(out, remark);
            out.put_u8(b'"');
        }
        out.put_slice(b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
        push_number(out, i64::from(VERSION));
        out.put_u8(b'}');
        let header_bytes = out.len() - start - 8;
        for part in body {
            out.put_slice(part);
        }
        close_frame(out, start, header_bytes, 0);
    }
}

/// Sets the two words before a header that began at `start + 8`.
pub(super) fn close_frame(out: &mut BytesMut, start: usize, header_bytes: usize, serializer: u8) {
    let length = (out.len() - start - 4) as u32;
    let mark = (u32::from(serializer) << 24) | header_bytes as u32;
    if let Some(prefix) = out.get_mut(start..start + 8) {
        prefix[..4].copy_from_slice(&length.to_be_bytes());
        prefix[4..].copy_from_slice(&mark.to_be_bytes());
    }
}

/// Appends a number in decimal digits.
pub(crate) fn push_number(out: &mut BytesMut, value: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.put_u8(b'-');
    }
    out.put_slice(&digits[at..]);
}

/// Appends text as the inside of a JSON string.
pub(crate) fn push_escaped(out: &mut BytesMut, text: &str) {
    let bytes = text.as_bytes();
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    // Nearly every text is plain; a loop without an early end becomes vector instructions.
    if bytes
        .iter()
        .fold(true, |plain, byte| plain & is_plain(*byte))
    {
        out.put_slice(bytes);
        return;
    }
    let mut from = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if is_plain(byte) {
            continue;
        }
        out.put_slice(&bytes[from..at]);
        from = at + 1;
        match byte {
            b'"' | b'\\' => out.put_slice(&[b'\\', byte]),
            b'\n' => out.put_slice(b"\\n"),
            b'\r' => out.put_slice(b"\\r"),
            b'\t' => out.put_slice(b"\\t"),
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.put_slice(b"\\u00");
                out.put_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
    }
    out.put_slice(&bytes[from..]);
}
