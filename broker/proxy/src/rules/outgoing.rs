//! A client's message as a broker takes it.
//!
//! **Invariant:** the properties text has no entry that the user could have forged, and what passes
//! here is within every limit of a broker's record.

use bytes::Bytes;
use rmq_protocol::message::properties::{self, names};
use rmq_protocol::message::{batch, sys_flag};
use rmq_types::{Timestamp, limits};

use crate::proto::v2::{Code, Encoding, Message, MessageType, SystemProperties};
use crate::rules::refusal::Refusal;
use crate::rules::reserved::is_reserved;
use crate::rules::{kind, validate};

/// Most user properties of a message.
const USER_PROPERTIES_MAX: usize = 128;
/// Longest user properties, tag and keys together.
const USER_PROPERTIES_BYTES_MAX: usize = 16 * 1024;
/// Longest delay.
const DELAY_MAX_MILLIS: i64 = 24 * 3_600_000;
/// Longest time before a half message is asked about.
const RECOVERY_MAX_SECONDS: i64 = 3_600;

/// What a send is checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Longest body.
    pub(crate) body_bytes_max: usize,
    /// The time now.
    pub(crate) now: Timestamp,
}

/// One message, ready for a broker.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) id: String,
    pub(crate) body: Bytes,
    pub(crate) properties: Vec<u8>,
    pub(crate) sys_flag: i32,
    pub(crate) kind: MessageType,
    pub(crate) message_group: Option<String>,
    pub(crate) born_at: i64,
}

/// All messages of a request, and their topic.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) topic: String,
    pub(crate) messages: Vec<Outgoing>,
}

impl Batch {
    /// Checks a request's messages and turns them into a broker's form.
    pub(crate) fn new(messages: Vec<Message>, bounds: Bounds) -> Result<Self, Refusal> {
        let corrupted = |text: &str| Refusal::new(Code::MessageCorrupted, text);
        let Some(first) = messages.first() else {
            return Err(corrupted("there is no message to send"));
        };
        let named = first.topic.clone();
        if messages.iter().any(|message| message.topic != named) {
            return Err(corrupted("the messages are of different topics"));
        }
        let topic = validate::topic_to_send(named.as_ref())?;
        let alone = messages.len() == 1;
        let messages: Vec<_> = messages
            .into_iter()
            .map(|message| outgoing(message, &topic, bounds))
            .collect::<Result<_, _>>()?;
        let plain = |one: &Outgoing| matches!(one.kind, MessageType::Normal | MessageType::Fifo);
        if !alone && !messages.iter().all(plain) {
            let text = "delayed and transactional messages are sent one by one";
            return Err(Refusal::new(Code::BadRequest, text));
        }
        let body: usize = messages.iter().map(|one| one.body.len()).sum();
        if !alone && body > bounds.body_bytes_max {
            return Err(too_large(body, bounds.body_bytes_max));
        }
        Ok(Self { topic, messages })
    }

    /// The message group by which the queue is chosen, if all have the same.
    pub(crate) fn message_group(&self) -> Option<&str> {
        let first = self.messages.first()?.message_group.as_deref();
        let same = |one: &Outgoing| one.message_group.as_deref() == first;
        self.messages.iter().all(same).then_some(first).flatten()
    }

    /// Body, properties text and system flag of one request to a broker.
    pub(crate) fn into_request(self) -> (Bytes, Vec<u8>, i32, bool) {
        let mut messages = self.messages;
        if messages.len() == 1
            && let Some(only) = messages.pop()
        {
            return (only.body, only.properties, only.sys_flag, false);
        }
        let room = messages
            .iter()
            .map(|one| batch::ITEM_OVERHEAD + one.body.len() + one.properties.len())
            .sum();
        let mut body = Vec::with_capacity(room);
        let flag = messages.first().map_or(0, |one| one.sys_flag);
        for one in &messages {
            let item = batch::BatchItem {
                flag: 0,
                body: &one.body,
                properties: &one.properties,
            };
            let fits = batch::push(&mut body, &item);
            debug_assert!(fits, "the properties were measured");
        }
        (body.into(), Vec::new(), flag, true)
    }
}

fn too_large(bytes: usize, max: usize) -> Refusal {
    let text = format!("a body of {bytes} bytes, at most {max} are taken");
    Refusal::new(Code::MessageBodyTooLarge, text)
}

fn outgoing(message: Message, topic: &str, bounds: Bounds) -> Result<Outgoing, Refusal> {
    let system = message.system_properties.unwrap_or_default();
    if message.body.is_empty() {
        return Err(Refusal::new(Code::MessageBodyEmpty, "the body is empty"));
    }
    if message.body.len() > bounds.body_bytes_max {
        return Err(too_large(message.body.len(), bounds.body_bytes_max));
    }
    check_user(&message.user_properties, &system)?;
    let mut text = Vec::with_capacity(256);
    let mut users: Vec<_> = message.user_properties.iter().collect();
    users.sort();
    for (name, value) in users {
        properties::push(&mut text, name, value.as_bytes());
    }
    push_system(&mut text, &system, topic, bounds.now)?;
    if text.len() > limits::PROPERTIES_BYTES_MAX {
        let text = format!("the properties have {} bytes", text.len());
        return Err(Refusal::new(Code::MessagePropertiesTooLarge, text));
    }
    let mut flag = 0;
    if system.body_encoding() == Encoding::Gzip {
        flag |= sys_flag::COMPRESSED;
    }
    let kind = kind::of_properties(&text);
    if kind == MessageType::Transaction {
        flag |= sys_flag::TRANSACTION_PREPARED;
    }
    Ok(Outgoing {
        born_at: system
            .born_timestamp
            .as_ref()
            .map_or(bounds.now.millis(), millis),
        id: system.message_id,
        body: message.body,
        properties: text,
        sys_flag: flag,
        kind,
        message_group: system.message_group,
    })
}

