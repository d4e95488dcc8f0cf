//! What one process of the cluster is doing now.
//!
//! **Invariant:** written only by the process's supervisor; everybody else reads it.

use std::net::SocketAddr;

/// Where a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Started, but not listening yet: reading its data.
    Starting,
    /// Listening, but its readiness probe fails.
    NotReady,
    /// Its readiness probe succeeds.
    Ready,
    /// Crashed; it waits before it is started again.
    BackOff,
    /// Asked to stop.
    Stopping,
    /// Ended for good.
    Stopped,
}

impl Phase {
    /// The word for the STATUS column, as pods have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "Starting",
            Self::NotReady => "NotReady",
            Self::Ready => "Ready",
            Self::BackOff => "CrashLoopBackOff",
            Self::Stopping => "Terminating",
            Self::Stopped => "Terminated",
        }
    }
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessState {
    /// Where it stands.
    pub phase: Phase,
    /// The running process.
    pub pid: Option<u32>,
    /// Where it listens for clients, once known.
    pub address: Option<SocketAddr>,
    /// Where its health page is, once known.
    pub health: Option<SocketAddr>,
    /// How often it was started again.
    pub restarts: u32,
    /// Why it is not ready, or how it ended last.
    pub reason: Option<String>,
}

impl ProcessState {
    pub(crate) const fn new() -> Self {
        Self {
            phase: Phase::Starting,
            pid: None,
            address: None,
            health: None,
            restarts: 0,
            reason: None,
        }
    }
}
