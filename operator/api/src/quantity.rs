//! Sizes as Kubernetes writes them: `500Mi`, `20Gi`, `1T`.
//!
//! **Invariant:** a `ByteQuantity` keeps the user's text and its value, which are always the same.
//! Fractions (`1.5Gi`) are taken when they make whole bytes; exponents and milli-bytes are not.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, fmt};

/// What a quantity may look like, for the schema.
const PATTERN: &str = r"^[0-9]+(\.[0-9]{1,3})?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$";

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no size: write a number and a unit, such as 512Mi, 20Gi or 1Ti")]
pub struct QuantityError {
    /// What was written.
    pub text: String,
}

/// A number of bytes, kept as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ByteQuantity {
    text: String,
    bytes: u64,
}

impl ByteQuantity {
    /// Reads `text`.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let bytes = parse(text).ok_or_else(|| QuantityError {
            text: text.to_owned(),
        })?;
        Ok(Self {
            text: text.to_owned(),
            bytes,
        })
    }

    /// The value.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn parse(text: &str) -> Option<u64> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let unit: u64 = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "P" => 1_000_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        _ => return None,
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    let whole: u64 = digits_only(whole)?.parse().ok()?;
    let bytes = whole.checked_mul(unit)?;
    let Some(fraction) = fraction else {
        return Some(bytes);
    };
    let places = u32::try_from(digits_only(fraction)?.len()).ok()?;
    if places > 3 {
        return None;
    }
    let part: u64 = fraction.parse().ok()?;
    bytes.checked_add(part.checked_mul(unit)? / 10_u64.pow(places))
}

fn digits_only(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

impl TryFrom<String> for ByteQuantity {
    type Error = QuantityError;
    fn try_from(text: String) -> Result<Self, QuantityError> {
        Self::parse(&text)
    }
}

impl From<ByteQuantity> for String {
    fn from(quantity: ByteQuantity) -> Self {
        quantity.text
    }
}

impl fmt::Display for ByteQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl JsonSchema for ByteQuantity {
    fn schema_name() -> Cow<'static, str> {
        "ByteQuantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN, "maxLength": 24 })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_and_decimal_units_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("1k", 1_000),
            ("1Ki", 1_024),
            ("512Mi", 512 << 20),
            ("20Gi", 20 << 30),
            ("1.5Gi", 3 << 29),
            ("2T", 2_000_000_000_000),
        ] {
            assert_eq!(ByteQuantity::parse(text).unwrap().bytes(), bytes, "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_an_example() {
        for text in [
            "",
            "Gi",
            "20GB",
            "-1Gi",
            "1e3",
            "1.",
            ".5Gi",
            "1.2345Gi",
            "99999999Pi",
            "1 Gi",
        ] {
            let error = ByteQuantity::parse(text).unwrap_err();
            assert!(error.to_string().contains("20Gi"), "{text}");
        }
    }
}
