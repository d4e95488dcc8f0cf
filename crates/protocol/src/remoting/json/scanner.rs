//! Steps through the text of a JSON header: members, plain and escaped texts, numbers.
//!
//! **Invariant:** never beyond the text, never back by more than one escape, no recursion. Every step has a short way
//! for text without white space and escapes, which is inlined, and a general way, which is not.

use std::borrow::Cow;

use rmq_types::limits::JSON_DEPTH_MAX;

use crate::{remoting::HeaderError, scan::find_either};

/// Length of a message's properties with their separators as escapes.
const ESCAPED_USUAL: usize = 192;
/// As many digits always fit into 64 bits, and every 32-bit number has fewer.
const DIGITS_MAX: usize = 12;

const LETTERS: [&str; 26] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s",
    "t", "u", "v", "w", "x", "y", "z",
];

/// See the module.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    #[cold]
    fn error(&self, problem: &'static str) -> HeaderError {
        HeaderError::Json {
            problem,
            at: self.at,
        }
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The byte behind the next one: the first of a key.
    #[inline]
    pub(super) fn byte_behind(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at + 1).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Steps over `bytes`, whole characters, if they stand right here.
    #[inline]
    pub(super) fn eat_all(&mut self, bytes: &[u8]) -> bool {
        let found = self.rest().starts_with(bytes);
        if found {
            self.at += bytes.len();
        }
        found
    }

    #[inline]
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    /// Steps over an opening brace.
    #[inline]
    pub(super) fn open(&mut self) -> Result<(), HeaderError> {
        self.skip_space();
        if self.eat(b'{') {
            return Ok(());
        }
        Err(self.error("no opening brace"))
    }

    /// Steps over the closing brace of an empty object.
    #[inline]
    pub(super) fn is_closed(&mut self) -> bool {
        self.skip_space();
        self.eat(b'}')
    }

    /// Steps over what follows a member: true if another one comes, false at the object's end.
    #[inline]
    pub(super) fn has_more(&mut self) -> Result<bool, HeaderError> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(b'}') => {
                self.at += 1;
                Ok(false)
            }
            _ => self.has_more_behind_space(),
        }
    }

    #[cold]
    fn has_more_behind_space(&mut self) -> Result<bool, HeaderError> {
        self.skip_space();
        if self.eat(b',') {
            return Ok(true);
        }
        if self.eat(b'}') {
            return Ok(false);
        }
        Err(self.error("no comma or closing brace"))
    }

    /// Nothing but space may be left.
    pub(super) fn end(&mut self) -> Result<(), HeaderError> {
        self.skip_space();
        if self.at == self.text.len() {
            return Ok(());
        }
        Err(self.error("text behind the object"))
    }

    /// A key of one letter and its colon, if they stand right here: every field of a short send.
    #[inline]
    pub(super) fn letter_key(&mut self) -> Option<&'static str> {
        let [b'"', letter, b'"', b':'] = self.text.as_bytes().get(self.at..)?.first_chunk()? else {
            return None;
        };
        let key = LETTERS.get(usize::from(letter.wrapping_sub(b'a')))?;
        self.at += 4;
        Some(key)
    }

    /// Any key and its colon.
    pub(super) fn key(&mut self) -> Result<Cow<'a, str>, HeaderError> {
        let key = if let Some(key) = self.plain() {
            Cow::Borrowed(key)
        } else {
            self.skip_space();
            self.string()?
        };
        if self.eat(b':') {
            return Ok(key);
        }
        self.skip_space();
        if self.eat(b':') {
            return Ok(key);
        }
        Err(self.error("no colon"))
    }

    /// The text between two quotes, if it starts right here and has no escape; else nothing moves.
    #[inline]
    pub(super) fn plain(&mut self) -> Option<&'a str> {
        let [b'"', rest @ ..] = self.text.as_bytes().get(self.at..)? else {
            return None;
        };
        let length = find_either(rest, b'"', b'\\')?;
        if rest.get(length) != Some(&b'"') {
            return None;
        }
        let text = self.text.get(self.at + 1..self.at + 1 + length)?;
        self.at += length + 2;
        Some(text)
    }

    /// Steps over a null that is a whole value.
    #[inline]
    pub(super) fn is_null(&mut self) -> bool {
        self.skip_space();
        self.eat_all(b"null")
    }

    /// A number; as text it counts too, and null is 0.
    #[inline]
    pub(super) fn int(&mut self) -> Result<i32, HeaderError> {
        let rest = self.rest();
        let (mut value, mut count) = (0_i64, 0);
        for byte in rest.iter().take(DIGITS_MAX) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value * 10 + i64::from(digit);
            count += 1;
        }
        let is_whole = count > 0 && matches!(rest.get(count), Some(b',' | b'}'));
        if is_whole && let Ok(value) = i32::try_from(value) {
            self.at += count;
            return Ok(value);
        }
        self.other_int()
    }

    #[cold]
    fn other_int(&mut self) -> Result<i32, HeaderError> {
        self.skip_space();
        let start = self.at;
        let value = self.value()?.unwrap_or(Cow::Borrowed("0"));
        value.parse().map_err(|_| HeaderError::Json {
            problem: "no 32-bit number",
            at: start,
        })
    }

    /// Steps over a value.
    pub(super) fn skip_value(&mut self) -> Result<(), HeaderError> {
        if self.plain().is_some() {
            return Ok(());
        }
        self.value().map(drop)
    }

    /// A text, number or boolean as text; null as `None`; an object or array as its own text.
    pub(super) fn value(&mut self) -> Result<Option<Cow<'a, str>>, HeaderError> {
        self.skip_space();
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
        if !self.eat(b'"') {
            return Err(self.error("no opening quote"));
        }
        let rest = self.rest();
        let length = self.length(rest)?;
        if rest.get(length) == Some(&b'"') {
            let start = self.at;
            self.at += length + 1;
            return Ok(Cow::Borrowed(&self.text[start..start + length]));
        }
        self.escaped(length).map(Cow::Owned)
    }

    /// Bytes up to the next quote or backslash.
    #[inline]
    fn length(&self, rest: &[u8]) -> Result<usize, HeaderError> {
        find_either(rest, b'"', b'\\').ok_or_else(|| self.error("no closing quote"))
    }

    /// A text from here on, whose first escape is `length` bytes away.
    fn escaped(&mut self, mut length: usize) -> Result<String, HeaderError> {
        let mut rest = self.rest();
        // What an escape stands for is never longer than the escape.
        let mut out = Vec::with_capacity(rest.len().min(ESCAPED_USUAL));
        loop {
            let (plain, tail) = rest.split_at(length);
            out.extend_from_slice(plain);
            match tail {
                // The separators of message properties: two of three escapes of a send.
                [
                    b'\\',
                    b'u',
                    b'0',
                    b'0',
                    b'0',
                    digit @ (b'1' | b'2'),
                    more @ ..,
                ] => {
                    out.push(digit - b'0');
                    rest = more;
                }
                [b'\\', more @ ..] => {
                    self.at = self.text.len() - more.len();
                    let character = self.other_escape()?;
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = self.rest();
                }
                _ => {
                    self.at = self.text.len() - tail.len() + 1;
                    return String::from_utf8(out).map_err(|_| self.error("no text"));
                }
            }
            length = self.length(rest)?;
        }
    }

    fn other_escape(&mut self) -> Result<char, HeaderError> {
        let Some(byte) = self.peek() else {
            return Err(self.error("no escaped character"));
        };
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' | b'\'' => char::from(byte),
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => self.unicode_escape()?,
            _ => return Err(self.error("unknown escape")),
        })
    }

    fn unicode_escape(&mut self) -> Result<char, HeaderError> {
        let high = self.hex4()?;
        if !(0xD800..0xDC00).contains(&high) {
            return Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let behind = self.at;
        if self.eat_all(b"\\u") {
            let low = self.hex4()?;
            if (0xDC00..0xE000).contains(&low) {
                let joined = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                return Ok(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // Half a pair, and a character of its own behind it.
            self.at = behind;
        }
        Ok(char::REPLACEMENT_CHARACTER)
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
