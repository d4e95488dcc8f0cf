//! The controllers' consensus: openraft over a redb file, spoken over the project's own frames.
//!
//! Layer 2, adapter. [`Node`] is one controller: what it proposes is applied to
//! [`rmq_controller_fsm::State`] on every controller in the same order.
//!
//! **Invariant:** a vote, an entry and a snapshot are on the disk before anybody is told of them. A
//! controller whose disk is empty neither votes nor stands for election until it holds all that it
//! may have promised before it lost the disk (`standing`).
//!
//! It knows no request of brokers and no clock of theirs: that is `rmq-controller`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod disk;
mod log;
mod machine;
mod network;
mod node;
mod rounds;
mod standing;
mod types;
mod wire;

pub use disk::DiskError;
pub use node::{Leadership, Node, NodeOptions, OpenError, ProposeError, StartError};
pub use rounds::NotConfirmed;
pub use types::NodeId;
pub use wire::{RAFT_APPEND, RAFT_SNAPSHOT, RAFT_STANDING, RAFT_VOTE, is_raft_code};

#[cfg(test)]
mod suite;
