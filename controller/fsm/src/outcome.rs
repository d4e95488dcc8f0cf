//! What a command did, in the terms of the Java controller's answers.
//!
//! **Invariant:** a command that is refused changed nothing.

use std::fmt;

use rmq_types::{BrokerId, MasterEpoch, SyncStateSetEpoch};
use serde::{Deserialize, Serialize};

use crate::state::GroupView;

/// The result of [`crate::apply`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The broker has the id.
    IdApplied {
        /// The id.
        broker: BrokerId,
    },
    /// The broker is registered. The view names a master only if it is alive.
    Registered(GroupView),
    /// The set was replaced.
    SetAltered {
        /// The set's new epoch.
        set_epoch: SyncStateSetEpoch,
        /// The group after it.
        view: GroupView,
    },
    /// A new epoch began, with a master.
    Elected {
        /// The group after it.
        view: GroupView,
        /// Acknowledged messages may be lost.
        unclean: bool,
    },
    /// The present master stays (code 2011, with the full header).
    MasterStays(GroupView),
    /// Nobody could be elected; the group has no master now (code 2004).
    MasterCleared(GroupView),
    /// The present set holds everything; elections look at it alone from here on.
    Settled,
    /// The ids or the group are forgotten.
    Cleaned,
    /// The configuration was changed.
    ConfigSet,
    /// Nothing was changed.
    Refused(Refusal),
}

impl Outcome {
    /// The response code of the Java protocol.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::IdApplied { .. }
            | Self::Registered(_)
            | Self::SetAltered { .. }
            | Self::Elected { .. }
            | Self::Settled
            | Self::Cleaned
            | Self::ConfigSet => 0,
            Self::MasterStays(_) => 2011,
            Self::MasterCleared(_) => 2004,
            Self::Refused(refusal) => refusal.code(),
        }
    }

    /// Why nothing was changed.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// Why a command changed nothing. All of them are the caller's to mend, or to wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The group or the broker id is not known: register first.
    NotRegistered,
    /// The id is taken, was another broker's, or is not the first one of a new group.
    BrokerIdInvalid {
        /// The id to apply for instead.
        next: BrokerId,
    },
    /// A bound of the state is reached.
    TooMany(&'static str),
    /// The request's epoch is not the master's.
    FencedMasterEpoch {
        /// The epoch in force.
        current: MasterEpoch,
    },
    /// The request's epoch is not the set's.
    FencedSetEpoch {
        /// The epoch in force.
        current: SyncStateSetEpoch,
    },
    /// The sender is not the master.
    InvalidMaster,
    /// The set holds a broker that is not registered.
    InvalidReplica(BrokerId),
    /// The set holds a broker that is not alive.
    NotAlive(BrokerId),
    /// The set cannot be altered so.
    SetUnalterable(&'static str),
    /// Nobody, or not the one who asked, can be elected.
    ElectionFailed(&'static str),
    /// The ids cannot be forgotten.
    CleanInvalid(&'static str),
    /// A configuration key that nobody may set over the network.
    KeyForbidden(String),
    /// A configuration key or value that is not known.
    ConfigInvalid(String),
}

impl Refusal {
    /// The response code of the Java protocol.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::NotRegistered => 2010,
            Self::BrokerIdInvalid { .. } => 2014,
            Self::TooMany(_) | Self::ConfigInvalid(_) => 29,
            Self::FencedMasterEpoch { .. } => 2000,
            Self::FencedSetEpoch { .. } => 2001,
            Self::InvalidMaster => 2002,
            Self::InvalidReplica(_) => 2003,
            Self::NotAlive(_) => 2006,
            Self::SetUnalterable(_) => 2013,
            Self::ElectionFailed(_) => 2012,
            Self::CleanInvalid(_) => 2009,
            Self::KeyForbidden(_) => 16,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRegistered => f.write_str("the broker is not registered here"),
            Self::BrokerIdInvalid { next } => {
                write!(f, "the broker id cannot be taken, apply for {next}")
            }
            Self::TooMany(what) => write!(f, "too many {what}"),
            Self::FencedMasterEpoch { current } => write!(f, "the master epoch is {current}"),
            Self::FencedSetEpoch { current } => write!(f, "the SyncStateSet epoch is {current}"),
            Self::InvalidMaster => f.write_str("the sender is not the master"),
            Self::InvalidReplica(id) => write!(f, "broker {id} is not registered"),
            Self::NotAlive(id) => write!(f, "broker {id} is not alive"),
            Self::SetUnalterable(why) | Self::ElectionFailed(why) | Self::CleanInvalid(why) => {
                f.write_str(why)
            }
            Self::KeyForbidden(key) => write!(f, "{key} cannot be set over the network"),
            Self::ConfigInvalid(what) => f.write_str(what),
        }
    }
}
