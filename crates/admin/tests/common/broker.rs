//! A broker with topics, groups, messages and offsets in plain maps.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering},
    },
};

use rmq_net::Request;
use rmq_protocol::{
    body::{
        Connection, ConsumeStats, ConsumerConnection, KvTable, MessageQueue, OffsetWrapper,
        ResetOffsetBody, SubscriptionGroupConfig, SubscriptionGroupWrapper, TopicConfig,
        TopicConfigAndQueueMapping, TopicOffset, TopicStatsTable,
    },
    message::{OffsetId, Record, body_crc, properties},
    remoting::{Command, request_code as req, response_code as resp},
};

use super::{Answering, error, field, ok};

type QueueKey = (String, i32);

#[derive(Default)]
pub struct Broker {
    pub name: String,
    pub topics: Mutex<BTreeMap<String, TopicConfig>>,
    pub groups: Mutex<BTreeMap<String, SubscriptionGroupConfig>>,
    pub queues: Mutex<BTreeMap<QueueKey, Vec<Vec<u8>>>>,
    pub committed: Mutex<BTreeMap<(String, String, i32), i64>>,
    pub members: Mutex<Vec<Connection>>,
    /// Codes that are refused, with code and remark.
    pub refusals: Mutex<BTreeMap<i32, (i32, String)>>,
    /// Bodies of answers to codes that nothing else answers.
    pub given: Mutex<BTreeMap<i32, Vec<u8>>>,
    /// First offset of every queue.
    pub min: AtomicI64,
    pub last_ext: Mutex<BTreeMap<i32, BTreeMap<String, String>>>,
}

impl Broker {
    pub fn new(name: &str) -> Self {
        let groups = [(
            "TOOLS_CONSUMER".into(),
            SubscriptionGroupConfig::named("TOOLS_CONSUMER"),
        )];
        Self {
            name: name.into(),
            groups: Mutex::new(groups.into()),
            ..Self::default()
        }
    }

    pub fn refuse(&self, request: i32, code: i32, remark: &str) {
        self.refusals
            .lock()
            .unwrap()
            .insert(request, (code, remark.into()));
    }

    /// Answers a request with this body.
    pub fn give(&self, request: i32, body: Vec<u8>) {
        self.given.lock().unwrap().insert(request, body);
    }

    pub fn allow(&self, request: i32) {
        self.refusals.lock().unwrap().remove(&request);
    }

    pub fn add_topic(&self, topic: &str, queues: i32) {
        let config = TopicConfig {
            read_queue_nums: queues,
            write_queue_nums: queues,
            ..TopicConfig::named(topic)
        };
        self.topics.lock().unwrap().insert(topic.into(), config);
    }

    /// Stores a message as a producer's.
    pub fn put(&self, topic: &str, queue: i32, body: &[u8], tag: &str) -> i64 {
        let mut text = Vec::new();
        properties::push(&mut text, properties::names::TAGS, tag.as_bytes());
        self.store(topic, queue, body, &text)
    }

    fn store(&self, topic: &str, queue: i32, body: &[u8], properties: &[u8]) -> i64 {
        let mut queues = self.queues.lock().unwrap();
        let records = queues.entry((topic.into(), queue)).or_default();
        let queue_offset = records.len() as i64;
        let record = Record {
            body_crc: body_crc(body),
            queue_id: queue,
            flag: 0,
            queue_offset,
            physical_offset: physical(queue, queue_offset),
            sys_flag: 0,
            born_at: 1,
            born_host: "127.0.0.1:1".parse().unwrap(),
            stored_at: 1_000 + queue_offset,
            store_host: "127.0.0.1:2".parse().unwrap(),
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body,
            topic,
            properties,
        };
        let mut bytes = vec![0; record.encoded_len()];
        record.encode_into(&mut bytes).unwrap();
        records.push(bytes);
        queue_offset
    }

    fn bounds(&self, topic: &str, queue: i32) -> (i64, i64) {
        let queues = self.queues.lock().unwrap();
        let max = queues
            .get(&(topic.to_owned(), queue))
            .map_or(0, |records| records.len() as i64);
        (self.min.load(Ordering::SeqCst).min(max), max)
    }

    fn key(&self, topic: &str, queue_id: i32) -> MessageQueue {
        MessageQueue {
            broker_name: self.name.clone(),
            queue_id,
            topic: topic.into(),
        }
    }
}

fn physical(queue: i32, offset: i64) -> i64 {
    i64::from(queue) * 1_000_000 + offset
}

fn number(request: &Request<'_>, name: &str) -> i64 {
    field(request, name).parse().unwrap_or(0)
}

fn offset(offset: i64) -> Command {
    ok().with_ext("offset", offset.to_string())
}