fn check_user(
    users: &std::collections::HashMap<String, String>,
    system: &SystemProperties,
) -> Result<(), Refusal> {
    let large = |text: String| Err(Refusal::new(Code::MessagePropertiesTooLarge, text));
    if users.len() > USER_PROPERTIES_MAX {
        return large(format!(
            "{} properties, at most {USER_PROPERTIES_MAX} are taken",
            users.len()
        ));
    }
    let mut bytes = system.tag.as_deref().map_or(0, str::len);
    bytes += system.keys.iter().map(String::len).sum::<usize>();
    for (name, value) in users {
        bytes += name.len() + value.len();
        if name.trim().is_empty() || is_reserved(name) {
            let text = format!("a property may not be named {name:?}");
            return Err(Refusal::new(Code::IllegalMessagePropertyKey, text));
        }
        if validate::has_control(name) || validate::has_control(value) {
            let text = format!("property {name:?} holds a control character");
            return Err(Refusal::new(Code::IllegalMessagePropertyKey, text));
        }
    }
    if bytes > USER_PROPERTIES_BYTES_MAX {
        return large(format!(
            "properties, tag and keys have {bytes} bytes, at most {USER_PROPERTIES_BYTES_MAX} are taken"
        ));
    }
    Ok(())
}

fn push_system(
    text: &mut Vec<u8>,
    system: &SystemProperties,
    topic: &str,
    now: Timestamp,
) -> Result<(), Refusal> {
    validate::message_id(&system.message_id)?;
    properties::push(text, names::UNIQ_KEY, system.message_id.as_bytes());
    // The producer's group is the topic: 5.x producers have none.
    properties::push(text, names::PGROUP, topic.as_bytes());
    if let Some(tag) = system.tag.as_deref().filter(|tag| !tag.is_empty()) {
        validate::tag(tag)?;
        properties::push(text, names::TAGS, tag.as_bytes());
    }
    if !system.keys.is_empty() {
        system.keys.iter().try_for_each(|key| validate::key(key))?;
        properties::push(text, names::KEYS, system.keys.join(" ").as_bytes());
    }
    if let Some(group) = &system.message_group {
        validate::message_group(group)?;
        properties::push(text, names::SHARDING_KEY, group.as_bytes());
    }
    if let Some(context) = plain(system.trace_context.as_deref())? {
        properties::push(text, names::TRACE_CONTEXT, context.as_bytes());
    }
    if let Some(host) = plain(Some(&system.born_host))? {
        properties::push(text, names::BORN_HOST, host.as_bytes());
    }
    if let Some(born) = &system.born_timestamp {
        push_number(text, names::BORN_TIMESTAMP, millis(born));
    }
    if let Some(attempt) = system.delivery_attempt {
        push_number(text, names::RECONSUME_TIME, attempt.into());
    }
    push_delivery(text, system, now)?;
    push_transaction(text, system)
}

fn push_number(text: &mut Vec<u8>, name: &str, number: i64) {
    properties::push(text, name, number.to_string().as_bytes());
}

/// A text that goes into the properties as it is.
fn plain(text: Option<&str>) -> Result<Option<&str>, Refusal> {
    match text {
        Some(text) if validate::has_control(text) => Err(Refusal::new(
            Code::BadRequest,
            "a system property holds a control character",
        )),
        Some("") | None => Ok(None),
        Some(text) => Ok(Some(text)),
    }
}

fn push_delivery(
    text: &mut Vec<u8>,
    system: &SystemProperties,
    now: Timestamp,
) -> Result<(), Refusal> {
    let Some(at) = &system.delivery_timestamp else {
        return Ok(());
    };
    let at = millis(at);
    if at < 0 || at > now.plus_millis(DELAY_MAX_MILLIS).millis() {
        return Err(Refusal::new(
            Code::IllegalDeliveryTime,
            "the time of delivery is more than a day ahead, or none",
        ));
    }
    push_number(text, names::TIMER_DELIVER_MS, at);
    Ok(())
}

fn push_transaction(text: &mut Vec<u8>, system: &SystemProperties) -> Result<(), Refusal> {
    if system.message_type() != MessageType::Transaction {
        return Ok(());
    }
    properties::push(text, names::TRAN_MSG, b"true");
    let Some(after) = &system.orphaned_transaction_recovery_duration else {
        return Ok(());
    };
    if after.seconds < 0 || after.seconds > RECOVERY_MAX_SECONDS {
        let text = format!("a recovery time of {} s is out of range", after.seconds);
        return Err(Refusal::new(Code::BadRequest, text));
    }
    push_number(text, names::CHECK_IMMUNITY_TIME_IN_SECONDS, after.seconds);
    Ok(())
}

/// Milliseconds since the epoch of a timestamp of the wire.
pub(crate) fn millis(at: &prost_types::Timestamp) -> i64 {
    at.seconds
        .saturating_mul(1_000)
        .saturating_add(i64::from(at.nanos) / 1_000_000)
}

#[cfg(test)]
mod tests;
