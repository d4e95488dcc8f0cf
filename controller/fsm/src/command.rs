//! What may be asked of the replicated state: one command is one entry of the controllers' log.
//!
//! **Invariant:** a command carries every fact that its outcome depends on besides the state: who is
//! alive, how far each log reaches, the election policy, the time. Two controllers that apply the
//! same commands therefore hold the same state. Nothing here is measured or read from a
//! configuration; the leader stamps it.

use std::collections::{BTreeMap, BTreeSet};

use rmq_types::{BrokerId, BrokerName, ClusterName, MasterEpoch, SyncStateSetEpoch, Timestamp};
use serde::{Deserialize, Serialize};

/// One change of the replicated state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A broker takes an id (request 1013).
    ApplyBrokerId(ApplyBrokerId),
    /// A broker with an id says where it listens (request 1003).
    RegisterBroker(RegisterBroker),
    /// A master changes its SyncStateSet (request 1001).
    AlterSyncStateSet(AlterSyncStateSet),
    /// A master is to be chosen (request 1002, and the leader's own detection).
    ElectMaster(Election),
    /// A master says that every member of its set holds all that earlier epochs acknowledged.
    Settle(Settle),
    /// Broker ids or a whole group are forgotten (request 1011).
    CleanBrokerData(CleanBrokerData),
    /// Values of the controllers' configuration (request 1009).
    SetConfig(BTreeMap<String, String>),
}

/// See [`Command::ApplyBrokerId`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyBrokerId {
    /// The broker's cluster.
    pub cluster: ClusterName,
    /// The broker's group.
    pub group: BrokerName,
    /// The id it wants.
    pub broker: BrokerId,
    /// `address;millis` of the broker, which makes a repeated request recognisable.
    pub check_code: String,
}

/// See [`Command::RegisterBroker`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterBroker {
    /// The broker's cluster.
    pub cluster: ClusterName,
    /// The broker's group.
    pub group: BrokerName,
    /// Its id.
    pub broker: BrokerId,
    /// `host:port` where clients reach it.
    pub address: String,
    /// Whether the leader holds the group's master for alive; the answer names only such a master.
    pub master_alive: bool,
}

/// See [`Command::AlterSyncStateSet`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlterSyncStateSet {
    /// The group.
    pub group: BrokerName,
    /// Who asks.
    pub master: BrokerId,
    /// The epoch in which it is master.
    pub master_epoch: MasterEpoch,
    /// The wanted set.
    pub set: BTreeSet<BrokerId>,
    /// The epoch of the set that it replaces.
    pub set_epoch: SyncStateSetEpoch,
    /// The set is the present one and only its epoch moves on, so that proposals whose answers were
    /// lost can never be accepted. Java's brokers never ask for it.
    pub renew: bool,
    /// Who is alive. A master that the leader holds for lost is not in here, so its set is frozen.
    pub alive: BTreeSet<BrokerId>,
}

/// See [`Command::Settle`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settle {
    /// The group.
    pub group: BrokerName,
    /// Who asks.
    pub master: BrokerId,
    /// The epoch in which it is master.
    pub master_epoch: MasterEpoch,
    /// The set it speaks of.
    pub set_epoch: SyncStateSetEpoch,
}

/// See [`Command::CleanBrokerData`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanBrokerData {
    /// The group.
    pub group: BrokerName,
    /// The ids, or the whole group.
    pub what: Clean,
    /// Who is alive.
    pub alive: BTreeSet<BrokerId>,
}

/// What a [`CleanBrokerData`] forgets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clean {
    /// These ids, none of which may be alive.
    Ids(BTreeSet<BrokerId>),
    /// The whole group, which may not have a master.
    Group,
    /// The whole group, whoever lives (`isCleanLivingBroker`, which in Java ignores the ids).
    GroupEvenAlive,
}

/// An election with all it depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Election {
    /// The group.
    pub group: BrokerName,
    /// Who wants it.
    pub trigger: Trigger,
    /// The epoch that is to end; another one refuses the election, so a repeated command elects
    /// once.
    pub expected_epoch: Option<MasterEpoch>,
    /// What the leader knows of the present master's right to take writes.
    pub standing: MasterStanding,
    /// What the living members last said of themselves.
    pub alive: BTreeMap<BrokerId, ReplicaFacts>,
    /// The rules of this election and of the epoch that it begins.
    pub policy: ElectionPolicy,
    /// The leader's time, for the history only.
    #[serde(with = "crate::stored_time")]
    pub at: Timestamp,
}

/// Who wants an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trigger {
    /// The controllers' leader: if nobody can be elected, the group has no master from here on.
    Leader,
    /// A broker that found no master.
    Broker(BrokerId),
    /// Somebody wants this broker and no other.
    Designated(BrokerId),
}

/// What the leader knows of the present master's right to take writes.
///
/// **Invariant:** `Released` and `Lost` are stamped only when the master can no longer acknowledge
/// anything in its epoch: its lease is over and not renewed while this command is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MasterStanding {
    /// It may be taking writes.
    Holding,
    /// It is alive and gave up its right (write fence, or a lease that was left to run out).
    Released,
    /// It is silent, was started anew, or closed its connection; or there is none.
    Lost,
}

/// What a replica last said of itself (heartbeat 904).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaFacts {
    /// Epoch of the last entry of its log; −1 if it did not say.
    pub epoch: i32,
    /// End of its log in bytes; −1 if it did not say.
    pub max_offset: i64,
    /// Smaller is preferred among equal logs.
    pub priority: i32,
    /// Said after the present master lost its right to take writes.
    pub fresh: bool,
    /// It may lack bytes that it once acknowledged: the computer under it went down, and it wrote
    /// without waiting for the disk. Such a replica is elected only by an acknowledged command.
    pub may_lack: bool,
}

/// When a master acknowledges a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AckPolicy {
    /// Once it has it itself.
    Async,
    /// Once this many members of the set have it, itself included; all of a smaller set.
    Quorum(u32),
    /// Once the whole set has it.
    #[default]
    AllInSync,
}

impl AckPolicy {
    /// How many members of a set of `members` must be heard so that one of them holds every
    /// acknowledged message.
    #[must_use]
    pub fn electors_needed(self, members: usize) -> usize {
        match self {
            Self::Async | Self::AllInSync => 1,
            Self::Quorum(acks) => {
                let acks = usize::try_from(acks).unwrap_or(usize::MAX).max(1);
                members.saturating_sub(acks) + 1
            }
        }
    }
}

/// The rules of an election.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElectionPolicy {
    /// How the epoch that begins acknowledges.
    pub ack: AckPolicy,
    /// Whether data may be lost.
    pub unclean: Unclean,
}

/// Whether an election may choose a replica that may lack acknowledged messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unclean {
    /// Never.
    #[default]
    Forbidden,
    /// Somebody acknowledged the loss for this one election.
    Acknowledged,
}
