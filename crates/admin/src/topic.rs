//! Topics: list, create, alter, status.
//!
//! **Invariant:** creating never changes a topic that exists with other settings, and altering
//! changes nothing but what was asked. Deleting is in `topic_delete`.

use std::collections::{BTreeMap, BTreeSet};

use rmq_protocol::{
    body::{TopicConfig, TopicConfigAndQueueMapping, TopicFilterType, TopicList, TopicStatsTable},
    header::{CreateTopic, GetTopicsByCluster, TopicHeader},
    remoting::{Command, request_code, response_code},
};
use rmq_types::{ClusterName, Timestamp, TopicName, system};

use crate::{
    AdminClient, Answers, AskError, NameServerError, Queue, Scope, TargetError,
    answers::ask_all,
    client::{body, refused, request},
};

/// Settings of a topic that is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    /// Queues consumers see, on each broker.
    pub read_queues: u32,
    /// Queues producers see, on each broker.
    pub write_queues: u32,
    /// 4 read + 2 write (+ 1 inherit).
    pub perm: u8,
    /// Whether the topic is ordered across brokers: its queues are fixed at the NameServers.
    pub ordered: bool,
    /// Attributes such as `message.type`.
    pub attributes: BTreeMap<String, String>,
}

impl Default for TopicSettings {
    /// As `mqadmin updateTopic`: 8 queues, readable and writable.
    fn default() -> Self {
        Self {
            read_queues: 8,
            write_queues: 8,
            perm: 6,
            ordered: false,
            attributes: BTreeMap::new(),
        }
    }
}

impl TopicSettings {
    /// Whether a topic on a broker has these settings already. Attributes it has beyond these do
    /// not count.
    #[must_use]
    pub fn match_config(&self, config: &TopicConfig) -> bool {
        let attributes = &config.attributes;
        config.read_queue_nums == self.read_queues as i32
            && config.write_queue_nums == self.write_queues as i32
            && config.perm == i32::from(self.perm)
            && config.order == self.ordered
            && self
                .attributes
                .iter()
                .all(|(name, value)| attributes.get(name) == Some(value))
    }

    fn header<'a>(&self, topic: &'a TopicName) -> CreateTopic<'a> {
        let set = self
            .attributes
            .iter()
            .map(|(name, value)| format!("+{name}={value}"));
        CreateTopic {
            topic: topic.as_str().into(),
            default_topic: system::AUTO_CREATE_TOPIC.into(),
            read_queue_nums: self.read_queues as i32,
            write_queue_nums: self.write_queues as i32,
            perm: i32::from(self.perm),
            topic_filter_type: "SINGLE_TAG".into(),
            topic_sys_flag: Some(0),
            order: self.ordered,
            attributes: attributes_text(set),
            force: None,
        }
    }
}

/// What to change of a topic; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicChange {
    /// Queues consumers see.
    pub read_queues: Option<u32>,
    /// Queues producers see.
    pub write_queues: Option<u32>,
    /// 4 read + 2 write (+ 1 inherit).
    pub perm: Option<u8>,
    /// Whether the topic is ordered.
    pub ordered: Option<bool>,
    /// Attributes to set.
    pub set: BTreeMap<String, String>,
    /// Attributes to take away.
    pub remove: BTreeSet<String>,
}

impl TopicChange {
    fn apply(&self, before: &TopicConfig) -> TopicConfig {
        let mut after = before.clone();
        if let Some(queues) = self.read_queues {
            after.read_queue_nums = queues as i32;
        }
        if let Some(queues) = self.write_queues {
            after.write_queue_nums = queues as i32;
        }
        if let Some(perm) = self.perm {
            after.perm = i32::from(perm);
        }
        if let Some(ordered) = self.ordered {
            after.order = ordered;
        }
        after.attributes.extend(self.set.clone());
        after
            .attributes
            .retain(|name, _| !self.remove.contains(name));
        after
    }

    fn header<'a>(&self, after: &'a TopicConfig) -> CreateTopic<'a> {
        let set = self
            .set
            .iter()
            .map(|(name, value)| format!("+{name}={value}"));
        let removed = self.remove.iter().map(|name| format!("-{name}"));
        CreateTopic {
            topic: after.topic_name.as_str().into(),
            default_topic: system::AUTO_CREATE_TOPIC.into(),
            read_queue_nums: after.read_queue_nums,
            write_queue_nums: after.write_queue_nums,
            perm: after.perm,
            topic_filter_type: match after.topic_filter_type {
                TopicFilterType::SingleTag => "SINGLE_TAG".into(),
                TopicFilterType::MultiTag => "MULTI_TAG".into(),
            },
            topic_sys_flag: Some(after.topic_sys_flag),
            order: after.order,
            attributes: attributes_text(set.chain(removed)),
            force: None,
        }
    }
}

