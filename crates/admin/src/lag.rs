//! How far every group is, in one question to each broker.
//!
//! **Invariant:** lag is never negative, and a group that has no offset anywhere is listed with
//! zeros. Progress queue by queue is in `progress`.

use std::collections::BTreeMap;

use rmq_protocol::{
    body::{ConsumeStats, ConsumeStatsList},
    header::GetBrokerConsumeStats,
    remoting::request_code,
};

use crate::{
    AdminClient, Answers, AskError, Scope, TargetError,
    answers::ask_all,
    client::{body, request},
};

/// How far one group is on one broker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupLag {
    /// Topics that it has an offset of.
    pub topics: usize,
    /// Messages not yet consumed.
    pub lag: i64,
    /// Messages pulled and not yet consumed.
    pub in_flight: i64,
    /// Messages consumed a second.
    pub tps: f64,
}

impl GroupLag {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            topics: self.topics.max(other.topics),
            lag: self.lag.saturating_add(other.lag),
            in_flight: self.in_flight.saturating_add(other.in_flight),
            tps: self.tps + other.tps,
        }
    }
}

/// Every group of one broker.
pub type GroupLags = BTreeMap<String, GroupLag>;

impl AdminClient {
    /// How far every group is on each broker of `scope` (code 317).
    pub async fn group_lags(&self, scope: &Scope) -> Result<Answers<GroupLags>, TargetError> {
        let targets = self.targets(scope).await?;
        Ok(ask_all(targets, |_, addr| {
            let admin = self.clone();
            async move { admin.group_lags_at(&addr).await }
        })
        .await)
    }

    /// How far every group is on the broker at `addr` (code 317).
    pub async fn group_lags_at(&self, addr: &str) -> Result<GroupLags, AskError> {
        let code = request_code::GET_BROKER_CONSUME_STATS;
        let header = GetBrokerConsumeStats { is_order: false };
        let answer = self.ask(addr, request(code, &header)).await?;
        let list = body(addr, code, &answer, ConsumeStatsList::from_json)?;
        let mut lags = GroupLags::new();
        for (group, topics) in list.consume_stats_list.into_iter().flatten() {
            *lags.entry(group).or_default() = sum(&topics);
        }
        Ok(lags)
    }
}

fn sum(topics: &[ConsumeStats]) -> GroupLag {
    let mut sum = GroupLag::default();
    for stats in topics {
        let one = GroupLag {
            tps: stats.consume_tps,
            ..GroupLag::default()
        };
        let topic = stats.offset_table.values().fold(one, |topic, queue| {
            let committed = queue.consumer_offset.max(0);
            GroupLag {
                lag: topic
                    .lag
                    .saturating_add(queue.broker_offset.saturating_sub(committed).max(0)),
                in_flight: topic
                    .in_flight
                    .saturating_add(queue.pull_offset.saturating_sub(committed).max(0)),
                ..topic
            }
        });
        sum = sum.plus(topic);
    }
    GroupLag {
        topics: topics.len(),
        ..sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_protocol::body::{MessageQueue, OffsetWrapper};

    fn stats(end: i64, committed: i64, pulled: i64) -> ConsumeStats {
        let queue = MessageQueue {
            broker_name: "b".to_owned(),
            queue_id: 0,
            topic: "T".to_owned(),
        };
        let offsets = OffsetWrapper {
            broker_offset: end,
            consumer_offset: committed,
            last_timestamp: 0,
            pull_offset: pulled,
        };
        ConsumeStats {
            consume_tps: 1.5,
            offset_table: [(queue, offsets)].into(),
        }
    }

    #[test]
    fn topics_are_added_up_and_no_queue_counts_below_zero() {
        let lag = sum(&[stats(10, 4, 6), stats(3, 9, 0), stats(2, -1, 0)]);
        assert_eq!((lag.topics, lag.lag, lag.in_flight), (3, 8, 2));
        assert!((lag.tps - 4.5).abs() < 1e-9);
        assert_eq!(sum(&[]), GroupLag::default());
    }
}
