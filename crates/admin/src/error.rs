//! What can go wrong, one enum per family of calls; every one names the address or the name it is
//! about.
//!
//! **Invariant:** `is_retryable` is true only when the same call may succeed later without anybody
//! changing anything. What to do next is told by the surface that prints, not here.

use rmq_net::CallError;
use rmq_protocol::{
    header::FieldError,
    java_properties::PropertiesError,
    json::JsonError,
    message::{HexError, RecordError},
    remoting::response_code,
};
use rmq_types::{GroupName, TopicName};

/// One request to one address that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No answer came.
    #[error(transparent)]
    NoAnswer(#[from] CallError),
    /// The server answered with an error code.
    #[error("{addr} answered request {request} with {} ({code}){}", response_code::name(*code), Remark(remark))]
    Refused {
        /// Who refused.
        addr: String,
        /// The request code.
        request: i32,
        /// The response code.
        code: i32,
        /// What the server said about it.
        remark: String,
    },
    /// The answer's header lacks a field or has a wrong one.
    #[error("{addr} answered request {request} with a broken header: {source}")]
    Header {
        /// Who answered.
        addr: String,
        /// The request code.
        request: i32,
        /// What is wrong.
        source: FieldError,
    },
    /// The answer's body is not what the request asks for.
    #[error("{addr} answered request {request} with a broken body: {source}")]
    Body {
        /// Who answered.
        addr: String,
        /// The request code.
        request: i32,
        /// What is wrong.
        source: JsonError,
    },
    /// The answer's body holds no message records. Corruption, or a broker of another kind.
    #[error("{addr} answered request {request} with bytes that are no message record: {source}")]
    Record {
        /// Who answered.
        addr: String,
        /// The request code.
        request: i32,
        /// What is wrong.
        source: RecordError,
    },
    /// The answer's body is no properties text.
    #[error("{addr} answered request {request} with a broken configuration: {source}")]
    Properties {
        /// Who answered.
        addr: String,
        /// The request code.
        request: i32,
        /// What is wrong.
        source: PropertiesError,
    },
    /// The broker group has no master now: there is nobody to ask.
    #[error("broker group {broker} has no master")]
    NoMaster {
        /// The group's name.
        broker: String,
    },
}

/// A server's remark with its separator; nothing if it is empty.
struct Remark<'a>(&'a str);

impl std::fmt::Display for Remark<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.trim();
        if text.is_empty() {
            Ok(())
        } else {
            write!(f, ": {text}")
        }
    }
}

impl AskError {
    /// The response code, if a server refused.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::NoAnswer(_)
            | Self::Header { .. }
            | Self::Body { .. }
            | Self::Record { .. }
            | Self::Properties { .. }
            | Self::NoMaster { .. } => None,
        }
    }

    /// True when the request certainly had no effect, so that it may be made elsewhere.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::NoAnswer(error) => error.is_unsent(),
            Self::NoMaster { .. } => true,
            Self::Refused { .. }
            | Self::Header { .. }
            | Self::Body { .. }
            | Self::Record { .. }
            | Self::Properties { .. } => false,
        }
    }

    /// True when the same request may succeed a little later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NoAnswer(_) | Self::NoMaster { .. } => true,
            Self::Refused { code, .. } => matches!(
                *code,
                response_code::SYSTEM_BUSY
                    | response_code::SERVICE_NOT_AVAILABLE
                    | response_code::SLAVE_NOT_AVAILABLE
                    | response_code::FLOW_CONTROL
                    | response_code::GO_AWAY
            ),
            Self::Header { .. }
            | Self::Body { .. }
            | Self::Record { .. }
            | Self::Properties { .. } => false,
        }
    }
}

/// A question to the NameServers that failed.
#[derive(Debug, thiserror::Error)]
pub enum NameServerError {
    /// None of them gave an answer.
    #[error("no NameServer answers at {}{}", addresses.join(", "), Causes(causes))]
    NoneAnswers {
        /// All that were asked.
        addresses: Vec<String>,
        /// What happened at each.
        causes: Vec<AskError>,
    },
    /// One answered and refused, or answered with something broken.
    #[error("NameServer {0}")]
    Refused(#[source] AskError),
    /// The topic is at no broker that is registered.
    #[error("topic {topic} does not exist (NameServer {addr} knows no route for it)")]
    NoSuchTopic {
        /// The topic.
        topic: TopicName,
        /// Who was asked.
        addr: String,
    },
}

struct Causes<'a>(&'a [AskError]);

impl std::fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, cause) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { " (" } else { "; " })?;
            cause.fmt(f)?;
        }
        if self.0.is_empty() {
            Ok(())
        } else {
            f.write_str(")")
        }
    }
}

