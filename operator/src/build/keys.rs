//! Which keys of `broker.conf` and `namesrv.conf` there are, and what a change of one takes.
//!
//! **Invariant:** the table is that of the programs themselves, handed in by whoever links them; a
//! key that is not in it means nothing to the program and never restarts or reaches it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a change of a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyClass {
    /// It is pushed to the running program.
    Live,
    /// The program starts again.
    Restart,
}

/// Says what is wrong with a key and its value.
pub type KeyCheck = fn(&str, &str) -> Result<(), String>;

/// The keys of both programs.
#[derive(Clone)]
pub struct KeyTable(Arc<Tables>);

#[derive(PartialEq, Eq)]
struct Tables {
    broker: BTreeMap<String, KeyClass>,
    name_server: BTreeMap<String, KeyClass>,
    defaults: BTreeMap<String, String>,
    check_broker: Option<Check>,
    check_name_server: Option<Check>,
}

#[derive(Clone, Copy)]
struct Check(KeyCheck);

impl PartialEq for Check {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for Check {}

impl KeyTable {
    /// A table of the keys of brokers and of NameServers. `defaults` are the values of a broker's
    /// keys that nobody has set.
    #[must_use]
    pub fn new(
        broker: BTreeMap<String, KeyClass>,
        name_server: BTreeMap<String, KeyClass>,
        defaults: BTreeMap<String, String>,
    ) -> Self {
        Self(Arc::new(Tables {
            broker,
            name_server,
            defaults,
            check_broker: None,
            check_name_server: None,
        }))
    }

    /// The same table with what says whether a value is sound.
    #[must_use]
    pub fn with_checks(self, broker: KeyCheck, name_server: KeyCheck) -> Self {
        Self(Arc::new(Tables {
            broker: self.0.broker.clone(),
            name_server: self.0.name_server.clone(),
            defaults: self.0.defaults.clone(),
            check_broker: Some(Check(broker)),
            check_name_server: Some(Check(name_server)),
        }))
    }

    /// What a change of a key of `broker.conf` takes; nothing if it means nothing here.
    #[must_use]
    pub fn broker(&self, key: &str) -> Option<KeyClass> {
        self.0.broker.get(key).copied()
    }

    /// Values of a broker's live keys that nobody has set.
    #[must_use]
    pub fn live_defaults(&self) -> BTreeMap<String, String> {
        let mut defaults = self.0.defaults.clone();
        defaults.retain(|key, _| self.broker(key) == Some(KeyClass::Live));
        defaults
    }

    /// As [`Self::broker`], of `namesrv.conf`.
    #[must_use]
    pub fn name_server(&self, key: &str) -> Option<KeyClass> {
        self.0.name_server.get(key).copied()
    }

    /// What a broker would say of this line of its configuration.
    pub fn check_broker(&self, key: &str, value: &str) -> Result<(), String> {
        self.0
            .check_broker
            .map_or(Ok(()), |check| (check.0)(key, value))
    }

    /// What a NameServer would say of this line of its configuration.
    pub fn check_name_server(&self, key: &str, value: &str) -> Result<(), String> {
        self.0
            .check_name_server
            .map_or(Ok(()), |check| (check.0)(key, value))
    }
}

impl PartialEq for KeyTable {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for KeyTable {}

impl fmt::Debug for KeyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyTable")
            .field("broker", &self.0.broker.len())
            .field("name_server", &self.0.name_server.len())
            .finish_non_exhaustive()
    }
}
