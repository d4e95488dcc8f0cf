//! Pop consumption as a pure state machine: messages out, acks in, invisible times, redelivery,
//! ordered groups, waiting pops. Events go in, actions come out; nothing in here reads a clock, a
//! disk or a random source.
#![forbid(unsafe_code)]
#![warn(missing_docs, clippy::indexing_slicing)]

mod action;
mod buffer;
mod checkpoint;
mod options;
pub mod plan;
pub mod polls;
mod queue;
pub mod redelivery;
mod revive;
mod time;

pub use action::{AckWrite, Action, Actions, CheckpointWrite, Copied, RecordKey, Redelivery};
pub use options::Options;
pub use queue::*;
pub use revive::ReviveQueue;
pub use time::{INVISIBLE_MAX_MILLIS, INVISIBLE_MIN_MILLIS, Invisible, InvisibleError, Now};
