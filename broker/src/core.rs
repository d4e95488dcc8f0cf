//! Everything a handler may use: tables, store, sessions, waiting requests.
//!
//! Shared by all io threads. Locks are short and never held across a call to another part.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use rmq_net::Connection;
use rmq_protocol::{
    body::{SubscriptionGroupConfig, TopicConfig},
    message::UniqueIds,
};
use rmq_store::MessageStore;
use rmq_types::{Clock, Timestamp, system};

use crate::{
    answer::Failure,
    arrival::{Arrivals, HeldPull},
    config::LiveSettings,
    hold::Holds,
    identity::Identity,
    metadata::{ConfigTable, OffsetTable, PersistError, RequestModes},
    metrics::{CreateTimes, RpcLatency},
    parked::Parked,
    pop::Pops,
    pulse::Pulse,
    register::Registrar,
    routes::Routes,
    session::{Consumers, Producers, QueueLocks},
    stats::Stats,
    work::Workers,
};

/// How a handler reaches a client.
pub(crate) type Channel = Arc<Connection>;

/// The broker as its handlers see it.
pub(crate) struct Core {
    /// Settings in force.
    pub settings: LiveSettings,
    /// Keys changed over the wire are kept here, beside the user's own file.
    pub overrides_path: PathBuf,
    /// Who we are.
    pub identity: Identity,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Messages.
    pub store: MessageStore,
    /// Topics.
    pub topics: ConfigTable<TopicConfig>,
    /// Subscription groups.
    pub groups: ConfigTable<SubscriptionGroupConfig>,
    /// Progress of groups.
    pub offsets: OffsetTable,
    /// Pull or pop.
    pub modes: RequestModes,
    /// Consumers online.
    pub consumers: Mutex<Consumers<Channel>>,
    /// Producers online.
    pub producers: Mutex<Producers<Channel>>,
    /// Queue locks.
    pub locks: Mutex<QueueLocks>,
    /// Pulls that wait for a message.
    pub holds: Mutex<Holds<HeldPull>>,
    /// The store's listener: it wakes who waits.
    pub arrivals: Arc<Arrivals>,
    /// Pop consumption.
    pub pops: Pops,
    /// Sends that wait for their flush.
    pub parked: Parked,
    /// Maker of message ids.
    pub unique_ids: UniqueIds,
    /// Counters.
    pub stats: Stats,
    /// How long requests take.
    pub rpc: RpcLatency,
    /// How long tools wait for topics.
    pub topic_creation: CreateTimes,
    /// How long tools wait for groups.
    pub group_creation: CreateTimes,
    /// Requests that may block.
    pub workers: Workers,
    /// Registration with the NameServers.
    pub registrar: Registrar,
    /// Queues of topics on all brokers.
    pub routes: Routes,
    /// Progress of the delay levels, shared with the scheduler.
    pub delays: crate::schedule::DelayTable,
    /// Bytes behind the end of the log within which a reader does not lag.
    pub memory_window: u64,
    /// When the broker started.
    pub started_at: Timestamp,
    /// Held while the tables are written.
    pub writing: Mutex<()>,
    /// Last sign of life of what happens by the clock.
    pub pulse: Pulse,
    /// Set first when stopping: sends are refused with a code that clients retry elsewhere.
    pub stopping: AtomicBool,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// A lock that a panic in another thread does not take away.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], to read.
pub(crate) fn read<T>(shared: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    shared.read().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], to write.
pub(crate) fn write<T>(shared: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    shared.write().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether the broker is going down.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The settings of a topic, or code 17.
    pub(crate) fn topic(&self, topic: &str) -> Result<Arc<TopicConfig>, Failure> {
        self.topics
            .get(topic)
            .ok_or_else(|| Failure::no_topic(topic))
    }

    /// Puts topics and tells the NameServers; waits for both. Not on an io thread.
    pub(crate) fn put_topics(&self, topics: Vec<TopicConfig>) -> Result<(), PersistError> {
        if let Some(change) = self.topics.put(topics, self.now())? {
            self.registrar.announce(change.names, change.version);
        }
        Ok(())
    }

    /// The group, made when the settings allow it. Not on an io thread unless it exists.
    pub(crate) fn find_group(&self, group: &str) -> Result<Arc<SubscriptionGroupConfig>, Failure> {
        if let Some(found) = self.groups.get(group) {
            return Ok(found);
        }
        let allowed =
            self.settings.get().auto_create_subscription_group || system::is_system_group(group);
        if !allowed || rmq_types::GroupName::check(group).is_err() {
            return Err(Failure::no_group(group));
        }
        let made = SubscriptionGroupConfig::named(group);
        self.groups.put(vec![made], self.now())?;
        self.groups
            .get(group)
            .ok_or_else(|| Failure::no_group(group))
    }

    /// A topic that the broker itself needs (`%RETRY%`, `%DLQ%`): found or made.
    pub(crate) fn own_topic(
        &self,
        name: &str,
        queues: i32,
        perm: i32,
    ) -> Result<Arc<TopicConfig>, Failure> {
        if let Some(found) = self.topics.get(name) {
            return Ok(found);
        }
        rmq_types::TopicName::check(name)?;
        let topic = TopicConfig {
            read_queue_nums: queues,
            write_queue_nums: queues,
            perm,
            ..TopicConfig::named(name)
        };
        self.put_topics(vec![topic])?;
        self.topic(name)
    }

    /// Tells the members of a group to rebalance.
    pub(crate) fn notify_members(&self, group: &str) {
        let enabled = self
            .groups
            .get(group)
            .is_none_or(|config| config.notify_consumer_ids_changed_enable);
        if !enabled {
            return;
        }
        let (model, channels) = {
            let consumers = lock(&self.consumers);
            (consumers.model(group), consumers.channels(group))
        };
        if model == Some(rmq_protocol::body::MessageModel::Broadcasting) {
            return;
        }
        let notice = rmq_protocol::remoting::Command::oneway(
            rmq_protocol::remoting::request_code::NOTIFY_CONSUMER_IDS_CHANGED,
        )
        .with_ext("consumerGroup", group);
        for channel in channels {
            if let Err(error) = channel.send(&notice) {
                tracing::debug!(group, peer = %channel.peer_addr(), %error, "notice not sent");
            }
        }
    }
}
