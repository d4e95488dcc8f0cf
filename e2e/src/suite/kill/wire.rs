//! Requests of the kill suite, over one connection to the broker.
//!
//! **Invariant:** every request has a deadline, and an answer is either what was asked for or an error
//! that names the request. Nothing is sent twice.

use super::ledger::{Found, Stored};
use super::message::{self, Queue};
use anyhow::Context as _;
use rmq_net::{Client, ClientOptions};
use rmq_protocol::body::TopicConfigWrapper;
use rmq_protocol::header::{
    CreateTopic, PullMessage, QueryConsumerOffset, QueryMessage, QueueHeader, SendMessageV1,
    SendMessageV2, UpdateConsumerOffset,
};
use rmq_protocol::message::batch::{self, BatchItem};
use rmq_protocol::message::properties::{self, names};
use rmq_protocol::message::{OffsetId, Record};
use rmq_protocol::remoting::{Command, request_code as code, response_code as answer};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PATIENCE: Duration = Duration::from_secs(20);
const PULL_MESSAGES: i32 = 512;
const READER: &str = "kill-reader";
const COMMITTER: &str = "kill-committer";

/// What became of a send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Acknowledged: the place of each message.
    Stored(Vec<(i64, Stored)>),
    /// Answered, but not with success.
    Refused(i32),
}

/// A connection to the broker.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    client: Client,
    broker: String,
    seed: u64,
}

impl Wire {
    /// A connection of its own, opened with the first request.
    pub(super) fn new(broker: &str, seed: u64) -> Self {
        Self {
            client: Client::new(ClientOptions::default()),
            broker: broker.to_owned(),
            seed,
        }
    }

    async fn call(&self, command: Command) -> anyhow::Result<Command> {
        let code = command.code;
        let answer = self.client.call(&self.broker, command, PATIENCE).await;
        answer.with_context(|| format!("request {code}"))
    }

    async fn ask(&self, command: Command) -> anyhow::Result<Command> {
        let code = command.code;
        let answer = self.call(command).await?;
        anyhow::ensure!(
            answer.code == answer::SUCCESS,
            "request {code} was answered with {}: {}",
            answer.code,
            answer.remark.unwrap_or_default()
        );
        Ok(answer)
    }

    /// Sends messages `first..first + count` to one queue: alone by 10 or 310, several by 320.
    pub(super) async fn send(&self, queue: Queue, first: u64, count: u64) -> anyhow::Result<Sent> {
        let answer = self.call(self.send_command(queue, first, count)).await?;
        if answer.code != answer::SUCCESS {
            return Ok(Sent::Refused(answer.code));
        }
        let offset: i64 = field(&answer, "queueOffset")?;
        let queue_id: u8 = field(&answer, "queueId")?;
        anyhow::ensure!(
            queue_id == queue.queue,
            "message {first} was sent to {queue}, the answer says queue {queue_id}"
        );
        let ids = answer.ext.get("msgId").context("an answer without msgId")?;
        let mut stored = Vec::new();
        for (index, id) in ids.split(',').enumerate() {
            let index = index as u64;
            let id = OffsetId::parse(id).with_context(|| format!("msgId {id}"))?;
            anyhow::ensure!(
                id.host.to_string() == self.broker,
                "msgId of {} from broker {}",
                id.host,
                self.broker
            );
            let place = Stored {
                number: first + index,
                physical: id.offset,
            };
            stored.push((offset + index as i64, place));
        }
        anyhow::ensure!(
            stored.len() as u64 == count,
            "{count} messages were sent, the answer has {} ids",
            stored.len()
        );
        Ok(Sent::Stored(stored))
    }

    /// Sends a message that comes a second later; whether it was acknowledged.
    pub(super) async fn send_delayed(&self, queue: Queue, number: u64) -> anyhow::Result<bool> {
        let mut text = message::properties(self.seed, number);
        properties::push(&mut text, names::DELAY, b"1");
        let header = header(queue, Some(String::from_utf8_lossy(&text).into_owned()));
        let command = Command::request(code::SEND_MESSAGE_V2)
            .with_header(&SendMessageV2::from(header))
            .with_body(message::body(self.seed, number, queue));
        Ok(self.call(command).await?.code == answer::SUCCESS)
    }

