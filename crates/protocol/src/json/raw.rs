//! The two forms of fastjson that strict JSON lacks, for answers that Java's tools must read.
//!
//! **Invariant:** only keys that are numbers or objects *by type* are written unquoted; text from
//! a peer always stays inside quotes.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};

/// Appends `{key:value,…}` where each key is an object: `{{"topic":"T"}:{…}}`.
pub(crate) fn object_map<'m, K, V>(
    out: &mut Vec<u8>,
    entries: impl IntoIterator<Item = (&'m K, &'m V)>,
) where
    K: Serialize + 'm,
    V: Serialize + 'm,
{
    out.push(b'{');
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend(super::to_vec(key));
        out.push(b':');
        out.extend(super::to_vec(value));
    }
    out.push(b'}');
}

/// JSON whose integer map keys have no quotes, as Java writes them for clients before 4.9.4.
pub(crate) fn without_key_quotes<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    let mut json = serde_json::Serializer::with_formatter(&mut out, BareKeys::default());
    value
        .serialize(&mut json)
        .expect("bodies have string or integer map keys");
    out
}

/// serde_json writes an integer key as begin_string, the number, end_string; a text key as
/// begin_string, fragments, end_string. The opening quote waits until it is clear which comes.
#[derive(Default)]
struct BareKeys {
    compact: CompactFormatter,
    key: Key,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Key {
    /// Not in a key, or in one whose quote is written.
    #[default]
    None,
    /// A key begins; its first part is not known yet.
    Begun,
    /// The quote of this key is held back.
    Pending,
    /// The key is a number: no quotes.
    Bare,
}

impl BareKeys {
    fn open_pending<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.key == Key::Pending {
            self.key = Key::None;
            writer.write_all(b"\"")?;
        }
        Ok(())
    }

    fn number(&mut self) {
        if self.key == Key::Pending {
            self.key = Key::Bare;
        }
    }
}

impl Formatter for BareKeys {
    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.key = Key::Begun;
        self.compact.begin_object_key(writer, first)
    }

    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.key == Key::Begun {
            self.key = Key::Pending;
            return Ok(());
        }
        writer.write_all(b"\"")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.open_pending(writer)?;
        writer.write_all(fragment.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        escape: serde_json::ser::CharEscape,
    ) -> io::Result<()> {
        self.open_pending(writer)?;
        self.compact.write_char_escape(writer, escape)
    }

    fn end_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.key == Key::Bare {
            self.key = Key::None;
            return Ok(());
        }
        self.open_pending(writer)?;
        writer.write_all(b"\"")
    }

    fn write_i32<W: ?Sized + Write>(&mut self, writer: &mut W, value: i32) -> io::Result<()> {
        self.number();
        self.compact.write_i32(writer, value)
    }

    fn write_i64<W: ?Sized + Write>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        self.number();
        self.compact.write_i64(writer, value)
    }

    fn write_u32<W: ?Sized + Write>(&mut self, writer: &mut W, value: u32) -> io::Result<()> {
        self.number();
        self.compact.write_u32(writer, value)
    }

    fn write_u64<W: ?Sized + Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        self.number();
        self.compact.write_u64(writer, value)
    }
}
