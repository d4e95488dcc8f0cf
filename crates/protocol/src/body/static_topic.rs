//! Static topics: logical queues that move between brokers (`statictopic` of Java).
//!
//! Carried through and handed on; nothing here works with the mapping.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DataVersion, TopicConfig, TopicFilterType, json_body, json_file};

/// `TopicQueueMappingInfo`: what routes tell of a static topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicQueueMappingInfo {
    /// Broker name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bname: Option<String>,
    /// Logical queue id to the broker's own queue id.
    pub curr_id_map: BTreeMap<i32, i32>,
    /// Left over from an older layout.
    pub dirty: bool,
    /// Epoch of the mapping.
    pub epoch: i64,
    /// Scope, `__global__` by default.
    pub scope: String,
    /// The topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// All logical queues.
    pub total_queues: i32,
}

impl Default for TopicQueueMappingInfo {
    fn default() -> Self {
        Self {
            bname: None,
            curr_id_map: BTreeMap::new(),
            dirty: false,
            epoch: 0,
            scope: "__global__".into(),
            topic: None,
            total_queues: 0,
        }
    }
}

/// `TopicQueueMappingDetail`: the same with the queues a broker hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicQueueMappingDetail {
    /// Broker name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bname: Option<String>,
    /// Logical queue id to the broker's own queue id.
    pub curr_id_map: BTreeMap<i32, i32>,
    /// Left over from an older layout.
    pub dirty: bool,
    /// Epoch of the mapping.
    pub epoch: i64,
    /// Logical queue id to its pieces, oldest first.
    pub hosted_queues: BTreeMap<i32, Vec<LogicQueueMappingItem>>,
    /// Scope, `__global__` by default.
    pub scope: String,
    /// The topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// All logical queues.
    pub total_queues: i32,
}

impl Default for TopicQueueMappingDetail {
    fn default() -> Self {
        let info = TopicQueueMappingInfo::default();
        Self {
            bname: info.bname,
            curr_id_map: info.curr_id_map,
            dirty: info.dirty,
            epoch: info.epoch,
            hosted_queues: BTreeMap::new(),
            scope: info.scope,
            topic: info.topic,
            total_queues: info.total_queues,
        }
    }
}

/// `LogicQueueMappingItem`: one piece of a logical queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LogicQueueMappingItem {
    /// Broker name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bname: Option<String>,
    /// End on the broker, exclusive; −1 while open.
    pub end_offset: i64,
    /// Which piece it is.
    #[serde(rename = "gen")]
    pub generation: i32,
    /// Start in the logical queue.
    pub logic_offset: i64,
    /// The broker's own queue.
    pub queue_id: i32,
    /// Start on the broker, inclusive.
    pub start_offset: i64,
    /// Reserved by Java.
    pub time_of_end: i64,
    /// Reserved by Java.
    pub time_of_start: i64,
}

impl Default for LogicQueueMappingItem {
    fn default() -> Self {
        Self {
            bname: None,
            end_offset: -1,
            generation: 0,
            logic_offset: 0,
            queue_id: 0,
            start_offset: 0,
            time_of_end: -1,
            time_of_start: -1,
        }
    }
}

/// `TopicConfigAndQueueMapping`, answer to code 351: a [`TopicConfig`] with one field more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicConfigAndQueueMapping {
    /// Attributes such as `message.type`.
    pub attributes: BTreeMap<String, String>,
    /// Set for static topics only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping_detail: Option<TopicQueueMappingDetail>,
    /// Whether the topic is ordered.
    pub order: bool,
    /// 4 read, 2 write, 1 inherit.
    pub perm: i32,
    /// Queues consumers see.
    pub read_queue_nums: i32,
    /// One tag or several.
    pub topic_filter_type: TopicFilterType,
    /// The topic.
    pub topic_name: String,
    /// 1 unit, 2 unit subscription.
    pub topic_sys_flag: i32,
    /// Queues producers see.
    pub write_queue_nums: i32,
}

impl Default for TopicConfigAndQueueMapping {
    fn default() -> Self {
        Self::from(TopicConfig::default())
    }
}

impl From<TopicConfig> for TopicConfigAndQueueMapping {
    fn from(config: TopicConfig) -> Self {
        Self {
            attributes: config.attributes,
            mapping_detail: None,
            order: config.order,
            perm: config.perm,
            read_queue_nums: config.read_queue_nums,
            topic_filter_type: config.topic_filter_type,
            topic_name: config.topic_name,
            topic_sys_flag: config.topic_sys_flag,
            write_queue_nums: config.write_queue_nums,
        }
    }
}

impl From<TopicConfigAndQueueMapping> for TopicConfig {
    fn from(config: TopicConfigAndQueueMapping) -> Self {
        Self {
            attributes: config.attributes,
            order: config.order,
            perm: config.perm,
            read_queue_nums: config.read_queue_nums,
            topic_filter_type: config.topic_filter_type,
            topic_name: config.topic_name,
            topic_sys_flag: config.topic_sys_flag,
            write_queue_nums: config.write_queue_nums,
        }
    }
}

/// `topicQueueMapping.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicQueueMappingFile {
    /// Version of the map.
    pub data_version: DataVersion,
    /// By topic name.
    pub topic_queue_mapping_info_map: BTreeMap<String, TopicQueueMappingDetail>,
}

json_body!(
    TopicQueueMappingInfo,
    TopicQueueMappingDetail,
    TopicConfigAndQueueMapping
);
json_file!(TopicQueueMappingFile);
