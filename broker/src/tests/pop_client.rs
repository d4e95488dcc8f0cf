//! A pop client for tests: makes handles as the Java client does.
//!
//! **Invariant:** every message of an answer gets exactly one handle, or the test fails.

use rmq_protocol::{
    header::{
        AckMessage, ChangeInvisibleTime, ChangeInvisibleTimeResponse, DecodeHeader, Notification,
        NotificationResponse, POP_INIT_MIN, PopMessage, PopMessageResponse,
    },
    message::{
        Record,
        properties::{self, names},
    },
    pop::{ReceiptHandle, parse_message_offsets, parse_start_offsets},
    remoting::{Command, request_code as code},
};
use rmq_types::pop::PopTopic;

use super::{TestBroker, ok};

/// Group of most tests.
pub(super) const GROUP: &str = "G";
/// Topic of most tests.
pub(super) const TOPIC: &str = "T";

/// What a test asks for.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) group: &'static str,
    pub(super) topic: &'static str,
    pub(super) queue: i32,
    pub(super) max: i32,
    pub(super) invisible: i64,
    pub(super) poll: i64,
    pub(super) born: i64,
    pub(super) init: i32,
    pub(super) tags: Option<&'static str>,
    pub(super) order: bool,
    pub(super) attempt: Option<&'static str>,
}

/// Up to 32 messages of any queue, invisible for ten minutes, without waiting.
pub(super) const ASK: Ask = Ask {
    group: GROUP,
    topic: TOPIC,
    queue: -1,
    max: 32,
    invisible: 600_000,
    poll: 0,
    born: 0,
    init: POP_INIT_MIN,
    tags: None,
    order: false,
    attempt: None,
};

/// A message that was popped.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) body: String,
    pub(super) handle: String,
    pub(super) offset: i64,
    pub(super) reconsume_times: i32,
    pub(super) topic: String,
    pub(super) text: Vec<u8>,
}

impl Message {
    pub(super) fn receipt(&self) -> ReceiptHandle<'_> {
        ReceiptHandle::parse(&self.handle).unwrap()
    }

    pub(super) fn property(&self, name: &str) -> Option<&str> {
        properties::get_str(&self.text, name)
    }
}

/// The answer to a pop.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) command: Command,
    pub(super) messages: Vec<Message>,
}

impl Answer {
    pub(super) fn bodies(&self) -> Vec<&str> {
        self.messages.iter().map(|one| one.body.as_str()).collect()
    }

    pub(super) fn header(&self) -> PopMessageResponse<'_> {
        PopMessageResponse::decode(&self.command.ext).unwrap()
    }
}

/// The request.
pub(super) fn request(ask: &Ask) -> Command {
    Command::request(code::POP_MESSAGE).with_header(&PopMessage {
        consumer_group: ask.group.into(),
        topic: ask.topic.into(),
        queue_id: ask.queue,
        max_msg_nums: ask.max,
        invisible_time: ask.invisible,
        poll_time: ask.poll,
        born_time: ask.born,
        init_mode: ask.init,
        exp_type: ask.tags.map(|_| "TAG".into()),
        exp: ask.tags.map(Into::into),
        order: ask.order,
        attempt_id: ask.attempt.map(Into::into),
    })
}

/// Reads an answer.
pub(super) fn read(command: Command) -> Answer {
    let mut messages = Vec::new();
    if command.code == 0 {
        let header = PopMessageResponse::decode(&command.ext).unwrap();
        let starts = parse_start_offsets(header.start_offset_info.as_deref().unwrap()).unwrap();
        let offsets = parse_message_offsets(header.msg_offset_info.as_deref().unwrap()).unwrap();
        let named: usize = offsets.iter().map(|one| one.offsets.len()).sum();
        let mut rest: &[u8] = &command.body;
        while !rest.is_empty() {
            let (record, length) = Record::decode(rest).unwrap();
            record.verify_body().unwrap();
            rest = &rest[length..];
            let handle = match properties::get_str(record.properties, names::POP_CK) {
                Some(handle) => handle.to_owned(),
                None => made(&header, (&starts, &record)),
            };
            messages.push(Message {
                body: String::from_utf8(record.body.to_vec()).unwrap(),
                handle,
                offset: record.queue_offset,
                reconsume_times: record.reconsume_times,
                topic: record.topic.to_owned(),
                text: record.properties.to_vec(),
            });
        }
        assert_eq!(messages.len(), named, "the header names every message");
    }
    Answer { command, messages }
}

