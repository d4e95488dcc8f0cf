//! Subscription groups: list, create or change, delete.
//!
//! **Invariant:** a setting that was not named keeps its value; a group that is new gets Java's
//! defaults. Progress is in `progress`.

use std::collections::BTreeMap;

use rmq_protocol::{
    body::{SubscriptionGroupConfig, SubscriptionGroupWrapper},
    header::DeleteGroup,
    remoting::{Command, request_code},
};
use rmq_types::{GroupName, TopicName, system};

use crate::{
    AdminClient, Answers, AskError, Scope, Target, TargetError, TopicDeletion,
    answers::ask_all,
    client::{body, request},
};

/// Settings to give a group; what is `None` keeps its value, or gets the default in a new group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// Whether the group may consume at all.
    pub consume_enable: Option<bool>,
    /// Whether it may consume as broadcast.
    pub broadcast_enable: Option<bool>,
    /// Whether its pops are in order.
    pub ordered: Option<bool>,
    /// Deliveries before the dead-letter topic.
    pub retry_max: Option<u32>,
    /// Queues of its retry topic.
    pub retry_queues: Option<u32>,
}

impl GroupChange {
    fn apply(&self, mut config: SubscriptionGroupConfig) -> SubscriptionGroupConfig {
        if let Some(enable) = self.consume_enable {
            config.consume_enable = enable;
        }
        if let Some(enable) = self.broadcast_enable {
            config.consume_broadcast_enable = enable;
        }
        if let Some(ordered) = self.ordered {
            config.consume_message_orderly = ordered;
        }
        if let Some(max) = self.retry_max {
            config.retry_max_times = i32::try_from(max).unwrap_or(i32::MAX);
        }
        if let Some(queues) = self.retry_queues {
            config.retry_queue_nums = i32::try_from(queues).unwrap_or(i32::MAX);
        }
        config
    }
}

/// What creating or changing came to on one broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupOutcome {
    /// It is there now.
    Created,
    /// It was there with these settings; nothing was sent.
    Unchanged,
    /// It was changed from these settings.
    Changed(Box<SubscriptionGroupConfig>),
}

/// What deleting a group came to.
#[derive(Debug)]
pub struct GroupDeletion {
    /// Each broker.
    pub brokers: Answers<()>,
    /// Its retry topic; none if there was none or a broker failed.
    pub retry_topic: Option<TopicDeletion>,
    /// Its dead-letter topic; none if there was none, it was to be kept or a broker failed.
    pub dead_letters: Option<TopicDeletion>,
}

impl GroupDeletion {
    /// True if all that was to go is gone.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let gone =
            |topic: &Option<TopicDeletion>| topic.as_ref().is_none_or(TopicDeletion::is_complete);
        self.brokers.is_complete() && gone(&self.retry_topic) && gone(&self.dead_letters)
    }
}

/// All groups of one broker, by name.
pub type Groups = BTreeMap<String, SubscriptionGroupConfig>;

impl AdminClient {
    /// All groups of every broker of `scope` (code 201).
    pub async fn groups(&self, scope: &Scope) -> Result<Answers<Groups>, TargetError> {
        let targets = self.targets(scope).await?;
        Ok(ask_all(targets, |_, addr| {
            let admin = self.clone();
            async move { admin.groups_at(&addr).await }
        })
        .await)
    }

    /// All groups of the broker at `addr` (code 201).
    pub async fn groups_at(&self, addr: &str) -> Result<Groups, AskError> {
        let code = request_code::GET_ALL_SUBSCRIPTIONGROUP_CONFIG;
        let answer = self.ask(addr, Command::request(code)).await?;
        let wrapper = body(addr, code, &answer, SubscriptionGroupWrapper::from_json)?;
        Ok(wrapper.subscription_group_table)
    }

    /// Creates a group on every broker of `scope`, or changes it where it is (codes 201 and 200).
    ///
    /// The table is asked for instead of the one group (352), for that question creates the group
    /// on brokers that make groups by themselves.
    pub async fn put_group(
        &self,
        group: &GroupName,
        change: &GroupChange,
        scope: &Scope,
    ) -> Result<Answers<GroupOutcome>, TargetError> {
        let targets = self.targets(scope).await?;
        let shared = (self.clone(), group.clone(), change.clone());
        Ok(ask_all(targets, |_, addr| {
            let (admin, group, change) = shared.clone();
            async move { admin.put_group_at(&addr, &group, &change).await }
        })
        .await)
    }

    async fn put_group_at(
        &self,
        addr: &str,
        group: &GroupName,
        change: &GroupChange,
    ) -> Result<GroupOutcome, AskError> {
        let before = self.groups_at(addr).await?.remove(group.as_str());
        let is_new = before.is_none();
        let before = before.unwrap_or_else(|| SubscriptionGroupConfig::named(group.as_str()));
        let after = change.apply(before.clone());
        if after == before && !is_new {
            return Ok(GroupOutcome::Unchanged);
        }
        let code = request_code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP;
        self.ask(addr, Command::request(code).with_body(after.to_json()))
            .await?;
        if is_new {
            return Ok(GroupOutcome::Created);
        }
        Ok(GroupOutcome::Changed(Box::new(before)))
    }

    /// Deletes a group on every broker of `scope`, then its retry topic and, unless they are to be
    /// kept, its dead letters (codes 207, 215, 216).
    pub async fn delete_group(
        &self,
        group: &GroupName,
        clean_offsets: bool,
        keep_dead_letters: bool,
        scope: &Scope,
    ) -> Result<GroupDeletion, TargetError> {
        let targets = self.targets(scope).await?;
        let shared = (self.clone(), group.clone());
        let brokers = ask_all(targets.clone(), |_, addr| {
            let (admin, group) = shared.clone();
            async move {
                let header = DeleteGroup {
                    group_name: group.as_str().into(),
                    clean_offset: clean_offsets,
                };
                let delete = request(request_code::DELETE_SUBSCRIPTIONGROUP, &header);
                admin.ask(&addr, delete).await.map(|_| ())
            }
        })
        .await;
        let mut deletion = GroupDeletion {
            brokers,
            retry_topic: None,
            dead_letters: None,
        };
        if !deletion.brokers.is_complete() {
            return Ok(deletion);
        }
        if let Ok(topic) = TopicName::parse(&system::retry_topic(group.as_str())) {
            deletion.retry_topic = self.delete_own_topic(&topic, targets.clone()).await;
        }
        if !keep_dead_letters
            && let Ok(topic) = TopicName::parse(&system::dlq_topic(group.as_str()))
        {
            deletion.dead_letters = self.delete_own_topic(&topic, targets).await;
        }
        Ok(deletion)
    }

    /// Deletes a topic that may not be there. Brokers are asked in any case, for a topic that no
    /// NameServer knows yet may be there; but then there is nothing to tell unless it failed.
    async fn delete_own_topic(
        &self,
        topic: &TopicName,
        targets: Vec<Target>,
    ) -> Option<TopicDeletion> {
        let was_there = self.route(topic).await.is_ok();
        let deletion = self.delete_topic_at(topic, targets, None).await;
        (was_there || !deletion.is_complete()).then_some(deletion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let before = SubscriptionGroupConfig {
            retry_max_times: 3,
            consume_message_orderly: true,
            ..SubscriptionGroupConfig::named("g")
        };
        let change = GroupChange {
            consume_enable: Some(false),
            ..GroupChange::default()
        };
        let after = change.apply(before.clone());
        assert_eq!(
            after,
            SubscriptionGroupConfig {
                consume_enable: false,
                ..before
            }
        );
    }
}
