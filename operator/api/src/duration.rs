//! Lengths of time as manifests write them: `500ms`, `60s`, `10m`, `24h`.
//!
//! **Invariant:** a `DurationText` keeps the user's text and its value, which are always the same.
//! One number and one unit; what CEL's `duration()` takes and this does not is refused by pattern.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, fmt, time::Duration};

/// What a length of time may look like, for the schema.
const PATTERN: &str = r"^[0-9]{1,9}(ms|s|m|h)$";

/// Why a text is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no length of time: write a number and a unit, such as 500ms, 60s, 10m or 24h")]
pub struct DurationError {
    /// What was written.
    pub text: String,
}

/// A length of time, kept as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DurationText {
    text: String,
    millis: u64,
}

impl DurationText {
    /// Reads `text`.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let millis = parse(text).ok_or_else(|| DurationError {
            text: text.to_owned(),
        })?;
        Ok(Self {
            text: text.to_owned(),
            millis,
        })
    }

    /// A whole number of seconds.
    #[must_use]
    pub fn seconds(seconds: u32) -> Self {
        Self {
            text: format!("{seconds}s"),
            millis: u64::from(seconds) * 1000,
        }
    }

    /// The value.
    #[must_use]
    pub const fn get(&self) -> Duration {
        Duration::from_millis(self.millis)
    }
}

fn parse(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    if number.is_empty() || number.len() > 9 {
        return None;
    }
    let unit: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

impl TryFrom<String> for DurationText {
    type Error = DurationError;
    fn try_from(text: String) -> Result<Self, DurationError> {
        Self::parse(&text)
    }
}

impl From<DurationText> for String {
    fn from(duration: DurationText) -> Self {
        duration.text
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl JsonSchema for DurationText {
    fn schema_name() -> Cow<'static, str> {
        "DurationText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN, "maxLength": 12 })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_and_one_unit_are_read() {
        for (text, millis) in [("0s", 0), ("500ms", 500), ("60s", 60_000), ("10m", 600_000)] {
            let parsed = DurationText::parse(text).unwrap();
            assert_eq!(parsed.get(), Duration::from_millis(millis), "{text}");
            assert_eq!(parsed.to_string(), text);
        }
        assert_eq!(DurationText::parse("24h").unwrap().get().as_secs(), 86_400);
        assert_eq!(DurationText::seconds(90).get().as_secs(), 90);
    }

    #[test]
    fn what_is_no_length_of_time_is_refused_with_an_example() {
        for text in [
            "",
            "10",
            "s",
            "-1s",
            "1.5h",
            "1d",
            "1h30m",
            "9999999999h",
            "1 s",
        ] {
            let error = DurationText::parse(text).unwrap_err();
            assert!(error.to_string().contains("such as 500ms"), "{text}");
        }
    }
}
