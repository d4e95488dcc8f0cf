//! One look at a cluster: objects, pods, disks, and what brokers and NameServers say.
//!
//! **Invariant:** an absent fact is told apart from an empty one. A plan made from an [`Observed`]
//! whose `fresh` is false takes no disruptive step.

use super::{PodSeen, VolumeSeen};
use rmq_operator_api::DrainPhase;
use rmq_types::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// What somebody said when asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// It was asked and answered.
    Known(T),
    /// It could not be asked, or did not answer; the text says why.
    Unknown(String),
}

impl<T> Answer<T> {
    /// The answer, if there is one.
    #[must_use]
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Nobody was asked yet.
    #[must_use]
    pub fn not_asked() -> Self {
        Self::Unknown("not asked yet".to_owned())
    }
}

/// One look at a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Whether every cache had synced, so that what is absent here is absent.
    pub fresh: bool,
    /// The `RocketMQCluster` itself.
    pub cluster: ClusterSeen,
    /// The NameServers.
    pub name_servers: NameServersSeen,
    /// The broker groups that exist in any form, by index.
    pub groups: BTreeMap<i32, GroupSeen>,
}

/// The `RocketMQCluster` object and what all parts share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSeen {
    /// `metadata.uid`.
    pub uid: String,
    /// Whether our finalizer is on it.
    pub has_finalizer: bool,
    /// The objects of no part: ServiceAccounts, policies.
    pub objects: ObjectsState,
}

/// The objects of a part compared with what is built for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectsState {
    /// Some are not there.
    #[default]
    Missing,
    /// All are there and some differ.
    Differ,
    /// All are there as they are built.
    Same,
}

/// The NameServers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameServersSeen {
    /// Their objects.
    pub objects: ObjectsState,
    /// Their StatefulSet.
    pub set: Option<SetSeen>,
    /// Their pods.
    pub pods: Vec<PodSeen>,
    /// What each of them says, by address; those of somebody else too.
    pub views: BTreeMap<String, Answer<NameServerView>>,
}

/// What one NameServer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameServerView {
    /// Registered brokers: name to id to address.
    pub brokers: BTreeMap<String, BTreeMap<i64, String>>,
    /// Its configuration.
    pub config: BTreeMap<String, String>,
}

/// A StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetSeen {
    /// `metadata.uid`.
    pub uid: String,
    /// `spec.replicas`.
    pub replicas: i32,
    /// `status.updateRevision`, once its controller has seen the newest template.
    pub update_revision: Option<String>,
    /// Size in its claim template, bytes; 0 without one.
    pub volume_bytes: u64,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// One broker group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSeen {
    /// Its name in routes.
    pub broker_name: String,
    /// Its objects, the `BrokerGroup` among them. Those of a group that is drained are compared with
    /// what is built for a drained one.
    pub objects: ObjectsState,
    /// Whether any object of it is left: `BrokerGroup`, Service, ConfigMap, set.
    pub has_objects: bool,
    /// Its StatefulSet.
    pub set: Option<SetSeen>,
    /// Its pods.
    pub pods: Vec<PodSeen>,
    /// Its disks by the pod's ordinal.
    pub volumes: BTreeMap<i32, VolumeSeen>,
    /// What its brokers say by the pod's ordinal.
    pub brokers: BTreeMap<i32, Answer<BrokerSeen>>,
    /// What consumers have left.
    pub backlog: Option<Answer<Backlog>>,
    /// What the controllers say; none without controllers.
    pub sync: Option<SyncStateSeen>,
    /// `BrokerGroup.status.opened`: it took sends once.
    pub opened: bool,
    /// `BrokerGroup.status.managedKeys`: live keys that the operator has set.
    pub managed_keys: BTreeSet<String>,
    /// `BrokerGroup.status.drain.phase`.
    pub drain_phase: Option<DrainPhase>,
    /// `BrokerGroup.status.drain.since`.
    pub drain_since: Option<Timestamp>,
}

/// What a broker says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerSeen {
    /// Its id in the group; 0 is the master.
    pub broker_id: i64,
    /// The address it registers.
    pub address: String,
    /// The address it should register.
    pub intended_address: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The keys in force.
    pub config: BTreeMap<String, String>,
    /// A hash of each topic and consumer group with its settings, without the system's own; none
    /// when they could not be read.
    pub metadata: Option<BTreeSet<u64>>,
    /// Live keys that it refused, with the values.
    pub rejected: BTreeMap<String, String>,
    /// End of its log, bytes.
    pub max_offset: i64,
    /// Part of its disk in use, thousandths.
    pub disk_used_permille: u32,
    /// Whether it has read its files and serves.
    pub recovered: bool,
    /// Why it should not be restarted now.
    pub risks: Vec<Risk>,
}

/// Why a broker should not be restarted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Risk {
    /// Acknowledged messages are on no other member.
    WouldLoseAckedData,
    /// Fewer than `minInSync` would be left.
    WouldDropBelowMinInSync,
    /// It is the last one in sync.
    LastInSync,
    /// It is master and nobody can follow it.
    MasterWithoutCandidate,
    /// It is reading its files.
    Recovering,
    /// A transaction is being checked; good to know only.
    TransactionCheckInFlight,
    /// The group has too few members to ever be safe; planned downtime.
    StructurallyUnsafe,
}