fn attributes_text<'a>(changes: impl Iterator<Item = String>) -> Option<std::borrow::Cow<'a, str>> {
    let text = changes.collect::<Vec<_>>().join(",");
    (!text.is_empty()).then(|| text.into())
}

/// What creating or altering came to on one broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicOutcome {
    /// It is there now.
    Created,
    /// It is there with exactly these settings; nothing was sent.
    Unchanged,
    /// It was changed from these settings.
    Changed(Box<TopicConfig>),
    /// Create: it exists with these other settings; nothing was sent.
    Differs(Box<TopicConfig>),
    /// Alter: this broker does not have it; nothing was sent.
    Absent,
}

/// Bounds of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueStatus {
    /// The queue.
    pub queue: Queue,
    /// Its first offset.
    pub min: i64,
    /// The offset its next message gets.
    pub max: i64,
    /// When its last message was stored; none if it has none.
    pub last_stored_at: Option<Timestamp>,
}

impl AdminClient {
    /// Every topic the NameServers know (code 206).
    pub async fn topics(&self) -> Result<BTreeSet<String>, NameServerError> {
        let request = Command::request(request_code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER);
        let (_, list) = self
            .ask_name_servers_for(&request, TopicList::from_json)
            .await?;
        Ok(list.topic_list)
    }

    /// Every topic of one cluster (code 224).
    pub async fn topics_of(
        &self,
        cluster: &ClusterName,
    ) -> Result<BTreeSet<String>, NameServerError> {
        let header = GetTopicsByCluster {
            cluster: cluster.as_str().into(),
        };
        let request = request(request_code::GET_TOPICS_BY_CLUSTER, &header);
        let (_, list) = self
            .ask_name_servers_for(&request, TopicList::from_json)
            .await?;
        Ok(list.topic_list)
    }

    /// Settings of a topic on one broker (code 351); `None` if it is not there.
    pub async fn topic_config(
        &self,
        addr: &str,
        topic: &TopicName,
    ) -> Result<Option<TopicConfig>, AskError> {
        let code = request_code::GET_TOPIC_CONFIG;
        let header = TopicHeader {
            topic: topic.as_str().into(),
        };
        let answer = self.exchange(addr, request(code, &header)).await?;
        match answer.code {
            response_code::SUCCESS => {
                let config = body(addr, code, &answer, TopicConfigAndQueueMapping::from_json)?;
                Ok(Some(config.into()))
            }
            response_code::TOPIC_NOT_EXIST => Ok(None),
            _ => Err(refused(addr, code, answer)),
        }
    }

    /// Creates a topic on every broker of `scope` (code 17).
    pub async fn create_topic(
        &self,
        topic: &TopicName,
        settings: &TopicSettings,
        scope: &Scope,
    ) -> Result<Answers<TopicOutcome>, TargetError> {
        let targets = self.targets(scope).await?;
        let shared = (self.clone(), topic.clone(), settings.clone());
        let answers = ask_all(targets, |_, addr| {
            let (admin, topic, settings) = shared.clone();
            async move { admin.create_topic_at(&addr, &topic, &settings).await }
        })
        .await;
        if settings.ordered {
            self.add_order(topic, &answers, settings.write_queues)
                .await?;
        }
        Ok(answers)
    }

    async fn create_topic_at(
        &self,
        addr: &str,
        topic: &TopicName,
        settings: &TopicSettings,
    ) -> Result<TopicOutcome, AskError> {
        match self.topic_config(addr, topic).await {
            Ok(Some(config)) if settings.match_config(&config) => {
                return Ok(TopicOutcome::Unchanged);
            }
            Ok(Some(config)) => return Ok(TopicOutcome::Differs(Box::new(config))),
            Ok(None) => {}
            Err(error) if is_unsupported(&error) => {}
            Err(error) => return Err(error),
        }
        let code = request_code::UPDATE_AND_CREATE_TOPIC;
        self.ask(addr, request(code, &settings.header(topic)))
            .await?;
        Ok(TopicOutcome::Created)
    }

    /// Changes a topic on every broker of `scope` that has it (codes 351 and 17).
    pub async fn alter_topic(
        &self,
        topic: &TopicName,
        change: &TopicChange,
        scope: &Scope,
    ) -> Result<Answers<TopicOutcome>, TargetError> {
        let targets = self.targets(scope).await?;
        let shared = (self.clone(), topic.clone(), change.clone());
        Ok(ask_all(targets, |_, addr| {
            let (admin, topic, change) = shared.clone();
            async move { admin.alter_topic_at(&addr, &topic, &change).await }
        })
        .await)
    }

