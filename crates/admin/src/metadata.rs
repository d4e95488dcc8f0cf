//! All topics and consumer groups of one broker, to compare brokers and to copy them.
//!
//! **Invariant:** what a broker makes for itself (system topics and groups, topics named like it or
//! its cluster, retry and dead-letter topics) is left out, so that brokers that serve the same are
//! equal here.

use std::collections::{BTreeMap, BTreeSet};

use rmq_protocol::{
    body::{SubscriptionGroupConfig, TopicConfig, TopicConfigWrapper, TopicFilterType},
    header::CreateTopic,
    remoting::{Command, request_code},
};
use rmq_types::{Timestamp, TopicName, system};

use crate::{
    AdminClient, AskError,
    client::{body, request},
};

/// Topics and consumer groups of one broker, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Topics.
    pub topics: BTreeMap<String, TopicConfig>,
    /// Consumer groups.
    pub groups: BTreeMap<String, SubscriptionGroupConfig>,
}

impl Metadata {
    /// A hash of each topic and group with its settings: a broker has all that another has exactly
    /// when its hashes hold the other's.
    #[must_use]
    pub fn hashes(&self) -> BTreeSet<u64> {
        let hash = |kind: &[u8], json: Vec<u8>| fnv(fnv(FNV_START, kind), &json);
        let topics = self
            .topics
            .values()
            .map(|topic| hash(b"t", topic.to_json()));
        let groups = self
            .groups
            .values()
            .map(|group| hash(b"g", group.to_json()));
        topics.chain(groups).collect()
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |state, byte| {
        (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl AdminClient {
    /// Topics and groups of the broker at `addr`, of the group `broker` in `cluster` (codes 21 and
    /// 201).
    pub async fn metadata(
        &self,
        addr: &str,
        cluster: &str,
        broker: &str,
    ) -> Result<Metadata, AskError> {
        let code = request_code::GET_ALL_TOPIC_CONFIG;
        let answer = self.ask(addr, Command::request(code)).await?;
        let wrapper = body(addr, code, &answer, TopicConfigWrapper::from_json)?;
        let mut topics = wrapper.topic_config_table;
        topics.retain(|name, _| !is_own_topic(name, cluster, broker));
        let mut groups = self.groups_at(addr).await?;
        groups.retain(|name, _| !system::is_system_group(name));
        Ok(Metadata { topics, groups })
    }

    /// When the newest message of the broker at `addr` was stored, over all topics but the
    /// system's own; none without messages (codes 21 and 202).
    pub async fn newest_message_at(&self, addr: &str) -> Result<Option<Timestamp>, AskError> {
        let code = request_code::GET_ALL_TOPIC_CONFIG;
        let answer = self.ask(addr, Command::request(code)).await?;
        let wrapper = body(addr, code, &answer, TopicConfigWrapper::from_json)?;
        let mut newest = None;
        for name in wrapper.topic_config_table.keys() {
            if system::is_system_topic(name) && name != system::SCHEDULE_TOPIC {
                continue;
            }
            let Ok(topic) = TopicName::parse(name) else {
                continue;
            };
            let queues = self.topic_status_at(addr, &topic).await?;
            newest = newest.max(queues.iter().filter_map(|queue| queue.last_stored_at).max());
        }
        Ok(newest)
    }

    /// Gives the broker at `addr` what `from` has and `has` lacks or has otherwise; says how many
    /// topics and groups that were (codes 17 and 200).
    pub async fn copy_metadata(
        &self,
        addr: &str,
        has: &Metadata,
        from: &Metadata,
    ) -> Result<usize, AskError> {
        let mut copied = 0;
        for (name, topic) in &from.topics {
            if has.topics.get(name) != Some(topic) {
                self.put_topic_config(addr, topic).await?;
                copied += 1;
            }
        }
        for (name, group) in &from.groups {
            if has.groups.get(name) != Some(group) {
                self.put_group_config(addr, group).await?;
                copied += 1;
            }
        }
        Ok(copied)
    }

    /// Makes a consumer group of the broker at `addr` exactly so (code 200).
    pub async fn put_group_config(
        &self,
        addr: &str,
        group: &SubscriptionGroupConfig,
    ) -> Result<(), AskError> {
        let code = request_code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP;
        let put = Command::request(code).with_body(group.to_json());
        self.ask(addr, put).await.map(drop)
    }

    /// Makes a topic of the broker at `addr` exactly so (code 17).
    pub async fn put_topic_config(&self, addr: &str, topic: &TopicConfig) -> Result<(), AskError> {
        let attributes: Vec<_> = topic
            .attributes
            .iter()
            .map(|(name, value)| format!("+{}={value}", name.trim_start_matches('+')))
            .collect();
        let header = CreateTopic {
            topic: topic.topic_name.as_str().into(),
            default_topic: system::AUTO_CREATE_TOPIC.into(),
            read_queue_nums: topic.read_queue_nums,
            write_queue_nums: topic.write_queue_nums,
            perm: topic.perm,
            topic_filter_type: match topic.topic_filter_type {
                TopicFilterType::SingleTag => "SINGLE_TAG".into(),
                TopicFilterType::MultiTag => "MULTI_TAG".into(),
            },
            topic_sys_flag: Some(topic.topic_sys_flag),
            order: topic.order,
            attributes: (!attributes.is_empty()).then(|| attributes.join(",").into()),
            force: None,
        };
        let code = request_code::UPDATE_AND_CREATE_TOPIC;
        self.ask(addr, request(code, &header)).await.map(drop)
    }
}

fn is_own_topic(name: &str, cluster: &str, broker: &str) -> bool {
    system::is_system_topic(name)
        || name == cluster
        || name == broker
        || name.starts_with(system::RETRY_PREFIX)
        || name.starts_with(system::DLQ_PREFIX)
        || name.starts_with(system::REVIVE_TOPIC_PREFIX)
        || name.starts_with(system::SYNC_MEMBER_TOPIC_PREFIX)
        || name.ends_with(system::REPLY_TOPIC_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_broker_makes_for_itself_is_no_metadata_of_the_cluster() {
        for own in [
            "shop",
            "broker-0",
            "%RETRY%g",
            "%DLQ%g",
            "SCHEDULE_TOPIC_XXXX",
            "shop_REPLY_TOPIC",
            "rmq_sys_REVIVE_LOG_shop",
            "TBW102",
        ] {
            assert!(is_own_topic(own, "shop", "broker-0"), "{own}");
        }
        assert!(!is_own_topic("orders", "shop", "broker-0"));
    }

    #[test]
    fn hashes_tell_any_difference() {
        let mut one = Metadata::default();
        one.topics.insert("a".to_owned(), TopicConfig::named("a"));
        let mut other = one.clone();
        assert_eq!(one.hashes(), other.hashes());
        if let Some(topic) = other.topics.get_mut("a") {
            topic.read_queue_nums = 4;
        }
        assert!(one.hashes().is_disjoint(&other.hashes()));
        let group = SubscriptionGroupConfig::named("a");
        other.groups.insert("a".to_owned(), group);
        assert_eq!(other.hashes().len(), 2);
    }
}
