//! The load of one round: producers, one who commits progress, one who creates topics.
//!
//! **Invariant:** every task ends by itself when the broker is gone or its share is done; nothing is
//! sent a second time, so a message can be stored at most once. What was answered with success is in
//! the shared account before the task goes on.

use super::ledger::Ledger;
use super::message::{QUEUES, Queue, Random, TOPICS};
use super::wire::{Sent, Wire};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Producers, each with a connection of its own.
const PRODUCERS: u64 = 5;
/// Sends that a producer has under way.
const UNDER_WAY: usize = 16;
/// Most sends of a producer in one round; the kill comes long before.
const SENDS_MAX: u64 = 20_000;
/// One send in this many is a batch.
const BATCH_ONE_IN: u64 = 6;
const BATCH_MESSAGES_MAX: u64 = 12;
/// Most delayed messages of one round.
const DELAYED_MAX: usize = 200;
/// Topics created in one round, if the kill does not come first.
const TOPICS_MADE: u64 = 6;

/// Progress of the committing group in one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Highest offset that was sent to be committed: none above can be true.
    pub(super) tried: i64,
    /// Highest offset whose commit was answered.
    pub(super) committed: i64,
}

/// What all tasks of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) seed: u64,
    ledger: Mutex<Ledger>,
    progress: Mutex<BTreeMap<Queue, Progress>>,
    topics: Mutex<Vec<String>>,
    /// Acknowledged messages that come after a delay.
    delayed: Mutex<Vec<u64>>,
    /// The last acknowledged message of each topic.
    last: Mutex<BTreeMap<u8, u64>>,
    next_number: AtomicU64,
    refused: AtomicU64,
    /// Acknowledged messages of this round.
    acknowledged: watch::Sender<u64>,
    problem: Mutex<Option<String>>,
    stop: AtomicBool,
}

