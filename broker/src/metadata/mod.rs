//! What a broker knows besides messages: topics, groups, offsets, request modes.
//!
//! Kept in memory, written in Java's own file forms under `config/`. **Invariant:** a change is on
//! disk (in a journal beside the file) before it is answered, so no acknowledged topic or group is
//! lost to a crash; a broken file falls back to its `.bak`, never silently to an empty table.

mod files;
mod forbidden;
mod journal;
mod offsets;
mod request_modes;
mod system_topics;
mod table;
mod topics;

pub(crate) use files::{LoadError, PersistError};
pub(crate) use files::{read as read_json, replace as write_json};
pub(crate) use offsets::{OffsetTable, Pending, QueueProgress};
pub(crate) use request_modes::RequestModes;
pub(crate) use system_topics::system_topics;
pub(crate) use system_topics::{PERM_INHERIT, PERM_READ, PERM_WRITE};
pub(crate) use table::ConfigTable;
pub(crate) use topics::{TopicProblem, check_attributes, check_settings};
