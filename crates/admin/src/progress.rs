//! How far a group is on every queue, and who of it is online.
//!
//! **Invariant:** lag is never negative: a committed offset beyond the end counts as caught up.

use rmq_protocol::{
    body::{Connection, ConsumeStats, ConsumerConnection, OffsetWrapper},
    header::{ConsumerGroupHeader, GetConsumeStats},
    remoting::{request_code, response_code},
};
use rmq_types::{GroupName, Timestamp, TopicName};

use crate::{
    AdminClient, Answers, AskError, Queue, Scope, TargetError,
    answers::ask_all,
    client::{body, refused, request},
    topic::stored_at,
};

/// Progress on one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueProgress {
    /// The topic: subscribed ones and the group's retry topic.
    pub topic: String,
    /// The queue.
    pub queue: Queue,
    /// The offset its next message gets.
    pub end: i64,
    /// The offset that is consumed next; −1 if nothing was committed.
    pub committed: i64,
    /// The offset that is pulled next.
    pub pulled: i64,
    /// When the last consumed message was stored.
    pub consumed_at: Option<Timestamp>,
}

impl QueueProgress {
    /// Messages not yet consumed.
    #[must_use]
    pub fn lag(&self) -> i64 {
        self.end.saturating_sub(self.committed.max(0)).max(0)
    }

    /// Messages pulled and not yet consumed.
    #[must_use]
    pub fn in_flight(&self) -> i64 {
        self.pulled.saturating_sub(self.committed).max(0)
    }
}

/// Who of the group is connected to one broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Every member.
    pub connections: Vec<Connection>,
    /// How they consume: none if nobody is online.
    pub how: Option<ConsumerConnection>,
}

/// What one broker knows of the group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrokerProgress {
    /// Its queues.
    pub queues: Vec<QueueProgress>,
    /// Messages consumed a second.
    pub tps: f64,
    /// Members connected to it.
    pub members: Members,
}

/// Progress of a group everywhere.
#[derive(Debug)]
pub struct GroupProgress {
    /// What each broker says.
    pub brokers: Answers<BrokerProgress>,
}

impl GroupProgress {
    /// Every queue, by topic, broker and number.
    #[must_use]
    pub fn queues(&self) -> Vec<&QueueProgress> {
        let mut queues: Vec<_> = self
            .brokers
            .successes()
            .flat_map(|(_, progress)| &progress.queues)
            .collect();
        queues.sort_by(|a, b| (&a.topic, &a.queue).cmp(&(&b.topic, &b.queue)));
        queues
    }

    /// Messages not yet consumed, all queues.
    #[must_use]
    pub fn lag(&self) -> i64 {
        self.queues()
            .iter()
            .map(|queue| queue.lag())
            .fold(0, i64::saturating_add)
    }

    /// Messages consumed a second, all brokers.
    #[must_use]
    pub fn tps(&self) -> f64 {
        self.brokers
            .successes()
            .map(|(_, progress)| progress.tps)
            .sum()
    }

    /// Every member, each once: members connect to every broker.
    #[must_use]
    pub fn members(&self) -> Vec<&Connection> {
        let mut members: Vec<_> = self
            .brokers
            .successes()
            .flat_map(|(_, progress)| &progress.members.connections)
            .collect();
        members.sort_by(|a, b| a.client_id.cmp(&b.client_id));
        members.dedup_by(|a, b| a.client_id == b.client_id);
        members
    }
}

impl AdminClient {
    /// How far a group is on one topic or on all it consumes (codes 208 and 203).
    pub async fn progress(
        &self,
        group: &GroupName,
        topic: Option<&TopicName>,
        scope: &Scope,
    ) -> Result<GroupProgress, TargetError> {
        let targets = self.targets(scope).await?;
        let shared = (self.clone(), group.clone(), topic.cloned());
        let brokers = ask_all(targets, |_, addr| {
            let (admin, group, topic) = shared.clone();
            async move { admin.progress_at(&addr, &group, topic.as_ref()).await }
        })
        .await;
        Ok(GroupProgress { brokers })
    }

    async fn progress_at(
        &self,
        addr: &str,
        group: &GroupName,
        topic: Option<&TopicName>,
    ) -> Result<BrokerProgress, AskError> {
        let code = request_code::GET_CONSUME_STATS;
        let header = GetConsumeStats {
            consumer_group: group.as_str().into(),
            topic: topic.map(|topic| topic.as_str().into()),
            topic_list: None,
        };
        let answer = self.ask(addr, request(code, &header)).await?;
        let stats = body(addr, code, &answer, ConsumeStats::from_json)?;
        let members = self.members(addr, group).await?;
        let queues = stats
            .offset_table
            .into_iter()
            .filter(|(queue, _)| topic.is_none_or(|topic| topic.as_str() == queue.topic))
            .map(|(queue, offsets)| {
                let id = u32::try_from(queue.queue_id).unwrap_or(0);
                progress(
                    queue.topic,
                    Queue {
                        broker: queue.broker_name,
                        id,
                    },
                    offsets,
                )
            })
            .collect();
        Ok(BrokerProgress {
            queues,
            tps: stats.consume_tps,
            members,
        })
    }

    /// Who of a group is connected to a broker (code 203).
    pub async fn members(&self, addr: &str, group: &GroupName) -> Result<Members, AskError> {
        let code = request_code::GET_CONSUMER_CONNECTION_LIST;
        let header = ConsumerGroupHeader {
            consumer_group: group.as_str().into(),
        };
        let answer = self.exchange(addr, request(code, &header)).await?;
        match answer.code {
            response_code::SUCCESS => {
                let how = body(addr, code, &answer, ConsumerConnection::from_json)?;
                Ok(Members {
                    connections: how.connection_set.clone(),
                    how: Some(how),
                })
            }
            response_code::CONSUMER_NOT_ONLINE => Ok(Members::default()),
            _ => Err(refused(addr, code, answer)),
        }
    }
}

fn progress(topic: String, queue: Queue, offsets: OffsetWrapper) -> QueueProgress {
    QueueProgress {
        topic,
        queue,
        end: offsets.broker_offset,
        committed: offsets.consumer_offset,
        pulled: offsets.pull_offset,
        consumed_at: stored_at(offsets.last_timestamp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(end: i64, committed: i64, pulled: i64) -> QueueProgress {
        let offsets = OffsetWrapper {
            broker_offset: end,
            consumer_offset: committed,
            last_timestamp: 0,
            pull_offset: pulled,
        };
        progress(
            "T".into(),
            Queue {
                broker: "b".into(),
                id: 0,
            },
            offsets,
        )
    }

    #[test]
    fn lag_and_messages_in_flight_are_never_negative() {
        assert_eq!((at(10, 4, 6).lag(), at(10, 4, 6).in_flight()), (6, 2));
        assert_eq!((at(3, 9, 0).lag(), at(3, 9, 0).in_flight()), (0, 0));
        assert_eq!(at(3, -1, 0).lag(), 3);
        assert_eq!(at(i64::MAX, i64::MIN, 0).lag(), i64::MAX);
    }
}
