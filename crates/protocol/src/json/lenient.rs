//! One pass over fastjson text that makes it strict JSON; text that is strict already is borrowed.
//!
//! **Invariant:** no recursion, one `u64` of bits for the open containers, output at most twice the
//! input (and what references add). Numbers and string contents are copied unread: serde_json checks them afterwards.

use std::borrow::Cow;

use rmq_types::limits::JSON_DEPTH_MAX;

use super::{
    BYTES_MAX, BYTES_PER_CONTAINER, CONTAINERS_FREE, JsonError, SyntaxFault, WORD_BYTES_MAX,
    reference,
};

const _: () = assert!(JSON_DEPTH_MAX <= 64, "open containers are bits of one u64");

/// Turns fastjson text into strict JSON: unquoted numeric keys and object keys become strings,
/// `null` members and elements are dropped, references are replaced by copies.
pub fn lenient(text: &[u8]) -> Result<Cow<'_, [u8]>, JsonError> {
    if text.len() > BYTES_MAX {
        return Err(JsonError::TooLong {
            bytes: text.len(),
            max: BYTES_MAX,
        });
    }
    let mut pass = Pass::new(text);
    pass.run()?;
    let reference = pass.reference;
    let strict = pass.finish();
    match reference {
        Some(at) => reference::resolve(&strict, at).map(Cow::Owned),
        None => Ok(strict),
    }
}

#[derive(Clone, Copy)]
enum Expect {
    Value,
    /// A value, or the end of an array that has just begun.
    FirstElement,
    Key,
    /// A key, or the end of an object that has just begun.
    FirstKey,
    Colon,
    /// `,` or the end of the container.
    Separator,
    End,
}

/// Where the output stood before a member, to take the member back.
#[derive(Clone, Copy, Default)]
struct Mark {
    input: usize,
    output: usize,
    from: usize,
}

struct Pass<'a> {
    text: &'a [u8],
    at: usize,
    /// Input before `from` stands in `out` already (or was left out).
    from: usize,
    out: Vec<u8>,
    /// Bit per open container, the innermost lowest: 1 for an object.
    objects: u64,
    /// Bit per open container: 1 once it has a member in the output.
    filled: u64,
    depth: usize,
    containers_left: usize,
    /// Depth outside the object that is being read as a key.
    key_at_depth: Option<usize>,
    /// Where the first `$ref` stands.
    reference: Option<usize>,
    /// Mark of the member being read.
    mark: Mark,
    /// Mark of the member whose key is the object being read.
    outer_mark: Mark,
}

