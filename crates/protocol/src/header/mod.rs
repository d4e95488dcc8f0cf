//! Typed headers: the fields of each request and response, as in the Java header classes.
//!
//! Read from the pairs of a frame in one pass, without a map. A missing required field or a number
//! that is none becomes a [`FieldError`] naming the field; servers answer it with code 1.

mod client;
mod controller;
#[cfg(test)]
mod controller_tests;
mod field;
mod group;
mod namesrv;
mod offset;
mod pop;
mod pull;
mod send;
mod stats;
mod topic;

pub use client::*;
pub use controller::*;
pub use field::{DecodeHeader, EncodeHeader, FieldError};
pub use group::*;
pub use namesrv::*;
pub use offset::*;
pub use pop::*;
pub use pull::*;
pub use send::*;
pub use stats::*;
pub use topic::*;

#[cfg(test)]
mod tests;
