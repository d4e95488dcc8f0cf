//! Topic settings: one topic, the broker's table on the wire, and the file `topics.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DataVersion, TopicQueueMappingDetail, TopicQueueMappingInfo, json_body, json_file};
use crate::json::de::java_enum;

java_enum! {
    /// How many tags a message of the topic may carry.
    pub enum TopicFilterType {
        /// One tag.
        #[default]
        SingleTag = "SINGLE_TAG",
        /// Several tags.
        MultiTag = "MULTI_TAG",
    }
}

/// `TopicConfig`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicConfig {
    /// Attributes such as `message.type`.
    pub attributes: BTreeMap<String, String>,
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

impl Default for TopicConfig {
    fn default() -> Self {
        Self {
            attributes: BTreeMap::new(),
            order: false,
            perm: 6,
            read_queue_nums: 16,
            topic_filter_type: TopicFilterType::SingleTag,
            topic_name: String::new(),
            topic_sys_flag: 0,
            write_queue_nums: 16,
        }
    }
}

impl TopicConfig {
    /// A topic of that name with Java's defaults: 16 queues, readable and writable.
    #[must_use]
    pub fn named(topic: impl Into<String>) -> Self {
        Self {
            topic_name: topic.into(),
            ..Self::default()
        }
    }
}

/// `TopicConfigAndMappingSerializeWrapper`: all topics of a broker, in registrations and in the
/// answer to code 21.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicConfigWrapper {
    /// Version of `topic_config_table`.
    pub data_version: DataVersion,
    /// Version of the static topics.
    pub mapping_data_version: DataVersion,
    /// By topic name.
    pub topic_config_table: BTreeMap<String, TopicConfig>,
    /// Static topics, whole; by topic name.
    pub topic_queue_mapping_detail_map: BTreeMap<String, TopicQueueMappingDetail>,
    /// Static topics, in short; by topic name.
    pub topic_queue_mapping_info_map: BTreeMap<String, TopicQueueMappingInfo>,
}

/// `topics.json` (`TopicConfigSerializeWrapper`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicConfigFile {
    /// Version of the table.
    pub data_version: DataVersion,
    /// By topic name.
    pub topic_config_table: BTreeMap<String, TopicConfig>,
}

/// `CreateTopicListRequestBody`, body of code 18.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicConfigList {
    /// The topics to create or change.
    pub topic_config_list: Vec<TopicConfig>,
}

json_body!(TopicConfig, TopicConfigWrapper, TopicConfigList);
json_file!(TopicConfigFile);