impl Answering for Broker {
    fn answer(&self, request: &Request<'_>) -> Command {
        let code = request.header.code;
        let ext = request
            .header
            .ext
            .iter()
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect();
        self.last_ext.lock().unwrap().insert(code, ext);
        if let Some((code, remark)) = self.refusals.lock().unwrap().get(&code) {
            return error(*code, remark);
        }
        if let Some(body) = self.given.lock().unwrap().get(&code) {
            return ok().with_body(body.clone());
        }
        match code {
            req::GET_BROKER_RUNTIME_INFO => runtime(),
            req::GET_TOPIC_CONFIG
            | req::UPDATE_AND_CREATE_TOPIC
            | req::DELETE_TOPIC_IN_BROKER
            | req::GET_TOPIC_STATS_INFO => self.topic(request),
            req::GET_ALL_SUBSCRIPTIONGROUP_CONFIG
            | req::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
            | req::DELETE_SUBSCRIPTIONGROUP
            | req::GET_CONSUME_STATS
            | req::GET_CONSUMER_CONNECTION_LIST => self.group(request),
            req::SEND_MESSAGE_V2 => self.send(request),
            req::PULL_MESSAGE => self.pull(request),
            req::VIEW_MESSAGE_BY_ID => self.view(number(request, "offset")),
            _ => self.offsets(request),
        }
    }
}

fn runtime() -> Command {
    let pairs = [
        ("brokerVersionDesc", "V5_3_3"),
        ("putTps", "1.5 0 0"),
        ("getTransferredTps", "2.5 0 0"),
        ("commitLogDiskRatio", "0.25"),
    ];
    let table = pairs
        .iter()
        .map(|(k, v)| ((*k).into(), (*v).into()))
        .collect();
    ok().with_body(KvTable { table }.to_json())
}

impl Broker {
    fn topic(&self, request: &Request<'_>) -> Command {
        let name = field(request, "topic").to_owned();
        let mut topics = self.topics.lock().unwrap();
        let known = topics.get(&name).cloned();
        match (request.header.code, known) {
            (req::UPDATE_AND_CREATE_TOPIC, known) => {
                let mut config = known.unwrap_or_else(|| TopicConfig::named(&name));
                config.read_queue_nums = number(request, "readQueueNums") as i32;
                config.write_queue_nums = number(request, "writeQueueNums") as i32;
                config.perm = number(request, "perm") as i32;
                config.order = field(request, "order") == "true";
                topics.insert(name, config);
                ok()
            }
            (req::DELETE_TOPIC_IN_BROKER, _) => {
                topics.remove(&name);
                ok()
            }
            (_, None) => error(resp::TOPIC_NOT_EXIST, "no topic"),
            (req::GET_TOPIC_CONFIG, Some(config)) => {
                ok().with_body(TopicConfigAndQueueMapping::from(config).to_json())
            }
            (_, Some(config)) => {
                let queue = |id| {
                    let (min_offset, max_offset) = self.bounds(&name, id);
                    let last_update_timestamp = if max_offset > 0 { 999 + max_offset } else { 0 };
                    let bounds = TopicOffset {
                        last_update_timestamp,
                        max_offset,
                        min_offset,
                    };
                    (self.key(&name, id), bounds)
                };
                let offset_table = (0..config.read_queue_nums).map(queue).collect();
                ok().with_body(
                    TopicStatsTable {
                        offset_table,
                        topic_put_tps: 0.0,
                    }
                    .to_json(),
                )
            }
        }
    }

    fn group(&self, request: &Request<'_>) -> Command {
        let mut groups = self.groups.lock().unwrap();
        match request.header.code {
            req::GET_ALL_SUBSCRIPTIONGROUP_CONFIG => {
                let wrapper = SubscriptionGroupWrapper {
                    subscription_group_table: groups.clone(),
                    ..SubscriptionGroupWrapper::default()
                };
                ok().with_body(wrapper.to_json())
            }
            req::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP => {
                let config = SubscriptionGroupConfig::from_json(request.body).unwrap();
                groups.insert(config.group_name.clone(), config);
                ok()
            }
            req::DELETE_SUBSCRIPTIONGROUP => {
                groups.remove(field(request, "groupName"));
                ok()
            }
            req::GET_CONSUME_STATS => {
                let wanted = field(request, "consumerGroup");
                let committed = self.committed.lock().unwrap();
                let mine = committed
                    .iter()
                    .filter(|((group, _, _), _)| group == wanted);
                let entry = |((_, topic, queue), offset): (&(String, String, i32), &i64)| {
                    let offsets = OffsetWrapper {
                        broker_offset: self.bounds(topic, *queue).1,
                        consumer_offset: *offset,
                        last_timestamp: 1_000,
                        pull_offset: *offset,
                    };
                    (self.key(topic, *queue), offsets)
                };
                let stats = ConsumeStats {
                    consume_tps: 0.5,
                    offset_table: mine.map(entry).collect(),
                };
                ok().with_body(stats.to_json())
            }
            _ => {
                let members = self.members.lock().unwrap().clone();
                if members.is_empty() {
                    return error(resp::CONSUMER_NOT_ONLINE, "not online");
                }
                let body = ConsumerConnection {
                    connection_set: members,
                    ..ConsumerConnection::default()
                };
                ok().with_body(body.to_json())
            }
        }
    }

