//! A controller: which broker of each group is master, decided by a majority of controllers.
//!
//! `config` reads Java's `controller.conf`; `server` is the port; `lead` is what a leader does by
//! itself; `handler` has one function a request code. The replicated state and every decision are in
//! `rmq-controller-fsm`, the consensus in `rmq-raft`.
//!
//! **Invariant:** a heartbeat is answered with a lease only after a majority showed, in a round that
//! began after its receipt, that this controller leads; and only by the detector that heard it.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod answer;
mod config;
mod core;
mod handler;
mod lead;
mod notice;
mod server;
mod tasks;
#[cfg(test)]
mod tests;

pub use config::{ConfigError, ControllerOptions, Parsed, Peer};
pub use server::{Controller, Figures, Probe, StartError};
