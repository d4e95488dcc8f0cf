//! Who is connected: consumers and producers of a group.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData, json_body};

/// `Connection`: one client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Connection {
    /// `ip:port`.
    pub client_addr: String,
    /// The client's id.
    pub client_id: String,
    /// Name of its language, as `JAVA`.
    pub language: String,
    /// Its version's ordinal.
    pub version: i32,
}

/// `ConsumerConnection`, answer to code 203.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumerConnection {
    /// The members.
    pub connection_set: Vec<Connection>,
    /// Where a group without progress begins.
    pub consume_from_where: ConsumeFromWhere,
    /// Who moves messages.
    pub consume_type: ConsumeType,
    /// How members share.
    pub message_model: MessageModel,
    /// By topic.
    pub subscription_table: BTreeMap<String, SubscriptionData>,
}

/// `ProducerConnection`, answer to code 204.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProducerConnection {
    /// The members.
    pub connection_set: Vec<Connection>,
}

/// `ProducerInfo`: one producer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProducerInfo {
    /// The client's id.
    pub client_id: String,
    /// Name of its language.
    pub language: String,
    /// Last heartbeat, in milliseconds.
    pub last_update_timestamp: i64,
    /// `ip:port`.
    #[serde(rename = "remoteIP")]
    pub remote_ip: String,
    /// Its version's ordinal.
    pub version: i32,
}

/// `ProducerTableInfo`, answer to code 328.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProducerTable {
    /// Producers by group.
    pub data: BTreeMap<String, Vec<ProducerInfo>>,
}

json_body!(
    ConsumerConnection,
    ProducerConnection,
    ProducerInfo,
    ProducerTable
);