    fn send_command(&self, queue: Queue, first: u64, count: u64) -> Command {
        let properties = |number| message::properties(self.seed, number);
        if count > 1 {
            let mut body = Vec::new();
            for number in first..first + count {
                let item = BatchItem {
                    flag: 0,
                    body: &message::body(self.seed, number, queue),
                    properties: &properties(number),
                };
                batch::push(&mut body, &item);
            }
            let header = header(queue, None);
            return Command::request(code::SEND_BATCH_MESSAGE)
                .with_header(&SendMessageV2::from(SendMessageV1 {
                    batch: true,
                    ..header
                }))
                .with_body(body);
        }
        let text = String::from_utf8_lossy(&properties(first)).into_owned();
        let header = header(queue, Some(text));
        let command = if first.is_multiple_of(2) {
            Command::request(code::SEND_MESSAGE).with_header(&header)
        } else {
            Command::request(code::SEND_MESSAGE_V2).with_header(&SendMessageV2::from(header))
        };
        command.with_body(message::body(self.seed, first, queue))
    }

    /// Creates a topic.
    pub(super) async fn create_topic(&self, topic: &str, queues: i32) -> anyhow::Result<()> {
        let header = CreateTopic {
            topic: topic.to_owned().into(),
            default_topic: "TBW102".into(),
            read_queue_nums: queues,
            write_queue_nums: queues,
            perm: 6,
            topic_filter_type: "SINGLE_TAG".into(),
            topic_sys_flag: Some(0),
            order: false,
            attributes: None,
            force: None,
        };
        let command = Command::request(code::UPDATE_AND_CREATE_TOPIC).with_header(&header);
        self.ask(command).await.map(|_| ())
    }

    /// The names of all topics.
    pub(super) async fn topics(&self) -> anyhow::Result<Vec<String>> {
        let answer = self
            .ask(Command::request(code::GET_ALL_TOPIC_CONFIG))
            .await?;
        let table = TopicConfigWrapper::from_json(&answer.body)?.topic_config_table;
        Ok(table.into_keys().collect())
    }

    /// First offset and end of a queue.
    pub(super) async fn bounds(&self, queue: Queue) -> anyhow::Result<(i64, i64)> {
        let header = QueueHeader {
            topic: queue.topic_name().into(),
            queue_id: queue.queue.into(),
        };
        let min = Command::request(code::GET_MIN_OFFSET).with_header(&header);
        let max = Command::request(code::GET_MAX_OFFSET).with_header(&header);
        let min = field(&self.ask(min).await?, "offset")?;
        let max = field(&self.ask(max).await?, "offset")?;
        Ok((min, max))
    }

