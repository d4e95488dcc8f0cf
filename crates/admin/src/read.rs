//! Single messages: by queue offset, by the broker's id, by key.
//!
//! **Invariant:** a message that is given back lies at the place asked for, or carries the key asked
//! for: a broker's nearest guess is no answer.

use bytes::Bytes;
use rmq_protocol::{
    header::{PullMessage, PullMessageResponse, QueryMessage, ViewMessage},
    message::{OffsetId, properties::names},
    remoting::{Command, request_code, response_code},
};
use rmq_types::{QueueOffset, TopicName, limits};

use crate::{
    AdminClient, Answers, AskError, Message, Queue, ReadError, TopicRoute,
    answers::ask_all,
    client::{fields, refused, request},
    offset::wire,
    route::summary,
};

/// The group that tools read with; every broker has it.
pub const TOOLS_GROUP: &str = "TOOLS_CONSUMER";

/// A place in a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePlace {
    /// The topic.
    pub topic: TopicName,
    /// The broker group; needed only if several have the queue.
    pub broker: Option<String>,
    /// The queue.
    pub queue: u32,
    /// The offset.
    pub offset: QueueOffset,
}

/// What kind of key to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// A key the sender gave.
    Key,
    /// The producer's id of the message.
    UniqueId,
}

impl AdminClient {
    /// The message at a place (codes 105 and 11), and the broker group it is on.
    pub async fn message_at(&self, place: &MessagePlace) -> Result<(Queue, Message), ReadError> {
        let route = self.route(&place.topic).await?;
        let queue = find_queue(&route, place)?;
        let addr = route.reader(&queue.broker).unwrap_or_default();
        let code = request_code::PULL_MESSAGE;
        let header = pull_header(TOOLS_GROUP, &place.topic, queue.id, place.offset, 1);
        let answer = self.exchange(addr, request(code, &header)).await?;
        match answer.code {
            response_code::SUCCESS => {
                let found = self.decode(addr, code, &answer.body)?.into_iter().next();
                match found.filter(|message| message.queue_offset == place.offset) {
                    Some(message) => Ok((queue, message)),
                    None => Err(no_message(&queue, place, &answer, addr)),
                }
            }
            response_code::PULL_NOT_FOUND
            | response_code::PULL_RETRY_IMMEDIATELY
            | response_code::PULL_OFFSET_MOVED => Err(no_message(&queue, place, &answer, addr)),
            _ => Err(ReadError::Broker(refused(addr, code, answer))),
        }
    }

    /// The message with a broker's id (code 33). The id names the broker's address itself.
    pub async fn message_by_id(
        &self,
        id: &str,
        topic: Option<&TopicName>,
    ) -> Result<Message, ReadError> {
        let parsed = OffsetId::parse(id.trim()).map_err(|source| ReadError::Id {
            id: id.to_owned(),
            source,
        })?;
        let addr = parsed.host.to_string();
        let header = ViewMessage {
            topic: topic.map(|topic| topic.as_str().into()),
            offset: parsed.offset,
        };
        let code = request_code::VIEW_MESSAGE_BY_ID;
        let answer = self.ask(&addr, request(code, &header)).await?;
        let found = self.decode(&addr, code, &answer.body)?.into_iter().next();
        found
            .filter(|message| message.commit_log_offset == parsed.offset)
            .ok_or_else(|| ReadError::NoMessage {
                place: format!("commit log offset {} of {addr}", parsed.offset),
                why: "the broker answered without one".to_owned(),
            })
    }

