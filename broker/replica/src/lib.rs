//! Both ends of replication inside a broker group, as machines without sockets, files or clock.
//!
//! Layer 1, pure. [`Master`] lives for one epoch on the elected broker, [`Replica`] on all others.
//! Times are [`rmq_types::Moment`]s of the caller's own monotonic clock.
//!
//! **Invariant:** what a master acknowledged is in the log of whoever the controllers may elect
//! after it; two masters never take writes at one time. What that rests on: a lease counted from a
//! heartbeat's sending, acknowledgement by the present and every possible set, truncation that is
//! durable before anything is said about it.
//!
//! # How the shell (`replication` in the broker) drives it
//!
//! *Roles.* The controllers' notice (1008), heartbeat answers and the 5 s poll (1004) say who is
//! master in which epoch. Becoming master: cut the part of the last record that is torn, wait until
//! everything is dispatched, push the entry (epoch, end of the log) to the [`Epochs`], **store
//! them**, then [`Master::promote`]; register with every NameServer at once, in parallel. Becoming
//! replica: drop the [`Master`], [`Replica::new`] with what is on the disk, [`Replica::follow`].
//! A broker that was started anew is nobody until the controllers say what it is; it never goes on
//! in an epoch it had before. The same broker elected again: drop the machine and *all links*.
//!
//! A broker whose computer went down while it wrote without waiting for the disk may lack bytes: it
//! remembers that until [`Replica::holds_everything`], says so in heartbeats, and declines to become
//! master unless the election was an unclean one that somebody acknowledged.
//!
//! *Lease.* Every 500 ms, and at once when a controller asks for a report: [`Master::heartbeat`]
//! stamps the request *before* it is written to the socket; its answer goes to
//! [`Master::heartbeat_answered`]. Each group of writes asks [`Master::admit`] before it is appended
//! and its answers wait for [`Master::acknowledge`]. Before the process ends, or a connection to the
//! controllers' leader is closed for any reason: [`Master::resign`] first.
//!
//! *Links, master's side.* One task a replica: hello (ours) or the peer's address among the
//! registered ones (Java), handshake to [`Master::linked`], answer with [`Master::epochs`]; then
//! acknowledgements to [`Master::acked`] and, whenever the log grew or an acknowledgement came,
//! [`Master::next_transfer`] until it gives nothing; the bytes go from the log to the socket. A
//! refusal closes the link. There is no queue: a slow replica is a smaller `sent`.
//!
//! *Links, replica's side.* While [`Replica::wants_link`]: dial, send hello and handshake,
//! [`Replica::linked`]. Each [`ReplicaAction`] is performed and reported before the next frame is
//! handed in; frames wait in the socket.
//!
//! *Sets.* [`Master::tick`] every 100 ms; proposals go to the controllers as request 1001.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod ack;
mod epochs;
mod follower;
mod lease;
mod master;
mod replica;
mod routing;
mod set;
#[cfg(test)]
mod tests;

pub use ack::AckRule;
pub use epochs::{EPOCHS_MAX, EpochOrderError, EpochStart, Epochs};
pub use lease::{FENCE_MILLIS_MAX, FenceError};
pub use master::{
    FOLLOWERS_MAX, HeartbeatStamp, LinkRefused, Master, MasterOptions, NotWritable, Promotion,
    ReplicaHandshake, Transfer,
};
pub use replica::{FollowError, Replica, ReplicaAction, ReplicaOptions};
pub use routing::{Candidate, Choice, Reader, Reason, RoutingOptions, suggest_at_replica};
pub use set::MasterAction;

/// A connection between a replica and a master, numbered by the shell and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);
