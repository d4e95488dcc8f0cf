//! Three controllers over loopback, by request code: what brokers and tools see.

mod brokers;
mod masters;
mod questions;
mod rig;