    async fn alter_topic_at(
        &self,
        addr: &str,
        topic: &TopicName,
        change: &TopicChange,
    ) -> Result<TopicOutcome, AskError> {
        let Some(before) = self.topic_config(addr, topic).await? else {
            return Ok(TopicOutcome::Absent);
        };
        let after = change.apply(&before);
        if after == before {
            return Ok(TopicOutcome::Unchanged);
        }
        let code = request_code::UPDATE_AND_CREATE_TOPIC;
        self.ask(addr, request(code, &change.header(&after)))
            .await?;
        Ok(TopicOutcome::Changed(Box::new(before)))
    }

    /// Bounds of every queue of a topic, from the masters that have it (codes 105 and 202).
    pub async fn topic_status(
        &self,
        topic: &TopicName,
    ) -> Result<Answers<Vec<QueueStatus>>, NameServerError> {
        let route = self.route(topic).await?;
        let shared = (self.clone(), topic.clone());
        Ok(ask_all(route.masters(), |_, addr| {
            let (admin, topic) = shared.clone();
            async move { admin.topic_status_at(&addr, &topic).await }
        })
        .await)
    }

    /// Bounds of every queue of a topic on the broker at `addr` (code 202).
    pub async fn topic_status_at(
        &self,
        addr: &str,
        topic: &TopicName,
    ) -> Result<Vec<QueueStatus>, AskError> {
        let code = request_code::GET_TOPIC_STATS_INFO;
        let header = TopicHeader {
            topic: topic.as_str().into(),
        };
        let answer = self.ask(addr, request(code, &header)).await?;
        let table = body(addr, code, &answer, TopicStatsTable::from_json)?;
        let mut queues: Vec<_> = table
            .offset_table
            .into_iter()
            .map(|(queue, bounds)| QueueStatus {
                queue: Queue {
                    broker: queue.broker_name,
                    id: u32::try_from(queue.queue_id).unwrap_or(0),
                },
                min: bounds.min_offset,
                max: bounds.max_offset,
                last_stored_at: stored_at(bounds.last_update_timestamp),
            })
            .collect();
        queues.sort_by(|a, b| a.queue.cmp(&b.queue));
        Ok(queues)
    }
}

/// Times of queues without a message are 0 or negative.
pub(crate) fn stored_at(millis: i64) -> Option<Timestamp> {
    (millis > 0).then(|| Timestamp::from_millis(millis))
}

/// Brokers before 5.0 do not know every question; the flow goes on without the answer.
fn is_unsupported(error: &AskError) -> bool {
    error.code() == Some(response_code::REQUEST_CODE_NOT_SUPPORTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_touches_only_what_it_names() {
        let before = TopicConfig {
            attributes: [("message.type".to_owned(), "FIFO".to_owned())].into(),
            topic_filter_type: TopicFilterType::MultiTag,
            topic_sys_flag: 2,
            ..TopicConfig::named("T")
        };
        let change = TopicChange {
            perm: Some(4),
            ..TopicChange::default()
        };
        let after = change.apply(&before);
        assert_eq!(
            after,
            TopicConfig {
                perm: 4,
                ..before.clone()
            }
        );
        let header = change.header(&after);
        assert_eq!(header.attributes, None);
        assert_eq!(header.topic_filter_type, "MULTI_TAG");
        assert_eq!(header.topic_sys_flag, Some(2));
    }

    #[test]
    fn attributes_are_set_and_removed_in_the_brokers_grammar() {
        let change = TopicChange {
            set: [("message.type".to_owned(), "FIFO".to_owned())].into(),
            remove: ["reserve.time".to_owned()].into(),
            ..TopicChange::default()
        };
        let after = TopicConfig::named("T");
        let header_text = change.header(&after).attributes;
        assert_eq!(
            header_text.as_deref(),
            Some("+message.type=FIFO,-reserve.time")
        );
    }

    #[test]
    fn settings_match_a_config_that_has_more_attributes() {
        let settings = TopicSettings::default();
        let mut config = TopicConfig {
            read_queue_nums: 8,
            write_queue_nums: 8,
            ..TopicConfig::named("T")
        };
        config
            .attributes
            .insert("queue.type".into(), "SimpleCQ".into());
        assert!(settings.match_config(&config));
        config.perm = 4;
        assert!(!settings.match_config(&config));
    }
}
