//! Options of a NameServer: typed values, the Java keys they are known by, and live changes.
//!
//! **Invariant:** text becomes options whole or not at all, and what a key reads back as is what is
//! in force. Changes made over the wire last until the process ends: nothing that a peer says is
//! ever written to a configuration file (CVE-2023-37582).

mod keys;
mod live;
mod nearest;
mod yaml;

#[cfg(test)]
mod tests;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use rmq_protocol::java_properties::{self, PropertiesError, Property};

pub use live::UpdateError;
pub use yaml::Form;

use crate::route::Policy;

/// Why a configuration text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The text is no properties text.
    #[error(transparent)]
    Syntax(#[from] PropertiesError),
    /// The text is no YAML, or no map of keys and values.
    #[error("not a YAML map of keys and values: {0}")]
    Yaml(String),
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
    /// Nobody knows the key.
    #[error("line {line}: unknown key {key}{}", hint(nearest.as_deref()))]
    UnknownKey {
        /// The key as it stands there.
        key: String,
        /// Its line, from 1.
        line: usize,
        /// A known key that looks like it, spelled as in the text's form.
        nearest: Option<String>,
    },
    /// The value is out of its range, or no value of the key's type.
    #[error("line {line}: {key} = {value:?} is refused: {problem}")]
    Value {
        /// The key as it stands there.
        key: String,
        /// The value as it stands there, cut to a readable length.
        value: String,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}

pub(crate) fn hint(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!(", did you mean {name}?"))
        .unwrap_or_default()
}

/// Settings that may change while the server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveOptions {
    /// Time between two looks for silent brokers.
    pub scan_interval: Duration,
    /// Fill `orderTopicConf` of routes from the KV configuration.
    pub order_message_enable: bool,
    /// Give brokers the ordered topics when they register.
    pub return_order_topic_config_to_broker: bool,
    /// Show the smallest replica in a missing master's place.
    pub support_acting_master: bool,
    /// Tell groups of a new smallest broker id.
    pub notify_min_broker_id_changed: bool,
    /// Answer request 206.
    pub enable_all_topic_list: bool,
    /// Answer requests 224 and 311 to 313.
    pub enable_topic_list: bool,
    /// Refuse route queries until brokers had time to register.
    pub need_wait_for_service: bool,
    /// How long that is.
    pub wait_for_service: Duration,
    /// Take each registration as the broker's whole topic table.
    pub delete_topic_with_broker_registration: bool,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            scan_interval: Duration::from_secs(5),
            order_message_enable: false,
            return_order_topic_config_to_broker: true,
            support_acting_master: false,
            notify_min_broker_id_changed: false,
            enable_all_topic_list: true,
            enable_topic_list: true,
            need_wait_for_service: false,
            wait_for_service: Duration::from_secs(45),
            delete_topic_with_broker_registration: false,
        }
    }
}

impl LiveOptions {
    /// The part of the settings that the route table follows.
    #[must_use]
    pub fn policy(&self) -> Policy {
        Policy {
            support_acting_master: self.support_acting_master,
            notify_min_broker_id_changed: self.notify_min_broker_id_changed,
            delete_topic_with_registration: self.delete_topic_with_broker_registration,
        }
    }
}

/// Everything a NameServer is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamesrvOptions {
    /// Address to listen on.
    pub bind_address: IpAddr,
    /// Port to listen on; 0 takes a free one.
    pub listen_port: u16,
    /// File of the KV configuration.
    pub kv_path: PathBuf,
    /// A connection is closed after this time without traffic.
    pub idle_timeout: Duration,
    /// Most connections served at once.
    pub connections_max: usize,
    /// Keys that cannot be changed over the wire, beyond those that never can.
    pub black_list: Vec<String>,
    /// What may change while the server runs.
    pub live: LiveOptions,
}

/// Options read from a file, and what the reader should know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The options.
    pub options: NamesrvOptions,
    /// Java keys in the text that have no effect here, one line each.
    pub notes: Vec<String>,
}

impl NamesrvOptions {
    /// Java's defaults, with the KV file in `data_dir`.
    #[must_use]
    pub fn new(data_dir: &Path) -> Self {
        Self {
            bind_address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            listen_port: 9876,
            kv_path: data_dir.join("kvConfig.json"),
            idle_timeout: Duration::from_mins(2),
            connections_max: 65_536,
            black_list: Vec::new(),
            live: LiveOptions::default(),
        }
    }

    /// Where to listen.
    #[must_use]
    pub fn listen_addr(&self) -> SocketAddr {
        SocketAddr::new(self.bind_address, self.listen_port)
    }

    /// Reads a Java `namesrv.conf` on top of these options.
    pub fn parse(self, text: &str) -> Result<Parsed, ConfigError> {
        self.parse_as(Form::Properties, text)
    }

    /// Reads a configuration in either form on top of these options.
    pub fn parse_as(mut self, form: Form, text: &str) -> Result<Parsed, ConfigError> {
        let mut notes = Vec::new();
        let entries = match form {
            Form::Properties => java_properties::parse(text.as_bytes())?,
            Form::Yaml => yaml::pairs(text)?,
        };
        for Property { line, key, value } in entries {
            let Some(known) = keys::find_in(form, &key) else {
                let nearest = keys::nearest_in(form, &key);
                return Err(ConfigError::UnknownKey { key, line, nearest });
            };
            if let Some(note) = known.note() {
                notes.push(format!("line {line}: {key} {note}"));
            }
            if let Err(problem) = known.set(&mut self, value.trim()) {
                let value = value.chars().take(80).collect();
                return Err(ConfigError::Value {
                    key,
                    value,
                    line,
                    problem,
                });
            }
        }
        Ok(Parsed {
            options: self,
            notes,
        })
    }

    /// Applies a change sent over the wire (request 318): all of it, or nothing with the reason.
    pub fn updated(&self, text: &[u8]) -> Result<Self, UpdateError> {
        live::update(self, text)
    }

    /// What is in force, as properties text with Java's keys. Holds no secret: there is none.
    #[must_use]
    pub fn to_properties(&self) -> String {
        java_properties::write(keys::all().filter_map(|key| Some((key.name, key.get(self)?))))
    }
}