impl Risk {
    /// Whether it forbids a restart.
    #[must_use]
    pub const fn blocks(self) -> bool {
        !matches!(
            self,
            Self::TransactionCheckInFlight | Self::StructurallyUnsafe
        )
    }

    /// As the broker's page and the status spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WouldLoseAckedData => "wouldLoseAckedData",
            Self::WouldDropBelowMinInSync => "wouldDropBelowMinInSync",
            Self::LastInSync => "lastInSync",
            Self::MasterWithoutCandidate => "masterWithoutCandidate",
            Self::Recovering => "recovering",
            Self::TransactionCheckInFlight => "transactionCheckInFlight",
            Self::StructurallyUnsafe => "structurallyUnsafe",
        }
    }
}

/// What consumers of a group have left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Messages, those to be delivered later and again included.
    pub remaining: i64,
    /// The consumer group with the most.
    pub slowest_group: Option<String>,
    /// When the newest message was stored; none without messages.
    pub newest_at: Option<Timestamp>,
    /// Hours messages are kept (`fileReservedTime`).
    pub retention_hours: i64,
}

/// What the controllers say of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncStateSeen {
    /// Whether a majority of controllers agrees.
    pub quorum: bool,
    /// Broker id of the master.
    pub master: Option<i64>,
    /// Epoch of the master.
    pub epoch: i64,
    /// Broker ids of the members in sync.
    pub in_sync: BTreeSet<i64>,
    /// Epoch of that set.
    pub set_epoch: i64,
}

/// The permission bit that lets clients send.
pub const PERMISSION_WRITE: i32 = 2;
/// `brokerPermission`: 4 reads, 2 writes.
pub const KEY_PERMISSION: &str = "brokerPermission";
/// `namesrvAddr`: NameServers, separated by semicolons.
pub const KEY_NAME_SERVERS: &str = "namesrvAddr";

impl Observed {
    /// Whether some group took sends once: the cluster is not made for the first time.
    #[must_use]
    pub fn opened_once(&self) -> bool {
        self.groups
            .values()
            .any(|group| group.opened || group.known_brokers().any(|(_, b)| b.takes_sends()))
    }
}

impl BrokerSeen {
    /// Whether clients may send to it.
    #[must_use]
    pub fn takes_sends(&self) -> bool {
        let permission = self
            .config
            .get(KEY_PERMISSION)
            .and_then(|text| text.trim().parse::<i32>().ok())
            .unwrap_or(6);
        permission & PERMISSION_WRITE != 0
    }

    /// The NameServers it registers at.
    #[must_use]
    pub fn name_servers(&self) -> BTreeSet<&str> {
        self.config
            .get(KEY_NAME_SERVERS)
            .map(String::as_str)
            .unwrap_or_default()
            .split(';')
            .map(str::trim)
            .filter(|address| !address.is_empty())
            .collect()
    }
}

impl GroupSeen {
    /// What the broker of pod `ordinal` says.
    #[must_use]
    pub fn broker(&self, ordinal: i32) -> Option<&BrokerSeen> {
        self.brokers.get(&ordinal).and_then(Answer::known)
    }

    /// The brokers that answered, with their ordinals.
    pub fn known_brokers(&self) -> impl Iterator<Item = (i32, &BrokerSeen)> {
        self.brokers
            .iter()
            .filter_map(|(ordinal, answer)| Some((*ordinal, answer.known()?)))
    }

    /// The pod with `ordinal`.
    #[must_use]
    pub fn pod(&self, ordinal: i32) -> Option<&PodSeen> {
        self.pods.iter().find(|pod| pod.ordinal == ordinal)
    }

    /// Ordinal of the master: what the controllers say, else the member with id 0.
    #[must_use]
    pub fn master(&self) -> Option<i32> {
        let id = match &self.sync {
            Some(sync) => sync.master?,
            None => 0,
        };
        self.known_brokers()
            .find(|(_, broker)| broker.broker_id == id)
            .map(|(ordinal, _)| ordinal)
    }

    /// Whether clients can send: a master that answers, serves and may be sent to.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.master()
            .and_then(|ordinal| self.broker(ordinal))
            .is_some_and(|broker| broker.recovered && broker.takes_sends())
    }

    /// Whether clients can read.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.known_brokers().any(|(_, broker)| broker.recovered)
    }

    /// Whether member `ordinal` has what its master has. Without controllers the only member has.
    #[must_use]
    pub fn in_sync(&self, ordinal: i32) -> bool {
        match (&self.sync, self.broker(ordinal)) {
            (Some(sync), Some(broker)) => sync.in_sync.contains(&broker.broker_id),
            (None, Some(broker)) => broker.broker_id == 0,
            (_, None) => false,
        }
    }

    /// Whether its set still is, and runs or shall run.
    #[must_use]
    pub fn has_set(&self) -> bool {
        self.set.as_ref().is_some_and(|set| !set.deleting)
    }

    /// Whether the removal of the group has come to where its pods may go.
    #[must_use]
    pub fn is_marked_drained(&self) -> bool {
        self.drain_phase
            .is_some_and(|phase| phase >= DrainPhase::Drained)
    }

    /// Members that are not ready, with what is missing entirely.
    #[must_use]
    pub fn unready(&self) -> usize {
        let wanted = self.set.as_ref().map_or(0, |set| set.replicas.max(0)) as usize;
        let ready = self.pods.iter().filter(|pod| pod.is_healthy()).count();
        wanted.saturating_sub(ready)
    }
}
