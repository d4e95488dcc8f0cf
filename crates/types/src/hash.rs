//! The two hashes that are part of the protocol: Java's string hash and the masked CRC-32.

/// `String.hashCode()` of Java: `h = 31·h + unit` over the UTF-16 units, wrapping in 32 bits.
///
/// Used for the tags code of a consume queue entry and for the key index.
#[must_use]
pub fn java_hash(text: &str) -> i32 {
    if text.is_ascii() {
        return text
            .bytes()
            .fold(0i32, |h, b| h.wrapping_mul(31).wrapping_add(i32::from(b)));
    }
    text.encode_utf16().fold(0i32, |h, unit| {
        h.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

/// Clears the sign bit, as `UtilAll.crc32` does with the CRC-32 of a message body.
#[must_use]
pub fn crc32_masked(crc: u32) -> i32 {
    (crc & 0x7FFF_FFFF) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_hash_matches_values_printed_by_java() {
        assert_eq!(java_hash("TagA"), 2_598_919);
        assert_eq!(java_hash(""), 0);
        assert_eq!(java_hash("Aa"), java_hash("BB"));
    }

    #[test]
    fn java_hash_counts_utf16_units_not_bytes() {
        assert_eq!(java_hash("é"), 0xE9);
        assert_eq!(java_hash("😀"), 0xD83D * 31 + 0xDE00);
    }

    #[test]
    fn masked_crc_is_never_negative() {
        assert_eq!(crc32_masked(0xFFFF_FFFF), i32::MAX);
    }
}