    /// The newest messages of a topic with a key, at most 64 from each broker (codes 105 and 12).
    pub async fn messages_by_key(
        &self,
        topic: &TopicName,
        key: &str,
        kind: KeyKind,
    ) -> Result<Answers<Vec<Message>>, ReadError> {
        let route = self.route(topic).await?;
        let header = QueryMessage {
            topic: topic.as_str().into(),
            key: key.into(),
            max_num: limits::QUERY_MESSAGES_MAX as i32,
            begin_timestamp: 0,
            end_timestamp: i64::MAX,
        };
        let mut query = request(request_code::QUERY_MESSAGE, &header);
        if kind == KeyKind::UniqueId {
            query = query.with_ext("_UNIQUE_KEY_QUERY", "true");
        }
        let shared = (self.clone(), topic.clone(), key.to_owned());
        Ok(ask_all(route.masters(), move |_, addr| {
            let ((admin, topic, key), query) = (shared.clone(), query.clone());
            async move {
                let mut found = admin.query(&addr, query).await?;
                found.retain(|message| {
                    message.topic == topic.as_str() && has_key(message, &key, kind)
                });
                Ok(found)
            }
        })
        .await)
    }

    async fn query(&self, addr: &str, query: Command) -> Result<Vec<Message>, AskError> {
        let code = query.code;
        let answer = self.exchange(addr, query).await?;
        match answer.code {
            response_code::SUCCESS => self.decode(addr, code, &answer.body),
            response_code::QUERY_NOT_FOUND => Ok(Vec::new()),
            _ => Err(refused(addr, code, answer)),
        }
    }

    pub(crate) fn decode(
        &self,
        addr: &str,
        request: i32,
        bytes: &Bytes,
    ) -> Result<Vec<Message>, AskError> {
        Message::decode_all(bytes, self.options.inflated_bytes_max).map_err(|source| {
            AskError::Record {
                addr: addr.to_owned(),
                request,
                source,
            }
        })
    }
}

/// Brokers find by a hash of the key, so others come along.
fn has_key(message: &Message, key: &str, kind: KeyKind) -> bool {
    match kind {
        KeyKind::Key => {
            let keys = message.keys().unwrap_or_default();
            keys.split(' ').any(|word| word == key)
                || message.property(names::UNIQ_KEY) == Some(key)
        }
        KeyKind::UniqueId => message.unique_id() == Some(key),
    }
}

/// A pull of everything from one queue, without waiting.
pub(crate) fn pull_header<'a>(
    group: &'a str,
    topic: &'a TopicName,
    queue: u32,
    offset: QueueOffset,
    count: i32,
) -> PullMessage<'a> {
    PullMessage::of_all(group, topic.as_str(), queue as i32, wire(offset), count)
}

fn find_queue(route: &TopicRoute, place: &MessagePlace) -> Result<Queue, ReadError> {
    let all = route.read_queues();
    let fits = |queue: &&Queue| {
        queue.id == place.queue
            && place
                .broker
                .as_ref()
                .is_none_or(|broker| *broker == queue.broker)
    };
    let mut found: Vec<_> = all.iter().filter(fits).cloned().collect();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(last), false) => {
            let mut brokers: Vec<_> = found.into_iter().map(|queue| queue.broker).collect();
            brokers.push(last.broker);
            Err(ReadError::SeveralBrokers {
                topic: place.topic.clone(),
                queue: place.queue,
                brokers,
            })
        }
        (None, _) => Err(ReadError::NoQueue {
            topic: place.topic.clone(),
            wanted: match &place.broker {
                Some(broker) => format!("readable queue {} on broker {broker}", place.queue),
                None => format!("readable queue {}", place.queue),
            },
            have: summary(&all),
        }),
    }
}

fn no_message(queue: &Queue, place: &MessagePlace, answer: &Command, addr: &str) -> ReadError {
    let code = request_code::PULL_MESSAGE;
    let why = match fields::<PullMessageResponse>(addr, code, &answer.ext) {
        Ok(bounds) if bounds.min_offset >= bounds.max_offset => "the queue is empty".to_owned(),
        Ok(bounds) => {
            let last = bounds.max_offset.saturating_sub(1);
            format!("the queue holds offsets {} to {last}", bounds.min_offset)
        }
        Err(error) => error.to_string(),
    };
    ReadError::NoMessage {
        place: format!(
            "offset {} of queue {queue} of topic {}",
            place.offset, place.topic
        ),
        why,
    }
}
