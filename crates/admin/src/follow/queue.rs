//! The task that pulls one queue for a follower.
//!
//! **Invariant:** the offset moves only as the broker says or past a message that was handed on, and
//! a broker that answers "nothing" at once is not asked again at once.

use std::{sync::Arc, time::Duration};

use rmq_protocol::{
    header::{PULL_SUBSCRIPTION, PULL_SUSPEND, PullMessage, PullMessageResponse},
    remoting::{Command, request_code, response_code},
};
use rmq_types::{GroupName, QueueOffset, TopicName};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use super::{Batch, Event, StartAt, TagFilter, Trouble, routes::Routes};
use crate::{
    AskError, Message, Queue,
    client::{fields, refused, request},
    offset::offset,
    read::{TOOLS_GROUP, pull_header},
};

/// Messages asked for at once.
const PULL_MESSAGES: i32 = 32;
/// How long the broker may hold a pull that finds nothing, as Java's client asks.
const SUSPEND: Duration = Duration::from_secs(15);
/// Rest after trouble.
const REST: Duration = Duration::from_secs(1);
/// Shortest time between two pulls that find nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// What all queue tasks of a follower share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) routes: Routes,
    pub(super) topic: TopicName,
    pub(super) group: Option<GroupName>,
    pub(super) filter: TagFilter,
    pub(super) stop_at_end: bool,
}

/// Where a task begins, and where it ends if it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    next: QueueOffset,
    end: Option<QueueOffset>,
}

/// One pull's answer.
enum Pulled {
    Found {
        messages: Vec<Message>,
        next: QueueOffset,
    },
    Nothing,
    Moved {
        next: QueueOffset,
    },
}

/// Why a task goes on or not after a failed pull.
enum Failure {
    Passing(AskError),
    Lasting(AskError),
}

pub(super) struct Puller {
    shared: Arc<Shared>,
    queue: Queue,
    events: mpsc::Sender<Event>,
}

impl Shared {
    /// Finds out where to begin on a queue.
    pub(super) async fn span(&self, queue: &Queue, start: StartAt) -> Result<Span, AskError> {
        let route = self.routes.current();
        let addr = route.reader(&queue.broker);
        let addr = addr.ok_or_else(|| AskError::NoMaster {
            broker: queue.broker.clone(),
        })?;
        let (admin, topic) = (self.routes.admin(), &self.topic);
        let end = if self.stop_at_end {
            Some(admin.max_offset(addr, topic, queue.id).await?)
        } else {
            None
        };
        if let Some(group) = &self.group
            && let Some(next) = admin.committed(addr, group, topic, queue.id).await?
        {
            return Ok(Span { next, end });
        }
        let next = match start {
            StartAt::First => admin.min_offset(addr, topic, queue.id).await?,
            StartAt::Last => admin.max_offset(addr, topic, queue.id).await?,
            StartAt::Timestamp(time) => admin.offset_at(addr, topic, queue.id, time).await?,
            StartAt::Offset(offset) => offset,
        };
        Ok(Span { next, end })
    }
}

impl Puller {
    pub(super) fn new(shared: Arc<Shared>, queue: Queue, events: mpsc::Sender<Event>) -> Self {
        Self {
            shared,
            queue,
            events,
        }
    }

    /// Pulls until the end, a lasting refusal, or nobody takes the messages. The error is what
    /// ended it early.
    pub(super) async fn run(self, span: Option<Span>, start: StartAt) -> Option<AskError> {
        let mut span = match span {
            Some(span) => span,
            None => match self.find_span(start).await {
                Ok(span) => span?,
                Err(error) => return Some(error),
            },
        };
        while span.end.is_none_or(|end| span.next < end) {
            let asked_at = Instant::now();
            let event = match self.pull(span.next).await {
                Ok(Pulled::Nothing) if span.end.is_some() => break,
                Ok(Pulled::Nothing) => None,
                Ok(Pulled::Moved { next }) if next == span.next => None,
                Ok(Pulled::Moved { next }) => {
                    let from = std::mem::replace(&mut span.next, next);
                    Some(Event::Trouble(Trouble::Moved {
                        queue: self.queue.clone(),
                        from,
                        to: next,
                    }))
                }
                Ok(Pulled::Found { messages, next }) => {
                    span.next = next.max(span.next);
                    Some(Event::Messages(self.batch(messages, &span)))
                }
                Err(Failure::Lasting(error)) => return Some(error),
                Err(Failure::Passing(error)) => {
                    self.rest(error).await?;
                    continue;
                }
            };
            match event {
                Some(event) => self.events.send(event).await.ok()?,
                None => tokio::time::sleep_until(asked_at + PAUSE).await,
            }
        }
        None
    }

