//! Producer groups with live members (`ProducerManager`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

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

/// Most groups that one connection may be in.
pub(crate) const GROUPS_OF_A_CONNECTION_MAX: usize = 1024;

/// All groups.
#[derive(Debug)]
pub(crate) struct Producers<C> {
    groups: HashMap<String, BTreeMap<u64, Producer<C>>>,
    /// The groups of each connection.
    of: HashMap<u64, BTreeSet<String>>,
}

impl<C> Default for Producers<C> {
    fn default() -> Self {
        Self {
            groups: HashMap::new(),
            of: HashMap::new(),
        }
    }
}

impl<C: Clone> Producers<C> {
    /// Takes a heartbeat of one group; `false` if the connection is in as many groups as it may be.
    #[must_use]
    pub(crate) fn heartbeat(
        &mut self,
        group: &str,
        connection: u64,
        producer: Producer<C>,
    ) -> bool {
        let own = self.of.entry(connection).or_default();
        if !own.contains(group) {
            if own.len() >= GROUPS_OF_A_CONNECTION_MAX {
                return false;
            }
            own.insert(group.to_owned());
        }
        self.groups
            .entry(group.to_owned())
            .or_default()
            .insert(connection, producer);
        true
    }

    /// Takes a connection out of every group.
    pub(crate) fn leave_all(&mut self, connection: u64) {
        for group in self.of.remove(&connection).unwrap_or_default() {
            self.take_out(&group, connection);
        }
    }

    /// Takes a connection out of one group.
    pub(crate) fn leave(&mut self, group: &str, connection: u64) {
        self.take_out(group, connection);
        self.forget(group, connection);
    }

    fn take_out(&mut self, group: &str, connection: u64) {
        if let Some(members) = self.groups.get_mut(group) {
            members.remove(&connection);
            if members.is_empty() {
                self.groups.remove(group);
            }
        }
    }

    fn forget(&mut self, group: &str, connection: u64) {
        if let Some(own) = self.of.get_mut(&connection) {
            own.remove(group);
            if own.is_empty() {
                self.of.remove(&connection);
            }
        }
    }

    /// Drops members silent for `millis`.
    pub(crate) fn expire(&mut self, now: Timestamp, millis: i64) {
        let mut silent = Vec::new();
        for (group, members) in &self.groups {
            let gone = members
                .iter()
                .filter(|(_, member)| now.since(member.seen) > millis);
            silent.extend(gone.map(|(connection, _)| (group.clone(), *connection)));
        }
        for (group, connection) in silent {
            self.leave(&group, connection);
        }
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
        assert!(table.heartbeat("g", 1, producer(0)));
        assert!(table.heartbeat("g", 2, producer(100)));
        table.expire(Timestamp::from_millis(150), 100);
        assert_eq!(table.members("g").unwrap().len(), 1);
        table.leave_all(2);
        assert!(table.members("g").is_none());
    }

    #[test]
    fn a_connection_is_in_a_bounded_number_of_groups_whatever_it_names() {
        let mut table = Producers::default();
        for number in 0..GROUPS_OF_A_CONNECTION_MAX {
            assert!(table.heartbeat(&format!("g{number}"), 1, producer(0)));
        }
        assert!(!table.heartbeat("one more", 1, producer(0)));
        assert!(table.members("one more").is_none());
        assert!(table.heartbeat("g0", 1, producer(1)), "one it is in");
        assert!(
            table.heartbeat("one more", 2, producer(0)),
            "another connection"
        );
        table.leave("g0", 1);
        assert!(
            table.heartbeat("one more", 1, producer(0)),
            "there is room again"
        );
        table.expire(Timestamp::from_millis(1000), 100);
        assert!(
            table.groups.is_empty() && table.of.is_empty(),
            "nothing stays behind"
        );
    }
}