    fn send(&self, request: &Request<'_>) -> Command {
        let (topic, queue) = (field(request, "b"), number(request, "e") as i32);
        let offset = self.store(topic, queue, request.body, field(request, "i").as_bytes());
        let host = "127.0.0.1:2".parse().unwrap();
        ok().with_ext(
            "msgId",
            OffsetId {
                host,
                offset: physical(queue, offset),
            }
            .to_string(),
        )
        .with_ext("queueId", queue.to_string())
        .with_ext("queueOffset", offset.to_string())
    }

    /// Filters as a broker does, by hash.
    fn pull(&self, request: &Request<'_>) -> Command {
        let (topic, queue) = (field(request, "topic"), number(request, "queueId") as i32);
        if !self
            .groups
            .lock()
            .unwrap()
            .contains_key(field(request, "consumerGroup"))
        {
            return error(
                resp::SUBSCRIPTION_GROUP_NOT_EXIST,
                "subscription group does not exist",
            );
        }
        if !self.topics.lock().unwrap().contains_key(topic) {
            return error(resp::TOPIC_NOT_EXIST, "topic does not exist");
        }
        let from = number(request, "queueOffset");
        let (min, max) = self.bounds(topic, queue);
        let header = |code: i32, next: i64| {
            Command::response(0, code)
                .with_ext("suggestWhichBrokerId", "0")
                .with_ext("nextBeginOffset", next.to_string())
                .with_ext("minOffset", min.to_string())
                .with_ext("maxOffset", max.to_string())
        };
        if from < min || from > max {
            return header(resp::PULL_OFFSET_MOVED, if from < min { min } else { max });
        }
        if from == max {
            return header(resp::PULL_NOT_FOUND, from);
        }
        let next = (from + number(request, "maxMsgNums")).min(max);
        let expression = field(request, "subscription");
        let hashes: Vec<_> = expression
            .split("||")
            .map(|t| rmq_types::java_hash(t.trim()))
            .collect();
        let queues = self.queues.lock().unwrap();
        let records = &queues[&(topic.to_owned(), queue)][from as usize..next as usize];
        let wanted = records.iter().filter(|bytes| {
            let (record, _) = Record::decode(bytes).unwrap();
            let code = properties::tags_code(record.properties) as i32;
            expression == "*" || hashes.contains(&code)
        });
        let body: Vec<u8> = wanted.flatten().copied().collect();
        if body.is_empty() {
            return header(resp::PULL_RETRY_IMMEDIATELY, next);
        }
        header(resp::SUCCESS, next).with_body(body)
    }

    fn view(&self, wanted: i64) -> Command {
        let queues = self.queues.lock().unwrap();
        let found = queues.values().flatten().find(|bytes| {
            Record::decode(bytes).is_ok_and(|(record, _)| record.physical_offset == wanted)
        });
        match found {
            Some(bytes) => ok().with_body(bytes.clone()),
            None => error(resp::SYSTEM_ERROR, "can not find message by the offset"),
        }
    }

    fn offsets(&self, request: &Request<'_>) -> Command {
        let topic = field(request, "topic").to_owned();
        let queue = number(request, "queueId") as i32;
        let (min, max) = self.bounds(&topic, queue);
        let key = (
            field(request, "consumerGroup").to_owned(),
            topic.clone(),
            queue,
        );
        match request.header.code {
            req::GET_MAX_OFFSET => offset(max),
            req::GET_MIN_OFFSET => offset(min),
            req::SEARCH_OFFSET_BY_TIMESTAMP => {
                offset((number(request, "timestamp") - 1_000).clamp(min, max))
            }
            req::QUERY_CONSUMER_OFFSET => match self.committed.lock().unwrap().get(&key) {
                Some(committed) => offset(*committed),
                None => error(resp::QUERY_NOT_FOUND, "not found"),
            },
            req::UPDATE_CONSUMER_OFFSET => {
                let to = number(request, "commitOffset");
                self.committed.lock().unwrap().insert(key, to);
                ok()
            }
            req::INVOKE_BROKER_TO_RESET_OFFSET => {
                let set = [(self.key(&topic, 0), number(request, "timestamp"))];
                ok().with_body(
                    ResetOffsetBody {
                        offset_table: set.into(),
                    }
                    .to_json(),
                )
            }
            _ => error(resp::REQUEST_CODE_NOT_SUPPORTED, "fake"),
        }
    }
}
