//! What all connections of one listener or one client share: limits, the service, who is open.
//!
//! Invariant: a connection is in the table from before its task starts until its task has ended.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmq_protocol::remoting::Serializer;

use crate::mailbox::Mailbox;
use crate::outbound::{Outbound, Phase};
use crate::pending::Pending;
use crate::quiet::QuietLog;
use crate::{Connection, ConnectionId, Service};

/// Bounds of every connection of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) frame_bytes_max: usize,
    pub(crate) outbound_bytes_max: usize,
    pub(crate) pending_max: usize,
}

/// Things that happened, counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) broken: AtomicU64,
    pub(crate) idle: AtomicU64,
}

/// See the module.
pub(crate) struct Endpoint {
    pub(crate) limits: Limits,
    pub(crate) serializer: Serializer,
    pub(crate) service: Arc<dyn Service>,
    pub(crate) quiet: QuietLog,
    pub(crate) counters: Counters,
    connections: Mutex<HashMap<ConnectionId, Arc<Connection>>>,
    tick: AtomicU32,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("limits", &self.limits)
            .field("connections", &self.count())
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    pub(crate) fn new(limits: Limits, serializer: Serializer, service: Arc<dyn Service>) -> Self {
        Self {
            limits,
            serializer,
            service,
            quiet: QuietLog::new(),
            counters: Counters::default(),
            connections: Mutex::default(),
            tick: AtomicU32::new(0),
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<ConnectionId, Arc<Connection>>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a new connection.
    pub(crate) fn enter(
        &self,
        peer: SocketAddr,
        local: SocketAddr,
        mailbox: Option<Arc<Mailbox>>,
    ) -> Arc<Connection> {
        let conn = Arc::new(Connection::new(
            peer,
            local,
            self.serializer,
            Outbound::new(self.limits.outbound_bytes_max, mailbox),
            Pending::new(self.limits.pending_max),
        ));
        conn.touch(self.tick());
        self.table().insert(conn.id(), Arc::clone(&conn));
        conn
    }

    /// Takes a connection out when its task ends.
    pub(crate) fn leave(&self, id: ConnectionId) {
        self.table().remove(&id);
    }

    pub(crate) fn count(&self) -> usize {
        self.table().len()
    }

    /// Moves every connection on to `phase`.
    pub(crate) fn advance_all(&self, phase: Phase) {
        let all: Vec<_> = self.table().values().cloned().collect();
        for conn in all {
            conn.outbound.advance(phase);
        }
    }

    pub(crate) fn tick(&self) -> u32 {
        self.tick.load(Ordering::Relaxed)
    }

    /// Counts one tick and closes connections that were silent for more than `ticks_max`.
    pub(crate) fn reap(&self, ticks_max: u32) {
        let now = self.tick.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let silent: Vec<_> = self
            .table()
            .values()
            .filter(|conn| conn.idle_ticks(now) > ticks_max)
            .cloned()
            .collect();
        for conn in silent {
            tracing::debug!(peer = %conn.peer_addr(), "closed: idle");
            self.counters.idle.fetch_add(1, Ordering::Relaxed);
            conn.close();
        }
    }

    /// Runs a call into the service; false if it panicked, which is logged.
    pub(crate) fn guard(&self, peer: SocketAddr, call: impl FnOnce(&dyn Service)) -> bool {
        match catch_unwind(AssertUnwindSafe(|| call(self.service.as_ref()))) {
            Ok(()) => true,
            Err(payload) => {
                let reason = panic_text(payload.as_ref());
                tracing::error!(%peer, reason, "panic while serving a connection; it is closed");
                false
            }
        }
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}
