//! Values every crate shares: names, ids, offsets, timestamps, limits.
//!
//! Layer 0: no IO, no clock, no tokio. A value that exists here is legal; text from a socket or a
//! file becomes one of these through `parse`, once, at the edge.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod epoch;
mod hash;
mod ids;
pub mod limits;
mod names;
pub mod pop;
pub mod system;
mod time;

pub use epoch::{MasterEpoch, Moment, SyncStateSetEpoch};
pub use hash::{crc32_masked, java_hash};
pub use ids::{BrokerId, CommitLogOffset, MASTER_ID, QueueId, QueueOffset};
pub use names::{BrokerName, ClusterName, GroupName, NameError, TopicName, is_name_byte};
pub use time::{Clock, SystemClock, Timestamp};
