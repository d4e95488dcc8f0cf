//! JSON headers: read in one pass that borrows what it can, and written in Java's key order.
//!
//! Taken as fastjson takes them: white space, any key order, unknown keys, numbers and booleans as
//! field values, a null field value (dropped), a language as name or number. **Invariant:** the
//! short ways for what clients write give what the general way gives; a text without escapes is
//! never copied.

mod scanner;

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};

use super::{
    ExtFields, Header, HeaderError, Language, Serializer,
    header::Parts,
    response::{push_escaped, push_number},
};
use scanner::Scanner;

/// Fields of a send.
const FIELDS_USUAL: usize = 16;

/// Keys of the header itself.
#[derive(Clone, Copy)]
enum Key {
    Code,
    Flag,
    Opaque,
    Version,
    Language,
    Remark,
    ExtFields,
    Unknown,
}

pub(super) fn decode(text: &str) -> Result<Header<'_>, HeaderError> {
    let mut scan = Scanner::new(text);
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
    scan.open()?;
    let mut more = !scan.is_closed();
    while more {
        match key(&mut scan)? {
            Key::Code => header.code = scan.int()?,
            Key::Flag => header.flag = scan.int()?,
            Key::Opaque => header.opaque = scan.int()?,
            Key::Version => header.version = scan.int()?,
            Key::Language => header.language = language(&mut scan)?,
            Key::Remark => header.remark = scan.value()?,
            Key::ExtFields => header.ext = ext_fields(&mut scan)?,
            Key::Unknown => scan.skip_value()?,
        }
        more = scan.has_more()?;
    }
    scan.end()?;
    Ok(header)
}

/// Steps over a key and its colon.
#[inline]
fn key(scan: &mut Scanner<'_>) -> Result<Key, HeaderError> {
    let known = match scan.byte_behind() {
        Some(b'c') if scan.eat_all(b"\"code\":") => Key::Code,
        Some(b'e') if scan.eat_all(b"\"extFields\":") => Key::ExtFields,
        Some(b'f') if scan.eat_all(b"\"flag\":") => Key::Flag,
        Some(b'l') if scan.eat_all(b"\"language\":") => Key::Language,
        Some(b'o') if scan.eat_all(b"\"opaque\":") => Key::Opaque,
        Some(b'v') if scan.eat_all(b"\"version\":") => Key::Version,
        _ => return other_key(scan),
    };
    Ok(known)
}

fn other_key(scan: &mut Scanner<'_>) -> Result<Key, HeaderError> {
    let key = scan.key()?;
    Ok(match key.as_ref() {
        "code" => Key::Code,
        "flag" => Key::Flag,
        "opaque" => Key::Opaque,
        "version" => Key::Version,
        "language" => Key::Language,
        "remark" => Key::Remark,
        "extFields" => Key::ExtFields,
        _ => Key::Unknown,
    })
}

#[inline]
fn language(scan: &mut Scanner<'_>) -> Result<Language, HeaderError> {
    if scan.eat_all(b"\"JAVA\"") {
        return Ok(Language::Java);
    }
    let text = scan.value()?;
    let Some(text) = text.as_deref() else {
        return Ok(Language::Other);
    };
    Ok(text
        .parse()
        .map_or_else(|_| Language::from_name(text), Language::from_code))
}

#[inline]
fn ext_fields<'a>(scan: &mut Scanner<'a>) -> Result<ExtFields<'a>, HeaderError> {
    if scan.is_null() {
        return Ok(ExtFields::new());
    }
    scan.open()?;
    let mut ext = ExtFields::with_capacity(FIELDS_USUAL);
    let mut more = !scan.is_closed();
    while more {
        let key = match scan.letter_key() {
            Some(letter) => Cow::Borrowed(letter),
            None => scan.key()?,
        };
        if let Some(text) = scan.plain() {
            ext.push(key, text);
        } else if let Some(value) = scan.value()? {
            ext.push(key, value);
        }
        more = scan.has_more()?;
    }
    Ok(ext)
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