    /// Reads a queue from an offset to its end.
    pub(super) async fn read(&self, queue: Queue, from: i64) -> anyhow::Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut offset = from;
        loop {
            let answer = self.call(pull(queue, offset)).await?;
            match answer.code {
                answer::SUCCESS => {}
                answer::PULL_NOT_FOUND | answer::PULL_OFFSET_MOVED => return Ok(found),
                code => anyhow::bail!(
                    "pull of {queue} offset {offset} was answered with {code}: {}",
                    answer.remark.unwrap_or_default()
                ),
            }
            self.decode(queue, &answer.body, &mut found)
                .with_context(|| format!("{queue}, pulled from offset {offset}"))?;
            let next: i64 = field(&answer, "nextBeginOffset")?;
            anyhow::ensure!(
                next > offset,
                "pull of {queue} offset {offset} goes on at {next}"
            );
            offset = next;
        }
    }

    fn decode(&self, queue: Queue, body: &[u8], found: &mut Vec<Found>) -> anyhow::Result<()> {
        let mut rest = body;
        while !rest.is_empty() {
            let (record, length) = Record::decode(rest)?;
            let in_place =
                record.topic == queue.topic_name() && record.queue_id == i32::from(queue.queue);
            anyhow::ensure!(
                in_place,
                "a record of topic {} queue {}",
                record.topic,
                record.queue_id
            );
            let whole = record.verify_body().is_ok();
            let message = message::recognize(self.seed, record.body)
                .filter(|(number, _)| whole && has_key(record.properties, *number));
            found.push(Found {
                offset: record.queue_offset,
                message,
                physical: record.physical_offset,
            });
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(())
    }

    /// How many messages of a topic the index has for the key of message `number`.
    pub(super) async fn count_by_key(&self, topic: &str, number: u64) -> anyhow::Result<usize> {
        let header = QueryMessage {
            topic: topic.to_owned().into(),
            key: message::key(number).into(),
            max_num: 32,
            begin_timestamp: 0,
            end_timestamp: i64::MAX,
        };
        let answer = self
            .call(Command::request(code::QUERY_MESSAGE).with_header(&header))
            .await?;
        let mut rest: &[u8] = if answer.code == answer::SUCCESS {
            &answer.body
        } else {
            &[]
        };
        let mut count = 0;
        while !rest.is_empty() {
            let (record, length) = Record::decode(rest)?;
            let message = message::recognize(self.seed, record.body);
            anyhow::ensure!(
                message.is_some_and(|(found, _)| found == number),
                "the index gives another message for the key of message {number}"
            );
            count += 1;
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(count)
    }

    /// Commits the progress of a group.
    pub(super) async fn commit(&self, queue: Queue, offset: i64) -> anyhow::Result<()> {
        let header = UpdateConsumerOffset {
            consumer_group: COMMITTER.into(),
            topic: queue.topic_name().into(),
            queue_id: queue.queue.into(),
            commit_offset: offset,
        };
        let command = Command::request(code::UPDATE_CONSUMER_OFFSET).with_header(&header);
        self.ask(command).await.map(|_| ())
    }

    /// The progress of a group; 0 if it has none.
    pub(super) async fn committed(&self, queue: Queue) -> anyhow::Result<i64> {
        let header = QueryConsumerOffset {
            consumer_group: COMMITTER.into(),
            topic: queue.topic_name().into(),
            queue_id: queue.queue.into(),
            set_zero_if_not_found: Some(true),
        };
        let command = Command::request(code::QUERY_CONSUMER_OFFSET).with_header(&header);
        let answer = self.call(command).await?;
        if answer.code == answer::QUERY_NOT_FOUND {
            return Ok(0);
        }
        anyhow::ensure!(
            answer.code == answer::SUCCESS,
            "the progress in {queue} was answered with {}",
            answer.code
        );
        field(&answer, "offset")
    }
}

/// `topic@group` of the group that commits, as it stands in the broker's file.
pub(super) fn progress_key(queue: Queue) -> String {
    format!("{}@{COMMITTER}", queue.topic_name())
}

fn header(queue: Queue, properties: Option<String>) -> SendMessageV1<'static> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    SendMessageV1 {
        producer_group: "kill-producer".into(),
        topic: queue.topic_name().into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: message::QUEUES as i32,
        queue_id: queue.queue.into(),
        sys_flag: 0,
        born_timestamp: now.map_or(0, |age| age.as_millis() as i64),
        flag: 0,
        properties: properties.map(Into::into),
        reconsume_times: Some(0),
        unit_mode: false,
        max_reconsume_times: None,
        batch: false,
        broker_name: None,
    }
}

fn pull(queue: Queue, offset: i64) -> Command {
    Command::request(code::PULL_MESSAGE).with_header(&PullMessage::of_all(
        READER,
        &queue.topic_name(),
        queue.queue.into(),
        offset,
        PULL_MESSAGES,
    ))
}

fn has_key(text: &[u8], number: u64) -> bool {
    properties::get_str(text, names::KEYS) == Some(message::key(number).as_str())
}

fn field<T: std::str::FromStr>(answer: &Command, name: &str) -> anyhow::Result<T> {
    let text = answer
        .ext
        .get(name)
        .with_context(|| format!("an answer without {name}"))?;
    text.parse()
        .ok()
        .with_context(|| format!("{name} is {text:?}"))
}