impl<'a> Pass<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            from: 0,
            out: Vec::new(),
            objects: 0,
            filled: 0,
            depth: 0,
            containers_left: containers_max(text.len()),
            key_at_depth: None,
            reference: None,
            mark: Mark::default(),
            outer_mark: Mark::default(),
        }
    }

    fn finish(mut self) -> Cow<'a, [u8]> {
        if self.from == 0 && self.out.is_empty() {
            return Cow::Borrowed(self.text);
        }
        self.flush(self.text.len());
        Cow::Owned(self.out)
    }

    fn run(&mut self) -> Result<(), JsonError> {
        let mut expect = Expect::Value;
        loop {
            self.skip_space();
            let Some(&byte) = self.text.get(self.at) else {
                return match expect {
                    Expect::End => Ok(()),
                    _ => Err(self.fault(SyntaxFault::End)),
                };
            };
            expect = match (expect, byte) {
                (Expect::End, _) => return Err(self.fault(SyntaxFault::Trailing)),
                (Expect::FirstElement, b']') | (Expect::FirstKey, b'}') => self.close(),
                (Expect::FirstElement, _) => {
                    self.set_mark(self.at);
                    self.value(byte)?
                }
                (Expect::Value, _) => self.value(byte)?,
                (Expect::FirstKey, _) => {
                    self.set_mark(self.at);
                    self.key(byte)?
                }
                (Expect::Key, _) => self.key(byte)?,
                (Expect::Colon, b':') => {
                    self.at += 1;
                    Expect::Value
                }
                (Expect::Colon, _) => return Err(self.fault(SyntaxFault::Colon)),
                (Expect::Separator, b',') => self.comma(),
                (Expect::Separator, b'}') if self.in_object() => self.close(),
                (Expect::Separator, b']') if !self.in_object() => self.close(),
                (Expect::Separator, _) => return Err(self.fault(SyntaxFault::Separator)),
            };
        }
    }

    fn value(&mut self, byte: u8) -> Result<Expect, JsonError> {
        match byte {
            b'{' => self.open(true),
            b'[' => self.open(false),
            b'"' => {
                self.string()?;
                Ok(self.value_done())
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                let start = self.at;
                self.word()?;
                if self.text.get(start..self.at) == Some(b"null") && self.depth > 0 {
                    return Ok(self.drop_member());
                }
                Ok(self.value_done())
            }
            _ => Err(self.fault(SyntaxFault::Value)),
        }
    }

    fn key(&mut self, byte: u8) -> Result<Expect, JsonError> {
        let start = self.at;
        match byte {
            b'"' => {
                self.string()?;
                if self.text.get(start..self.at) == Some(b"\"$ref\"") {
                    if self.key_at_depth.is_some() {
                        return Err(JsonError::Reference { at: start });
                    }
                    self.reference.get_or_insert(start);
                }
                Ok(Expect::Colon)
            }
            b'-' | b'0'..=b'9' => {
                self.word()?;
                let digits = self.text.get(start + 1..self.at).unwrap_or_default();
                let whole = digits.iter().all(u8::is_ascii_digit);
                if !whole || (byte == b'-' && digits.is_empty()) {
                    return Err(JsonError::Syntax {
                        at: start,
                        fault: SyntaxFault::Key,
                    });
                }
                self.flush(start);
                self.put_quote();
                self.flush(self.at);
                self.put_quote();
                Ok(Expect::Colon)
            }
            b'{' => {
                if self.key_at_depth.is_some() {
                    return Err(self.fault(SyntaxFault::NestedKey));
                }
                self.flush(start);
                self.put_quote();
                self.key_at_depth = Some(self.depth);
                self.outer_mark = self.mark;
                self.open(true)
            }
            _ => Err(self.fault(SyntaxFault::Key)),
        }
    }

    fn open(&mut self, object: bool) -> Result<Expect, JsonError> {
        if self.depth >= JSON_DEPTH_MAX {
            return Err(JsonError::TooDeep {
                at: self.at,
                max: JSON_DEPTH_MAX,
            });
        }
        self.containers_left = self
            .containers_left
            .checked_sub(1)
            .ok_or(JsonError::TooMany {
                bytes: self.text.len(),
                max: containers_max(self.text.len()),
            })?;
        self.depth += 1;
        self.objects = (self.objects << 1) | u64::from(object);
        self.filled <<= 1;
        self.at += 1;
        Ok(if object {
            Expect::FirstKey
        } else {
            Expect::FirstElement
        })
    }

    fn close(&mut self) -> Expect {
        self.at += 1;
        self.depth -= 1;
        self.objects >>= 1;
        self.filled >>= 1;
        if self.key_at_depth == Some(self.depth) {
            self.flush(self.at);
            self.key_at_depth = None;
            self.mark = self.outer_mark;
            self.put_quote();
            return Expect::Colon;
        }
        self.value_done()
    }

    fn value_done(&mut self) -> Expect {
        if self.depth == 0 {
            return Expect::End;
        }
        self.filled |= 1;
        Expect::Separator
    }

    fn comma(&mut self) -> Expect {
        let comma = self.at;
        self.at += 1;
        if self.filled & 1 == 1 {
            self.set_mark(comma);
        } else {
            // Everything before was dropped: the comma goes as well.
            self.flush(comma);
            self.from = self.at;
            self.set_mark(self.at);
        }
        if self.in_object() {
            Expect::Key
        } else {
            Expect::Value
        }
    }

    /// Takes back the member or element whose value turned out to be `null`.
    fn drop_member(&mut self) -> Expect {
        self.out.truncate(self.mark.output);
        self.from = self.mark.from;
        self.flush(self.mark.input);
        self.from = self.at;
        Expect::Separator
    }

    fn set_mark(&mut self, input: usize) {
        self.mark = Mark {
            input,
            output: self.out.len(),
            from: self.from,
        };
    }

    /// Copies the input up to `end`, escaped while an object key is being read.
    fn flush(&mut self, end: usize) {
        let part = self.text.get(self.from..end).unwrap_or_default();
        if self.key_at_depth.is_none() {
            self.out.extend_from_slice(part);
        } else {
            for &byte in part {
                if matches!(byte, b'"' | b'\\') {
                    self.out.push(b'\\');
                }
                // Line breaks between the parts of a key may not stand in a string.
                self.out.push(if byte < b' ' { b' ' } else { byte });
            }
        }
        self.from = end;
    }

    fn put_quote(&mut self) {
        if self.key_at_depth.is_some() {
            self.out.push(b'\\');
        }
        self.out.push(b'"');
    }

    fn string(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        Err(JsonError::Syntax {
            at: start,
            fault: SyntaxFault::End,
        })
    }

    fn word(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while self
            .text
            .get(self.at)
            .is_some_and(|&byte| is_word_byte(byte))
        {
            self.at += 1;
            if self.at - start > WORD_BYTES_MAX {
                return Err(JsonError::WordTooLong {
                    at: start,
                    max: WORD_BYTES_MAX,
                });
            }
        }
        Ok(())
    }

    fn skip_space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn fault(&self, fault: SyntaxFault) -> JsonError {
        JsonError::Syntax { at: self.at, fault }
    }
}

const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

const fn containers_max(bytes: usize) -> usize {
    CONTAINERS_FREE + bytes / BYTES_PER_CONTAINER
}
