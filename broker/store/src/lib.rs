//! Commit log, consume queues, key index, flush and recovery, in the folder format of RocketMQ 5.x.
//!
//! Layer 2: files and the store's own threads, behind [`MessageStore`]. Reads no configuration; time
//! comes from the clock it is given. **Invariant:** `unsafe` stands in `mmap` only. The bytes on the
//! disk are described in FORMAT.md.
#![warn(missing_docs)]

mod append;
mod checkpoint;
mod core;
mod error;
mod expire;
mod folder;
mod index;
mod lock;
mod log;
mod mmap;
mod options;
mod prepare;
mod queue;
mod read;
mod recover;
mod storage;
mod store;
mod tails;
mod tuning;
mod upkeep;

pub use append::{Append, Appended};
pub use error::{AppendError, ErrorClass, OpenError, ReadAtError};
pub use expire::Cleaned;
pub use index::Found;
pub use mmap::RecordSlice;
pub use options::{
    Arrival, FlushMode, NoListener, ReadLimits, RecoveryProgress, StoreListener, StoreOptions,
    TagsCodeOf,
};
pub use read::{Boundary, ReadOutcome, ReadRequest, ReadStatus};
pub use recover::RecoveryReport;
pub use storage::{DiskAction, FaultHook};
pub use store::{MessageStore, NotWritable, StoreState};
pub use tuning::Tuning;
