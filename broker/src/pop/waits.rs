//! Pops (and questions whether there is something to pop) that wait for a message.
//!
//! **Invariant:** each is answered once: whoever takes it out of here answers it. An arrival that
//! nobody waits for costs one load and no lock.

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Instant;

use rmq_net::Connection;
use rmq_pop::polls::{Arrival, PollFilter, PollId, PollKey, PollLimits, PollingFull, Polls};
use rmq_store::Arrival as Stored;
use rmq_types::{GroupName, Moment, TopicName};
use rustc_hash::FxHashMap;

use super::Wish;
use crate::{core::lock, session::subscription::TagFilter};

/// Who waits, and for what.
#[derive(Debug)]
pub(crate) struct Held {
    /// Who.
    pub(crate) conn: Arc<Connection>,
    /// Number of the request.
    pub(crate) opaque: i32,
    /// Its code.
    pub(crate) code: i32,
    /// When it was read from its connection.
    pub(crate) since: Instant,
    /// Until when it waits.
    pub(crate) deadline: Moment,
    /// What it wants.
    pub(crate) wish: Wish,
}

#[derive(Debug)]
struct State {
    polls: Polls,
    held: FxHashMap<PollId, Held>,
    connections: FxHashMap<u64, Vec<PollId>>,
}

/// All that wait.
#[derive(Debug)]
pub(crate) struct Waits {
    state: Mutex<State>,
    /// Shared with the store's listener.
    count: Arc<AtomicUsize>,
}

impl Waits {
    pub(super) fn new(limits: PollLimits, count: Arc<AtomicUsize>) -> Self {
        Self {
            state: Mutex::new(State {
                polls: Polls::new(limits),
                held: FxHashMap::default(),
                connections: FxHashMap::default(),
            }),
            count,
        }
    }

    /// How many wait.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    fn update<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = lock(&self.state);
        let result = change(&mut state);
        self.count.store(state.held.len(), Ordering::Release);
        result
    }

    /// Lets one wait, or gives it back. The caller then looks for messages once more.
    pub(crate) fn hold(&self, held: Held) -> Result<PollId, (Box<Held>, PollingFull)> {
        let (Ok(topic), Ok(group)) = (
            TopicName::parse(&held.wish.topic.topic_name),
            GroupName::parse(&held.wish.group.group_name),
        ) else {
            // Names that are in the tables were checked.
            return Err((Box::new(held), PollingFull { waiting: 0 }));
        };
        let filter = match &held.wish.filter {
            TagFilter::All => PollFilter::All,
            TagFilter::Tags(tags) => PollFilter::Tags(tags.iter().map(|(code, _)| *code).collect()),
        };
        let key = PollKey {
            topic: &topic,
            group: &group,
            queue: held.wish.queue,
        };
        self.update(|state| match state.polls.hold(key, held.deadline, filter) {
            Err(full) => Err((Box::new(held), full)),
            Ok(id) => {
                let ids = state.connections.entry(held.conn.id().0).or_default();
                ids.push(id);
                state.held.insert(id, held);
                Ok(id)
            }
        })
    }

    /// Takes one back; `None`: somebody else answers it.
    pub(crate) fn cancel(&self, id: PollId) -> Option<Held> {
        self.update(|state| {
            state.polls.cancel(id);
            state.take(id)
        })
    }

    /// How many wait for a group, topic and queue.
    pub(crate) fn waiting_for(
        &self,
        topic: &TopicName,
        group: &GroupName,
        queue: Option<u32>,
    ) -> usize {
        let key = PollKey {
            topic,
            group,
            queue,
        };
        self.state().polls.held(key)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn next_deadline(&self) -> Option<Moment> {
        self.state().polls.next_deadline()
    }

    /// Takes those that an arrival concerns.
    pub(crate) fn arrived(&self, topic: &str, queue: u32, arrivals: &[Stored]) -> Vec<Held> {
        self.taken(|state, woken| {
            for arrival in arrivals {
                let arrival = Arrival {
                    topic,
                    queue,
                    offset: arrival.queue_offset.get(),
                    tags_code: Some(arrival.tags_code),
                };
                state.polls.arrived(arrival, woken);
            }
        })
    }

    /// Takes one that is to look again.
    pub(crate) fn wake(&self, topic: &str, group: &str, queue: Option<u32>) -> Vec<Held> {
        if self.count() == 0 {
            return Vec::new();
        }
        self.taken(|state, woken| state.polls.wake(topic, group, queue, woken))
    }

    /// Takes those whose time is over.
    pub(super) fn expire(&self, now: Moment) -> Vec<Held> {
        self.taken(|state, woken| state.polls.expire(now, woken))
    }

    /// Takes those of a topic.
    pub(super) fn take_topic(&self, topic: &str) -> Vec<Held> {
        self.taken(|state, woken| state.polls.drop_topic(topic, woken))
    }

    /// Takes all, for the shutdown.
    pub(crate) fn drain(&self) -> Vec<Held> {
        self.taken(|state, woken| woken.extend(state.held.keys().copied()))
    }

    /// Forgets those of a closed connection.
    pub(crate) fn forget(&self, connection: u64) {
        if self.count() == 0 {
            return;
        }
        self.update(|state| {
            for id in state.connections.remove(&connection).unwrap_or_default() {
                state.polls.cancel(id);
                state.held.remove(&id);
            }
        });
    }

    fn taken(&self, choose: impl FnOnce(&mut State, &mut Vec<PollId>)) -> Vec<Held> {
        self.update(|state| {
            let mut woken = Vec::new();
            choose(state, &mut woken);
            woken
                .into_iter()
                .filter_map(|id| {
                    state.polls.cancel(id);
                    state.take(id)
                })
                .collect()
        })
    }
}

impl State {
    fn take(&mut self, id: PollId) -> Option<Held> {
        let held = self.held.remove(&id)?;
        let connection = held.conn.id().0;
        if let Some(ids) = self.connections.get_mut(&connection) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.connections.remove(&connection);
            }
        }
        Some(held)
    }
}
