//! Turning sends into records to append: checks, queue, properties text, redirections.
//!
//! The texts of a whole group stand in one buffer, so that a send costs no allocation of its own.

use std::{borrow::Cow, ops::Range};

use rmq_protocol::{
    header::SendMessageV2,
    message::{
        batch,
        properties::{self, names},
        sys_flag,
    },
    remoting::request_code,
};
use rmq_store::{Append, AppendError, Appended};
use rmq_types::{Timestamp, system};

use super::{check, delay, scan};
use crate::{
    answer::Failure,
    config::Settings,
    core::{Core, lock},
    handler::{Call, send_back},
    metadata::PERM_WRITE,
    metrics::{Answered, MessageType, Outcome},
};

/// Why a send is not in the group.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Answer this.
    Failure(Failure),
    /// Its topic must be made first, which an io thread must not do.
    NeedsWork,
}

impl<E: Into<Failure>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Failure(error.into())
    }
}

/// One send of the group.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    pub(crate) opaque: i32,
    pub(crate) code: i32,
    /// Type of its messages.
    pub(crate) kind: MessageType,
    pub(crate) wants_reply: bool,
    /// Whether the answer waits for the flush.
    pub(crate) wait: bool,
    /// Topic that the client named, or where it was redirected.
    pub(crate) topic: Cow<'a, str>,
    /// Queue that the client is told.
    pub(crate) answer_queue: u32,
    pub(crate) unique_key: String,
    /// It rests in the schedule topic first.
    delayed: bool,
    messages: Range<usize>,
}

impl Prepared<'_> {
    /// How it was answered at once.
    pub(crate) fn answered(&self, response: i32) -> Answered {
        Answered {
            request: self.code,
            response,
            held: false,
            outcome: Outcome::of(!self.wants_reply),
        }
    }

    /// Topic that its messages are stored in.
    pub(crate) fn stored_in(&self) -> &str {
        if self.delayed {
            system::SCHEDULE_TOPIC
        } else {
            &self.topic
        }
    }
}

/// One record to append.
#[derive(Debug)]
struct Message<'a> {
    topic: Cow<'a, str>,
    queue_id: u32,
    tags_code: i64,
    flag: i32,
    sys_flag: i32,
    born_at: i64,
    born_host: std::net::SocketAddr,
    reconsume_times: i32,
    body: &'a [u8],
    text: Range<usize>,
}

/// Sends that are appended together.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    core: &'a Core,
    settings: &'a Settings,
    now: Timestamp,
    /// On a worker: a missing dead-letter topic may be made.
    may_wait: bool,
    prepared: Vec<Prepared<'a>>,
    messages: Vec<Message<'a>>,
    texts: Vec<u8>,
}

/// A group with its outcomes.
#[derive(Debug)]
pub(crate) struct AppendedGroup<'a> {
    prepared: Vec<Prepared<'a>>,
    results: Vec<Result<Appended, AppendError>>,
}

impl<'a> AppendedGroup<'a> {
    /// Each send with the outcomes of its messages.
    pub(crate) fn iter(
        &self,
    ) -> impl Iterator<Item = (&Prepared<'a>, &[Result<Appended, AppendError>])> {
        self.prepared.iter().map(|prepared| {
            (
                prepared,
                self.results
                    .get(prepared.messages.clone())
                    .unwrap_or_default(),
            )
        })
    }
}

