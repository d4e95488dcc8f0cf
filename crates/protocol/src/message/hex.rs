//! Upper-case hexadecimal text of ids.
//!
//! **Invariant:** reading accepts either case, writing is upper case. No other alphabet.

/// Why a text is no id of the wanted form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HexError {
    /// The text has a length no id of this kind has.
    #[error("an id of {length} characters: expected {expected}")]
    Length {
        /// Length found.
        length: usize,
        /// Lengths that exist.
        expected: &'static str,
    },
    /// A character outside 0-9, a-f, A-F.
    #[error("no hexadecimal digit at character {at}")]
    Digit {
        /// Index of the byte.
        at: usize,
    },
    /// A number inside the id is out of range.
    #[error("{field} of the id is out of range")]
    Range {
        /// Which number.
        field: &'static str,
    },
}

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Appends `bytes` as upper-case text.
pub(super) fn write(bytes: &[u8], out: &mut String) {
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Reads `text` into `out`; both must have fitting lengths.
pub(super) fn read<'a>(text: &str, out: &'a mut [u8]) -> Result<&'a [u8], HexError> {
    let digit = |at: usize, byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(HexError::Digit { at }),
    };
    let mut count = 0;
    for (index, (pair, slot)) in text
        .as_bytes()
        .chunks_exact(2)
        .zip(out.iter_mut())
        .enumerate()
    {
        *slot = (digit(index * 2, pair[0])? << 4) | digit(index * 2 + 1, pair[1])?;
        count = index + 1;
    }
    Ok(&out[..count])
}
