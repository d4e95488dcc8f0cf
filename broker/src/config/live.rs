//! The settings in force, and the one way to change them while running.
//!
//! A change is taken whole or not at all: every key is checked before any is applied, and it is on
//! disk, beside the user's own file, before it counts. **Invariant:** what is written there is what
//! the next start would take.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use rmq_protocol::{body::DataVersion, java_properties};
use rmq_types::Timestamp;

use super::{
    Change, Settings, ValueError,
    inert::{self, UnknownKey},
};
use crate::metadata::{LoadError, PersistError, read_json, write_json};

/// File beside the tables that holds keys changed over the wire.
pub const OVERRIDES_FILE: &str = "broker-overrides.properties";

/// Why a change over the wire is refused.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// A key that names a path, an address or an identity, or needs a restart.
    #[error("can not update config in black list or at run time: {0}")]
    Forbidden(String),
    /// A key that nobody knows.
    #[error(transparent)]
    Unknown(#[from] UnknownKey),
    /// A value out of its bounds.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The text is no properties text, or empty.
    #[error("{0}")]
    Syntax(String),
    /// The change could not be written and was not taken.
    #[error(transparent)]
    Persist(#[from] PersistError),
}

/// Handle on the settings in force.
#[derive(Debug)]
pub struct LiveSettings {
    current: RwLock<Current>,
}

#[derive(Debug)]
struct Current {
    settings: Arc<Settings>,
    version: DataVersion,
}

impl LiveSettings {
    /// Starts with `settings`.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        Self {
            current: RwLock::new(Current {
                settings,
                version: DataVersion::default(),
            }),
        }
    }

    /// A snapshot; do not hold it across waits.
    #[must_use]
    pub fn get(&self) -> Arc<Settings> {
        Arc::clone(
            &self
                .current
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .settings,
        )
    }

    /// Which change the settings are of.
    #[must_use]
    pub fn version(&self) -> DataVersion {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .version
    }

    /// Applies properties text of `UPDATE_BROKER_CONFIG` and keeps it in `overrides` for the next
    /// start; gives back what the text set. Waits for the disk.
    pub fn update_durably(
        &self,
        text: &[u8],
        overrides: &Path,
        now: Timestamp,
    ) -> Result<BTreeMap<String, String>, UpdateError> {
        self.change(text, now, |changed| {
            let mut all = read_overrides(overrides).unwrap_or_default();
            all.extend(
                changed
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
            write_json(overrides, java_properties::write(&all).as_bytes())
        })
    }

    /// Applies properties text without keeping it for the next start.
    #[cfg(test)]
    pub fn update(&self, text: &[u8]) -> Result<BTreeMap<String, String>, UpdateError> {
        self.change(text, Timestamp::default(), |_| Ok(()))
    }

    fn change(
        &self,
        text: &[u8],
        now: Timestamp,
        persist: impl FnOnce(&BTreeMap<String, String>) -> Result<(), PersistError>,
    ) -> Result<BTreeMap<String, String>, UpdateError> {
        let pairs =
            java_properties::parse(text).map_err(|error| UpdateError::Syntax(error.to_string()))?;
        if pairs.is_empty() {
            return Err(UpdateError::Syntax("no key in the request".to_owned()));
        }
        let mut guard = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Settings::clone(&guard.settings);
        let mut changed = BTreeMap::new();
        for java_properties::Property { key, value, .. } in pairs {
            check_allowed(&guard.settings, &key)?;
            next.set(&key, &value).unwrap_or(Ok(()))?;
            changed.insert(key, value);
        }
        check_together(&next)?;
        persist(&changed)?;
        let version = guard.version.next(0, now.millis());
        *guard = Current {
            settings: Arc::new(next),
            version,
        };
        Ok(changed)
    }
}

/// Rules of text values that the start would also refuse.
fn check_together(next: &Settings) -> Result<(), UpdateError> {
    crate::register::parse_addresses(&next.namesrv_addr).map_err(UpdateError::Syntax)?;
    crate::broker::delete_hours(&next.delete_when).map_err(UpdateError::Syntax)?;
    Ok(())
}

fn read_overrides(path: &Path) -> Result<BTreeMap<String, String>, LoadError> {
    Ok(read_json(path, java_properties::parse_map)?.unwrap_or_default())
}

/// Puts keys that were changed over the wire over what the user's own file says. A key that is not
/// taken any more is named in a warning and left out: it must not keep the broker from starting.
pub fn apply_overrides(settings: &mut Settings, path: &Path) -> Result<(), LoadError> {
    for (key, value) in read_overrides(path)? {
        let outcome = check_allowed(settings, &key).and_then(|()| {
            let mut next = settings.clone();
            next.set(&key, &value).unwrap_or(Ok(()))?;
            check_together(&next)?;
            Ok(next)
        });
        match outcome {
            Ok(next) => {
                tracing::info!(
                    key,
                    value,
                    "set over the wire earlier, counts over the file"
                );
                *settings = next;
            }
            Err(error) => tracing::warn!(key, %error, file = %path.display(), "override left out"),
        }
    }
    Ok(())
}

fn check_allowed(settings: &Settings, key: &str) -> Result<(), UpdateError> {
    let mut black = settings.config_black_list.split(';').map(str::trim);
    match Settings::KEYS.iter().find(|info| info.name == key) {
        Some(info) if info.change == Change::Live && black.all(|name| name != key) => Ok(()),
        Some(_) => Err(UpdateError::Forbidden(key.to_owned())),
        None => {
            inert::check(key)?;
            Err(UpdateError::Forbidden(key.to_owned()))
        }
    }
}
