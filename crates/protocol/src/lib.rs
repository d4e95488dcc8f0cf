//! The remoting protocol of RocketMQ 5.x: bytes to values and back, without IO.
//!
//! Layer 1: pure. No clock, no sockets, no threads. Nothing in here panics on bytes from a peer.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod body;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod ha;
pub mod header;
pub mod java_properties;
pub mod json;
pub mod message;
pub mod pop;
pub mod remoting;
mod scan;
