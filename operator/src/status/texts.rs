//! Figures as people read them.
//!
//! **Invariant:** a figure that moves all the time changes its text seldom.

/// A count, rounded up to two digits.
#[must_use]
pub const fn rounded(count: i64) -> i64 {
    if count <= 0 {
        return 0;
    }
    let mut unit = 1;
    while count / unit >= 100 {
        unit *= 10;
    }
    let up = count.saturating_add(unit - 1) / unit;
    up.saturating_mul(unit)
}

/// Bytes, rounded up to a power of two; less than 64 KiB is nothing: it is on its way.
#[must_use]
pub const fn rounded_bytes(bytes: i64) -> i64 {
    if bytes < 64 << 10 {
        return 0;
    }
    let mut size = 64 << 10;
    while size < bytes && size < i64::MAX / 2 {
        size *= 2;
    }
    size
}

/// Bytes with a unit of Kubernetes.
pub(super) fn sized(bytes: i64) -> String {
    const UNITS: [&str; 5] = ["", "Ki", "Mi", "Gi", "Ti"];
    let mut value = bytes.max(0);
    let mut unit = 0;
    while value >= 1024 && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value}{}", UNITS[unit])
}

/// At most `most` characters of a message.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_keep_two_digits_and_go_up() {
        for (count, said) in [
            (0, 0),
            (-3, 0),
            (7, 7),
            (99, 99),
            (100, 100),
            (101, 110),
            (12_345, 13_000),
        ] {
            assert_eq!(rounded(count), said);
        }
    }

    #[test]
    fn bytes_are_powers_of_two_and_little_is_nothing() {
        assert_eq!(rounded_bytes(65_535), 0);
        assert_eq!(rounded_bytes(65_536), 65_536);
        assert_eq!(rounded_bytes(65_537), 131_072);
        assert_eq!(sized(rounded_bytes(3_000_000)), "4Mi");
        assert_eq!(sized(0), "0");
    }

    #[test]
    fn a_long_message_is_cut_with_a_sign_of_it() {
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("abcd", 3), "ab…");
    }

    proptest! {
        #[test]
        fn a_rounded_count_is_stable_and_never_less(count in 0_i64..1_000_000_000_000) {
            prop_assert!(rounded(count) >= count);
            prop_assert!(rounded(count) - count <= count / 10 + 1);
            prop_assert_eq!(rounded(rounded(count)), rounded(count));
            prop_assert_eq!(rounded_bytes(rounded_bytes(count)), rounded_bytes(count));
        }

        #[test]
        fn no_count_overflows(count in any::<i64>()) {
            prop_assert!(rounded(count) >= 0 && rounded_bytes(count) >= 0);
        }
    }
}
