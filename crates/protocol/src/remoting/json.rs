//! JSON headers: a scanner that borrows what it can, and a writer in Java's key order.
//!
//! Taken as fastjson takes them: white space, any key order, unknown keys, numbers and booleans as
//! field values, a null field value (dropped), a language as name or number.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use rmq_types::limits::JSON_DEPTH_MAX;

use crate::scan::find_either;

use super::{
    ExtFields, Header, HeaderError, Language, Serializer,
    header::Parts,
    response::{push_escaped, push_number},
};

pub(super) fn decode(text: &str) -> Result<Header<'_>, HeaderError> {
    let mut scan = Scanner { text, at: 0 };
    let mut header = Header {
        code: 0,
        flag: 0,
        opaque: 0,
        language: Language::Other,
        version: 0,
        remark: None,
        ext: ExtFields::new(),
        serializer: Serializer::Json,
    };
    scan.object(|scan, key| match key.as_ref() {
        "code" => scan.int().map(|value| header.code = value),
        "flag" => scan.int().map(|value| header.flag = value),
        "opaque" => scan.int().map(|value| header.opaque = value),
        "version" => scan.int().map(|value| header.version = value),
        "language" => scan
            .scalar()
            .map(|value| header.language = language(value.as_deref())),
        "remark" => scan.scalar().map(|value| header.remark = value),
        "extFields" => scan.ext_fields().map(|value| header.ext = value),
        _ => scan.scalar().map(drop),
    })?;
    scan.skip_space();
    if scan.at == text.len() {
        Ok(header)
    } else {
        Err(scan.error("text behind the object"))
    }
}

