//! What all threads of a NameServer share: the table with the options under one lock, the KV
//! configuration, the clock, the queue to the housekeeper.
//!
//! **Invariant:** lock order is state, then KV table; nothing else is locked inside. Connections
//! are known here only while brokers are registered over them.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak},
};

use rmq_net::Connection;
use rmq_types::{Clock, Timestamp};

use super::{
    call::token_of,
    housekeeper::{Job, Jobs},
    metrics::{Counters, Metrics},
};
use crate::{
    config::NamesrvOptions,
    kv::{KvConfig, ORDER_TOPIC_NAMESPACE},
    route::{Action, ConnectionToken, RouteTable},
};

/// The table and the options it follows.
pub(super) struct State {
    pub(super) table: RouteTable,
    pub(super) options: NamesrvOptions,
}

pub(super) struct Core {
    state: RwLock<State>,
    pub(super) kv: KvConfig,
    clock: Arc<dyn Clock>,
    pub(super) jobs: Jobs,
    pub(super) counters: Counters,
    started_at: Timestamp,
    registered: Mutex<HashMap<ConnectionToken, Weak<Connection>>>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("started_at", &self.started_at)
            .finish_non_exhaustive()
    }
}

impl Core {
    pub(super) fn new(
        options: NamesrvOptions,
        kv: KvConfig,
        clock: Arc<dyn Clock>,
        jobs: Jobs,
    ) -> Self {
        let table = RouteTable::new(options.live.policy());
        Self {
            started_at: clock.now(),
            state: RwLock::new(State { table, options }),
            kv,
            clock,
            jobs,
            counters: Counters::default(),
            registered: Mutex::default(),
        }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Takes over the port that was really given.
    pub(super) fn bound(&self, addr: SocketAddr) {
        self.write().options.listen_port = addr.port();
    }

    /// Whether brokers are still given time to register before routes are answered.
    pub(super) fn waits_for_brokers(&self) -> bool {
        let state = self.read();
        let live = &state.options.live;
        live.need_wait_for_service
            && self.now().since(self.started_at) < live.wait_for_service.as_millis() as i64
    }

    /// The ordered-topic setting that routes of this topic show.
    pub(super) fn order_conf(&self, options: &NamesrvOptions, topic: &str) -> Option<String> {
        if !options.live.order_message_enable {
            return None;
        }
        self.kv
            .table()
            .get(ORDER_TOPIC_NAMESPACE, topic)
            .map(str::to_owned)
    }

    /// Remembers a connection as one that brokers stand behind.
    pub(super) fn remember(&self, conn: &Arc<Connection>) {
        self.registered()
            .insert(token_of(conn), Arc::downgrade(conn));
        // A registration that was worked on off the io thread may come after the close.
        if !conn.is_open() {
            self.connection_closed(token_of(conn));
        }
    }

    /// Takes out what was registered over a connection.
    pub(super) fn connection_closed(&self, token: ConnectionToken) {
        if self.registered().remove(&token).is_none() {
            return;
        }
        let (actions, left) = {
            let mut state = self.write();
            let before = state.table.broker_count();
            let actions = state.table.connection_closed(token);
            (actions, before - state.table.broker_count())
        };
        if left > 0 {
            tracing::info!(
                connection = token.0,
                brokers = left,
                "brokers left: connection closed"
            );
        }
        self.perform(actions);
    }

    /// Does what the table asked for; never blocks.
    pub(super) fn perform(&self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Close(token) => {
                    let conn = self.registered().get(&token).and_then(Weak::upgrade);
                    if let Some(conn) = conn {
                        conn.close();
                    }
                }
                Action::Notify(change) => {
                    if self.jobs.push(Job::Notify(change)).is_err() {
                        tracing::warn!("a change of a smallest broker id was not told: queue full");
                    }
                }
            }
        }
    }

    pub(super) fn metrics(&self) -> Metrics {
        let state = self.read();
        let table = &state.table;
        Metrics {
            brokers: table.broker_count(),
            broker_groups: table.group_count(),
            clusters: table.cluster_count(),
            topics: table.topic_count(),
            ..self.counters.snapshot()
        }
    }

    fn registered(&self) -> MutexGuard<'_, HashMap<ConnectionToken, Weak<Connection>>> {
        self.registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
