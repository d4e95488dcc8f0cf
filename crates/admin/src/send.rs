//! Sending messages as a plain producer does: route, queue in turn, code 310.
//!
//! **Invariant:** a message is sent again only when the first try certainly left nothing behind, so
//! this never makes two of one. Compresses nothing and keeps no batch.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use rmq_protocol::{
    header::{SendMessageResponse, SendMessageV2},
    message::{
        UniqueIds,
        properties::{self, ENTRY_SEPARATOR, NAME_VALUE_SEPARATOR, names},
    },
    remoting::{Command, request_code, response_code},
};
use rmq_types::{QueueOffset, TopicName, limits, system};

use crate::{
    AdminClient, AskError, Queue, SendError, TopicRoute,
    client::{fields, refused, request},
    offset::offset,
    route::summary,
};

/// The producer group that tools use (`MixAll.TOOLS_…`).
const PRODUCER_GROUP: &str = "CLIENT_INNER_PRODUCER";
/// Brokers tried for one message.
const ATTEMPTS_MAX: usize = 3;

/// A message to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// The body.
    pub body: Bytes,
    /// The tag.
    pub tags: Option<String>,
    /// The keys, separated by spaces.
    pub keys: Option<String>,
    /// Further properties.
    pub properties: Vec<(String, String)>,
}

/// Where messages are to go; what is `None` is chosen in turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendTo {
    /// The broker group.
    pub broker: Option<String>,
    /// The queue.
    pub queue: Option<u32>,
}

/// How safe a stored message is (`SendStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendStatus {
    /// As safe as the broker's settings ask for.
    Ok,
    /// Stored, but not yet known to be on disk.
    FlushDiskTimeout,
    /// Stored, but not yet on a replica.
    FlushSlaveTimeout,
    /// Stored, but there is no replica.
    SlaveNotAvailable,
}

impl SendStatus {
    /// Java's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "SEND_OK",
            Self::FlushDiskTimeout => "FLUSH_DISK_TIMEOUT",
            Self::FlushSlaveTimeout => "FLUSH_SLAVE_TIMEOUT",
            Self::SlaveNotAvailable => "SLAVE_NOT_AVAILABLE",
        }
    }

    fn from_code(code: i32) -> Option<Self> {
        match code {
            response_code::SUCCESS => Some(Self::Ok),
            response_code::FLUSH_DISK_TIMEOUT => Some(Self::FlushDiskTimeout),
            response_code::FLUSH_SLAVE_TIMEOUT => Some(Self::FlushSlaveTimeout),
            response_code::SLAVE_NOT_AVAILABLE => Some(Self::SlaveNotAvailable),
            _ => None,
        }
    }
}

/// A message that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The producer's id of it.
    pub unique_id: String,
    /// The broker's id of it.
    pub offset_id: String,
    /// Where it is.
    pub queue: Queue,
    /// Its offset there.
    pub queue_offset: QueueOffset,
    /// How safe it is.
    pub status: SendStatus,
}

/// Sends to one topic.
#[derive(Debug)]
pub struct Sender {
    admin: AdminClient,
    route: TopicRoute,
    queues: Vec<Queue>,
    turn: usize,
    is_fixed: bool,
    ids: UniqueIds,
}

impl AdminClient {
    /// A sender to a topic that exists. Brokers that make topics by themselves are not made to.
    pub async fn sender(&self, topic: &TopicName, to: &SendTo) -> Result<Sender, SendError> {
        let route = self.route(topic).await?;
        let queues = choose(&route, to)?;
        let mut ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
        if let Some(addr) = queues.first().and_then(|queue| route.master(&queue.broker))
            && let Ok(conn) = self.client().connection(addr).await
        {
            ip = conn.local_addr().ip();
        }
        let now = self.options.clock.now().millis();
        Ok(Sender {
            admin: self.clone(),
            is_fixed: to.queue.is_some() || to.broker.is_some(),
            turn: usize::try_from(now.unsigned_abs() % queues.len().max(1) as u64).unwrap_or(0),
            ids: UniqueIds::new(ip, std::process::id(), now as u32),
            route,
            queues,
        })
    }
}

