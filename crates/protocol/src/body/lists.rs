//! Plain lists and tables of text.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{json_body, json_file};

/// `KVTable`: order confs of the NameServer, run-time figures of the broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KvTable {
    /// The entries.
    pub table: BTreeMap<String, String>,
}

/// `kvConfig.json` of the NameServer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KvConfigFile {
    /// Namespace, then key.
    pub config_table: BTreeMap<String, BTreeMap<String, String>>,
}

/// `TopicList`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicList {
    /// One broker address, in the list of system topics only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker_addr: Option<String>,
    /// The topics.
    pub topic_list: BTreeSet<String>,
}

/// `GroupList`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupList {
    /// The groups.
    pub group_list: BTreeSet<String>,
}

/// `GetConsumerListByGroupResponseBody`, answer to code 38.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumerIdList {
    /// Ids of the members.
    pub consumer_id_list: Vec<String>,
}

json_body!(KvTable, TopicList, GroupList, ConsumerIdList);
json_file!(KvConfigFile);
