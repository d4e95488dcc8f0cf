//! Our own form of the configuration: a flat YAML map with kebab-case keys, `listen-port: 9876`.
//!
//! **Invariant:** it says what Java's form says, key by key and under the same rules; only the
//! spelling differs. What a key means is not known here.

use std::{collections::BTreeMap, path::Path};

use rmq_protocol::java_properties::Property;
use serde_json::Value;

use super::ConfigError;

/// How a configuration text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Java's properties.
    Properties,
    /// Our own YAML.
    Yaml,
}

impl Form {
    /// The form of a file: YAML if its name ends in `.yaml` or `.yml`.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("yaml" | "yml") => Self::Yaml,
            _ => Self::Properties,
        }
    }
}

/// The keys of a YAML text in the order of its lines, spelled as they stand there.
pub(super) fn pairs(text: &str) -> Result<Vec<Property>, ConfigError> {
    let map: Option<BTreeMap<String, Value>> =
        serde_saphyr::from_str(text).map_err(|error| refused(text, &error))?;
    let mut pairs = Vec::new();
    for (key, value) in map.unwrap_or_default() {
        let line = lines_of(text, &key).next().unwrap_or(1);
        let value = match value {
            Value::String(text) => text,
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => number.to_string(),
            other @ (Value::Null | Value::Array(_) | Value::Object(_)) => {
                return Err(ConfigError::Value {
                    key,
                    value: other.to_string().chars().take(80).collect(),
                    line,
                    problem: "it must be a text, a number, true or false".to_owned(),
                });
            }
        };
        pairs.push(Property { line, key, value });
    }
    pairs.sort_by_key(|pair| pair.line);
    Ok(pairs)
}

fn refused(text: &str, error: &serde_saphyr::Error) -> ConfigError {
    match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
            let mut lines = lines_of(text, key);
            let first = lines.next().unwrap_or(1);
            ConfigError::Twice {
                line: lines.next().unwrap_or(first),
                key: key.clone(),
                first,
            }
        }
        other => ConfigError::Yaml(other.to_string()),
    }
}

/// Lines on which a key of the map stands, from 1; none if it is written in a way that hides it.
fn lines_of<'t>(text: &'t str, key: &'t str) -> impl Iterator<Item = usize> + 't {
    let starts = move |line: &str| {
        let line = line.trim_start().trim_start_matches(['"', '\'']);
        line.strip_prefix(key)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
    };
    let lines = text.lines().enumerate();
    lines
        .filter(move |(_, line)| starts(line))
        .map(|(index, _)| index + 1)
}

/// `listenPort` → `listen-port`, `useTLS` → `use-tls`.
pub(super) fn kebab_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    let mut after_small = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && after_small {
            out.push('-');
        }
        after_small = !letter.is_ascii_uppercase();
        out.push(letter.to_ascii_lowercase());
    }
    out
}
