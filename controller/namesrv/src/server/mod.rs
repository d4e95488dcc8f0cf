//! The running NameServer: a port, the table behind it, and one housekeeping thread.
//!
//! **Invariant:** io threads never touch the disk and hold the table's lock only as long as one
//! request needs it; files and large registrations are the housekeeper's. It reads no environment
//! and no configuration file.

mod broker;
mod call;
mod cluster;
mod config;
mod core;
mod dispatch;
mod housekeeper;
mod kv;
mod metrics;
mod registration;
mod route;
mod topic;

use std::{io, net::SocketAddr, sync::Arc};

use rmq_net::{BindError, IoThreads, ListenOptions, Listener, ListenerStats};
use rmq_types::Clock;

pub use metrics::Metrics;

use self::{
    core::Core,
    housekeeper::{Housekeeper, Jobs},
};
use crate::{
    config::NamesrvOptions,
    kv::{KvConfig, LoadError},
};

/// Why a NameServer did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port cannot be taken.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The KV configuration cannot be used.
    #[error(transparent)]
    Kv(#[from] LoadError),
    /// There is no thread for housekeeping.
    #[error("cannot start the housekeeping thread: {0}")]
    Thread(#[source] io::Error),
}

/// A NameServer that serves. Dropping it closes the port at once.
#[derive(Debug)]
pub struct NameServer {
    core: Arc<Core>,
    listener: Listener,
    housekeeper: Housekeeper,
}

impl NameServer {
    /// Opens the KV file and the port; when this returns, clients are served.
    pub fn start(
        io: &IoThreads,
        options: NamesrvOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let kv = KvConfig::open(&options.kv_path)?;
        let listen = ListenOptions {
            idle_timeout: options.idle_timeout,
            connections_max: options.connections_max,
            ..ListenOptions::new(options.listen_addr())
        };
        let (jobs, queue) = Jobs::new();
        let core = Arc::new(Core::new(options, kv, clock, jobs));
        let service = Arc::new(dispatch::Dispatch::new(Arc::clone(&core)));
        let listener = Listener::bind(io, listen, service)?;
        core.bound(listener.local_addr());
        let housekeeper =
            Housekeeper::start(Arc::clone(&core), queue).map_err(StartError::Thread)?;
        tracing::info!(addr = %listener.local_addr(), "name server listens");
        Ok(Self {
            core,
            listener,
            housekeeper,
        })
    }

    /// The address it listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Whether route queries are answered: the housekeeper is alive and a wait that was asked for
    /// is over.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.housekeeper.is_alive() && !self.core.waits_for_brokers()
    }

    /// Whether the process does its work: registrations are taken up.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.housekeeper.is_alive()
    }

    /// Figures of this moment.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.core.metrics()
    }

    /// Figures of the port.
    #[must_use]
    pub fn listener_stats(&self) -> ListenerStats {
        self.listener.stats()
    }

    /// The options in force.
    #[must_use]
    pub fn options(&self) -> NamesrvOptions {
        self.core.read().options.clone()
    }

    /// Stops accepting and reading, does what was asked already, lets replies leave.
    pub async fn shutdown(self) {
        self.listener.pause();
        self.housekeeper.stop().await;
        self.listener.shutdown().await;
        tracing::info!("name server stopped");
    }
}