fn choose(route: &TopicRoute, to: &SendTo) -> Result<Vec<Queue>, SendError> {
    let all = route.write_queues();
    let fits = |queue: &&Queue| {
        to.broker
            .as_ref()
            .is_none_or(|broker| *broker == queue.broker)
            && to.queue.is_none_or(|id| id == queue.id)
    };
    let queues: Vec<_> = all.iter().filter(fits).cloned().collect();
    if !queues.is_empty() {
        return Ok(queues);
    }
    let wanted = match (&to.broker, to.queue) {
        (Some(broker), Some(queue)) => format!("writable queue {queue} on broker {broker}"),
        (Some(broker), None) => format!("writable queue on broker {broker}"),
        (None, Some(queue)) => format!("writable queue {queue}"),
        (None, None) => "writable queue".to_owned(),
    };
    Err(SendError::NoQueue {
        topic: route.topic.clone(),
        wanted,
        have: summary(&all),
    })
}

impl Sender {
    /// Sends one message and waits until it is stored. While no queue is fixed, a broker that
    /// cannot be reached or is too busy is passed over.
    pub async fn send(&mut self, message: &Outgoing) -> Result<Sent, SendError> {
        let unique_id = self.ids.make(self.admin.options.clock.now());
        let text = properties_text(message, &unique_id)?;
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX.min(self.queues.len().max(1)) {
            let Some(queue) = self.next_queue(last.as_ref().map(|(queue, _)| queue)) else {
                break;
            };
            match self.send_to(&queue, message, &text).await {
                Ok((answer, addr)) => return sent(&answer, &addr, unique_id, queue),
                Err(error) if self.may_try_elsewhere(&error) => last = Some((queue, error)),
                Err(error @ AskError::NoAnswer(_)) if !error.is_unsent() => {
                    return Err(SendError::Unknown(error));
                }
                Err(error) => return Err(SendError::Broker(error)),
            }
        }
        let broker = || AskError::NoMaster {
            broker: self.route.topic.to_string(),
        };
        Err(SendError::Broker(
            last.map_or_else(broker, |(_, error)| error),
        ))
    }

    fn may_try_elsewhere(&self, error: &AskError) -> bool {
        !self.is_fixed && error.is_retryable() && (error.is_unsent() || error.code().is_some())
    }

    /// The next queue in turn, on another broker than the one that failed if there is one.
    fn next_queue(&mut self, failed: Option<&Queue>) -> Option<Queue> {
        let count = self.queues.len();
        let candidate = |step: usize| self.queues.get((self.turn + step) % count.max(1));
        let elsewhere = |step: &usize| {
            candidate(*step)
                .is_some_and(|queue| failed.is_none_or(|failed| failed.broker != queue.broker))
        };
        let step = (0..count).find(elsewhere).unwrap_or(0);
        let queue = candidate(step)?.clone();
        self.turn = (self.turn + step + 1) % count;
        Some(queue)
    }

    async fn send_to(
        &self,
        queue: &Queue,
        message: &Outgoing,
        properties: &str,
    ) -> Result<(Command, String), AskError> {
        let Some(addr) = self.route.master(&queue.broker) else {
            return Err(AskError::NoMaster {
                broker: queue.broker.clone(),
            });
        };
        let code = request_code::SEND_MESSAGE_V2;
        let header = SendMessageV2 {
            producer_group: PRODUCER_GROUP.into(),
            topic: self.route.topic.as_str().into(),
            default_topic: system::AUTO_CREATE_TOPIC.into(),
            default_topic_queue_nums: 4,
            queue_id: queue.id as i32,
            sys_flag: 0,
            born_timestamp: self.admin.options.clock.now().millis(),
            flag: 0,
            properties: Some(properties.into()),
            reconsume_times: Some(0),
            unit_mode: false,
            max_reconsume_times: None,
            batch: false,
            broker_name: Some(queue.broker.as_str().into()),
        };
        let send = request(code, &header).with_body(message.body.clone());
        let answer = self.admin.exchange(addr, send).await?;
        if SendStatus::from_code(answer.code).is_none() {
            return Err(refused(addr, code, answer));
        }
        Ok((answer, addr.to_owned()))
    }
}

