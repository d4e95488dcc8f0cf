//! Raft messages between controllers: request codes of our own on the controller's port.
//!
//! | code | request body | answer body |
//! |---|---|---|
//! | 10911 | append entries, JSON | result, JSON |
//! | 10912 | vote, JSON | result, JSON |
//! | 10913 | u32 length · part of a snapshot without its bytes, JSON · the bytes | result, JSON |
//! | 10914 | none: where do you stand? | [`Standing`], JSON |
//!
//! Each request carries the group's name and the number of the controller it is meant for, so that
//! a wrong address in a list of peers cannot mix two groups.
//!
//! **Invariant:** what is read is bounded by the frame (16 MiB), a part of a snapshot by
//! [`SNAPSHOT_PART_BYTES`]; broken bytes are refused, nothing panics.

use bytes::{BufMut, BytesMut};
use openraft::raft::InstallSnapshotRequest;
use rmq_protocol::remoting::{Command, ExtFields};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::types::{LogId, NodeId, Types, Vote};

/// Append entries.
pub const RAFT_APPEND: i32 = 10_911;
/// Vote.
pub const RAFT_VOTE: i32 = 10_912;
/// A part of a snapshot.
pub const RAFT_SNAPSHOT: i32 = 10_913;
/// How far the peer is.
pub const RAFT_STANDING: i32 = 10_914;
/// Bytes of a snapshot in one message.
pub(crate) const SNAPSHOT_PART_BYTES: u64 = 512 * 1024;

/// Whether a request is one of ours.
#[must_use]
pub const fn is_raft_code(code: i32) -> bool {
    matches!(code, RAFT_APPEND..=RAFT_STANDING)
}

/// How far a controller is, for one that lost its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Standing {
    /// Its last vote.
    pub(crate) vote: Option<Vote>,
    /// Its last entry.
    pub(crate) last: Option<LogId>,
    /// It votes like any other.
    pub(crate) votes: bool,
}

/// Why a message is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("the message is for controller {to} of {group}, this is {id} of {own_group}")]
    Misdirected {
        to: String,
        group: String,
        id: NodeId,
        own_group: String,
    },
    #[error("the message cannot be read: {0}")]
    Body(#[from] serde_json::Error),
    #[error("the part of a snapshot is cut short")]
    Cut,
}

/// Group and number of a message's receiver.
pub(crate) struct Address<'a> {
    pub(crate) group: &'a str,
    pub(crate) to: NodeId,
}

const GROUP: &str = "raftGroup";
const TO: &str = "raftTo";

impl Address<'_> {
    /// A request to that controller.
    pub(crate) fn request(&self, code: i32) -> Command {
        Command::request(code)
            .with_ext(GROUP, self.group)
            .with_ext(TO, self.to.to_string())
    }

    /// Refuses what was meant for somebody else.
    pub(crate) fn check(&self, ext: &ExtFields<'_>) -> Result<(), WireError> {
        let to = ext.get(TO).unwrap_or_default();
        let group = ext.get(GROUP).unwrap_or_default();
        if to.parse() == Ok(self.to) && group == self.group {
            return Ok(());
        }
        let shorten = |text: &str| text.chars().take(64).collect();
        Err(WireError::Misdirected {
            to: shorten(to),
            group: shorten(group),
            id: self.to,
            own_group: self.group.to_owned(),
        })
    }
}

/// A value as the body of a message.
pub(crate) fn to_body(value: &impl Serialize) -> Result<Vec<u8>, WireError> {
    Ok(serde_json::to_vec(value)?)
}

/// The value of a body.
pub(crate) fn from_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    Ok(serde_json::from_slice(body)?)
}

/// A part of a snapshot as a body: its bytes are not written as JSON.
pub(crate) fn snapshot_to_body(
    mut part: InstallSnapshotRequest<Types>,
) -> Result<BytesMut, WireError> {
    let data = std::mem::take(&mut part.data);
    let head = serde_json::to_vec(&part)?;
    let mut body = BytesMut::with_capacity(4 + head.len() + data.len());
    // A head is a few hundred bytes.
    body.put_u32(head.len() as u32);
    body.put_slice(&head);
    body.put_slice(&data);
    Ok(body)
}

/// The part of a snapshot in a body.
pub(crate) fn snapshot_from_body(body: &[u8]) -> Result<InstallSnapshotRequest<Types>, WireError> {
    let (length, rest) = body.split_first_chunk().ok_or(WireError::Cut)?;
    let length = u32::from_be_bytes(*length) as usize;
    let (head, data) = rest.split_at_checked(length).ok_or(WireError::Cut)?;
    let mut part: InstallSnapshotRequest<Types> = serde_json::from_slice(head)?;
    part.data = data.to_vec();
    Ok(part)
}
