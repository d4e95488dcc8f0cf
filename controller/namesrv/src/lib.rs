//! The NameServer: where brokers register and clients ask for routes.
//!
//! `route` is the pure table, `kv` the persisted KV configuration, `config` options and their Java
//! keys, `server` what runs. **Invariant:** nothing in here reads the environment or a configuration file; the shell
//! hands over options and a clock.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod config;
pub mod kv;
pub mod route;
mod server;

pub use config::NamesrvOptions;
pub use server::{Metrics, NameServer, StartError};
