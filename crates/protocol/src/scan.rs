//! Finding one of two bytes in short text, eight bytes at a time.
//!
//! **Invariant:** the answer is that of `position` on the bytes; nothing outside of them is read.
//! Header keys and values are mostly shorter than what a call into a vector routine costs.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Where `first` or `second` stands first.
#[inline]
pub(crate) fn find_either(bytes: &[u8], first: u8, second: u8) -> Option<usize> {
    // Most are found in the first word: only that is worth being inlined.
    let Some((word, further)) = bytes.split_first_chunk::<8>() else {
        return find_further(bytes, first, second);
    };
    let found = matches(*word, first, second);
    if found != 0 {
        return Some((found.trailing_zeros() / 8) as usize);
    }
    find_further(further, first, second).map(|at| at + 8)
}

/// The high bit of every byte of `word` that is one of the two; above the lowest some may be wrong.
#[inline]
fn matches(word: [u8; 8], first: u8, second: u8) -> u64 {
    let word = u64::from_le_bytes(word);
    zero_bytes(word ^ (ONES * u64::from(first))) | zero_bytes(word ^ (ONES * u64::from(second)))
}

#[inline(never)]
fn find_further(bytes: &[u8], first: u8, second: u8) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = matches(*word, first, second);
        if found != 0 {
            return Some(index * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let at = rest
        .iter()
        .position(|byte| *byte == first || *byte == second)?;
    Some(words.len() * 8 + at)
}

/// Where `wanted` stands first.
#[inline]
pub(crate) fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    find_either(bytes, wanted, wanted)
}

/// The high bit of every zero byte; a bit above the lowest one may be wrong.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_a_plain_search_finds(
            bytes in proptest::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..64),
            first in 0u8..4,
            second in any::<u8>(),
        ) {
            let plain = bytes.iter().position(|byte| *byte == first || *byte == second);
            prop_assert_eq!(find_either(&bytes, first, second), plain);
            let plain = bytes.iter().position(|byte| *byte == first);
            prop_assert_eq!(find(&bytes, first), plain);
        }
    }
}