    /// `Ok(None)` when nobody listens any more.
    async fn find_span(&self, start: StartAt) -> Result<Option<Span>, AskError> {
        loop {
            match self.shared.span(&self.queue, start).await {
                Ok(span) => return Ok(Some(span)),
                Err(error) if !error.is_retryable() => return Err(error),
                Err(error) => {
                    if self.rest(error).await.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Reports trouble, rests, and looks whether the broker is elsewhere by now.
    async fn rest(&self, error: AskError) -> Option<()> {
        let trouble = Trouble::Failed {
            queue: self.queue.clone(),
            error,
        };
        self.events.send(Event::Trouble(trouble)).await.ok()?;
        sleep(REST).await;
        if let Err(error) = self.shared.routes.refresh().await {
            tracing::debug!(topic = %self.shared.topic, %error, "route not refreshed");
        }
        Some(())
    }

    /// What is wanted of the messages, and where the queue goes on.
    fn batch(&self, mut messages: Vec<Message>, span: &Span) -> Batch {
        messages.retain(|message| {
            self.shared.filter.wants(message.tags())
                && span.end.is_none_or(|end| message.queue_offset < end)
        });
        let next = span.end.map_or(span.next, |end| span.next.min(end));
        Batch {
            queue: self.queue.clone(),
            messages,
            next,
        }
    }

    async fn pull(&self, from: QueueOffset) -> Result<Pulled, Failure> {
        let shared = &self.shared;
        let route = shared.routes.current();
        let Some(addr) = route.reader(&self.queue.broker) else {
            let broker = self.queue.broker.clone();
            return Err(Failure::Passing(AskError::NoMaster { broker }));
        };
        let admin = shared.routes.admin();
        let code = request_code::PULL_MESSAGE;
        let pull = request(code, &self.header(from, admin.options.clock.now().millis()));
        let within = SUSPEND + admin.options.timeout;
        let answer = admin.client().call(addr, pull, within).await;
        let answer = answer.map_err(|error| Failure::Passing(error.into()))?;
        self.read(addr, from, answer)
    }

    fn header(&self, from: QueueOffset, now_millis: i64) -> PullMessage<'_> {
        let shared = &self.shared;
        let suspend = if shared.stop_at_end { 0 } else { PULL_SUSPEND };
        let group = shared.group.as_ref().map_or(TOOLS_GROUP, GroupName::as_str);
        PullMessage {
            sys_flag: PULL_SUBSCRIPTION | suspend,
            suspend_timeout_millis: SUSPEND.as_millis() as i64,
            subscription: Some(shared.filter.expression().into()),
            sub_version: now_millis,
            expression_type: Some(shared.filter.kind().into()),
            ..pull_header(group, &shared.topic, self.queue.id, from, PULL_MESSAGES)
        }
    }

    fn read(&self, addr: &str, from: QueueOffset, answer: Command) -> Result<Pulled, Failure> {
        let code = request_code::PULL_MESSAGE;
        let next = || {
            let header: PullMessageResponse =
                fields(addr, code, &answer.ext).map_err(Failure::Lasting)?;
            Ok(offset(header.next_begin_offset).unwrap_or(from))
        };
        match answer.code {
            response_code::SUCCESS => {
                let next = next()?;
                let admin = self.shared.routes.admin();
                let messages = admin
                    .decode(addr, code, &answer.body)
                    .map_err(Failure::Lasting)?;
                let after = |message: &Message| message.queue_offset.advance(1);
                let next = messages.last().map_or(next, |last| next.max(after(last)));
                Ok(Pulled::Found { messages, next })
            }
            response_code::PULL_NOT_FOUND => Ok(Pulled::Nothing),
            response_code::PULL_RETRY_IMMEDIATELY => {
                let next = next()?;
                if next <= from {
                    return Ok(Pulled::Nothing);
                }
                Ok(Pulled::Found {
                    messages: Vec::new(),
                    next,
                })
            }
            response_code::PULL_OFFSET_MOVED => Ok(Pulled::Moved { next: next()? }),
            _ => {
                let error = refused(addr, code, answer);
                Err(if error.is_retryable() {
                    Failure::Passing(error)
                } else {
                    Failure::Lasting(error)
                })
            }
        }
    }
}