/// The brokers an operation is for could not be found.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The NameServers could not be asked.
    #[error(transparent)]
    NameServer(#[from] NameServerError),
    /// No broker is registered at all.
    #[error("no broker is registered at NameServer {addr}")]
    NoBroker {
        /// Who was asked.
        addr: String,
    },
    /// No cluster of that name.
    #[error("there is no cluster {name}; known: {}", known.join(", "))]
    NoSuchCluster {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// There are several clusters and none was named.
    #[error("there are {} clusters: {}", known.len(), known.join(", "))]
    SeveralClusters {
        /// Their names.
        known: Vec<String>,
    },
    /// No broker group of that name.
    #[error("there is no broker {name}; known: {}", known.join(", "))]
    NoSuchBroker {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
}

/// A message that was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The topic's route could not be had.
    #[error(transparent)]
    NameServer(#[from] NameServerError),
    /// The topic has no queue that takes messages, or not the one asked for.
    #[error("topic {topic} has no {wanted}{}", Beside("writable", have))]
    NoQueue {
        /// The topic.
        topic: TopicName,
        /// What was looked for.
        wanted: String,
        /// `broker (queues)` of what there is.
        have: Vec<String>,
    },
    /// A property would break the properties text.
    #[error("property {name:?} cannot be sent: {problem}")]
    Property {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The properties are longer than any broker stores.
    #[error("the properties have {bytes} bytes, at most {max} can be stored")]
    PropertiesTooLong {
        /// Their length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The broker did not take the message.
    #[error(transparent)]
    Broker(AskError),
    /// No answer came, so whether the message was stored is unknown.
    #[error("{0}; the message may or may not be stored")]
    Unknown(#[source] AskError),
}

/// The queues there are besides, if there are any.
struct Beside<'a>(&'static str, &'a [String]);

impl std::fmt::Display for Beside<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.1.is_empty() {
            Ok(())
        } else {
            write!(f, "; {} queues: {}", self.0, self.1.join(", "))
        }
    }
}

/// Messages that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The topic's route could not be had.
    #[error(transparent)]
    NameServer(#[from] NameServerError),
    /// The text is no message id.
    #[error("{id:?} is no offset message id: {source}")]
    Id {
        /// The text.
        id: String,
        /// What is wrong with it.
        source: HexError,
    },
    /// The topic has no such queue.
    #[error("topic {topic} has no {wanted}{}", Beside("readable", have))]
    NoQueue {
        /// The topic.
        topic: TopicName,
        /// What was looked for.
        wanted: String,
        /// `broker (queues)` of what there is.
        have: Vec<String>,
    },
    /// Several brokers have the queue.
    #[error("queue {queue} of topic {topic} is on several brokers: {}", brokers.join(", "))]
    SeveralBrokers {
        /// The topic.
        topic: TopicName,
        /// The queue.
        queue: u32,
        /// Who has it.
        brokers: Vec<String>,
    },
    /// Nothing at that place.
    #[error("there is no message at {place}; {why}")]
    NoMessage {
        /// Where it was looked for.
        place: String,
        /// What the broker says.
        why: String,
    },
    /// The broker did not answer, or refused.
    #[error(transparent)]
    Broker(#[from] AskError),
}

/// Following a topic could not begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The topic's route could not be had.
    #[error(transparent)]
    NameServer(#[from] NameServerError),
    /// The topic has no readable queue.
    #[error("topic {topic} has no {wanted}{}", Beside("readable", have))]
    NoQueue {
        /// The topic.
        topic: TopicName,
        /// What was looked for.
        wanted: String,
        /// `broker (queues)` of what there is.
        have: Vec<String>,
    },
    /// Where to begin could not be found out.
    #[error("cannot tell where to begin: {0}")]
    Start(#[source] AskError),
    /// No queue is left: each one was refused for good.
    #[error("no queue of topic {topic} can be read any more; last: {last}")]
    AllEnded {
        /// The topic.
        topic: TopicName,
        /// What ended the last one.
        last: AskError,
    },
    /// Progress could not be stored.
    #[error("cannot store the progress of group {group}: {source}")]
    Commit {
        /// The group.
        group: GroupName,
        /// What went wrong.
        source: AskError,
    },
}

/// Offsets that were not moved.
#[derive(Debug, thiserror::Error)]
pub enum OffsetError {
    /// The topic's route could not be had.
    #[error(transparent)]
    NameServer(#[from] NameServerError),
    /// An offset is of one queue, so the queue must be named.
    #[error("an offset belongs to one queue: name the broker and the queue")]
    QueueNeeded,
    /// The topic is not on that broker.
    #[error("topic {topic} is not on broker {broker}; it is on {}", have.join(", "))]
    NotThere {
        /// The topic.
        topic: TopicName,
        /// What was asked for.
        broker: String,
        /// Where it is.
        have: Vec<String>,
    },
}
