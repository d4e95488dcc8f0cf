//! The replicated state and what can be read from it.
//!
//! **Invariant:** [`State::check`] holds after every command: a master is a member of its set, a set
//! holds registered brokers only, ids are below the next one to be given. Maps are ordered, so equal
//! states have equal snapshots.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rmq_types::{BrokerId, BrokerName, ClusterName, MasterEpoch, SyncStateSetEpoch, Timestamp};
use serde::{Deserialize, Serialize};

use crate::command::AckPolicy;

/// Groups that may exist, and dropped groups whose ids are remembered.
pub const GROUPS_MAX: usize = 10_000;
/// Brokers of one group.
pub const REPLICAS_MAX: usize = 64;
/// Bytes of an address or a check code.
pub(crate) const TEXT_BYTES_MAX: usize = 512;
/// Elections that a group remembers.
pub const HISTORY_MAX: usize = 16;
/// The id that the first broker of a group must ask for.
pub const FIRST_BROKER_ID: BrokerId = BrokerId::new(1);

/// All that the controllers agree on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub(crate) groups: BTreeMap<BrokerName, BrokerGroup>,
    /// Next ids of dropped groups: an id is never given to two brokers.
    pub(crate) dropped: BTreeMap<BrokerName, BrokerId>,
    pub(crate) config: BTreeMap<String, String>,
}

/// One group of brokers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerGroup {
    pub(crate) cluster: ClusterName,
    pub(crate) replicas: BTreeMap<BrokerId, Replica>,
    pub(crate) next_id: BrokerId,
    pub(crate) master: Option<BrokerId>,
    pub(crate) epoch: MasterEpoch,
    pub(crate) set: BTreeSet<BrokerId>,
    pub(crate) set_epoch: SyncStateSetEpoch,
    pub(crate) ack: AckPolicy,
    pub(crate) unsettled: Option<Electorate>,
    pub(crate) history: VecDeque<ElectionRecord>,
}

/// A registered broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    /// `host:port`; the address of the check code until the broker registers.
    pub address: String,
    /// What it applied for its id with.
    pub check_code: String,
}

/// The members among whom the messages of earlier epochs surely are, until the present master has
/// brought its whole set up to its own start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Electorate {
    /// The members.
    pub members: BTreeSet<BrokerId>,
    /// How many of them must be heard so that one holds every acknowledged message.
    pub needed: usize,
}

/// An election that was held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElectionRecord {
    /// The epoch that began.
    pub epoch: MasterEpoch,
    /// Its master; none if nobody could be elected.
    pub master: Option<BrokerId>,
    /// The leader's time.
    #[serde(with = "crate::stored_time")]
    pub at: Timestamp,
    /// Acknowledged messages may have been lost.
    pub unclean: bool,
}

/// The master of a group as answers show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterView {
    /// Its id.
    pub broker: BrokerId,
    /// Where clients reach it.
    pub address: String,
}

/// What answers say of a group (1002, 1003, 1004).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// The cluster.
    pub cluster: ClusterName,
    /// The group.
    pub group: BrokerName,
    /// The master, if there is one.
    pub master: Option<MasterView>,
    /// Its epoch.
    pub epoch: MasterEpoch,
    /// The SyncStateSet.
    pub set: BTreeSet<BrokerId>,
    /// Its epoch.
    pub set_epoch: SyncStateSetEpoch,
    /// How the epoch acknowledges: a master that asks for more members than this is safe too.
    pub ack: AckPolicy,
    /// Its election may have lost messages, which somebody acknowledged: a master that may lack
    /// bytes takes office only then, or where nothing was promised.
    pub unclean: bool,
    /// Addresses of all registered brokers.
    pub members: BTreeMap<BrokerId, String>,
}

impl State {
    /// A group by name.
    #[must_use]
    pub fn group(&self, name: &BrokerName) -> Option<&BrokerGroup> {
        self.groups.get(name)
    }

    /// Every group, by name.
    pub fn groups(&self) -> impl Iterator<Item = (&BrokerName, &BrokerGroup)> {
        self.groups.iter()
    }

    /// The id that a new broker of the group should apply for (request 1012).
    #[must_use]
    pub fn next_broker_id(&self, name: &BrokerName) -> BrokerId {
        let group = self.groups.get(name).map(|group| group.next_id);
        group
            .or_else(|| self.dropped.get(name).copied())
            .unwrap_or(FIRST_BROKER_ID)
    }

