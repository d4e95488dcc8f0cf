//! One broker process: configuration, request handlers, sessions, delivery, registration.
//!
//! Layer 3, a shell around `rmq-store`: it reads configuration, starts and stops parts, and hands
//! out the clock. What decides without IO stands in modules of its own (`hold`, `session`,
//! `metadata::topics`) and is tested without a machine.
#![forbid(unsafe_code)]

mod answer;
mod arrival;
mod broker;
pub mod config;
mod copy;
mod core;
mod handler;
mod hold;
mod identity;
mod metadata;
mod metrics;
mod namespace;
mod parked;
mod pop;
mod pulse;
mod register;
mod routes;
mod schedule;
mod server;
mod session;
mod starting;
mod stats;
mod tuning;
mod upkeep;
mod work;

#[cfg(test)]
mod tests;

pub use broker::{Broker, Endpoints, Probe, StartError, in_force};
pub use starting::Starting;
