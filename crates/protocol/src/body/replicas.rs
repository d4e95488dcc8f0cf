//! Replicas of a broker group as the controller and the HA link describe them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{BrokerMemberGroup, json_body};

/// `SyncStateSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SyncStateSet {
    /// Broker ids.
    pub sync_state_set: BTreeSet<i64>,
    /// Epoch of the set.
    pub sync_state_set_epoch: i32,
}

/// `ElectMasterResponseBody`, answer to code 1002.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ElectMasterResponse {
    /// The group after the election.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker_member_group: Option<BrokerMemberGroup>,
    /// Broker ids.
    pub sync_state_set: BTreeSet<i64>,
}

/// `BrokerReplicasInfo`, answer to code 1006.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BrokerReplicasInfo {
    /// By broker name.
    pub replicas_info_table: BTreeMap<String, ReplicasInfo>,
}

/// `ReplicasInfo`: one group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicasInfo {
    /// Members of the SyncStateSet.
    pub in_sync_replicas: Vec<ReplicaIdentity>,
    /// The master's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_address: Option<String>,
    /// The master's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_broker_id: Option<i64>,
    /// Epoch of the master.
    pub master_epoch: i32,
    /// The others.
    pub not_in_sync_replicas: Vec<ReplicaIdentity>,
    /// Epoch of the SyncStateSet.
    pub sync_state_set_epoch: i32,
}

/// `ReplicaIdentity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicaIdentity {
    /// Whether the controller has heard of it lately.
    pub alive: bool,
    /// Its address.
    pub broker_address: String,
    /// Its id.
    pub broker_id: i64,
    /// Its group.
    pub broker_name: String,
}

/// `EpochEntryCache`, answer to code 1007.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EpochEntryCache {
    /// The broker's id.
    pub broker_id: i64,
    /// Its group.
    pub broker_name: String,
    /// Its cluster.
    pub cluster_name: String,
    /// Epochs, oldest first.
    pub epoch_list: Vec<EpochEntry>,
    /// End of its log.
    pub max_offset: i64,
}

/// `EpochEntry`: commit log offsets of one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EpochEntry {
    /// Exclusive; `i64::MAX` while open.
    pub end_offset: i64,
    /// The epoch.
    pub epoch: i32,
    /// Inclusive.
    pub start_offset: i64,
}

impl Default for EpochEntry {
    fn default() -> Self {
        Self {
            end_offset: i64::MAX,
            epoch: 0,
            start_offset: 0,
        }
    }
}

/// `HARuntimeInfo`, answer to code 907.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HaRuntimeInfo {
    /// On a replica: its link to the master.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ha_client_runtime_info: Option<HaClientInfo>,
    /// On a master: its replicas.
    pub ha_connection_info: Vec<HaConnectionInfo>,
    /// Replicas in sync.
    pub in_sync_slave_nums: i32,
    /// Whether the asked broker is a master.
    pub master: bool,
    /// End of the master's log.
    pub master_commit_log_max_offset: i64,
}

/// `HAConnectionRuntimeInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HaConnectionInfo {
    /// The replica's address.
    pub addr: String,
    /// Bytes behind.
    pub diff: i64,
    /// Whether it is in sync.
    pub in_sync: bool,
    /// What it has acknowledged.
    pub slave_ack_offset: i64,
    /// Where the transfer stands.
    pub transfer_from_where: i64,
    /// Speed.
    pub transferred_byte_in_second: i64,
}

/// `HAClientRuntimeInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HaClientInfo {
    /// Last read, in milliseconds.
    pub last_read_timestamp: i64,
    /// Last write, in milliseconds.
    pub last_write_timestamp: i64,
    /// The master's address.
    pub master_addr: String,
    /// How far the master has flushed.
    pub master_flush_offset: i64,
    /// End of the replica's log.
    pub max_offset: i64,
    /// Speed.
    pub transferred_byte_in_second: i64,
}

json_body!(
    SyncStateSet,
    ElectMasterResponse,
    BrokerReplicasInfo,
    EpochEntryCache,
    HaRuntimeInfo
);
