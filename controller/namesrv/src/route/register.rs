//! A broker's registration, the rules of `RouteInfoManager.registerBroker` in their order.
//!
//! **Invariant:** a refused or ignored registration never removes another member. Differs from
//! Java in what a refusal leaves behind: nothing (Java keeps an empty group), and in that a broker
//! name belongs to one cluster.

use std::collections::HashSet;

use rmq_types::{BrokerId, BrokerName, ClusterName, MASTER_ID, Timestamp, TopicName};

use super::{
    Action, ConnectionToken, DataVersion, Mapping, Member, MemberKey, MinIdChange, RouteTable,
    TopicSettings, group::Group, topic::PERM_WRITE,
};

/// Silence after which a broker is dropped that named no time of its own.
pub(crate) const SILENCE_MILLIS_DEFAULT: i64 = 120_000;

/// What a broker says of itself.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Its cluster.
    pub cluster: ClusterName,
    /// Its group.
    pub broker: BrokerName,
    /// Its id in the group.
    pub id: BrokerId,
    /// Where clients reach it.
    pub addr: String,
    /// Where replicas reach it.
    pub ha_addr: String,
    /// Its zone.
    pub zone: Option<String>,
    /// How long it may be silent; 120 s when it does not say.
    pub silence_millis_max: Option<i64>,
    /// Whether a replica may act as master; brokers before 5.0 do not say.
    pub acting_master: Option<bool>,
    /// Version of its topic table.
    pub version: DataVersion,
    /// Its topics, or the changed ones.
    pub topics: Vec<TopicSettings>,
    /// Topics it named that were left out because they cannot be served.
    pub topics_skipped: usize,
    /// Whether `topics` is the whole table: topics not in it are gone from the broker.
    pub topics_complete: bool,
    /// Static topics.
    pub mappings: Vec<(TopicName, Mapping)>,
    /// Its filter servers; `None` leaves them as they are.
    pub filter_servers: Option<Vec<String>>,
    /// The connection it registers over.
    pub connection: ConnectionToken,
}

/// Why a registration was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// A broker that is not in the table came with one topic: that is an increment to a
    /// registration that has not been.
    #[error(
        "register broker failed: broker {broker} id {id} has not registered its whole topic table yet"
    )]
    NotYetRegistered {
        /// The group.
        broker: BrokerName,
        /// The id.
        id: BrokerId,
    },
    /// The name is in use in another cluster.
    #[error("register broker failed: broker name {broker} is in use in cluster {cluster}")]
    NameOfOtherCluster {
        /// The group.
        broker: BrokerName,
        /// The cluster it belongs to.
        cluster: ClusterName,
    },
}

/// What a registration did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {
    /// The broker is in the table.
    Accepted(Accepted),
    /// Somebody with a newer state has the id: nothing was taken over. The broker gets an empty
    /// success.
    Superseded {
        /// Who has the id.
        holder: String,
    },
}

/// The answer to an accepted registration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// For a replica: the master's address.
    pub master_addr: Option<String>,
    /// For a replica: where the master serves replicas.
    pub master_ha_addr: Option<String>,
    /// Whether the broker was not in the table before.
    pub is_new: bool,
    /// What is left to do.
    pub actions: Vec<Action>,
}

/// Who stood under the id before a registration.
#[derive(Clone, Copy)]
enum Previous {
    Nobody,
    OtherAddress,
    Same(DataVersion),
}

/// What the topics of a registration are judged by.
struct TopicRules {
    /// Every topic is written, not only the ones that are missing.
    all: bool,
    /// The write bit is taken off: a replica acts as master.
    read_only: bool,
    /// Topics not in the registration are removed.
    complete: bool,
}

