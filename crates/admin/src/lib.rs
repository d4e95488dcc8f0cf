//! Typed admin calls over the remoting protocol: what `mqadmin` does, for the command line, the
//! operator and end-to-end tests.
//!
//! Owns the flows (whom to ask, in which order, what a code means) and nothing else. **Invariant:**
//! every call ends within a deadline, and an error names the address it is about. Several brokers
//! are asked at once; one that fails never hides the answers of the others ([`Answers`]). Prints
//! nothing and reads no configuration.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod address;
mod answers;
mod client;
mod cluster;
mod config;
mod error;
mod follow;
mod group;
mod lag;
mod message;
mod metadata;
mod offset;
mod order;
mod progress;
mod read;
mod route;
mod send;
mod survey;
mod target;
mod topic;
mod topic_delete;

pub use address::{AddressError, parse_addresses};
pub use answers::{Answer, Answers};
pub use client::{AdminClient, AdminOptions};
pub use cluster::BrokerRuntime;
pub use config::ConfigMap;
pub use error::{
    AskError, FollowError, NameServerError, OffsetError, ReadError, SendError, TargetError,
};
pub use follow::{Batch, Event, FollowOptions, Follower, StartAt, TagFilter, Trouble};
pub use group::{GroupChange, GroupDeletion, GroupOutcome, Groups};
pub use lag::{GroupLag, GroupLags};
pub use message::{BodyForm, Message, Unreadable};
pub use metadata::Metadata;
pub use offset::{ResetOutcome, ResetTo};
pub use progress::{BrokerProgress, GroupProgress, Members, QueueProgress};
pub use read::{KeyKind, MessagePlace, TOOLS_GROUP};
pub use route::{Queue, TopicRoute};
pub use send::{Outgoing, SendStatus, SendTo, Sender, Sent};
pub use survey::{GroupSight, MemberSight, NameServerSight, Survey};
pub use target::{BrokerRef, Scope, Target};
pub use topic::{QueueStatus, TopicChange, TopicOutcome, TopicSettings};
pub use topic_delete::{NameServerAnswer, TopicDeletion};
