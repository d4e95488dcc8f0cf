//! The configuration files of pods, and the hash that says whether a pod runs with its own.
//!
//! **Invariant:** only keys that need a restart enter the hash. Keys that the operator sets follow
//! the user's, and validation keeps users from setting them.

use super::object::hash;
use super::{Build, KeyClass};
use rmq_operator_api::Flush;
use rmq_protocol::java_properties;
use std::collections::BTreeMap;

/// `brokerPermission` of a group that clients may only read from.
pub const READ_ONLY: &str = "4";
/// `brokerPermission` of a group that takes sends.
pub const READ_WRITE: &str = "6";

/// Keys and values of one file.
pub type Keys = BTreeMap<String, String>;

impl Build<'_> {
    /// What one broker of group `index` runs with.
    #[must_use]
    pub fn broker_keys(&self, index: i32, address: Option<&String>) -> Keys {
        let names = self.names();
        let brokers = &self.cluster.spec.brokers;
        let mut keys = brokers.config_of(index);
        let flush = match brokers.flush {
            Flush::Async => "ASYNC_FLUSH",
            Flush::Sync => "SYNC_FLUSH",
        };
        let mut set = |key: &str, value: String| keys.insert(key.to_owned(), value);
        set("brokerClusterName", self.cluster.cluster_name().to_owned());
        set("brokerName", names.broker_name(index));
        set("brokerId", "0".to_owned());
        set("namesrvAddr", names.name_server_list());
        set("flushDiskType", flush.to_owned());
        // A broker without topics and consumer groups must not take sends. It is opened over the
        // wire, which its disk remembers; an empty disk is a closed broker again.
        set("brokerPermission", READ_ONLY.to_owned());
        if let Some(address) = address {
            set("brokerIP1", address.clone());
        }
        keys
    }

    pub(super) fn broker_hash(&self, pods: &[Keys]) -> String {
        restart_hash(pods, |key| self.site.keys.broker(key))
    }

    pub(super) fn name_server_hash(&self) -> String {
        let keys = self.cluster.spec.name_server.config.clone();
        restart_hash(&[keys], |key| self.site.keys.name_server(key))
    }
}

fn restart_hash(files: &[Keys], class: impl Fn(&str) -> Option<KeyClass>) -> String {
    let mut text = String::new();
    for file in files {
        let restart = file
            .iter()
            .filter(|(key, _)| class(key) == Some(KeyClass::Restart));
        text.push_str(&java_properties::write(restart));
        text.push('\n');
    }
    format!("{:016x}", hash(text.as_bytes()))
}

/// The text of a properties file.
#[must_use]
pub fn render(keys: &Keys) -> String {
    let head = "# Written by the operator; change the RocketMQCluster instead.\n";
    format!("{head}{}", java_properties::write(keys))
}
