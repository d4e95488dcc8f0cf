//! What the machine asks its shell to do, and the events by which the shell answers.
//!
//! | action | the shell | answers with |
//! |---|---|---|
//! | `WriteCheckpoint` | appends a `ck` record to the revive topic | `record_written` or `record_failed` |
//! | `WriteAcks` | appends an `ack` (one offset) or `bAck` record | – (lost: a second delivery) |
//! | `Commit` | sets the group's offset of the queue | – |
//! | `Redeliver` | copies the message to the retry or dead-letter topic | `redelivered` |
//! | `DeadLetter` | copies an ordered message to the dead-letter topic | `dead_lettered` |
//! | `Resolved` | tells the revive queue that a record is done with | – |
//! | `Wake` | wakes waiting pops of this group and topic | – |
//!
//! **Invariant:** actions are done in the order they were given. A record answers as the store's
//! own rule has it durable; an offset that depends on it is committed only after that answer.

use rmq_types::{QueueOffset, Timestamp};

/// Names a checkpoint until its record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    /// Where the checkpoint is kept: its first offset, or its message if `single`.
    pub(crate) at: u64,
    pub(crate) single: bool,
    pub(crate) start: u64,
    pub(crate) pop_time: i64,
    pub(crate) revive_queue: u8,
}

/// A `ck` record; `PopCheckPoint` in Java.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointWrite {
    /// For the answer.
    pub key: RecordKey,
    /// Queue of the revive topic.
    pub revive_queue: u8,
    /// First offset; with the pop time it names the checkpoint in acks.
    pub start: QueueOffset,
    /// When the messages were popped.
    pub pop_time: Timestamp,
    /// For how long they are invisible, ms.
    pub invisible_millis: u32,
    /// The messages, ascending, at most 32.
    pub messages: Vec<QueueOffset>,
    /// Bit i: message i needs no redelivery (`bm`).
    pub done_bits: u32,
}

/// An `ack` or `bAck` record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckWrite {
    /// Queue of the revive topic: that of the checkpoint.
    pub revive_queue: u8,
    /// First offset of the checkpoint.
    pub start: QueueOffset,
    /// When its messages were popped.
    pub pop_time: Timestamp,
    /// For how long they were invisible, ms: the record is delivered after that.
    pub invisible_millis: u32,
    /// The messages that need no redelivery, ascending.
    pub messages: Vec<QueueOffset>,
}

/// A message whose invisible time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redelivery {
    /// Where it lies in this queue.
    pub offset: QueueOffset,
    /// When it was popped; for the answer.
    pub pop_time: Timestamp,
}

/// How a redelivery or a dead letter went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// The copy is durable.
    Done,
    /// There is no message at exactly this offset any more: it is dropped.
    Gone,
    /// It could not be read or written now; it is tried again later.
    Failed,
}

/// What the shell is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write a checkpoint record.
    WriteCheckpoint(Box<CheckpointWrite>),
    /// Write an ack record.
    WriteAcks(Box<AckWrite>),
    /// The group's offset of this queue.
    Commit(QueueOffset),
    /// Copy a message to where `redelivery::destination` says.
    Redeliver(Redelivery),
    /// Copy a message of an ordered group to its dead-letter topic.
    DeadLetter(QueueOffset),
    /// A record of the revive topic is done with.
    Resolved {
        /// The revive queue.
        revive_queue: u8,
        /// The record's offset in it.
        revive_offset: QueueOffset,
    },
    /// There may be something for waiting pops.
    Wake,
}

/// Where actions are put; the shell keeps one and uses it again.
pub type Actions = Vec<Action>;
