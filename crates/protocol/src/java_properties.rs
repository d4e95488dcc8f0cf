//! Java's `.properties` text, as configuration files and codes 25, 26, 318 and 319 carry it.
//!
//! Read as `java.util.Properties.load` reads it, except that the text is UTF-8 (Java takes each
//! byte for a Latin-1 character). Written one `key=value` a line, as `MixAll.properties2String`
//! does, but escaped, so that every value comes back as it was.
//!
//! **Invariant:** what [`write`] gives, [`parse`] and Java read back as the same pairs.

use std::{borrow::Cow, collections::BTreeMap, str::Chars};

use thiserror::Error;

/// Longest text taken.
pub const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One `key=value` of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Line on which the key stands, from 1.
    pub line: usize,
    /// The key, without escapes.
    pub key: String,
    /// The value, without escapes.
    pub value: String,
}

/// Why a text is no properties text. The sender's fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PropertiesError {
    /// Not UTF-8.
    #[error("properties text is not UTF-8 after byte {valid}")]
    Encoding {
        /// Bytes that are.
        valid: usize,
    },
    /// Longer than [`TEXT_BYTES_MAX`].
    #[error("properties text of {bytes} bytes is longer than {max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// `\u` without four hexadecimal digits, or half of a surrogate pair.
    #[error("line {line}: malformed \\uxxxx escape")]
    Unicode {
        /// Where.
        line: usize,
    },
}

/// Reads every pair, in order; of equal keys the last one counts in Java.
pub fn parse(text: &[u8]) -> Result<Vec<Property>, PropertiesError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(PropertiesError::TooLong {
            bytes: text.len(),
            max: TEXT_BYTES_MAX,
        });
    }
    let text = std::str::from_utf8(text).map_err(|fault| PropertiesError::Encoding {
        valid: fault.valid_up_to(),
    })?;
    let mut pairs = Vec::new();
    let mut lines = Lines::new(text);
    while let Some((line, logical)) = lines.next_logical() {
        let (key, value) = split(&logical);
        pairs.push(Property {
            line,
            key: unescape(key, line)?,
            value: unescape(value, line)?,
        });
    }
    Ok(pairs)
}

/// Reads the pairs as a map, the last of equal keys counting.
pub fn parse_map(text: &[u8]) -> Result<BTreeMap<String, String>, PropertiesError> {
    Ok(parse(text)?
        .into_iter()
        .map(|pair| (pair.key, pair.value))
        .collect())
}

/// Writes one `key=value` a line, in the order given.
pub fn write<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> String {
    let mut out = String::new();
    for (key, value) in pairs {
        escape(&mut out, key.as_ref(), true);
        out.push('=');
        escape(&mut out, value.as_ref(), false);
        out.push('\n');
    }
    out
}

const fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\u{c}')
}

/// Natural lines joined where one ends in an odd number of backslashes.
struct Lines<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> Lines<'a> {
    const fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            number: 0,
        }
    }

    fn next_natural(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let end = self.rest.find(['\n', '\r']).unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest
            .strip_prefix("\r\n")
            .or(rest.get(1..))
            .unwrap_or_default();
        Some(line.trim_start_matches(is_blank))
    }

    fn next_logical(&mut self) -> Option<(usize, Cow<'a, str>)> {
        loop {
            let line = self.next_natural()?;
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let number = self.number;
            let mut logical = Cow::Borrowed(line);
            while ends_open(&logical) {
                let joined = logical.to_mut();
                joined.pop();
                match self.next_natural() {
                    Some(more) => joined.push_str(more),
                    None => break,
                }
            }
            if logical.is_empty() {
                continue;
            }
            return Some((number, logical));
        }
    }
}

fn ends_open(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

/// Key up to the first unescaped `=`, `:` or blank; one separator with blanks around it falls away.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|character| {
        let stop = !escaped && (is_blank(character) || matches!(character, '=' | ':'));
        escaped = character == '\\' && !escaped;
        stop
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start_matches(is_blank))
}

fn unescape(text: &str, line: usize) -> Result<String, PropertiesError> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('u') => {
                out.push(unicode(&mut characters).ok_or(PropertiesError::Unicode { line })?);
            }
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(out)
}

fn unicode(characters: &mut Chars<'_>) -> Option<char> {
    let first = unit(characters)?;
    if !(0xD800..0xDC00).contains(&first) {
        return char::from_u32(first);
    }
    if characters.next() != Some('\\') || characters.next() != Some('u') {
        return None;
    }
    let second = unit(characters).filter(|unit| (0xDC00..0xE000).contains(unit))?;
    char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))
}

fn unit(characters: &mut Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |value, _| {
        Some(value << 4 | characters.next()?.to_digit(16)?)
    })
}

fn escape(out: &mut String, text: &str, is_key: bool) {
    let mut leading = true;
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' if is_key || leading => out.push_str("\\t"),
            '\u{c}' if is_key || leading => out.push_str("\\f"),
            ' ' if is_key || leading => out.push_str("\\ "),
            '=' | ':' if is_key => {
                out.push('\\');
                out.push(character);
            }
            '#' | '!' if is_key && leading => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push(character),
        }
        // A value keeps blanks after its first other character; a `=` at its start is safe, since
        // the separator before it is already there.
        leading = leading && is_blank(character);
    }
}

#[cfg(test)]
mod tests;
