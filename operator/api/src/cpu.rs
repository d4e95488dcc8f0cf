//! Amounts of processor as Kubernetes writes them: `2`, `0.5`, `500m`.
//!
//! **Invariant:** a `CpuQuantity` keeps the user's text and its value in thousandths, which are
//! always the same. A bare whole number in YAML is taken too, as `kubectl` takes it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::{borrow::Cow, fmt};

/// What an amount may look like, for the schema.
const PATTERN: &str = r"^([0-9]{1,6}(\.[0-9]{1,3})?|[0-9]{1,9}m)$";

/// Why a text is no amount of processor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no amount of processor: write cores, such as 2 or 0.5, or 500m")]
pub struct CpuError {
    /// What was written.
    pub text: String,
}

/// An amount of processor, kept as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct CpuQuantity {
    text: String,
    millis: u64,
}

impl CpuQuantity {
    /// Reads `text`.
    pub fn parse(text: &str) -> Result<Self, CpuError> {
        let millis = parse(text).ok_or_else(|| CpuError {
            text: text.to_owned(),
        })?;
        Ok(Self {
            text: text.to_owned(),
            millis,
        })
    }

    /// The value in thousandths of a core.
    #[must_use]
    pub const fn millis(&self) -> u64 {
        self.millis
    }
}

fn parse(text: &str) -> Option<u64> {
    let digits = |part: &str, most: usize| {
        (!part.is_empty() && part.len() <= most && part.bytes().all(|b| b.is_ascii_digit()))
            .then(|| part.parse::<u64>().ok())
            .flatten()
    };
    if let Some(number) = text.strip_suffix('m') {
        return digits(number, 9);
    }
    let Some((whole, fraction)) = text.split_once('.') else {
        return Some(digits(text, 6)? * 1000);
    };
    let places = u32::try_from(fraction.len()).ok()?;
    let part = digits(fraction, 3)? * 10_u64.pow(3_u32.saturating_sub(places));
    Some(digits(whole, 6)? * 1000 + part)
}

impl From<CpuQuantity> for String {
    fn from(quantity: CpuQuantity) -> Self {
        quantity.text
    }
}

impl fmt::Display for CpuQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for CpuQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = CpuQuantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount of processor such as 2, \"0.5\" or 500m")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<CpuQuantity, E> {
                CpuQuantity::parse(text).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<CpuQuantity, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<CpuQuantity, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<CpuQuantity, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}

impl JsonSchema for CpuQuantity {
    fn schema_name() -> Cow<'static, str> {
        "CpuQuantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true, "pattern": PATTERN, "maxLength": 12 })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_and_thousandths_are_read() {
        for (text, millis) in [("2", 2000), ("0.5", 500), ("1.25", 1250), ("500m", 500)] {
            assert_eq!(CpuQuantity::parse(text).unwrap().millis(), millis, "{text}");
        }
        for text in ["", "-1", "1.", ".5", "1.2345", "2 cores", "m", "1k"] {
            assert!(CpuQuantity::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_taken_from_json() {
        let read = |json: &str| serde_json::from_str::<CpuQuantity>(json);
        assert_eq!(read("2").unwrap().millis(), 2000);
        assert_eq!(read("0.5").unwrap().millis(), 500);
        assert_eq!(read("\"250m\"").unwrap().to_string(), "250m");
        assert!(read("-2").is_err() && read("true").is_err());
    }
}
