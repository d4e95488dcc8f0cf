//! Producer groups with live members (`ProducerManager`).

use std::collections::{BTreeMap, HashMap};

use rmq_protocol::remoting::Language;
use rmq_types::Timestamp;

/// One producer.
#[derive(Clone, Debug)]
pub(crate) struct Producer<C> {
    /// Its client id.
    pub client_id: String,
    /// What it is written in.
    pub language: Language,
    /// Its version's ordinal.
    pub version: i32,
    /// How to reach it.
    pub channel: C,
    /// Last heartbeat.
    pub seen: Timestamp,
}

/// All groups.
#[derive(Debug)]
pub(crate) struct Producers<C> {
    groups: HashMap<String, BTreeMap<u64, Producer<C>>>,
}

impl<C> Default for Producers<C> {
    fn default() -> Self {
        Self {
            groups: HashMap::new(),
        }
    }
}

impl<C: Clone> Producers<C> {
    /// Takes a heartbeat of one group.
    pub(crate) fn heartbeat(&mut self, group: &str, connection: u64, producer: Producer<C>) {
        self.groups
            .entry(group.to_owned())
            .or_default()
            .insert(connection, producer);
    }

    /// Takes a connection out of every group.
    pub(crate) fn leave_all(&mut self, connection: u64) {
        self.groups.retain(|_, members| {
            members.remove(&connection);
            !members.is_empty()
        });
    }

    /// Takes a connection out of one group.
    pub(crate) fn leave(&mut self, group: &str, connection: u64) {
        if let Some(members) = self.groups.get_mut(group) {
            members.remove(&connection);
            if members.is_empty() {
                self.groups.remove(group);
            }
        }
    }

    /// Drops members silent for `millis`.
    pub(crate) fn expire(&mut self, now: Timestamp, millis: i64) {
        self.groups.retain(|_, members| {
            members.retain(|_, member| now.since(member.seen) <= millis);
            !members.is_empty()
        });
    }

    /// The members of a group; `None`: nobody is online.
    #[must_use]
    pub(crate) fn members(&self, group: &str) -> Option<Vec<Producer<C>>> {
        self.groups
            .get(group)
            .map(|members| members.values().cloned().collect())
    }

    /// The producer with a client id, in whatever group.
    #[must_use]
    pub(crate) fn by_client_id(&self, client_id: &str) -> Option<Producer<C>> {
        let mut all = self.groups.values().flat_map(BTreeMap::values);
        all.find(|producer| producer.client_id == client_id)
            .cloned()
    }

    /// Every group with its members.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Vec<&Producer<C>>)> {
        self.groups
            .iter()
            .map(|(name, members)| (name.as_str(), members.values().collect()))
    }

    /// How many producers of each language and version there are.
    #[must_use]
    pub(crate) fn kinds(&self) -> BTreeMap<(&'static str, i32), usize> {
        let mut kinds = BTreeMap::new();
        for producer in self.groups.values().flat_map(BTreeMap::values) {
            let kind = (producer.language.name(), producer.version);
            *kinds.entry(kind).or_default() += 1;
        }
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn producer(seen: i64) -> Producer<()> {
        Producer {
            client_id: "c".to_owned(),
            language: Language::Java,
            version: 479,
            channel: (),
            seen: Timestamp::from_millis(seen),
        }
    }

    #[test]
    fn a_silent_producer_goes_and_a_closed_connection_goes_at_once() {
        let mut table = Producers::default();
        table.heartbeat("g", 1, producer(0));
        table.heartbeat("g", 2, producer(100));
        table.expire(Timestamp::from_millis(150), 100);
        assert_eq!(table.members("g").unwrap().len(), 1);
        table.leave_all(2);
        assert!(table.members("g").is_none());
    }
}
