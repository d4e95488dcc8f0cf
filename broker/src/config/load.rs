//! Reading a configuration file: Java properties, or our own form in kebab-case YAML.
//!
//! A key nobody knows is refused with its line and the nearest key. Keys that only mean something
//! to the Java broker are taken and named in a warning, unless to pass over them would break what
//! they promise. **Invariant:** no error quotes a value that may be a secret.

use std::path::Path;

use rmq_protocol::java_properties::{self, Property};

use super::{
    Settings, ValueError,
    inert::{self, UnknownKey},
    refused::{self, RefusedValue},
};

/// Why a configuration is refused; each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read configuration {path}: {source}")]
    Read {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// One key is wrong.
    #[error("line {line}: {source}")]
    Key {
        /// Line of the file.
        line: usize,
        /// What is wrong with it.
        source: KeyError,
    },
    /// One key is written twice, so that nobody can know which value is meant.
    #[error("line {line}: the key {key} stands already on line {first}: keep one of them")]
    Twice {
        /// The second line.
        line: usize,
        /// The key as it stands there.
        key: String,
        /// The first line.
        first: usize,
    },
    /// The text is neither properties nor our YAML form.
    #[error("{0}")]
    Syntax(String),
    /// Values that are legal alone but not together.
    #[error("{0}")]
    Conflict(String),
}

/// What is wrong with one key, wherever it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A key that neither we nor Java know.
    #[error(transparent)]
    Unknown(#[from] UnknownKey),
    /// A value out of its bounds.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A value that would be a false promise here.
    #[error(transparent)]
    Refused(#[from] RefusedValue),
}

/// What was loaded, and keys that have no effect here.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// Keys that only the Java broker knows.
    pub without_effect: Vec<String>,
    /// Where Java has the commit log, if the file says so.
    commit_log: Option<String>,
}

impl Loaded {
    /// Sets one key, as a line of the file would.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), KeyError> {
        if key == refused::COMMIT_LOG_KEY {
            self.commit_log = Some(value.to_owned());
        } else if let Some(outcome) = self.settings.set(key, value) {
            outcome?;
            refused::check(key, value)?;
        } else if !refused::check(key, value)? {
            inert::check(key)?;
            if !self.without_effect.iter().any(|known| known == key) {
                self.without_effect.push(key.to_owned());
            }
        }
        Ok(())
    }

    /// Whether data lies where this broker looks for it. Counts once every source of keys was read.
    pub fn check_places(&self) -> Result<(), KeyError> {
        if let Some(commit_log) = &self.commit_log {
            let root = Path::new(&self.settings.store_path_root_dir);
            refused::check_commit_log(commit_log, root)?;
        }
        Ok(())
    }
}

/// Reads `path` over the defaults.
pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.display().to_string(),
        source,
    })?;
    let mut loaded = Loaded::default();
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("yaml" | "yml") => apply(&mut loaded, yaml_pairs(&text)?)?,
        _ => parse_properties(&mut loaded, &text)?,
    }
    Ok(loaded)
}

/// Applies properties text.
pub fn parse_properties(loaded: &mut Loaded, text: &str) -> Result<(), ConfigError> {
    let pairs = java_properties::parse(text.as_bytes())
        .map_err(|error| ConfigError::Syntax(error.to_string()))?;
    apply(loaded, pairs)
}

fn apply(loaded: &mut Loaded, pairs: Vec<Property>) -> Result<(), ConfigError> {
    for Property { line, key, value } in pairs {
        loaded
            .set(&key, &value)
            .map_err(|source| ConfigError::Key { line, source })?;
    }
    Ok(())
}

/// Our own form: a flat YAML map with kebab-case keys, `flush-disk-type: SYNC_FLUSH`.
fn yaml_pairs(text: &str) -> Result<Vec<Property>, ConfigError> {
    // An excerpt of the file could show a password.
    let options = serde_saphyr::options! { with_snippet: false };
    let map: Option<std::collections::BTreeMap<String, serde_json::Value>> =
        serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| yaml_error(text, &error))?;
    let mut pairs = Vec::new();
    for (key, value) in map.unwrap_or_default() {
        let value = match value {
            serde_json::Value::String(text) => text,
            serde_json::Value::Bool(flag) => flag.to_string(),
            serde_json::Value::Number(number) => number.to_string(),
            // The value is not shown: it may be a password.
            _ => {
                return Err(ConfigError::Syntax(format!(
                    "{key}: is no plain value; write JSON as a quoted text"
                )));
            }
        };
        let line = lines_of(text, &key).next().unwrap_or(0);
        pairs.push(Property { line, key, value });
    }
    pairs.sort_by_key(|pair| pair.line);
    camel_cased(pairs)
}

/// The keys as Java spells them; two spellings of one key are one key written twice.
fn camel_cased(pairs: Vec<Property>) -> Result<Vec<Property>, ConfigError> {
    let mut seen = std::collections::HashMap::new();
    let each = pairs.into_iter().map(|Property { line, key, value }| {
        let name = camel_case(&key);
        match seen.insert(name.clone(), line) {
            Some(first) => Err(ConfigError::Twice { line, key, first }),
            None => Ok(Property {
                line,
                key: name,
                value,
            }),
        }
    });
    each.collect()
}

fn yaml_error(text: &str, error: &serde_saphyr::Error) -> ConfigError {
    let error = error.without_snippet();
    match error {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
            let mut lines = lines_of(text, key);
            let first = lines.next().unwrap_or(0);
            let found = error.location().map(|at| at.line() as usize);
            ConfigError::Twice {
                line: lines.next().or(found).unwrap_or(first),
                key: key.clone(),
                first,
            }
        }
        other => ConfigError::Syntax(other.to_string()),
    }
}

/// Lines of a flat map on which a key stands, from 1.
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

/// `flush-disk-type` → `flushDiskType`; `broker-ip1` → `brokerIP1`, the one irregular kind of key.
fn camel_case(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    let mut upper = false;
    for letter in key.chars() {
        if letter == '-' {
            upper = true;
        } else {
            out.push(if upper {
                letter.to_ascii_uppercase()
            } else {
                letter
            });
            upper = false;
        }
    }
    out.replace("Ip1", "IP1")
        .replace("Ip2", "IP2")
        .replace("Crc", "CRC")
}
