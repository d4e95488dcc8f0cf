//! What clients say of themselves: groups, subscriptions, how they consume.
//!
//! Numbers and switches are read from text as well: the C++ client writes them so.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::json_body;
use crate::json::de::{self, java_enum};

java_enum! {
    /// Who moves messages.
    pub enum ConsumeType {
        /// The application pulls.
        ConsumeActively = "CONSUME_ACTIVELY",
        /// The client pulls and pushes to the application.
        #[default]
        ConsumePassively = "CONSUME_PASSIVELY",
        /// Pop.
        ConsumePop = "CONSUME_POP",
    }
}

java_enum! {
    /// How the members of a group share messages.
    pub enum MessageModel {
        /// Each member gets all.
        Broadcasting = "BROADCASTING",
        /// Each message goes to one member.
        #[default]
        Clustering = "CLUSTERING",
        /// Light topics of 5.5.
        LiteSelective = "LITE_SELECTIVE",
    }
}

java_enum! {
    /// Where a group without progress begins.
    pub enum ConsumeFromWhere {
        /// At the end.
        #[default]
        LastOffset = "CONSUME_FROM_LAST_OFFSET",
        /// Old name, same as the end.
        LastOffsetAndFromMinWhenBootFirst =
            "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        /// Old name.
        MinOffset = "CONSUME_FROM_MIN_OFFSET",
        /// Old name.
        MaxOffset = "CONSUME_FROM_MAX_OFFSET",
        /// At the beginning.
        FirstOffset = "CONSUME_FROM_FIRST_OFFSET",
        /// At a time.
        Timestamp = "CONSUME_FROM_TIMESTAMP",
    }
}

/// `HeartbeatData`, body of code 34.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HeartbeatData {
    /// The client's id.
    #[serde(rename = "clientID", alias = "clientId")]
    pub client_id: String,
    /// Its consumer groups.
    pub consumer_data_set: Vec<ConsumerData>,
    /// Not 0: heartbeat of the second version, a hash of the whole.
    #[serde(deserialize_with = "de::number")]
    pub heartbeat_fingerprint: i32,
    /// Its producer groups.
    pub producer_data_set: Vec<ProducerData>,
    /// Second version: subscriptions were left out, they have not changed.
    #[serde(deserialize_with = "de::switch")]
    pub without_sub: bool,
}

/// `ProducerData`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProducerData {
    /// The group.
    pub group_name: String,
}

/// `ConsumerData`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumerData {
    /// Where a group without progress begins.
    pub consume_from_where: ConsumeFromWhere,
    /// Who moves messages.
    pub consume_type: ConsumeType,
    /// The group.
    pub group_name: String,
    /// How members share.
    pub message_model: MessageModel,
    /// What it subscribes to.
    pub subscription_data_set: Vec<SubscriptionData>,
    /// Unit mode.
    #[serde(deserialize_with = "de::switch")]
    pub unit_mode: bool,
}

/// `SubscriptionData`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionData {
    /// Filter classes, a leftover.
    #[serde(deserialize_with = "de::switch")]
    pub class_filter_mode: bool,
    /// Java hash codes of the tags.
    #[serde(deserialize_with = "de::numbers")]
    pub code_set: BTreeSet<i32>,
    /// `TAG` or `SQL92`.
    pub expression_type: String,
    /// The filter.
    pub sub_string: String,
    /// Version of the subscription, in milliseconds.
    #[serde(deserialize_with = "de::number")]
    pub sub_version: i64,
    /// The tags, when the filter is a list of tags.
    pub tags_set: BTreeSet<String>,
    /// The topic.
    pub topic: String,
}

impl Default for SubscriptionData {
    /// Java's default except `sub_version`, which Java sets to the time of reading.
    fn default() -> Self {
        Self {
            class_filter_mode: false,
            code_set: BTreeSet::new(),
            expression_type: "TAG".into(),
            sub_string: String::new(),
            sub_version: 0,
            tags_set: BTreeSet::new(),
            topic: String::new(),
        }
    }
}

/// `CheckClientRequestBody`, body of code 46.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CheckClientRequest {
    /// The client's id.
    pub client_id: String,
    /// Its group.
    pub group: String,
    /// Namespace, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The subscription to check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_data: Option<SubscriptionData>,
}

json_body!(
    HeartbeatData,
    ConsumerData,
    SubscriptionData,
    CheckClientRequest
);