impl RouteTable {
    /// Takes a registration.
    pub fn register(
        &mut self,
        now: Timestamp,
        registration: &Registration,
    ) -> Result<Registered, RegisterError> {
        if let Some(holder) = self.check(registration)? {
            self.drop_other_ids(registration);
            return Ok(Registered::Superseded { holder });
        }
        let previous_min = self
            .groups
            .get(&registration.broker)
            .and_then(Group::min_id)
            .unwrap_or(MASTER_ID);
        self.drop_other_ids(registration);
        let previous = self.put_member(now, registration);
        self.apply_topics(registration, previous);

        let mut accepted = Accepted {
            is_new: matches!(previous, Previous::Nobody),
            ..Accepted::default()
        };
        let Some(group) = self.groups.get(&registration.broker) else {
            return Ok(Registered::Accepted(accepted));
        };
        if registration.id != MASTER_ID
            && let Some(master) = group.members.get(&MASTER_ID)
        {
            accepted.master_addr = Some(master.addr.clone());
            accepted.master_ha_addr = Some(master.ha_addr.clone());
        }
        if registration.id < previous_min && self.policy.notify_min_broker_id_changed {
            accepted.actions.extend(came_online(group, registration));
        }
        Ok(Registered::Accepted(accepted))
    }

    /// Rules 3 and 4 before anything is touched; `Some` names the holder who keeps the id.
    fn check(&self, registration: &Registration) -> Result<Option<String>, RegisterError> {
        let group = self.groups.get(&registration.broker);
        if let Some(group) = group
            && group.cluster != registration.cluster
            && group
                .members
                .values()
                .any(|member| member.addr != registration.addr)
        {
            return Err(RegisterError::NameOfOtherCluster {
                broker: registration.broker.clone(),
                cluster: group.cluster.clone(),
            });
        }
        match group.and_then(|group| group.members.get(&registration.id)) {
            Some(member) => {
                let loses = member.addr != registration.addr
                    && member.version.state_version > registration.version.state_version;
                Ok(loses.then(|| member.addr.clone()))
            }
            None if registration.topics.len() + registration.topics_skipped == 1 => {
                Err(RegisterError::NotYetRegistered {
                    broker: registration.broker.clone(),
                    id: registration.id,
                })
            }
            None => Ok(None),
        }
    }

    /// Rule 2: the address left its former id.
    fn drop_other_ids(&mut self, registration: &Registration) {
        let Some(group) = self.groups.get_mut(&registration.broker) else {
            return;
        };
        let Some(old) = group
            .id_of(&registration.addr)
            .filter(|id| *id != registration.id)
        else {
            return;
        };
        let member = group.members.remove(&old);
        self.epoch += 1;
        if let Some(member) = member {
            let key = MemberKey {
                broker: registration.broker.clone(),
                id: old,
            };
            self.unlink(member.connection, &key);
        }
    }

    /// Rules 1, 7 and 8: group, cluster and live entry.
    fn put_member(&mut self, now: Timestamp, registration: &Registration) -> Previous {
        self.move_cluster(registration);
        let group = self
            .groups
            .entry(registration.broker.clone())
            .or_insert_with(|| Group::new(registration.cluster.clone()));
        let acting_master = registration.acting_master.unwrap_or(false);
        if group.acting_master != acting_master || group.zone != registration.zone {
            group.acting_master = acting_master;
            group.zone.clone_from(&registration.zone);
            self.epoch += 1;
        }
        let previous = group.members.remove(&registration.id);
        let same = previous
            .as_ref()
            .filter(|member| member.addr == registration.addr);
        let filters = registration.filter_servers.clone().unwrap_or_else(|| {
            same.map(|member| member.filter_servers.clone())
                .unwrap_or_default()
        });
        if same.is_none_or(|member| member.filter_servers != filters) {
            self.epoch += 1;
        }
        let outcome = match (&previous, same) {
            (None, _) => Previous::Nobody,
            (Some(_), None) => Previous::OtherAddress,
            (Some(_), Some(member)) => Previous::Same(member.version),
        };
        let old_connection = previous.as_ref().map(|member| member.connection);
        let member = Member {
            addr: registration.addr.clone(),
            ha_addr: registration.ha_addr.clone(),
            version: registration.version,
            heard_at: now,
            silence_millis_max: registration
                .silence_millis_max
                .filter(|millis| *millis > 0)
                .unwrap_or(SILENCE_MILLIS_DEFAULT),
            connection: registration.connection,
            filter_servers: filters,
        };
        group.members.insert(registration.id, member);
        self.link(registration, old_connection);
        outcome
    }

