//! The types that openraft is filled in with.
//!
//! **Invariant:** the result of a command never crosses a wire: whoever proposed it is on this
//! controller. Its serialised form is therefore empty.

use std::io::Cursor;

use openraft::BasicNode;
use rmq_controller_fsm::{Command, Outcome};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of a controller: its place in the list of peers.
pub type NodeId = u64;

openraft::declare_raft_types!(
    /// openraft with the controllers' commands.
    pub(crate) Types:
        D = Command,
        R = Applied,
        NodeId = NodeId,
        Node = BasicNode,
        SnapshotData = Cursor<Vec<u8>>,
);

pub(crate) type Raft = openraft::Raft<Types>;
pub(crate) type Entry = openraft::Entry<Types>;
pub(crate) type LogId = openraft::LogId<NodeId>;
pub(crate) type Vote = openraft::Vote<NodeId>;
pub(crate) type StorageError = openraft::StorageError<NodeId>;
pub(crate) type Membership = openraft::StoredMembership<NodeId, BasicNode>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<NodeId, BasicNode>;

/// What an entry did; none if it held no command.
#[derive(Clone, Debug)]
pub(crate) struct Applied(pub(crate) Option<Outcome>);

impl Serialize for Applied {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Applied {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self(None))
    }
}
