//! Following a topic: every readable queue is pulled with long polling, messages come out as they
//! arrive.
//!
//! **Invariant:** at most [`EVENTS_MAX`] batches wait for the reader; a slow reader slows the pulls.
//! Progress of a group is stored only for what the reader said it is done with. A follower takes
//! every queue for itself: it does not share them with members of the group.

mod filter;
mod queue;
mod routes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use rmq_types::{GroupName, QueueOffset, Timestamp, TopicName};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Interval, MissedTickBehavior, interval},
};

pub use self::filter::TagFilter;
use self::{
    queue::{Puller, Shared},
    routes::Routes,
};
use crate::{
    AdminClient, AskError, FollowError, Message, Queue, TopicRoute, answers::in_parallel,
    route::summary,
};

const EVENTS_MAX: usize = 16;
/// How often new queues are looked for.
const REFRESH: Duration = Duration::from_secs(30);

/// Where to begin on a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartAt {
    /// At the oldest message.
    First,
    /// After the newest message.
    #[default]
    Last,
    /// At the first message stored at this time or later.
    Timestamp(Timestamp),
    /// At this offset of each queue.
    Offset(QueueOffset),
}

/// What to follow.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// The topic.
    pub topic: TopicName,
    /// Only this broker group.
    pub broker: Option<String>,
    /// Only this queue.
    pub queue: Option<u32>,
    /// Where to begin; with a group, on queues where it has committed nothing.
    pub start: StartAt,
    /// Which messages.
    pub filter: TagFilter,
    /// Begin where this group has come to, and let [`Follower::commit`] store its progress.
    pub group: Option<GroupName>,
    /// End each queue where it ended when following began.
    pub stop_at_end: bool,
}

impl FollowOptions {
    /// All new messages of a topic.
    #[must_use]
    pub fn new(topic: TopicName) -> Self {
        Self {
            topic,
            broker: None,
            queue: None,
            start: StartAt::default(),
            filter: TagFilter::default(),
            group: None,
            stop_at_end: false,
        }
    }
}

/// Messages of one queue, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The queue; the broker's name is not in the messages.
    pub queue: Queue,
    /// The messages; empty if the filter let none through.
    pub messages: Vec<Message>,
    /// Where the queue goes on after all of them.
    pub next: QueueOffset,
}

/// Something the reader should hear of; following goes on.
#[derive(Debug)]
pub enum Trouble {
    /// A pull failed and is tried again.
    Failed {
        /// The queue.
        queue: Queue,
        /// What happened.
        error: AskError,
    },
    /// The offset is not there any more (expired) or not yet.
    Moved {
        /// The queue.
        queue: Queue,
        /// Where it was to go on.
        from: QueueOffset,
        /// Where it goes on.
        to: QueueOffset,
    },
    /// This queue is refused for good; the others go on.
    Ended {
        /// The queue.
        queue: Queue,
        /// Why.
        error: AskError,
    },
}

/// What a follower gives.
#[derive(Debug)]
pub enum Event {
    /// Messages.
    Messages(Batch),
    /// Trouble.
    Trouble(Trouble),
}

/// A topic being followed. Dropping it ends all pulls.
#[derive(Debug)]
pub struct Follower {
    shared: Arc<Shared>,
    options: FollowOptions,
    known: BTreeSet<Queue>,
    done: BTreeMap<Queue, QueueOffset>,
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
    tasks: JoinSet<(Queue, Option<AskError>)>,
    refresh: Interval,
}

impl AdminClient {
    /// Begins to follow a topic. When this returns, the starting offsets of all queues whose broker
    /// answers are settled: what is sent from now on comes after them.
    pub async fn follow(&self, options: FollowOptions) -> Result<Follower, FollowError> {
        let route = self.route(&options.topic).await?;
        let queues = wanted(&route, &options);
        if queues.is_empty() {
            return Err(no_queue(&route, &options));
        }
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let shared = Arc::new(Shared {
            routes: Routes::new(self.clone(), route),
            topic: options.topic.clone(),
            group: options.group.clone(),
            filter: options.filter.clone(),
            stop_at_end: options.stop_at_end,
        });
        let mut refresh = interval(REFRESH);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        refresh.reset();
        let mut follower = Follower {
            shared,
            options,
            known: BTreeSet::new(),
            done: BTreeMap::new(),
            sender,
            events,
            tasks: JoinSet::new(),
            refresh,
        };
        follower.start(queues).await?;
        Ok(follower)
    }
}

fn wanted(route: &TopicRoute, options: &FollowOptions) -> Vec<Queue> {
    let fits = |queue: &Queue| {
        options
            .broker
            .as_ref()
            .is_none_or(|broker| *broker == queue.broker)
            && options.queue.is_none_or(|id| id == queue.id)
    };
    route.read_queues().into_iter().filter(fits).collect()
}

fn no_queue(route: &TopicRoute, options: &FollowOptions) -> FollowError {
    let wanted = match (&options.broker, options.queue) {
        (Some(broker), Some(queue)) => format!("readable queue {queue} on broker {broker}"),
        (Some(broker), None) => format!("readable queue on broker {broker}"),
        (None, Some(queue)) => format!("readable queue {queue}"),
        (None, None) => "readable queue".to_owned(),
    };
    FollowError::NoQueue {
        topic: options.topic.clone(),
        wanted,
        have: summary(&route.read_queues()),
    }
}

