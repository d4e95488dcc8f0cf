//! The settings in force, and the one way to change them while running.
//!
//! A change is taken whole or not at all: every key is checked before any is applied.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use rmq_protocol::java_properties;

use super::{Change, Settings, ValueError, inert};

/// Why a change over the wire is refused.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// A key that names a path, an address or an identity, or needs a restart.
    #[error("can not update config in black list or at run time: {0}")]
    Forbidden(String),
    /// A key that nobody knows or that has no effect here.
    #[error("unknown key {key:?}{}", .nearest.as_ref().map_or_else(String::new, |near| format!(": did you mean {near:?}?")))]
    Unknown {
        /// The key.
        key: String,
        /// The nearest known one.
        nearest: Option<String>,
    },
    /// A value out of its bounds.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The text is no properties text, or empty.
    #[error("{0}")]
    Syntax(String),
}

/// Handle on the settings in force.
#[derive(Debug)]
pub struct LiveSettings {
    current: RwLock<Arc<Settings>>,
}

impl LiveSettings {
    /// Starts with `settings`.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            current: RwLock::new(Arc::new(settings)),
        }
    }

    /// A snapshot; do not hold it across waits.
    #[must_use]
    pub fn get(&self) -> Arc<Settings> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Applies properties text of `UPDATE_BROKER_CONFIG`; gives back what changed.
    pub fn update(&self, text: &[u8]) -> Result<BTreeMap<String, String>, UpdateError> {
        let pairs =
            java_properties::parse(text).map_err(|error| UpdateError::Syntax(error.to_string()))?;
        if pairs.is_empty() {
            return Err(UpdateError::Syntax("no key in the request".to_owned()));
        }
        let mut guard = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Settings::clone(&guard);
        let mut changed = BTreeMap::new();
        for java_properties::Property { key, value, .. } in pairs {
            check_allowed(&key)?;
            next.set(&key, &value).unwrap_or(Ok(()))?;
            changed.insert(key, value);
        }
        *guard = Arc::new(next);
        Ok(changed)
    }
}

fn check_allowed(key: &str) -> Result<(), UpdateError> {
    match Settings::KEYS.iter().find(|info| info.name == key) {
        Some(info) if info.change == Change::Live => Ok(()),
        Some(_) => Err(UpdateError::Forbidden(key.to_owned())),
        None if inert::is_known(key) || key == "configBlackList" => {
            Err(UpdateError::Forbidden(key.to_owned()))
        }
        None => Err(UpdateError::Unknown {
            key: key.to_owned(),
            nearest: inert::nearest(key),
        }),
    }
}
