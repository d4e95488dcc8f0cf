//! Writing to standard output: tables for people, JSON lines for scripts.
//!
//! **Invariant:** no byte of a message or name reaches a terminal as a control character, and a
//! reader that went away (`… | head`) is no error.

use std::{
    fmt::Write as _,
    io::{self, ErrorKind, Write as _},
};

use anyhow::Context as _;
use clap::ValueEnum;
use serde::Serialize;

use crate::text_table;

/// In which form to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people
    Table,
    /// For scripts
    Json,
}

impl Output {
    /// Writes one answer, as text or as one line of JSON.
    pub(super) fn answer<V: Serialize>(
        self,
        view: &V,
        text: impl FnOnce(&V) -> String,
    ) -> anyhow::Result<()> {
        let text = match self {
            Self::Table => text(view),
            Self::Json => json_line(view)?,
        };
        write_line(&text).map(|_| ())
    }

    /// Says something to a person, beside the answer.
    pub(super) fn remark(self, text: &str) {
        if self == Self::Table {
            eprintln!("{text}");
        }
    }
}

/// One line of JSON.
pub(super) fn json_line<V: Serialize>(view: &V) -> anyhow::Result<String> {
    serde_json::to_string(view).context("cannot write JSON")
}

/// Writes a line at once; false if nobody reads any more.
pub(super) fn write_line(text: &str) -> anyhow::Result<bool> {
    write_bytes(format!("{}\n", text.trim_end_matches('\n')).as_bytes())
}

/// Writes bytes at once; false if nobody reads any more.
pub(super) fn write_bytes(bytes: &[u8]) -> anyhow::Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}

/// A table with its heads in capitals, without lines.
pub(super) fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    text_table::render(
        &head,
        rows.into_iter().map(|row| row.map(|cell| visible(&cell))),
    )
}

/// Text without control characters: they are written as escapes.
pub(super) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Bytes as text for a terminal: bytes that are no UTF-8 are written as `\xNN`.
pub(super) fn visible_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&visible(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// What there is, or nothing: an absent value is an empty cell.
pub(super) fn cell<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_broken_text_are_escaped() {
        assert_eq!(visible("a\x1b[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(visible_bytes(b"h\xc3\xa4\xff\0"), "hä\\xff\\u{0}");
    }

    #[test]
    fn columns_are_aligned_and_empty_cells_are_dashes() {
        let rows = [
            ["a".to_owned(), String::new()],
            ["long name".to_owned(), "2".to_owned()],
        ];
        assert_eq!(
            table(["NAME", "N"], rows),
            "NAME       N\na          -\nlong name  2"
        );
    }
}
