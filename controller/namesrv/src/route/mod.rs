//! The route table: which brokers live where, and which topics they serve.
//!
//! Pure: no clock, no IO, no locks. Time comes in as an argument, effects go out as [`Action`]s.
//! **Invariant:** a broker group in the table has at least one member, a topic at least one queue
//! entry, and every queue entry names a group of the table; so no route names a broker without an
//! address. What it does not do: parse bodies, send notices, close connections.

mod answer;
mod group;
mod leave;
mod perm;
mod query;
mod register;
mod topic;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rmq_types::{BrokerId, BrokerName, ClusterName, Timestamp, TopicName};

pub use answer::Flavour;
pub use group::Member;
pub use leave::Unregister;
pub use query::Members;
pub use register::{Accepted, RegisterError, Registered, Registration};
pub use rmq_protocol::body::DataVersion;
pub use topic::{QueueSettings, RegisterTopicError, TopicSettings, TopicSummary};

use answer::Cached;
use group::Group;
use topic::Topic;

/// How static topics map their logical queues, as a broker reported it.
pub type Mapping = rmq_protocol::body::TopicQueueMappingInfo;

/// Which connection a registration came over. Later connections have larger numbers, which is how
/// a late word from an old connection is told from a fresh registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionToken(pub u64);

/// The settings that change what the table answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// A group without a master may be shown with its smallest replica in the master's place.
    pub support_acting_master: bool,
    /// Members hear of a change of the smallest id.
    pub notify_min_broker_id_changed: bool,
    /// Every registration is taken as the broker's whole topic table.
    pub delete_topic_with_registration: bool,
}

/// What the shell has to do after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nobody living is behind this connection any more.
    Close(ConnectionToken),
    /// Tell these addresses of a new smallest id.
    Notify(MinIdChange),
}

/// A change of the smallest broker id of a group (request 905).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinIdChange {
    /// The group.
    pub broker: BrokerName,
    /// Its smallest id now.
    pub min_id: BrokerId,
    /// The address of that id.
    pub min_addr: String,
    /// The address that went away, if that was the reason.
    pub offline_addr: Option<String>,
    /// The replication address of the new smallest id, if it came.
    pub ha_addr: Option<String>,
    /// Who is told.
    pub receivers: Vec<String>,
}

/// One member of one group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MemberKey {
    broker: BrokerName,
    id: BrokerId,
}

/// The table.
#[derive(Debug, Default)]
pub struct RouteTable {
    policy: Policy,
    groups: HashMap<BrokerName, Group>,
    clusters: BTreeMap<ClusterName, BTreeSet<BrokerName>>,
    topics: HashMap<TopicName, Topic>,
    mappings: HashMap<TopicName, BTreeMap<String, Mapping>>,
    connections: HashMap<ConnectionToken, Vec<MemberKey>>,
    /// Grows whenever answers of topics that were not themselves touched may differ.
    epoch: u64,
    cluster_answer: Option<Cached>,
    scanned_at: Option<Timestamp>,
}

impl RouteTable {
    /// An empty table.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }

    /// Changes the policy; answers given from now on follow it.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.forget_answers();
    }

    /// Makes every prepared answer stale, for changes outside the table (ordered-topic settings).
    pub fn forget_answers(&mut self) {
        self.epoch += 1;
    }

    /// Brokers in the table, members of groups counted one by one.
    #[must_use]
    pub fn broker_count(&self) -> usize {
        self.groups.values().map(|group| group.members.len()).sum()
    }

    /// Broker groups in the table.
    #[must_use]
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Clusters in the table.
    #[must_use]
    pub fn cluster_count(&self) -> usize {
        self.clusters.len()
    }

    /// Topics in the table.
    #[must_use]
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    /// Whether any broker has the topic.
    #[must_use]
    pub fn has_topic(&self, topic: &str) -> bool {
        self.topics.contains_key(topic)
    }
}