impl<'a> Group<'a> {
    pub(crate) fn new(core: &'a Core, settings: &'a Settings, now: Timestamp) -> Self {
        let (prepared, messages, texts) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            core,
            settings,
            now,
            may_wait: false,
            prepared,
            messages,
            texts,
        }
    }

    /// The same on a worker, which may wait for a disk.
    pub(crate) fn on_worker(core: &'a Core, settings: &'a Settings, now: Timestamp) -> Self {
        Self {
            may_wait: true,
            ..Self::new(core, settings, now)
        }
    }

    /// Checks a send and takes it in; a refused one leaves nothing behind.
    pub(crate) fn add(&mut self, call: &Call<'a>) -> Result<(), Refusal> {
        let (messages, texts) = (self.messages.len(), self.texts.len());
        self.try_add(call).inspect_err(|_| {
            self.messages.truncate(messages);
            self.texts.truncate(texts);
        })
    }

    fn try_add(&mut self, call: &Call<'a>) -> Result<(), Refusal> {
        let header = check::decode(call)?;
        check::check_name(&header.topic)?;
        let Some(config) = self.core.topics.get(&header.topic) else {
            return Err(Refusal::NeedsWork);
        };
        if self.settings.broker_permission.get() as i32 & PERM_WRITE == 0 && config.order {
            return Err(Failure::no_permission("the broker sending message is forbidden").into());
        }
        let queues = config.read_queue_nums.max(config.write_queue_nums);
        if header.queue_id >= queues {
            return Err(Failure::parameter(format!(
                "request queueId[{}] is illegal, topic[{}] has {queues} queues",
                header.queue_id, header.topic
            ))
            .into());
        }
        let queue_id = match u32::try_from(header.queue_id) {
            Ok(id) => id,
            Err(_) => any_queue(self.now, self.messages.len(), config.write_queue_nums),
        };
        if call.header.code == request_code::SEND_BATCH_MESSAGE || header.batch {
            self.add_batch(call, header, queue_id)
        } else {
            self.add_single(call, &header, queue_id)
        }
    }

    fn add_single(
        &mut self,
        call: &Call<'a>,
        header: &SendMessageV2<'a>,
        queue_id: u32,
    ) -> Result<(), Refusal> {
        if call.body.is_empty() {
            return Err(illegal("the message body is empty"));
        }
        let start = self.messages.len();
        let mut target = (header.topic.clone(), queue_id);
        let reconsume = header.reconsume_times.unwrap_or(0).max(0);
        if header.topic.starts_with(system::RETRY_PREFIX)
            && let Some(letter) = self.dead_letter(call, header, reconsume)?
        {
            target = (Cow::Owned(letter), 0);
        }
        let mut text = Cow::Borrowed(header.properties.as_deref().unwrap_or_default().as_bytes());
        if target.0 != header.topic {
            // A dead letter is not delayed once more.
            let mut plain = Vec::with_capacity(text.len());
            properties::copy_without(&text, &[names::DELAY], &mut plain);
            text = Cow::Owned(plain);
        }
        let source = Source::new(call.body, &text, header.flag, Origin::Single);
        let (wait, kind) = (!source.found.no_wait, source.found.kind());
        let unique_key = self.add_message(header, call, target.clone(), source, reconsume)?;
        self.prepared.push(Prepared {
            opaque: call.header.opaque,
            code: call.header.code,
            kind,
            wants_reply: !call.header.is_oneway(),
            wait,
            topic: target.0,
            answer_queue: queue_id,
            unique_key,
            delayed: self
                .messages
                .last()
                .is_some_and(|message| message.topic == system::SCHEDULE_TOPIC),
            messages: start..self.messages.len(),
        });
        Ok(())
    }

    /// Where a retried message goes that was tried too often, or whose group consumes in order.
    fn dead_letter(
        &self,
        call: &Call<'_>,
        header: &SendMessageV2<'_>,
        reconsume: i32,
    ) -> Result<Option<String>, Refusal> {
        let group = header.topic.trim_start_matches(system::RETRY_PREFIX);
        let Some(config) = self.core.groups.get(group) else {
            return Err(Failure::no_group(group).into());
        };
        let max = send_back::retry_limit(call.header.version, header.max_reconsume_times, &config);
        let ordered = || lock(&self.core.locks).is_held(self.now, group);
        if reconsume <= max && !ordered() {
            return Ok(None);
        }
        let letter = system::dlq_topic(group);
        if !self.core.topics.contains(&letter) {
            if !self.may_wait {
                return Err(Refusal::NeedsWork);
            }
            send_back::make_dead_letter_topic(self.core, &letter)?;
        }
        Ok(Some(letter))
    }

    fn add_batch(
        &mut self,
        call: &Call<'a>,
        header: SendMessageV2<'a>,
        queue_id: u32,
    ) -> Result<(), Refusal> {
        if header.topic.starts_with(system::RETRY_PREFIX) {
            return Err(illegal("batch request does not support retry group"));
        }
        let max = self.settings.max_message_size.get() as usize;
        if call.body.len() > max {
            return Err(illegal(format!(
                "the batch of {} bytes is larger than {max}",
                call.body.len()
            )));
        }
        let start = self.messages.len();
        let mut keys = String::new();
        let mut wait = true;
        for item in batch::iter(call.body) {
            let item = item.map_err(|error| illegal(error.to_string()))?;
            if item.body.is_empty() {
                return Err(illegal("a message of the batch has no body"));
            }
            let source = Source::new(item.body, item.properties, item.flag, Origin::Batch);
            let found = &source.found;
            if found.delay.is_some() || found.timer || found.transaction {
                return Err(illegal(
                    "a batch can not hold delayed or transaction messages",
                ));
            }
            wait &= !found.no_wait;
            let target = (header.topic.clone(), queue_id);
            let key = self.add_message(&header, call, target, source, 0)?;
            if !keys.is_empty() {
                keys.push(',');
            }
            keys.push_str(&key);
        }
        if self.messages.len() == start {
            return Err(illegal("the batch holds no message"));
        }
        self.prepared.push(Prepared {
            opaque: call.header.opaque,
            code: call.header.code,
            kind: MessageType::Normal,
            wants_reply: !call.header.is_oneway(),
            wait,
            topic: header.topic,
            answer_queue: queue_id,
            unique_key: keys,
            delayed: false,
            messages: start..self.messages.len(),
        });
        Ok(())
    }

    fn add_message(
        &mut self,
        header: &SendMessageV2<'a>,
        call: &Call<'a>,
        (topic, queue_id): (Cow<'a, str>, u32),
        source: Source<'a, '_>,
        reconsume_times: i32,
    ) -> Result<String, Refusal> {
        let Source {
            body,
            text,
            flag,
            origin,
            found,
        } = source;
        let max = self.settings.max_message_size.get() as usize;
        if body.len() > max {
            return Err(illegal(format!(
                "the message body size {} is over max value {max}",
                body.len()
            )));
        }
        if found.transaction || sys_flag::transaction(header.sys_flag) != 0 {
            return Err(
                Failure::no_permission("transaction messages are not supported yet").into(),
            );
        }
        let level = delay_level(&found)?;
        if level == 0 && found.timer {
            return Err(
                Failure::system("timer messages are not enabled, use a delay level").into(),
            );
        }
        let start = self.texts.len();
        let key = self.write_text(text, &found);
        if origin == Origin::Single {
            marks(self.settings, &mut self.texts);
        }
        let mut message = Message {
            topic,
            queue_id,
            tags_code: found.tags_code,
            flag,
            sys_flag: header.sys_flag,
            born_at: header.born_timestamp,
            born_host: call.conn.peer_addr(),
            reconsume_times,
            body,
            text: start..0,
        };
        if level > 0 {
            let target = (message.topic.as_ref(), queue_id);
            let rest = delay::rest(&self.core.delays, level, target, &mut self.texts);
            message.topic = Cow::Borrowed(rest.topic);
            message.queue_id = rest.queue_id;
        }
        message.text.end = self.texts.len();
        self.messages.push(message);
        Ok(key)
    }

    /// Copies the client's properties into the group's buffer, adds a unique key.
    fn write_text(&mut self, text: &[u8], found: &scan::Scan<'_>) -> String {
        if found.internal || (found.timer && found.delay.is_some()) {
            let mut dropped = scan::INTERNAL.to_vec();
            if found.delay.is_some() {
                dropped.extend([
                    names::TIMER_DELIVER_MS,
                    names::TIMER_DELAY_SEC,
                    names::TIMER_DELAY_MS,
                ]);
            }
            properties::copy_without(text, &dropped, &mut self.texts);
        } else {
            self.texts.extend_from_slice(text);
            // Texts of a group stand back to back: close the last entry here.
            if text
                .last()
                .is_some_and(|last| *last != properties::ENTRY_SEPARATOR)
            {
                self.texts.push(properties::ENTRY_SEPARATOR);
            }
        }
        if let Some(key) = found.unique_key {
            key.to_owned()
        } else {
            let key = self.core.unique_ids.make(self.now);
            properties::push(&mut self.texts, names::UNIQ_KEY, key.as_bytes());
            key
        }
    }

    /// Appends all messages of the group under one lock of the store.
    pub(crate) fn append(self, core: &Core) -> AppendedGroup<'a> {
        let mut results = Vec::new();
        if !self.messages.is_empty() {
            let appends: Vec<Append<'_>> = self
                .messages
                .iter()
                .map(|message| Append {
                    topic: &message.topic,
                    queue_id: message.queue_id,
                    tags_code: message.tags_code,
                    flag: message.flag,
                    sys_flag: message.sys_flag,
                    born_at: message.born_at,
                    born_host: message.born_host,
                    reconsume_times: message.reconsume_times,
                    prepared_transaction_offset: 0,
                    body: message.body,
                    properties: self.texts.get(message.text.clone()).unwrap_or_default(),
                })
                .collect();
            core.store.append(&appends, &mut results);
        }
        AppendedGroup {
            prepared: self.prepared,
            results,
        }
    }
}

