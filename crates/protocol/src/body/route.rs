//! Routes: where a topic's queues are, and which brokers a cluster has.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{TopicQueueMappingInfo, json_body};
use crate::json;

/// `TopicRouteData`, answer to code 105.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicRouteData {
    /// The broker groups that have the topic.
    pub broker_datas: Vec<BrokerData>,
    /// Filter servers by broker address; a leftover, mostly empty.
    pub filter_server_table: BTreeMap<String, Vec<String>>,
    /// `broker:queues;…` of an ordered topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_topic_conf: Option<String>,
    /// Queues by broker group.
    pub queue_datas: Vec<QueueData>,
    /// Static topics only, by broker name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_queue_mapping_by_broker: Option<BTreeMap<String, TopicQueueMappingInfo>>,
}

impl TopicRouteData {
    /// The form for requests of versions below V4_9_4: integer keys without quotes.
    #[must_use]
    pub fn to_json_legacy(&self) -> Vec<u8> {
        json::without_key_quotes(self)
    }
}

/// `BrokerData`: one broker group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BrokerData {
    /// Address by broker id; 0 is the master.
    pub broker_addrs: BTreeMap<i64, String>,
    /// The group's name.
    pub broker_name: String,
    /// The cluster.
    pub cluster: String,
    /// Whether the smallest replica may stand in for the master.
    pub enable_acting_master: bool,
    /// The zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_name: Option<String>,
}

/// `QueueData`: the queues of one topic on one broker group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QueueData {
    /// The group's name.
    pub broker_name: String,
    /// 4 read, 2 write, 1 inherit.
    pub perm: i32,
    /// Queues consumers see.
    pub read_queue_nums: i32,
    /// 1 unit, 2 unit subscription.
    pub topic_sys_flag: i32,
    /// Queues producers see.
    pub write_queue_nums: i32,
}

/// `ClusterInfo`, answer to code 106.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterInfo {
    /// Broker groups by name.
    pub broker_addr_table: BTreeMap<String, BrokerData>,
    /// Names of broker groups by cluster.
    pub cluster_addr_table: BTreeMap<String, BTreeSet<String>>,
}

/// `BrokerMemberGroup`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BrokerMemberGroup {
    /// Address by broker id.
    pub broker_addrs: BTreeMap<i64, String>,
    /// The group's name.
    pub broker_name: String,
    /// The cluster.
    pub cluster: String,
}

/// `GetBrokerMemberGroupResponseBody`, answer to code 901.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BrokerMemberGroupResponse {
    /// The group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker_member_group: Option<BrokerMemberGroup>,
}

json_body!(
    TopicRouteData,
    ClusterInfo,
    BrokerMemberGroup,
    BrokerMemberGroupResponse
);