fn made(
    header: &PopMessageResponse<'_>,
    (starts, record): (&[rmq_protocol::pop::StartOffset], &Record<'_>),
) -> String {
    let start = starts
        .iter()
        .find(|one| one.topic == PopTopic::Normal && one.queue_id == record.queue_id)
        .unwrap();
    ReceiptHandle {
        start_offset: start.offset,
        pop_time: header.pop_time,
        invisible_time: header.invisible_time,
        revive_queue_id: header.revive_qid,
        topic: PopTopic::Normal,
        broker_name: "b".into(),
        queue_id: record.queue_id,
        queue_offset: Some(record.queue_offset),
        commit_log_offset: None,
    }
    .to_string()
}

impl TestBroker {
    /// A broker with a topic of `queues` queues and a group. Checkpoints stay in memory, however slow
    /// the computer: a record would let the committed offset run ahead.
    pub(super) async fn to_pop(queues: i32, lines: &str) -> Self {
        let lines = format!("popCkStayBufferTime=600000\n{lines}");
        let broker = Self::start_with(&lines).await;
        broker.topic(TOPIC, queues).await;
        broker.group(GROUP).await;
        broker
    }

    pub(super) async fn pop(&self, ask: &Ask) -> Answer {
        read(self.call(request(ask)).await)
    }

    /// Pops until there is something.
    pub(super) async fn pop_waiting(&self, ask: &Ask) -> Answer {
        let ask = Ask {
            poll: 20_000,
            ..ask.clone()
        };
        loop {
            let answer = self.pop(&ask).await;
            if answer.command.code == 0 {
                return answer;
            }
        }
    }

    pub(super) async fn ack_of(&self, message: &Message) -> Command {
        self.ack_as(message, |_| {}).await
    }

    /// Acks with a header that the test changed.
    pub(super) async fn ack_as(
        &self,
        message: &Message,
        change: impl FnOnce(&mut AckMessage<'_>),
    ) -> Command {
        let receipt = message.receipt();
        let mut header = AckMessage {
            consumer_group: GROUP.into(),
            topic: receipt.stored_topic(TOPIC, GROUP).into(),
            queue_id: receipt.queue_id,
            extra_info: message.handle.clone().into(),
            offset: message.offset,
        };
        change(&mut header);
        self.call(Command::request(code::ACK_MESSAGE).with_header(&header))
            .await
    }

    pub(super) async fn ack_all(&self, answer: &Answer) {
        for message in &answer.messages {
            ok(self.ack_of(message).await);
        }
    }

    /// Asks for another invisible time; the answer, and the message with its new handle.
    pub(super) async fn change(&self, message: &Message, millis: i64) -> (Command, Message) {
        let receipt = message.receipt();
        let header = ChangeInvisibleTime {
            consumer_group: GROUP.into(),
            topic: receipt.stored_topic(TOPIC, GROUP).into(),
            queue_id: receipt.queue_id,
            extra_info: message.handle.clone().into(),
            offset: message.offset,
            invisible_time: millis,
        };
        let command = Command::request(code::CHANGE_MESSAGE_INVISIBLETIME).with_header(&header);
        let answer = self.call(command).await;
        let mut changed = message.clone();
        if answer.code == 0 {
            let header = ChangeInvisibleTimeResponse::decode(&answer.ext).unwrap();
            changed.handle = ReceiptHandle {
                start_offset: message.offset,
                pop_time: header.pop_time,
                invisible_time: header.invisible_time,
                revive_queue_id: header.revive_qid,
                ..receipt
            }
            .to_string();
        }
        (answer, changed)
    }

    /// Asks whether there is something to pop.
    pub(super) async fn has_message(&self, ask: &Ask) -> NotificationResponse {
        let command = Command::request(code::NOTIFICATION).with_header(&Notification {
            consumer_group: ask.group.into(),
            topic: ask.topic.into(),
            queue_id: ask.queue,
            poll_time: ask.poll,
            born_time: ask.born,
            order: ask.order,
            attempt_id: ask.attempt.map(Into::into),
        });
        let answer = ok(self.call(command).await);
        NotificationResponse::decode(&answer.ext).unwrap()
    }

    /// Waits until a group has come so far: a copy is there a moment before its original is done.
    pub(super) async fn comes_to(&self, topic: &str, offset: &str) {
        while self.committed(GROUP, topic).await != offset {}
    }

    /// How far a group has come in queue 0.
    pub(super) async fn committed(&self, group: &str, topic: &str) -> String {
        let fields = [("consumerGroup", group), ("topic", topic), ("queueId", "0")];
        let answer = ok(self.ask_with(code::QUERY_CONSUMER_OFFSET, &fields).await);
        answer.ext.get("offset").unwrap().to_owned()
    }
}
