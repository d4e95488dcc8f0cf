//! What the controllers of a cluster agree on: broker ids, masters, epochs and SyncStateSets.
//!
//! Layer 1, pure: no clock, no configuration, no sockets, no randomness. [`apply`] is a function
//! from a [`State`] and a [`Command`] to an [`Outcome`]; the [`detector`] tells a leader what to
//! command.
//!
//! **Invariant:** one master an epoch; epochs only grow; an id is given once; a master is in its set;
//! a set holds registered brokers; without an acknowledged command a master holds every message
//! that was acknowledged under the group's [`AckPolicy`].
//!
//! # How the shells drive it
//!
//! *Log and snapshots* (an adapter for the consensus library over an embedded database). A log entry
//! is a serialised [`Command`]. The state machine keeps a [`State`] and the id of the last applied
//! entry; `apply` of the library calls [`apply`] for each entry and returns the [`Outcome`] to
//! whoever proposed it. A snapshot is [`Snapshot::of`] in any serde format; one that is installed
//! goes through [`StoredSnapshot::into_state`]. State and last applied id are written in one
//! transaction.
//!
//! *Requests* (only the leader answers; others answer 2007 with where the leader is). Each request
//! becomes one command, with what only the leader knows stamped in:
//!
//! | request | command or query | stamped by the leader |
//! |---|---|---|
//! | 1001 | [`AlterSyncStateSet`] | [`Detector::alive`] |
//! | 1002 | [`Election`] | all of it, by [`Detector::ask`]; policy from [`settings_of`] |
//! | 1003 | [`RegisterBroker`] | whether [`Detector::alive`] holds the master |
//! | 1004, 1006, 1010, 1012 | [`State::view`], [`config_in_force`], [`State::next_broker_id`] after a read that a majority confirmed | |
//! | 1009 | [`Command::SetConfig`] | |
//! | 1011 | [`CleanBrokerData`] | [`Detector::alive`] |
//! | 1013 | [`ApplyBrokerId`] | |
//! | 904 | [`Detector::heartbeat`], [`Detector::confirm`] | |
//!
//! [`Outcome::code`] is the response code; [`GroupView`] holds every field of the answers. When an
//! outcome is [`Outcome::Elected`] the leader tells the living members (1008).
//!
//! *An election that somebody asks for* (`electMaster`, a switchover, a broker without a master):
//! [`Detector::ask`] until it is [`Asked::Propose`], then [`Detector::decided`] with whatever became
//! of the proposal; [`Detector::keep`] if the change is given up. With
//! [`AckPolicy::Quorum`] the election also waits for reports made late enough and for the wanted
//! replica to catch up, so a caller sets itself a time limit.
//!
//! *A broker that was started anew* never goes on as master of the epoch it had, and one that may
//! lack bytes never takes office unless [`GroupView::unclean`] or asynchronous acknowledgement says
//! so (what the leader knew of it may be from before its power was cut): it says
//! [`detector::OurHeartbeat::declined`], and an election gives it, or another, a new epoch.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod apply;
mod command;
mod config;
pub mod detector;
mod elect;
mod members;
mod outcome;
mod set;
mod snapshot;
mod state;
mod stored_time;

pub use apply::apply;
pub use command::{
    AckPolicy, AlterSyncStateSet, ApplyBrokerId, Clean, CleanBrokerData, Command, Election,
    ElectionPolicy, MasterStanding, RegisterBroker, ReplicaFacts, Settle, Trigger, Unclean,
};
pub use config::{Settings, config_in_force, settings_of};
pub use detector::{Asked, Asking, Detector};
pub use elect::{Decision, decide};
pub use outcome::{Outcome, Refusal};
pub use snapshot::{SNAPSHOT_VERSION, Snapshot, SnapshotError, StoredSnapshot};
pub use state::{
    BrokerGroup, ElectionRecord, Electorate, FIRST_BROKER_ID, GROUPS_MAX, GroupView, HISTORY_MAX,
    MasterView, REPLICAS_MAX, Replica, State,
};
