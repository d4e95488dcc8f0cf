//! A topic's queues per broker group, and the requests that write or remove them by name.
//!
//! **Invariant:** the entries of a topic are sorted by broker name and there is one per name. What
//! it does not do: registrations of whole brokers (`register`), removal with a broker (`leave`).

use rmq_types::{BrokerName, TopicName, limits};

use super::{RouteTable, answer::Answers};

/// Permission bit for writing.
pub(super) const PERM_WRITE: i32 = 2;
/// Permission bits for reading and writing.
pub(super) const PERM_READ_WRITE: i32 = 6;

const FLAG_UNIT: i32 = 1;
const FLAG_UNIT_SUB: i32 = 2;

/// A topic on one broker group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// Queues that consumers read.
    pub read_queues: i32,
    /// Queues that producers write.
    pub write_queues: i32,
    /// Permission bits.
    pub perm: i32,
    /// Unit flags.
    pub sys_flag: i32,
}

impl QueueSettings {
    /// Whether the queue counts are ones a client can work with.
    #[must_use]
    pub fn is_sane(&self) -> bool {
        let sane = |queues: i32| (0..=limits::QUEUES_MAX as i32).contains(&queues);
        sane(self.read_queues) && sane(self.write_queues)
    }
}

/// A topic as a broker registers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    /// The topic.
    pub name: TopicName,
    /// Its queues on that broker.
    pub queues: QueueSettings,
}

/// What lists of topics by unit flag look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicSummary {
    /// Every topic.
    All,
    /// Topics with the unit flag.
    Unit,
    /// Topics with subscriptions from units.
    UnitSub,
    /// Topics with subscriptions from units that are not unit topics themselves.
    UnitSubNotUnit,
}

impl TopicSummary {
    pub(super) fn covers(self, sys_flag: i32) -> bool {
        let unit = sys_flag & FLAG_UNIT != 0;
        let unit_sub = sys_flag & FLAG_UNIT_SUB != 0;
        match self {
            Self::All => true,
            Self::Unit => unit,
            Self::UnitSub => unit_sub,
            Self::UnitSubNotUnit => unit_sub && !unit,
        }
    }
}

/// Why a topic was not registered by name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterTopicError {
    /// The route would name a broker nobody can reach.
    #[error("broker {broker} of topic {topic} is not registered")]
    UnknownBroker {
        /// The topic.
        topic: TopicName,
        /// The broker nobody registered.
        broker: String,
    },
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) broker: BrokerName,
    pub(super) queues: QueueSettings,
}

#[derive(Debug, Default)]
pub(super) struct Topic {
    pub(super) entries: Vec<Entry>,
    pub(super) answers: Option<Box<Answers>>,
}

impl Topic {
    pub(super) fn get(&self, broker: &str) -> Option<&QueueSettings> {
        let at = self.position(broker).ok()?;
        self.entries.get(at).map(|entry| &entry.queues)
    }

    /// Writes an entry; true when it differs from what stood there.
    pub(super) fn put(&mut self, broker: &BrokerName, queues: QueueSettings) -> bool {
        match self.position(broker.as_str()) {
            Ok(at) => match self.entries.get_mut(at) {
                Some(entry) if entry.queues != queues => entry.queues = queues,
                _ => return false,
            },
            Err(at) => self.entries.insert(
                at,
                Entry {
                    broker: broker.clone(),
                    queues,
                },
            ),
        }
        self.answers = None;
        true
    }

    /// Removes the entries that `keep` refuses; true when one went.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&BrokerName) -> bool) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| keep(&entry.broker));
        let changed = self.entries.len() != before;
        if changed {
            self.answers = None;
        }
        changed
    }

    /// Rewrites a permission; true when the topic is on that broker at all.
    pub(super) fn set_perm(&mut self, broker: &str, change: impl FnOnce(i32) -> i32) -> bool {
        let Ok(at) = self.position(broker) else {
            return false;
        };
        let Some(entry) = self.entries.get_mut(at) else {
            return false;
        };
        let perm = change(entry.queues.perm);
        if perm != entry.queues.perm {
            entry.queues.perm = perm;
            self.answers = None;
        }
        true
    }

    fn position(&self, broker: &str) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| entry.broker.as_str().cmp(broker))
    }
}

impl RouteTable {
    /// Registers a topic for brokers that are in the table (request 217); all of it or nothing.
    pub fn register_topic(
        &mut self,
        topic: &TopicName,
        queues: &[(String, QueueSettings)],
    ) -> Result<(), RegisterTopicError> {
        let mut entries = Vec::with_capacity(queues.len());
        for (broker, settings) in queues {
            let Some((name, _)) = self.groups.get_key_value(broker.as_str()) else {
                return Err(RegisterTopicError::UnknownBroker {
                    topic: topic.clone(),
                    broker: broker.clone(),
                });
            };
            entries.push((name.clone(), *settings));
        }
        if entries.is_empty() {
            return Ok(());
        }
        let topic = self.topics.entry(topic.clone()).or_default();
        for (broker, settings) in entries {
            topic.put(&broker, settings);
        }
        Ok(())
    }

    /// Removes a topic everywhere, or only from the brokers of one cluster (request 216).
    pub fn delete_topic(&mut self, name: &str, cluster: Option<&str>) {
        let Some(topic) = self.topics.get_mut(name) else {
            return;
        };
        if let Some(cluster) = cluster {
            let Some(brokers) = self.clusters.get(cluster) else {
                return;
            };
            topic.retain(|broker| !brokers.contains(broker));
        } else {
            topic.entries.clear();
        }
        if topic.entries.is_empty() {
            self.topics.remove(name);
            self.mappings.remove(name);
        }
    }
}
