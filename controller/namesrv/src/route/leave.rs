//! How brokers leave the table: their own word, a closed connection, silence. Also the signs of
//! life that put silence off.
//!
//! **Invariant:** a closed connection or a late word only takes away what was registered over that
//! connection or an older one; a fresh registration over a newer connection stays.

use std::collections::{BTreeMap, BTreeSet};

use rmq_types::{BrokerName, ClusterName, Timestamp};

use super::{
    Action, ConnectionToken, DataVersion, MemberKey, MinIdChange, RouteTable, topic::PERM_WRITE,
};

/// A broker's word that it leaves (request 104).
#[derive(Clone, Copy, Debug)]
pub struct Unregister<'a> {
    /// Its cluster.
    pub cluster: &'a str,
    /// Its group.
    pub broker: &'a str,
    /// Its address.
    pub addr: &'a str,
    /// The connection the word came over.
    pub connection: ConnectionToken,
}

/// What is left to do for a set of members that left.
#[derive(Default)]
struct Departed {
    /// Groups without members.
    removed: BTreeSet<BrokerName>,
    /// Groups whose replicas stay without a master: their topics lose the write bit.
    headless: BTreeSet<BrokerName>,
    /// Groups whose smallest id went away, with its address.
    min_left: BTreeMap<BrokerName, String>,
}

impl RouteTable {
    /// Takes a broker out on its word; `None` when it is not in the table or has registered again
    /// over a newer connection.
    pub fn unregister(&mut self, word: Unregister<'_>) -> Option<Vec<Action>> {
        let (name, group) = self.groups.get_key_value(word.broker)?;
        if group.cluster.as_str() != word.cluster {
            return None;
        }
        let id = group.id_of(word.addr)?;
        if group.members.get(&id)?.connection > word.connection {
            return None;
        }
        let key = MemberKey {
            broker: name.clone(),
            id,
        };
        Some(self.remove_members(&[key]))
    }

    /// Takes out every broker that registered over this connection and not since over another.
    pub fn connection_closed(&mut self, connection: ConnectionToken) -> Vec<Action> {
        let Some(keys) = self.connections.get(&connection).cloned() else {
            return Vec::new();
        };
        self.remove_members(&keys)
    }

    /// Takes out the brokers that were silent for too long. `interval_millis` is the usual time
    /// between scans: time in which this process could not listen (it was stopped, or the clock
    /// jumped) counts against nobody.
    pub fn expire(&mut self, now: Timestamp, interval_millis: i64) -> Vec<Action> {
        let passed = self
            .scanned_at
            .replace(now)
            .map_or(0, |last| now.since(last));
        let deaf = passed
            .saturating_sub(interval_millis.saturating_mul(2))
            .max(0);
        let mut silent = Vec::new();
        for (broker, group) in &mut self.groups {
            for (id, member) in &mut group.members {
                if deaf > 0 && member.heard_at < now {
                    let heard_at = member.heard_at.plus_millis(deaf);
                    member.heard_at = heard_at.min(now);
                }
                if member.is_silent(now) {
                    silent.push((
                        MemberKey {
                            broker: broker.clone(),
                            id: *id,
                        },
                        member.connection,
                    ));
                }
            }
        }
        let keys: Vec<MemberKey> = silent.iter().map(|(key, _)| key.clone()).collect();
        let mut actions = self.remove_members(&keys);
        let connections: BTreeSet<ConnectionToken> =
            silent.iter().map(|(_, connection)| *connection).collect();
        let unused = connections
            .into_iter()
            .filter(|one| !self.connections.contains_key(one));
        actions.extend(unused.map(Action::Close));
        actions
    }

    /// A sign of life (request 904); false when the broker is not in the table.
    pub fn heartbeat(&mut self, now: Timestamp, cluster: &str, broker: &str, addr: &str) -> bool {
        let member = self
            .groups
            .get_mut(broker)
            .filter(|group| group.cluster.as_str() == cluster)
            .and_then(|group| group.member_at_mut(addr));
        let found = member.is_some();
        if let Some(member) = member {
            member.heard_at = now;
        }
        found
    }

    /// The topic-table version a broker registered last (request 322).
    #[must_use]
    pub fn data_version(&self, cluster: &str, broker: &str, addr: &str) -> Option<DataVersion> {
        self.groups
            .get(broker)
            .filter(|group| group.cluster.as_str() == cluster)
            .and_then(|group| group.member_at(addr))
            .map(|member| member.version)
    }

    pub(super) fn unlink(&mut self, connection: ConnectionToken, key: &MemberKey) {
        if let Some(keys) = self.connections.get_mut(&connection) {
            keys.retain(|one| one != key);
            if keys.is_empty() {
                self.connections.remove(&connection);
            }
        }
    }

    pub(super) fn leave_cluster(&mut self, cluster: &ClusterName, broker: &BrokerName) {
        if let Some(names) = self.clusters.get_mut(cluster) {
            names.remove(broker);
            if names.is_empty() {
                self.clusters.remove(cluster);
            }
        }
    }

    fn remove_members(&mut self, keys: &[MemberKey]) -> Vec<Action> {
        if keys.is_empty() {
            return Vec::new();
        }
        let mut departed = Departed::default();
        for key in keys {
            self.remove_member(key, &mut departed);
        }
        self.epoch += 1;
        self.clean_topics(&departed);
        if !self.policy.notify_min_broker_id_changed {
            return Vec::new();
        }
        departed
            .min_left
            .iter()
            .filter_map(|(broker, gone)| self.min_left(broker, gone))
            .collect()
    }

    fn remove_member(&mut self, key: &MemberKey, departed: &mut Departed) {
        let Some(group) = self.groups.get_mut(&key.broker) else {
            return;
        };
        let was_min = group.min_id() == Some(key.id);
        let Some(member) = group.members.remove(&key.id) else {
            return;
        };
        if group.members.is_empty() {
            let cluster = group.cluster.clone();
            self.groups.remove(&key.broker);
            self.leave_cluster(&cluster, &key.broker);
            departed.headless.remove(&key.broker);
            departed.removed.insert(key.broker.clone());
        } else {
            if group.acting_master && !group.has_master() {
                departed.headless.insert(key.broker.clone());
            }
            if was_min && group.acting_master {
                departed
                    .min_left
                    .insert(key.broker.clone(), member.addr.clone());
            }
        }
        self.unlink(member.connection, key);
    }

    /// The notice to those who stay.
    fn min_left(&self, broker: &BrokerName, gone: &str) -> Option<Action> {
        let group = self.groups.get(broker)?;
        let (id, min) = group.members.first_key_value()?;
        Some(Action::Notify(MinIdChange {
            broker: broker.clone(),
            min_id: *id,
            min_addr: min.addr.clone(),
            offline_addr: Some(gone.to_owned()),
            ha_addr: None,
            receivers: group.addresses().map(str::to_owned).collect(),
        }))
    }

    fn clean_topics(&mut self, departed: &Departed) {
        if departed.removed.is_empty() && departed.headless.is_empty() {
            return;
        }
        self.topics.retain(|_, topic| {
            topic.retain(|broker| !departed.removed.contains(broker));
            for broker in &departed.headless {
                topic.set_perm(broker.as_str(), |perm| perm & !PERM_WRITE);
            }
            !topic.entries.is_empty()
        });
        let topics = &self.topics;
        self.mappings.retain(|name, _| topics.contains_key(name));
    }
}