    /// Master and set of a group (request 1004); none for a group that is not known (code 2008).
    #[must_use]
    pub fn view(&self, name: &BrokerName) -> Option<GroupView> {
        let group = self.groups.get(name)?;
        Some(group.view(name))
    }

    /// The stored configuration (request 1010).
    #[must_use]
    pub fn config(&self) -> &BTreeMap<String, String> {
        &self.config
    }

    /// What must hold after every command; the text names what does not.
    pub fn check(&self) -> Result<(), String> {
        for (name, group) in &self.groups {
            group.check().map_err(|what| format!("{name}: {what}"))?;
            if self.dropped.contains_key(name) {
                return Err(format!("{name}: present and dropped"));
            }
        }
        Ok(())
    }
}

impl BrokerGroup {
    pub(crate) fn new(cluster: ClusterName, next_id: BrokerId) -> Self {
        Self {
            cluster,
            replicas: BTreeMap::new(),
            next_id,
            master: None,
            epoch: MasterEpoch::default(),
            set: BTreeSet::new(),
            set_epoch: SyncStateSetEpoch::default(),
            ack: AckPolicy::default(),
            unsettled: None,
            history: VecDeque::new(),
        }
    }

    /// Its cluster.
    #[must_use]
    pub fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    /// Every registered broker.
    #[must_use]
    pub fn replicas(&self) -> &BTreeMap<BrokerId, Replica> {
        &self.replicas
    }

    /// The master's id.
    #[must_use]
    pub fn master(&self) -> Option<BrokerId> {
        self.master
    }

    /// The epoch of the master.
    #[must_use]
    pub fn epoch(&self) -> MasterEpoch {
        self.epoch
    }

    /// The SyncStateSet.
    #[must_use]
    pub fn set(&self) -> &BTreeSet<BrokerId> {
        &self.set
    }

    /// The epoch of the SyncStateSet.
    #[must_use]
    pub fn set_epoch(&self) -> SyncStateSetEpoch {
        self.set_epoch
    }

    /// How the present epoch acknowledges.
    #[must_use]
    pub fn ack(&self) -> AckPolicy {
        self.ack
    }

    /// Among whom earlier epochs' messages are, while the present master still brings its set up.
    #[must_use]
    pub fn unsettled(&self) -> Option<&Electorate> {
        self.unsettled.as_ref()
    }

    /// The last elections, oldest first.
    pub fn history(&self) -> impl Iterator<Item = &ElectionRecord> {
        self.history.iter()
    }

    pub(crate) fn view(&self, name: &BrokerName) -> GroupView {
        let master = self.master.and_then(|id| {
            let replica = self.replicas.get(&id)?;
            Some(MasterView {
                broker: id,
                address: replica.address.clone(),
            })
        });
        let members = self.replicas.iter();
        GroupView {
            cluster: self.cluster.clone(),
            group: name.clone(),
            master,
            epoch: self.epoch,
            set: self.set.clone(),
            set_epoch: self.set_epoch,
            ack: self.ack,
            unclean: self.history.back().is_some_and(|last| last.unclean),
            members: members
                .map(|(id, replica)| (*id, replica.address.clone()))
                .collect(),
        }
    }

    pub(crate) fn remember(&mut self, record: ElectionRecord) {
        if self.history.len() >= HISTORY_MAX {
            self.history.pop_front();
        }
        self.history.push_back(record);
    }

    fn check(&self) -> Result<(), &'static str> {
        let registered = |id: &BrokerId| self.replicas.contains_key(id);
        if self.master.is_some_and(|id| !self.set.contains(&id)) {
            return Err("the master is outside its set");
        }
        if !self.set.iter().all(registered) {
            return Err("the set holds a broker that is not registered");
        }
        if self.replicas.keys().any(|id| *id >= self.next_id) {
            return Err("an id was given that is not below the next one");
        }
        if self.replicas.is_empty() {
            return Err("a group without brokers");
        }
        if let Some(unsettled) = &self.unsettled {
            if !unsettled.members.iter().all(registered) {
                return Err("the electorate holds a broker that is not registered");
            }
            if unsettled.needed > unsettled.members.len() {
                return Err("the electorate is smaller than what is needed of it");
            }
        }
        if self.replicas.len() > REPLICAS_MAX || self.history.len() > HISTORY_MAX {
            return Err("a bound is passed");
        }
        Ok(())
    }
}