fn language(text: Option<&str>) -> Language {
    let Some(text) = text else {
        return Language::Other;
    };
    text.parse()
        .map_or_else(|_| Language::from_name(text), Language::from_code)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn error(&self, problem: &'static str) -> HeaderError {
        HeaderError::Json {
            problem,
            at: self.at,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), HeaderError> {
        self.skip_space();
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.error(problem))
    }

    /// `{ key : value , … }`; `member` reads each value.
    fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), HeaderError>,
    ) -> Result<(), HeaderError> {
        self.expect(b'{', "no opening brace")?;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_space();
            let key = self.string()?;
            self.expect(b':', "no colon")?;
            self.skip_space();
            member(self, key)?;
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.error("no comma or closing brace")),
            }
        }
    }

    fn ext_fields(&mut self) -> Result<ExtFields<'a>, HeaderError> {
        if self.text[self.at..].starts_with("null") {
            self.at += 4;
            return Ok(ExtFields::new());
        }
        let mut ext = ExtFields::with_capacity(20);
        self.object(|scan, key| {
            if let Some(value) = scan.scalar()? {
                ext.push(key, value);
            }
            Ok(())
        })?;
        Ok(ext)
    }

    fn int(&mut self) -> Result<i32, HeaderError> {
        let start = self.at;
        let value = self.scalar()?.unwrap_or(Cow::Borrowed("0"));
        value.parse().map_err(|_| HeaderError::Json {
            problem: "no 32-bit number",
            at: start,
        })
    }

    /// A text, number or boolean as text; null as `None`; an object or array as its own text.
    fn scalar(&mut self) -> Result<Option<Cow<'a, str>>, HeaderError> {
        match self.peek() {
            Some(b'"') => self.string().map(Some),
            Some(b'{' | b'[') => self.nested().map(Some),
            Some(b'-' | b'+' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                let start = self.at;
                while matches!(
                    self.peek(),
                    Some(b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E')
                ) {
                    self.at += 1;
                }
                let word = &self.text[start..self.at];
                Ok(if word == "null" {
                    None
                } else {
                    Some(Cow::Borrowed(word))
                })
            }
            _ => Err(self.error("no value")),
        }
    }

    /// Steps over an object or array without recursion; strings inside may hold brackets.
    fn nested(&mut self) -> Result<Cow<'a, str>, HeaderError> {
        let start = self.at;
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(b'{' | b'[') => {
                    depth += 1;
                    if depth > JSON_DEPTH_MAX {
                        return Err(self.error("nested too deep"));
                    }
                    self.at += 1;
                }
                Some(b'}' | b']') => {
                    depth -= 1;
                    self.at += 1;
                    if depth == 0 {
                        return Ok(Cow::Borrowed(&self.text[start..self.at]));
                    }
                }
                Some(b'"') => drop(self.string()?),
                Some(_) => self.at += 1,
                None => return Err(self.error("no closing bracket")),
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, HeaderError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("no opening quote"));
        }
        self.at += 1;
        let start = self.at;
        match self.run()? {
            b'"' => Ok(Cow::Borrowed(&self.text[start..self.at - 1])),
            _ => self.escaped_string(start).map(Cow::Owned),
        }
    }

    /// Runs to the next quote or backslash, steps behind it and says which it was.
    fn run(&mut self) -> Result<u8, HeaderError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        match find_either(rest, b'"', b'\\') {
            Some(length) => {
                self.at += length + 1;
                Ok(rest[length])
            }
            None => Err(self.error("no closing quote")),
        }
    }

    /// The text from `start` on, whose first escape's backslash was just passed.
    fn escaped_string(&mut self, start: usize) -> Result<String, HeaderError> {
        let mut out = String::with_capacity(192);
        out.push_str(&self.text[start..self.at - 1]);
        loop {
            self.escape(&mut out)?;
            let start = self.at;
            let stop = self.run()?;
            out.push_str(&self.text[start..self.at - 1]);
            if stop == b'"' {
                return Ok(out);
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), HeaderError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        // The separators of message properties: two of three escapes of a send.
        if let [b'u', b'0', b'0', b'0', digit @ (b'1' | b'2'), ..] = rest {
            self.at += 5;
            out.push(char::from(digit - b'0'));
            return Ok(());
        }
        let byte = *rest
            .first()
            .ok_or_else(|| self.error("no escaped character"))?;
        self.at += 1;
        let plain = match byte {
            b'"' | b'\\' | b'/' | b'\'' => char::from(byte),
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => self.unicode_escape()?,
            _ => return Err(self.error("unknown escape")),
        };
        out.push(plain);
        Ok(())
    }

    fn unicode_escape(&mut self) -> Result<char, HeaderError> {
        let high = self.hex4()?;
        if !(0xD800..0xDC00).contains(&high) {
            return Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        if !self.text.as_bytes()[self.at..].starts_with(b"\\u") {
            return Ok(char::REPLACEMENT_CHARACTER);
        }
        self.at += 2;
        let low = self.hex4()?;
        let joined = 0x10000 + ((high - 0xD800) << 10) + low.wrapping_sub(0xDC00);
        Ok(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&mut self) -> Result<u32, HeaderError> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .ok_or_else(|| self.error("no four hex digits"))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| self.error("no four hex digits"))
    }
}

/// Writes the header in Java's key order (alphabetical).
pub(super) fn encode(parts: &Parts<'_>, out: &mut BytesMut) {
    out.put_slice(b"{\"code\":");
    push_number(out, i64::from(parts.code));
    if !parts.ext.is_empty() {
        out.put_slice(b",\"extFields\":{");
        for (index, (key, value)) in parts.ext.iter().enumerate() {
            out.put_slice(if index == 0 { b"\"" } else { b",\"" });
            push_escaped(out, key);
            out.put_slice(b"\":\"");
            push_escaped(out, value);
            out.put_u8(b'"');
        }
        out.put_u8(b'}');
    }
    out.put_slice(b",\"flag\":");
    push_number(out, i64::from(parts.flag));
    out.put_slice(b",\"language\":\"");
    out.put_slice(parts.language.name().as_bytes());
    out.put_slice(b"\",\"opaque\":");
    push_number(out, i64::from(parts.opaque));
    if let Some(remark) = parts.remark {
        out.put_slice(b",\"remark\":\"");
        push_escaped(out, remark);
        out.put_u8(b'"');
    }
    out.put_slice(b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
    push_number(out, i64::from(parts.version));
    out.put_u8(b'}');
}