impl Shared {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            ledger: Mutex::default(),
            progress: Mutex::default(),
            topics: Mutex::default(),
            delayed: Mutex::default(),
            last: Mutex::default(),
            next_number: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            acknowledged: watch::Sender::new(0),
            problem: Mutex::default(),
            stop: AtomicBool::new(false),
        }
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }

    pub(super) fn progress(&self) -> MutexGuard<'_, BTreeMap<Queue, Progress>> {
        lock(&self.progress)
    }

    /// Topics whose creation was answered with success.
    pub(super) fn topics(&self) -> MutexGuard<'_, Vec<String>> {
        lock(&self.topics)
    }

    /// Acknowledged messages that come after a delay.
    pub(super) fn delayed(&self) -> MutexGuard<'_, Vec<u64>> {
        lock(&self.delayed)
    }

    /// The last acknowledged message of each topic in this round.
    pub(super) fn last_of_topics(&self) -> Vec<(u8, u64)> {
        lock(&self.last).iter().map(|(t, n)| (*t, *n)).collect()
    }

    /// How many sends were answered with something else than success.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Hears of every acknowledged message of this round.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.acknowledged.subscribe()
    }

    /// The first answer that made no sense.
    pub(super) fn problem(&self) -> Option<String> {
        lock(&self.problem).clone()
    }

    fn note(&self, problem: &anyhow::Error) {
        lock(&self.problem).get_or_insert_with(|| format!("{problem:#}"));
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tasks of a round.
#[derive(Debug)]
pub(super) struct Load {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Load {
    /// Starts the tasks of round `round`, which shall bring `target` acknowledged messages.
    pub(super) fn start(
        on: &Handle,
        shared: &Arc<Shared>,
        broker: &str,
        (round, target): (u32, u64),
    ) -> Self {
        shared.stop.store(false, Ordering::Release);
        shared.acknowledged.send_replace(0);
        lock(&shared.last).clear();
        let mut tasks = JoinSet::new();
        for number in 0..PRODUCERS {
            let producer = Producer {
                shared: Arc::clone(shared),
                wire: Wire::new(broker, shared.seed),
                round,
                random: Random::of(shared.seed, u64::from(round) * PRODUCERS + number),
            };
            tasks.spawn_on(producer.run(), on);
        }
        let wire = Wire::new(broker, shared.seed);
        tasks.spawn_on(commit(Arc::clone(shared), wire.clone()), on);
        tasks.spawn_on(send_delayed(Arc::clone(shared), wire.clone()), on);
        tasks.spawn_on(make_topics(Arc::clone(shared), wire, (round, target)), on);
        Self {
            shared: Arc::clone(shared),
            tasks,
        }
    }

    /// Begins nothing new, and waits for what is under way.
    pub(super) async fn finish(mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Wakes those who wait for the next acknowledgement, which will not come.
        self.shared.acknowledged.send_modify(|_| {});
        while self.tasks.join_next().await.is_some() {}
    }
}

struct Producer {
    shared: Arc<Shared>,
    wire: Wire,
    round: u32,
    random: Random,
}

impl Producer {
    async fn run(mut self) {
        let mut under_way = JoinSet::new();
        let mut sends = 0;
        loop {
            while under_way.len() < UNDER_WAY && sends < SENDS_MAX && !self.shared.is_stopped() {
                under_way.spawn(self.next_send());
                sends += 1;
            }
            match under_way.join_next().await {
                Some(Ok(true)) => {}
                // The broker is gone: what else is under way may still have been answered.
                Some(_) => sends = SENDS_MAX,
                None => return,
            }
        }
    }

    /// A send that gives `false` when the broker cannot be reached any more.
    fn next_send(&mut self) -> impl Future<Output = bool> + Send + 'static {
        let queue = Queue {
            topic: self.random.below(TOPICS as u64) as u8,
            queue: self.random.below(QUEUES as u64) as u8,
        };
        let count = if self.random.below(BATCH_ONE_IN) == 0 {
            2 + self.random.below(BATCH_MESSAGES_MAX - 1)
        } else {
            1
        };
        let (shared, wire, round) = (Arc::clone(&self.shared), self.wire.clone(), self.round);
        let first = shared.next_number.fetch_add(count, Ordering::Relaxed);
        async move {
            match wire.send(queue, first, count).await {
                Ok(Sent::Stored(places)) => {
                    {
                        let mut ledger = shared.ledger();
                        for (offset, stored) in places {
                            ledger.acknowledged(round, queue, offset, stored);
                        }
                    }
                    lock(&shared.last).insert(queue.topic, first + count - 1);
                    shared.acknowledged.send_modify(|all| *all += count);
                    true
                }
                Ok(Sent::Refused(_)) => {
                    shared.refused.fetch_add(count, Ordering::Relaxed);
                    true
                }
                Err(error) => {
                    // A call that failed is what a kill looks like; any other error is news.
                    if error.downcast_ref::<rmq_net::CallError>().is_none() {
                        shared.note(&error);
                    }
                    false
                }
            }
        }
    }
}

/// Commits what is acknowledged, queue by queue, until the broker is gone.
async fn commit(shared: Arc<Shared>, wire: Wire) {
    let mut news = shared.watch();
    while !shared.is_stopped() && news.changed().await.is_ok() {
        for queue in Queue::all() {
            let offset = shared.ledger().end(queue);
            {
                let mut progress = shared.progress();
                let progress = progress.entry(queue).or_default();
                if offset <= progress.committed {
                    continue;
                }
                progress.tried = progress.tried.max(offset);
            }
            if wire.commit(queue, offset).await.is_err() {
                return;
            }
            shared.progress().entry(queue).or_default().committed = offset;
        }
    }
}

/// Sends delayed messages, one with each piece of news, until the broker is gone.
async fn send_delayed(shared: Arc<Shared>, wire: Wire) {
    let mut news = shared.watch();
    for queue in Queue::delayed().cycle().take(DELAYED_MAX) {
        if news.changed().await.is_err() || shared.is_stopped() {
            return;
        }
        let number = shared.next_number.fetch_add(1, Ordering::Relaxed);
        match wire.send_delayed(queue, number).await {
            Ok(true) => shared.delayed().push(number),
            Ok(false) => {}
            Err(_) => return,
        }
    }
}

/// Creates topics now and then until the broker is gone.
async fn make_topics(shared: Arc<Shared>, wire: Wire, (round, target): (u32, u64)) {
    let mut news = shared.watch();
    for number in 0..TOPICS_MADE {
        let due = target * number / TOPICS_MADE;
        let waited = news.wait_for(|acknowledged| *acknowledged >= due || shared.is_stopped());
        if waited.await.is_err() || shared.is_stopped() {
            return;
        }
        let topic = format!("made-{round}-{number}");
        if wire.create_topic(&topic, 1).await.is_err() {
            return;
        }
        shared.topics().push(topic);
    }
}
