//! ROCKETMQ binary headers (`RocketMQSerializable`).
//!
//! ```text
//! code i16 | language u8 | version i16 | opaque i32 | flag i32
//! | remarkLen i32 | remark | extLen i32 | { keyLen i16 | key | valLen i32 | val }*
//! ```
//! Codes beyond 16 bits do not survive: the pop codes 200 050 … arrive cut to 16 bits. They are
//! mapped back here, which Java does not do (its clients never use pop with binary headers).

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};

use super::{ExtFields, Header, HeaderError, Language, Serializer, header::Parts};

const POP_CODES: [i32; 8] = [
    200_050, 200_051, 200_052, 200_053, 200_054, 200_055, 200_056, 200_151,
];

pub(super) fn decode(bytes: &[u8]) -> Result<Header<'_>, HeaderError> {
    let mut rest = bytes;
    let code = i16::from_be_bytes(*take(&mut rest, "code")?);
    let [language] = *take(&mut rest, "language")?;
    let version = i16::from_be_bytes(*take(&mut rest, "version")?);
    let opaque = i32::from_be_bytes(*take(&mut rest, "opaque")?);
    let flag = i32::from_be_bytes(*take(&mut rest, "flag")?);
    let remark = take_long(&mut rest, "remark")?;
    let mut fields = take_long(&mut rest, "ext fields")?;
    let mut ext = ExtFields::with_capacity(20);
    while !fields.is_empty() {
        let key = take_short(&mut fields, "ext key")?;
        let value = take_long(&mut fields, "ext value")?;
        if !key.is_empty() {
            ext.push(text(key), text(value));
        }
    }
    Ok(Header {
        code: widen(code),
        flag,
        opaque,
        language: Language::from_code(i64::from(language)),
        version: i32::from(version),
        remark: (!remark.is_empty()).then(|| text(remark)),
        ext,
        serializer: Serializer::Binary,
    })
}

fn widen(code: i16) -> i32 {
    POP_CODES
        .into_iter()
        .find(|full| *full as i16 == code)
        .unwrap_or(i32::from(code))
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn take<'a, const N: usize>(
    rest: &mut &'a [u8],
    part: &'static str,
) -> Result<&'a [u8; N], HeaderError> {
    let (head, tail) = rest
        .split_first_chunk::<N>()
        .ok_or(HeaderError::Truncated { part })?;
    *rest = tail;
    Ok(head)
}

fn take_bytes<'a>(
    rest: &mut &'a [u8],
    length: i32,
    part: &'static str,
) -> Result<&'a [u8], HeaderError> {
    let count =
        usize::try_from(length).map_err(|_| HeaderError::NegativeLength { part, length })?;
    let (head, tail) = rest
        .split_at_checked(count)
        .ok_or(HeaderError::Truncated { part })?;
    *rest = tail;
    Ok(head)
}

fn take_long<'a>(rest: &mut &'a [u8], part: &'static str) -> Result<&'a [u8], HeaderError> {
    let length = i32::from_be_bytes(*take(rest, part)?);
    take_bytes(rest, length, part)
}

fn take_short<'a>(rest: &mut &'a [u8], part: &'static str) -> Result<&'a [u8], HeaderError> {
    let length = i16::from_be_bytes(*take(rest, part)?);
    take_bytes(rest, i32::from(length), part)
}

/// Whether the parts can be written without cutting a length or the code.
pub(super) fn fits(parts: &Parts<'_>) -> bool {
    i16::try_from(parts.code).is_ok()
        && i16::try_from(parts.version).is_ok()
        && parts.ext.iter().all(|(key, value)| {
            i16::try_from(key.len()).is_ok() && i32::try_from(value.len()).is_ok()
        })
}

/// Writes the header; call only where [`fits`] says yes.
pub(super) fn encode(parts: &Parts<'_>, out: &mut BytesMut) {
    out.put_i16(parts.code as i16);
    out.put_u8(parts.language as u8);
    out.put_i16(parts.version as i16);
    out.put_i32(parts.opaque);
    out.put_i32(parts.flag);
    let remark = parts.remark.unwrap_or_default();
    out.put_i32(remark.len() as i32);
    out.put_slice(remark.as_bytes());
    let ext_bytes: usize = parts
        .ext
        .iter()
        .map(|(key, value)| 2 + key.len() + 4 + value.len())
        .sum();
    out.put_i32(ext_bytes as i32);
    for (key, value) in parts.ext.iter() {
        out.put_i16(key.len() as i16);
        out.put_slice(key.as_bytes());
        out.put_i32(value.len() as i32);
        out.put_slice(value.as_bytes());
    }
}
