//! The gateway of 5.x clients: gRPC on one side, the remoting protocol of brokers on the other.
//!
//! Owns the service `apache.rocketmq.v2.MessagingService`, the sessions of its clients and the
//! renewal of what push consumers work on. **Invariant:** the gateway keeps nothing that a broker
//! could miss: when it ends, every message comes again after its invisible time, at any other
//! gateway. It stores no message and decides no order.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backend;
mod config;
mod incoming;
mod metrics;
pub mod proto;
mod rpc;
mod rules;
mod server;
mod tasks;
mod upkeep;

pub use backend::{Answer, Upstream};
pub use config::{ConfigError, Limits, Options};
pub use server::{Probe, Proxy, StartError};
