//! Three controllers over loopback, by request code: what brokers and tools see.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod brokers;
mod masters;
mod questions;
mod rig;
