//! Subscription group settings, on the wire and in `subscriptionGroup.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DataVersion, json_body, json_file};
use crate::json::de::java_enum;

java_enum! {
    /// Which of the two retry policies of a group holds.
    pub enum GroupRetryPolicyType {
        /// Growing delays.
        Exponential = "EXPONENTIAL",
        /// A list of delays.
        #[default]
        Customized = "CUSTOMIZED",
    }
}

/// `SubscriptionGroupConfig`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionGroupConfig {
    /// Attributes; Java defines none yet.
    pub attributes: BTreeMap<String, String>,
    /// The broker id readers are sent to while they keep up.
    pub broker_id: i64,
    /// Whether the group may consume as broadcast.
    pub consume_broadcast_enable: bool,
    /// Whether the group may consume at all.
    pub consume_enable: bool,
    /// Declared by Java, without effect.
    pub consume_from_min_enable: bool,
    /// Whether pops of the group are in order.
    pub consume_message_orderly: bool,
    /// Minutes until an ordered pop is given up.
    pub consume_timeout_minute: i32,
    /// The group.
    pub group_name: String,
    /// Delays between deliveries.
    pub group_retry_policy: GroupRetryPolicy,
    /// Flags of unit mode.
    pub group_sys_flag: i32,
    /// Whether members hear of each other at once.
    pub notify_consumer_ids_changed_enable: bool,
    /// Deliveries before the dead-letter topic.
    pub retry_max_times: i32,
    /// Queues of the retry topic.
    pub retry_queue_nums: i32,
    /// Subscriptions the group is held to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_data_set: Option<Vec<SimpleSubscription>>,
    /// The broker id slow readers are sent to.
    pub which_broker_when_consume_slowly: i64,
}

impl Default for SubscriptionGroupConfig {
    fn default() -> Self {
        Self {
            attributes: BTreeMap::new(),
            broker_id: 0,
            consume_broadcast_enable: true,
            consume_enable: true,
            consume_from_min_enable: true,
            consume_message_orderly: false,
            consume_timeout_minute: 15,
            group_name: String::new(),
            group_retry_policy: GroupRetryPolicy::default(),
            group_sys_flag: 0,
            notify_consumer_ids_changed_enable: true,
            retry_max_times: 16,
            retry_queue_nums: 1,
            subscription_data_set: None,
            which_broker_when_consume_slowly: 1,
        }
    }
}

impl SubscriptionGroupConfig {
    /// A group of that name with Java's defaults.
    #[must_use]
    pub fn named(group: impl Into<String>) -> Self {
        Self {
            group_name: group.into(),
            ..Self::default()
        }
    }
}

/// `GroupRetryPolicy`: the kind, and the settings of each kind that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupRetryPolicy {
    /// Settings of [`GroupRetryPolicyType::Customized`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customized_retry_policy: Option<CustomizedRetryPolicy>,
    /// Settings of [`GroupRetryPolicyType::Exponential`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponential_retry_policy: Option<ExponentialRetryPolicy>,
    /// Which holds.
    #[serde(rename = "type")]
    pub kind: GroupRetryPolicyType,
}

/// Delays in milliseconds, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomizedRetryPolicy {
    /// Delay before each delivery; the last one stays.
    pub next: Vec<i64>,
}

/// Delays in milliseconds that grow by a factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExponentialRetryPolicy {
    /// First delay.
    pub initial: i64,
    /// Longest delay.
    pub max: i64,
    /// Factor.
    pub multiplier: i64,
}

impl Default for ExponentialRetryPolicy {
    fn default() -> Self {
        Self {
            initial: 5_000,
            max: 7_200_000,
            multiplier: 2,
        }
    }
}

/// `SimpleSubscriptionData`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SimpleSubscription {
    /// The filter.
    pub expression: String,
    /// `TAG` or `SQL92`.
    pub expression_type: String,
    /// The topic.
    pub topic: String,
    /// Version of the subscription, in milliseconds.
    pub version: i64,
}

/// `SubscriptionGroupWrapper`: answer to code 201, and the file `subscriptionGroup.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionGroupWrapper {
    /// Version of the table.
    pub data_version: DataVersion,
    /// Group, then topic: bits of what is forbidden.
    pub forbidden_table: BTreeMap<String, BTreeMap<String, i32>>,
    /// By group name.
    pub subscription_group_table: BTreeMap<String, SubscriptionGroupConfig>,
}

/// `SubscriptionGroupList`, body of code 225.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupConfigList {
    /// The groups to create or change.
    pub group_config_list: Vec<SubscriptionGroupConfig>,
}

/// `GroupForbidden`, answer to code 353.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupForbidden {
    /// The group.
    pub group: String,
    /// Whether the group may read the topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readable: Option<bool>,
    /// The topic.
    pub topic: String,
}

json_body!(SubscriptionGroupConfig, GroupConfigList, GroupForbidden);
json_file!(SubscriptionGroupWrapper);
