//! The stream between a master and a replica: ordered, and broken by the first message that is lost.
//!
//! **Invariant:** messages of one direction arrive in the order they were sent, without a gap.

use rmq_replica::{Epochs, ReplicaHandshake, Transfer};
use rmq_types::CommitLogOffset;

use crate::{disk::Record, net::Node};

/// From a replica to its master.
#[derive(Clone, Debug)]
pub(crate) enum ToMaster {
    Handshake(ReplicaHandshake),
    Ack(CommitLogOffset),
    Closed,
}

/// From a master to a replica.
#[derive(Clone, Debug)]
pub(crate) enum ToReplica {
    Handshake(Epochs, CommitLogOffset),
    Transfer(Transfer, Vec<Record>),
    Closed,
}

#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) replica: Node,
    pub(crate) master: Node,
    pub(crate) broken: bool,
    /// When the last message of each direction arrives.
    pub(crate) busy_until: [u64; 2],
}