impl Follower {
    async fn start(&mut self, queues: Vec<Queue>) -> Result<(), FollowError> {
        let (shared, start) = (Arc::clone(&self.shared), self.options.start);
        let spans = in_parallel(queues, |queue| {
            let shared = Arc::clone(&shared);
            async move {
                let span = shared.span(&queue, start).await;
                (queue, span)
            }
        })
        .await;
        let mut failed = None;
        let mut settled = Vec::new();
        for (queue, span) in spans {
            match span {
                Ok(span) => settled.push((queue, Some(span))),
                Err(error) if error.is_retryable() => {
                    settled.push((queue, None));
                    failed = Some(error);
                }
                Err(error) => return Err(FollowError::Start(error)),
            }
        }
        if let Some(error) = failed
            && settled.iter().all(|(_, span)| span.is_none())
        {
            return Err(FollowError::Start(error));
        }
        for (queue, span) in settled {
            self.spawn(queue, span, start);
        }
        Ok(())
    }

    fn spawn(&mut self, queue: Queue, span: Option<queue::Span>, start: StartAt) {
        self.known.insert(queue.clone());
        let puller = Puller::new(Arc::clone(&self.shared), queue.clone(), self.sender.clone());
        self.tasks
            .spawn(async move { (queue, puller.run(span, start).await) });
    }

    /// The next event; `None` when every queue has come to its end. May be dropped and called again.
    pub async fn next(&mut self) -> Result<Option<Event>, FollowError> {
        loop {
            if self.tasks.is_empty() {
                return Ok(self.events.try_recv().ok());
            }
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return Ok(Some(event)),
                Some(ended) = self.tasks.join_next() => {
                    if let Some(trouble) = self.ended(ended)? {
                        return Ok(Some(Event::Trouble(trouble)));
                    }
                }
                _ = self.refresh.tick() => self.look_for_queues().await,
            }
        }
    }

    fn ended(
        &mut self,
        ended: Result<(Queue, Option<AskError>), tokio::task::JoinError>,
    ) -> Result<Option<Trouble>, FollowError> {
        match ended {
            Ok((queue, Some(error))) if !self.tasks.is_empty() => {
                Ok(Some(Trouble::Ended { queue, error }))
            }
            Ok((_, Some(error))) if self.events.is_empty() => Err(FollowError::AllEnded {
                topic: self.options.topic.clone(),
                last: error,
            }),
            // What the queue gave before it ended comes first.
            Ok((queue, Some(error))) => Ok(Some(Trouble::Ended { queue, error })),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Ok((_, None)) | Err(_) => Ok(None),
        }
    }

    /// Queues that were added since: they are read from their first message.
    async fn look_for_queues(&mut self) {
        if self.options.stop_at_end {
            return;
        }
        if let Err(error) = self.shared.routes.refresh().await {
            tracing::debug!(topic = %self.options.topic, %error, "route not refreshed");
            return;
        }
        for queue in wanted(&self.shared.routes.current(), &self.options) {
            if !self.known.contains(&queue) {
                self.spawn(queue, None, StartAt::First);
            }
        }
    }

    /// Says that everything of a queue before `next` is done with.
    pub fn consumed(&mut self, queue: &Queue, next: QueueOffset) {
        if self.options.group.is_some() {
            self.done.insert(queue.clone(), next);
        }
    }

    /// Stores the group's progress for what was consumed since the last time. Queues that could not
    /// be stored are tried again the next time.
    pub async fn commit(&mut self) -> Result<(), FollowError> {
        let Some(group) = self.options.group.clone() else {
            return Ok(());
        };
        // Queues of one broker one after the other: a Java broker loses all but one of a group's first
        // commits if they come at once.
        let mut by_broker: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (queue, next) in std::mem::take(&mut self.done) {
            let broker = queue.broker.clone();
            by_broker.entry(broker).or_default().push((queue, next));
        }
        let shared = Arc::clone(&self.shared);
        let stored = in_parallel(by_broker.into_iter().collect(), |(broker, queues)| {
            let (shared, group) = (Arc::clone(&shared), group.clone());
            async move {
                let route = shared.routes.current();
                let mut stored = Vec::with_capacity(queues.len());
                for (queue, next) in queues {
                    let outcome = match route.master(&broker) {
                        Some(addr) => {
                            let admin = shared.routes.admin();
                            admin
                                .commit(addr, &group, &shared.topic, queue.id, next)
                                .await
                        }
                        None => Err(AskError::NoMaster {
                            broker: queue.broker.clone(),
                        }),
                    };
                    stored.push((queue, next, outcome));
                }
                stored
            }
        })
        .await;
        let mut failed = None;
        for (queue, next, outcome) in stored.into_iter().flatten() {
            if let Err(source) = outcome {
                self.done.entry(queue).or_insert(next);
                failed = Some(FollowError::Commit {
                    group: group.clone(),
                    source,
                });
            }
        }
        failed.map_or(Ok(()), Err)
    }
}
