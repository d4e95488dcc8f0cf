//! Reading the table: lists of topics, members of a group, the parts of a route.
//!
//! **Invariant:** a question about one topic looks at that topic and its brokers only.

use super::{RouteTable, TopicSummary, group::Group};

/// The members of a group (request 901).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Id and address of each, smallest id first.
    pub addresses: Vec<(u64, String)>,
}

impl RouteTable {
    /// Topics of the table that a list covers, in no particular order.
    pub fn topics(&self, list: TopicSummary) -> impl Iterator<Item = &str> {
        self.topics
            .iter()
            .filter(move |(_, topic)| {
                topic
                    .entries
                    .first()
                    .is_some_and(|entry| list.covers(entry.queues.sys_flag))
            })
            .map(|(name, _)| name.as_str())
    }

    /// Topics that a cluster's brokers serve; each named once.
    pub fn topics_of_cluster(&self, cluster: &str) -> impl Iterator<Item = &str> {
        let brokers = self.clusters.get(cluster);
        self.topics
            .iter()
            .filter(move |(_, topic)| {
                brokers.is_some_and(|brokers| {
                    topic
                        .entries
                        .iter()
                        .any(|entry| brokers.contains(&entry.broker))
                })
            })
            .map(|(name, _)| name.as_str())
    }

    /// Names of all clusters and of all broker groups: topics of these names exist everywhere.
    pub fn system_topics(&self) -> impl Iterator<Item = &str> {
        self.clusters.iter().flat_map(|(cluster, brokers)| {
            std::iter::once(cluster.as_str()).chain(brokers.iter().map(AsRef::as_ref))
        })
    }

    /// The address of some broker.
    #[must_use]
    pub fn any_address(&self) -> Option<&str> {
        let first = self.clusters.values().find_map(|brokers| brokers.first())?;
        self.groups.get(first)?.addresses().next()
    }

    /// The members of a group; none when nobody registered under the name.
    #[must_use]
    pub fn members(&self, broker: &str) -> Members {
        let group = self.groups.get(broker);
        let addresses = |group: &Group| {
            group
                .members
                .iter()
                .map(|(id, member)| (id.get(), member.addr.clone()))
                .collect()
        };
        Members {
            addresses: group.map(addresses).unwrap_or_default(),
        }
    }
}
