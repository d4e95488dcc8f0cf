//! The server over loopback, by request code: what clients, brokers and tools see.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

mod bad_input;
mod brokers;
mod config;
mod kv;
mod lifecycle;
mod rig;
mod routes;
mod topics;
