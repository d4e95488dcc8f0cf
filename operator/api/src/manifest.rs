//! From the text of a manifest to a `RocketMQCluster`.
//!
//! **Invariant:** every error says what to do and, where the text has one, the line. The rules of
//! `kubectl apply` hold: what it would refuse (unknown or doubled fields, unquoted numbers as
//! text) is refused here too, so that a manifest tried on this computer goes on in a cluster.

use crate::cluster::{RocketMQCluster, RocketMQClusterSpec};
use crate::suggest::nearest;
use crate::{API_VERSION, GROUP};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Error as YamlError;
use std::collections::BTreeMap;

/// Why a text is no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Nothing in it.
    #[error("the manifest is empty")]
    Empty,
    /// More than one document.
    #[error("line {line}: a second document begins here; give one RocketMQCluster at a time")]
    SeveralDocuments {
        /// Where the second begins.
        line: u64,
    },
    /// A field that does not exist.
    #[error("line {line}: unknown field `{field}`{}", hint(.nearest.as_deref(), known))]
    UnknownField {
        /// Its name.
        field: String,
        /// Where it stands.
        line: u64,
        /// A field that may be meant.
        nearest: Option<String>,
        /// What the section may hold.
        known: Vec<&'static str>,
    },
    /// A field that Kubernetes' own part of a section does not have.
    #[error("unknown field `{path}`")]
    UnknownPath {
        /// Where it stands.
        path: String,
    },
    /// Not YAML, or a value of the wrong type.
    #[error("line {line}, column {column}: {message}")]
    Malformed {
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: u64,
        /// What is wrong.
        message: String,
    },
    /// Not our group and version.
    #[error(
        "apiVersion is {}, but must be {API_VERSION}",
        .found.as_ref().map_or("missing".to_owned(), |found| format!("`{found}`"))
    )]
    WrongApiVersion {
        /// What stands there.
        found: Option<String>,
    },
    /// Another kind.
    #[error(
        "kind is {}, but must be RocketMQCluster",
        .found.as_ref().map_or("missing".to_owned(), |found| format!("`{found}`"))
    )]
    WrongKind {
        /// What stands there.
        found: Option<String>,
    },
}

fn hint(nearest: Option<&str>, known: &[&str]) -> String {
    match nearest {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None if known.is_empty() => String::new(),
        None => format!("; known here: {}", known.join(", ")),
    }
}

/// Only what says which kind of object this is; the rest may be anything.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "apiVersion")]
    api_version: Option<String>,
    kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    metadata: Metadata,
    spec: RocketMQClusterSpec,
    #[serde(default, rename = "status")]
    _status: Option<IgnoredAny>,
}

/// The spec as it stands there, whatever it is.
#[derive(Deserialize)]
struct Raw {
    spec: serde_json::Value,
}

/// A field that was not taken. Our own sections refuse those by themselves; Kubernetes' own types
/// (tolerations, affinity, env) pass over them.
fn lost(raw: &serde_json::Value, taken: &serde_json::Value, path: &str) -> Option<String> {
    use serde_json::Value;
    match (raw, taken) {
        (Value::Object(raw), Value::Object(taken)) => raw.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            match taken.get(name) {
                Some(taken) => lost(value, taken, &path),
                // What says nothing is not written again.
                None => (!is_empty(value)).then_some(path),
            }
        }),
        (Value::Array(raw), Value::Array(taken)) => raw
            .iter()
            .zip(taken)
            .enumerate()
            .find_map(|(index, (raw, taken))| lost(raw, taken, &format!("{path}[{index}]"))),
        _ => None,
    }
}

fn is_empty(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

/// What a user writes, and what `kubectl get -o yaml` adds, which is passed over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default, rename = "uid")]
    _uid: Option<IgnoredAny>,
    #[serde(default, rename = "resourceVersion")]
    _resource_version: Option<IgnoredAny>,
    #[serde(default, rename = "generation")]
    _generation: Option<IgnoredAny>,
    #[serde(default, rename = "creationTimestamp")]
    _creation_timestamp: Option<IgnoredAny>,
    #[serde(default, rename = "managedFields")]
    _managed_fields: Option<IgnoredAny>,
    #[serde(default, rename = "finalizers")]
    _finalizers: Option<IgnoredAny>,
    #[serde(default, rename = "ownerReferences")]
    _owner_references: Option<IgnoredAny>,
    #[serde(default, rename = "generateName")]
    _generate_name: Option<IgnoredAny>,
    #[serde(default, rename = "selfLink")]
    _self_link: Option<IgnoredAny>,
}

