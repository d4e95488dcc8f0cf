//! Base64 with padding, as `java.util.Base64` writes and takes it: for the bit sets of batch acks.
//!
//! **Invariant:** decoding gives at most three bytes for four characters and refuses anything that
//! the basic alphabet with full padding cannot have written.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place <= chunk.len() {
                let six = word >> (18 - 6 * place) & 63;
                out.push(ALPHABET[six as usize].into());
            } else {
                out.push('=');
            }
        }
    }
    out
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|&&one| one == b'=').count();
    if padding > 2 {
        return None;
    }
    let digits = &text[..text.len() - padding];
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.chunks(4) {
        let mut word = 0;
        for &digit in chunk {
            word = word << 6 | six_bits(digit)?;
        }
        match chunk.len() {
            4 => out.extend_from_slice(&word.to_be_bytes()[1..]),
            3 => out.extend_from_slice(&(word << 6).to_be_bytes()[1..3]),
            2 => out.push((word >> 4) as u8),
            _ => return None,
        }
    }
    Some(out)
}

fn six_bits(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}
