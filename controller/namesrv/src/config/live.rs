//! Changes over the wire (request 318): a closed list of keys, all or nothing.
//!
//! **Invariant:** no path and no black-listed key is ever changed, and a refusal changes nothing.

use rmq_protocol::java_properties::{self, PropertiesError};

use super::{NamesrvOptions, hint, keys};

/// Longest text taken.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Why a change was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// The key may never be changed over the wire; Java's remark.
    #[error("Can not update config in black list.")]
    BlackListed {
        /// The key.
        key: String,
    },
    /// The text is no properties text.
    #[error(transparent)]
    Syntax(#[from] PropertiesError),
    /// The text is too long for a change of settings.
    #[error("the text has {bytes} bytes, more than {TEXT_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Nobody knows the key.
    #[error("unknown key {key}{}", hint(nearest.as_deref()))]
    UnknownKey {
        /// The key as sent.
        key: String,
        /// A known key that looks like it.
        nearest: Option<&'static str>,
    },
    /// The key is read at the start only.
    #[error("{key} cannot be changed while the server runs")]
    NotLive {
        /// The key.
        key: &'static str,
    },
    /// The value is out of its range, or no value of the key's type.
    #[error("{key} = {value:?} is refused: {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value as sent, cut to a readable length.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl UpdateError {
    /// Whether asking at all was the fault, so that the answer is "no permission".
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::BlackListed { .. })
    }
}

pub(super) fn update(options: &NamesrvOptions, text: &[u8]) -> Result<NamesrvOptions, UpdateError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(UpdateError::TooLong { bytes: text.len() });
    }
    let entries = java_properties::parse(text)?;
    if let Some(entry) = entries
        .iter()
        .find(|entry| is_black_listed(options, entry.key.trim()))
    {
        return Err(UpdateError::BlackListed {
            key: entry.key.clone(),
        });
    }
    let mut updated = options.clone();
    for entry in entries {
        let Some(key) = keys::find(&entry.key) else {
            let nearest = keys::nearest(&entry.key);
            let key = entry.key.chars().take(80).collect();
            return Err(UpdateError::UnknownKey { key, nearest });
        };
        if key.reach != keys::Reach::Live {
            return Err(UpdateError::NotLive { key: key.name });
        }
        key.set(&mut updated, entry.value.trim())
            .map_err(|problem| UpdateError::Value {
                key: key.name,
                value: entry.value.chars().take(80).collect(),
                problem,
            })?;
    }
    Ok(updated)
}

fn is_black_listed(options: &NamesrvOptions, name: &str) -> bool {
    let looks_like_path = {
        let name = name.to_ascii_lowercase();
        ["path", "home", "dir", "file"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    looks_like_path
        || keys::find(name).is_some_and(|key| key.reach == keys::Reach::Forbidden)
        || options.black_list.iter().any(|listed| listed == name)
}