/// What a client sent of one message, its properties looked through once.
struct Source<'a, 't> {
    body: &'a [u8],
    text: &'t [u8],
    flag: i32,
    origin: Origin,
    found: scan::Scan<'t>,
}

/// How a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Alone: the broker adds cluster, region and trace switch.
    Single,
    /// In a batch, whose messages keep the properties they came with, as in Java.
    Batch,
}

impl<'a, 't> Source<'a, 't> {
    fn new(body: &'a [u8], text: &'t [u8], flag: i32, origin: Origin) -> Self {
        Self {
            body,
            text,
            flag,
            origin,
            found: scan::scan(text),
        }
    }
}

fn delay_level(found: &scan::Scan<'_>) -> Result<i32, Refusal> {
    let Some(text) = found.delay else {
        return Ok(0);
    };
    let level: Option<i32> = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    match level {
        Some(level) => Ok(level.max(0)),
        None => Err(illegal("the delay level is no number")),
    }
}

fn illegal(remark: impl Into<String>) -> Refusal {
    Refusal::Failure(Failure::new(
        rmq_protocol::remoting::response_code::MESSAGE_ILLEGAL,
        remark,
    ))
}

/// What the broker says of itself in a message that came alone.
fn marks(settings: &Settings, text: &mut Vec<u8>) {
    let trace: &[u8] = if settings.trace_on { b"true" } else { b"false" };
    properties::push(text, names::MSG_REGION, settings.region_id.as_bytes());
    properties::push(text, names::TRACE_ON, trace);
    let cluster = settings.broker_cluster_name.as_bytes();
    properties::push(text, names::CLUSTER, cluster);
}

/// A queue for a send that does not name one: spread, without a random source.
fn any_queue(now: Timestamp, position: usize, queues: i32) -> u32 {
    let queues = u32::try_from(queues).unwrap_or(1).max(1);
    (now.millis() as u32)
        .wrapping_mul(0x9E37_79B1)
        .wrapping_add(position as u32)
        % queues
}
