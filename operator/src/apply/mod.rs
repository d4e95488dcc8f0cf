//! Writing to the API server: server-side apply, deletions, status and role labels.
//!
//! **Invariant:** nothing is written that is there already ([`compare`] decides), `force` is used
//! only on objects whose controller is the owner they were built for, every deletion names the UID
//! it means, and every call has a deadline. What to write is decided elsewhere.

mod compare;
mod error;
mod status;
mod write;

pub use compare::covers;
pub use error::{ApplyError, Class};
pub use status::StatusWriter;
pub use write::{Applied, Writer};

#[cfg(test)]
pub(crate) mod mock;
#[cfg(test)]
mod tests;