fn sent(answer: &Command, addr: &str, unique_id: String, queue: Queue) -> Result<Sent, SendError> {
    let code = request_code::SEND_MESSAGE_V2;
    let header: SendMessageResponse<'_> =
        fields(addr, code, &answer.ext).map_err(SendError::Broker)?;
    Ok(Sent {
        unique_id,
        offset_id: header.msg_id.into_owned(),
        queue: Queue {
            id: u32::try_from(header.queue_id).unwrap_or(queue.id),
            ..queue
        },
        queue_offset: offset(header.queue_offset).unwrap_or_default(),
        status: SendStatus::from_code(answer.code).unwrap_or(SendStatus::Ok),
    })
}

fn properties_text(message: &Outgoing, unique_id: &str) -> Result<String, SendError> {
    let mut text = Vec::new();
    let own = [
        (names::KEYS, message.keys.as_deref()),
        (names::TAGS, message.tags.as_deref()),
        (names::UNIQ_KEY, Some(unique_id)),
        (names::WAIT, Some("true")),
    ];
    let own = own
        .iter()
        .filter_map(|(name, value)| Some((*name, (*value)?)));
    let given = message
        .properties
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.chain(given) {
        check_property(name, value)?;
        properties::push(&mut text, name, value.as_bytes());
    }
    if text.len() > limits::PROPERTIES_BYTES_MAX {
        let max = limits::PROPERTIES_BYTES_MAX;
        return Err(SendError::PropertiesTooLong {
            bytes: text.len(),
            max,
        });
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn check_property(name: &str, value: &str) -> Result<(), SendError> {
    let separates = |byte: u8| byte == NAME_VALUE_SEPARATOR || byte == ENTRY_SEPARATOR;
    let problem = if name.is_empty() {
        "its name is empty"
    } else if value.is_empty() {
        "its value is empty"
    } else if name.bytes().chain(value.bytes()).any(separates) {
        "it holds the control character 1 or 2, which separate properties"
    } else {
        return Ok(());
    };
    Err(SendError::Property {
        name: name.to_owned(),
        problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_keys_tag_id_and_then_the_given_ones() {
        let message = Outgoing {
            tags: Some("red".into()),
            keys: Some("k1 k2".into()),
            properties: vec![("a".into(), "1".into())],
            ..Outgoing::default()
        };
        let text = properties_text(&message, "ID").unwrap();
        assert_eq!(
            text,
            "KEYS\x01k1 k2\x02TAGS\x01red\x02UNIQ_KEY\x01ID\x02WAIT\x01true\x02a\x011\x02"
        );
    }

    #[test]
    fn properties_that_would_break_the_text_are_refused() {
        for (name, value) in [("", "v"), ("n", ""), ("n\x01", "v"), ("n", "v\x02")] {
            let message = Outgoing {
                properties: vec![(name.into(), value.into())],
                ..Outgoing::default()
            };
            let refused = properties_text(&message, "ID");
            assert!(
                matches!(refused, Err(SendError::Property { .. })),
                "{name:?} {value:?}"
            );
        }
        let message = Outgoing {
            properties: vec![("n".into(), "v".repeat(32_767))],
            ..Outgoing::default()
        };
        let refused = properties_text(&message, "ID");
        assert!(matches!(refused, Err(SendError::PropertiesTooLong { .. })));
    }
}