/// Reads one manifest. The rules of [`crate::validate`] are not asked here.
pub fn parse_manifest(text: &str) -> Result<RocketMQCluster, ManifestError> {
    let text = without_empty_tail(text);
    if text.lines().all(says_nothing) {
        return Err(ManifestError::Empty);
    }
    let head: Head = read(text)?;
    if head.api_version.as_deref() != Some(API_VERSION) {
        // Another kind of another group: its kind is the plainer thing to name.
        let foreign = head
            .api_version
            .as_deref()
            .is_some_and(|v| !v.starts_with(GROUP));
        if !foreign || head.kind.as_deref() == Some("RocketMQCluster") {
            return Err(ManifestError::WrongApiVersion {
                found: head.api_version,
            });
        }
    }
    if head.kind.as_deref() != Some("RocketMQCluster") {
        return Err(ManifestError::WrongKind { found: head.kind });
    }
    let document: Document = read(text)?;
    let raw: Raw = read(text)?;
    let taken = serde_json::to_value(&document.spec).unwrap_or_default();
    if let Some(path) = lost(&raw.spec, &taken, "spec") {
        return Err(ManifestError::UnknownPath { path });
    }
    let metadata = ObjectMeta {
        name: document.metadata.name,
        namespace: document.metadata.namespace,
        labels: document.metadata.labels,
        annotations: document.metadata.annotations,
        ..ObjectMeta::default()
    };
    Ok(RocketMQCluster {
        metadata,
        spec: document.spec,
        status: None,
    })
}

fn says_nothing(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || line == "---" || line == "..."
}

/// `kubectl apply` passes over empty documents; those at the end are common (`---` as a habit).
fn without_empty_tail(text: &str) -> &str {
    let mut end = text.len();
    let mut rest = text;
    while !rest.is_empty() {
        let start = rest
            .trim_end_matches('\n')
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let line = rest.get(start..).unwrap_or_default().trim_end();
        match line {
            "---" | "..." => end = start,
            _ if says_nothing(line) => {}
            _ => break,
        }
        rest = rest.get(..start).unwrap_or_default();
    }
    text.get(..end).unwrap_or(text)
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ManifestError> {
    let options = serde_saphyr::options! {
        no_schema: true,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| translate(&error))
}

fn translate(error: &YamlError) -> ManifestError {
    let error = error.without_snippet();
    let location = error.location();
    let line = location.map_or(0, |at| at.line());
    let column = location.map_or(0, |at| at.column());
    match error {
        YamlError::Eof { .. } => ManifestError::Empty,
        YamlError::MultipleDocuments { .. } => ManifestError::SeveralDocuments { line },
        YamlError::SerdeUnknownField {
            field, expected, ..
        } => {
            let nearest = nearest(field, expected.iter().copied()).map(str::to_owned);
            ManifestError::UnknownField {
                field: field.clone(),
                line,
                nearest,
                known: expected
                    .iter()
                    .copied()
                    .filter(|name| !is_passed_over(name))
                    .collect(),
            }
        }
        YamlError::InvalidScalar { ty, .. } => {
            let message = match *ty {
                "bool" => "must be true or false".to_owned(),
                _ => "must be a whole number".to_owned(),
            };
            ManifestError::Malformed {
                line,
                column,
                message,
            }
        }
        YamlError::QuotingRequired { value, .. } => {
            let message = format!("text is wanted here: write \"{value}\" in quotes");
            ManifestError::Malformed {
                line,
                column,
                message,
            }
        }
        YamlError::DuplicateMappingKey { key: Some(key), .. } => {
            let message = format!("`{key}` stands here twice");
            ManifestError::Malformed {
                line,
                column,
                message,
            }
        }
        other => ManifestError::Malformed {
            line,
            column,
            message: plain(other),
        },
    }
}

/// Fields of `metadata` that only an API server writes.
fn is_passed_over(name: &str) -> bool {
    matches!(
        name,
        "uid"
            | "resourceVersion"
            | "generation"
            | "creationTimestamp"
            | "managedFields"
            | "finalizers"
            | "ownerReferences"
            | "generateName"
            | "selfLink"
    )
}

/// The message without the location, which stands before it already.
fn plain(error: &YamlError) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = text.find(" at line ").unwrap_or(text.len());
    text.get(..end).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests;