    fn move_cluster(&mut self, registration: &Registration) {
        if let Some(group) = self.groups.get_mut(&registration.broker)
            && group.cluster != registration.cluster
        {
            let old = std::mem::replace(&mut group.cluster, registration.cluster.clone());
            self.leave_cluster(&old, &registration.broker);
            self.epoch += 1;
        }
        let names = self
            .clusters
            .entry(registration.cluster.clone())
            .or_default();
        if !names.contains(&registration.broker) {
            names.insert(registration.broker.clone());
        }
    }

    fn link(&mut self, registration: &Registration, old: Option<ConnectionToken>) {
        if old == Some(registration.connection) {
            return;
        }
        let key = MemberKey {
            broker: registration.broker.clone(),
            id: registration.id,
        };
        if let Some(old) = old {
            self.unlink(old, &key);
        }
        self.connections
            .entry(registration.connection)
            .or_default()
            .push(key);
    }

    /// Rules 5 and 6: topics come from the master, or from the smallest replica of a broker that
    /// knows of acting masters, and only when its table changed or the topic is missing here.
    fn apply_topics(&mut self, registration: &Registration, previous: Previous) {
        let Some(group) = self.groups.get(&registration.broker) else {
            return;
        };
        let is_master = registration.id == MASTER_ID;
        let is_prime_replica = !is_master
            && registration.acting_master.is_some()
            && group.min_id() == Some(registration.id);
        if !is_master && !is_prime_replica {
            return;
        }
        let changed =
            !matches!(previous, Previous::Same(version) if version == registration.version);
        let complete = registration.topics_complete || self.policy.delete_topic_with_registration;
        let rules = TopicRules {
            all: changed,
            read_only: is_prime_replica && group.acting_master,
            complete: complete && registration.mappings.is_empty(),
        };
        self.write_topics(registration, &rules);
        if changed {
            for (topic, mapping) in &registration.mappings {
                let by_broker = self.mappings.entry(topic.clone()).or_default();
                let name = mapping.bname.clone().unwrap_or_default();
                by_broker.insert(name, mapping.clone());
                if let Some(topic) = self.topics.get_mut(topic) {
                    topic.answers = None;
                }
            }
        }
    }

    fn write_topics(&mut self, registration: &Registration, rules: &TopicRules) {
        if rules.complete {
            let named: HashSet<&TopicName> = registration
                .topics
                .iter()
                .map(|topic| &topic.name)
                .collect();
            self.topics.retain(|name, topic| {
                if !named.contains(name) {
                    topic.retain(|broker| *broker != registration.broker);
                }
                !topic.entries.is_empty()
            });
            let topics = &self.topics;
            self.mappings.retain(|name, _| topics.contains_key(name));
        }
        for settings in &registration.topics {
            let topic = match self.topics.get_mut(&settings.name) {
                Some(topic) => topic,
                None => self.topics.entry(settings.name.clone()).or_default(),
            };
            if !rules.all && topic.get(registration.broker.as_str()).is_some() {
                continue;
            }
            let mut queues = settings.queues;
            if rules.read_only {
                queues.perm &= !PERM_WRITE;
            }
            topic.put(&registration.broker, queues);
        }
    }
}

/// Rule 10: who hears of a new smallest id. A group of one tells that one, else all but the new.
fn came_online(group: &Group, registration: &Registration) -> Option<Action> {
    let alone = group.members.len() == 1;
    let receivers: Vec<String> = group
        .members
        .iter()
        .filter(|(id, _)| alone || **id != registration.id)
        .map(|(_, member)| member.addr.clone())
        .collect();
    (!receivers.is_empty()).then(|| {
        Action::Notify(MinIdChange {
            broker: registration.broker.clone(),
            min_id: registration.id,
            min_addr: registration.addr.clone(),
            offline_addr: None,
            ha_addr: Some(registration.ha_addr.clone()),
            receivers,
        })
    })
}
