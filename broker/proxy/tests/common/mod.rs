//! A cluster behind the gateway that exists only in memory, its state open to the test, and clients
//! of the gateway.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unnecessary_wraps,
    reason = "every test file uses a part of this module, and the wire's fields are options"
)]

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rmq_net::CallError;
use rmq_protocol::body::{
    BrokerData, ClusterInfo, QueueData, SubscriptionGroupConfig, TopicConfig, TopicRouteData,
};
use rmq_protocol::header::{
    AckMessage, ChangeInvisibleTime, ChangeInvisibleTimeResponse, DecodeHeader as _, PopMessage,
    PopMessageResponse, SendBack, SendMessageResponse, SendMessageV2,
};
use rmq_protocol::message::Record;
use rmq_protocol::remoting::{Command, request_code as req, response_code as resp};
use rmq_proxy::proto::v2::messaging_service_client::MessagingServiceClient;
use rmq_proxy::proto::v2::{self, Code};
use rmq_proxy::{Answer, Options, Proxy, Upstream};
use rmq_types::{Clock, Timestamp};
use tokio::sync::watch;
use tonic::transport::Channel;
use tonic::{Request, Status};

/// The clock of a test: it stands until it is moved.
#[derive(Debug)]
pub struct TestClock(AtomicI64);

impl TestClock {
    pub fn advance(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// What was sent to a broker.
#[derive(Clone, Debug)]
pub struct Sent {
    pub addr: String,
    pub code: i32,
    pub queue: i32,
    pub properties: String,
    pub body: Vec<u8>,
}

/// What a handle was given back with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    pub topic: String,
    pub handle: String,
    pub invisible: i64,
}

/// What the brokers know.
#[derive(Debug, Default)]
pub struct State {
    /// Kind of each topic; every broker has it, with 4 queues.
    pub topics: BTreeMap<String, Option<String>>,
    pub groups: BTreeMap<String, SubscriptionGroupConfig>,
    /// Messages to be popped, as records.
    pub waiting: VecDeque<Vec<u8>>,
    pub order_counts: Option<String>,
    pub sent: Vec<Sent>,
    pub popped: Vec<(String, String, i64)>,
    pub acked: Vec<Given>,
    pub changed: Vec<Given>,
    pub dead: Vec<(i64, i32, Option<String>)>,
    pub ended: Vec<i32>,
    /// Answers to the next sends, pops, acks, in place of success.
    pub send_code: Option<i32>,
    pub pop_code: Option<i32>,
    pub ack_code: Option<i32>,
    /// Addresses nobody listens at.
    pub down: Vec<String>,
    /// Pops that found nothing return at once.
    pub no_wait: bool,
    pub pops_now: usize,
}

/// The cluster.
#[derive(Debug)]
pub struct Fake {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
    brokers: Vec<(&'static str, &'static str)>,
}

pub const NOW: i64 = 1_700_000_000_000;

impl Fake {
    pub fn new(brokers: &[(&'static str, &'static str)]) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            brokers: brokers.to_vec(),
        })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Changes the state, and wakes who waits for it.
    pub fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changes.send_modify(|count| *count += 1);
    }

    /// Waits until the state is as wanted.
    pub async fn until(&self, wanted: impl Fn(&State) -> bool) {
        let mut changes = self.changes.subscribe();
        let reached = async {
            while !wanted(&self.state()) {
                changes.changed().await.unwrap();
            }
        };
        let patience = Duration::from_mins(1);
        let in_time = tokio::time::timeout(patience, reached).await.is_ok();
        assert!(in_time, "never reached: {:?}", self.state());
    }

    fn route(&self, topic: &str) -> Command {
        if !self.state().topics.contains_key(topic) {
            return Command::response(0, resp::TOPIC_NOT_EXIST).with_remark("no route");
        }
        let data = TopicRouteData {
            broker_datas: self.broker_datas(),
            queue_datas: self
                .brokers
                .iter()
                .map(|(name, _)| QueueData {
                    broker_name: (*name).to_owned(),
                    perm: 6,
                    read_queue_nums: 4,
                    topic_sys_flag: 0,
                    write_queue_nums: 4,
                })
                .collect(),
            ..TopicRouteData::default()
        };
        Command::success(0).with_body(data.to_json())
    }

    fn broker_datas(&self) -> Vec<BrokerData> {
        let brokers = self.brokers.iter();
        brokers
            .map(|(name, addr)| BrokerData {
                broker_addrs: [(0, (*addr).to_owned())].into(),
                broker_name: (*name).to_owned(),
                cluster: "c".into(),
                ..BrokerData::default()
            })
            .collect()
    }

    fn cluster(&self) -> Command {
        let mut info = ClusterInfo::default();
        for broker in self.broker_datas() {
            info.broker_addr_table
                .insert(broker.broker_name.clone(), broker);
        }
        Command::success(0).with_body(info.to_json())
    }

    fn send(&self, addr: &str, cmd: &Command) -> Command {
        let header = SendMessageV2::decode(&cmd.ext).unwrap();
        let mut offset = 0;
        let mut code = resp::SUCCESS;
        self.set(|state| {
            code = state.send_code.take().unwrap_or(code);
            offset = state.sent.len() as i64;
            state.sent.push(Sent {
                addr: addr.to_owned(),
                code: cmd.code,
                queue: header.queue_id,
                properties: header.properties.as_deref().unwrap_or_default().to_owned(),
                body: cmd.body.to_vec(),
            });
        });
        let stored = SendMessageResponse {
            msg_id: "7F00000100002A9F0000000000001234".into(),
            queue_id: header.queue_id,
            queue_offset: offset,
            transaction_id: None,
            batch_uniq_id: None,
            recall_handle: None,
        };
        Command::response(0, code).with_header(&stored)
    }

    async fn pop(&self, cmd: &Command) -> Command {
        let header = PopMessage::decode(&cmd.ext).unwrap();
        let mut changes = self.changes.subscribe();
        let mut code = None;
        self.set(|state| {
            state.pops_now += 1;
            code = state.pop_code.take();
            let expression = header.exp.as_deref().unwrap_or_default().to_owned();
            let group = header.consumer_group.to_string();
            state
                .popped
                .push((group, expression, header.invisible_time));
        });
        if let Some(code) = code {
            return Command::response(0, code);
        }
        let wait = Duration::from_millis(header.poll_time as u64);
        let arrived = async {
            while self.state().waiting.is_empty() && !self.state().no_wait {
                changes.changed().await.unwrap();
            }
        };
        let _ = tokio::time::timeout(wait, arrived).await;
        let mut state = self.state();
        let max = usize::try_from(header.max_msg_nums).unwrap();
        let count = state.waiting.len().min(max);
        let body: Vec<u8> = state.waiting.drain(..count).flatten().collect();
        if body.is_empty() {
            return Command::response(0, resp::POLLING_TIMEOUT);
        }
        let answer = PopMessageResponse {
            pop_time: header.born_time,
            invisible_time: header.invisible_time,
            revive_qid: 1,
            rest_num: 0,
            start_offset_info: Some("0 0 0".into()),
            msg_offset_info: Some("0 0 0".into()),
            order_count_info: state.order_counts.clone().map(Into::into),
        };
        Command::success(0).with_header(&answer).with_body(body)
    }

    fn ack(&self, cmd: &Command) -> Command {
        let header = AckMessage::decode(&cmd.ext).unwrap();
        let mut code = resp::SUCCESS;
        self.set(|state| {
            code = state.ack_code.take().unwrap_or(code);
            state.acked.push(Given {
                topic: header.topic.to_string(),
                handle: header.extra_info.to_string(),
                invisible: 0,
            });
        });
        Command::response(0, code)
    }

    fn change(&self, cmd: &Command) -> Command {
        let header = ChangeInvisibleTime::decode(&cmd.ext).unwrap();
        let old: Vec<i64> = header
            .extra_info
            .split(' ')
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        self.set(|state| {
            state.changed.push(Given {
                topic: header.topic.to_string(),
                handle: header.extra_info.to_string(),
                invisible: header.invisible_time,
            });
        });
        let answer = ChangeInvisibleTimeResponse {
            pop_time: old[1] + 50_000,
            invisible_time: header.invisible_time,
            revive_qid: 2,
        };
        Command::success(0).with_header(&answer)
    }

    fn send_back(&self, cmd: &Command) -> Command {
        let header = SendBack::decode(&cmd.ext).unwrap();
        self.set(|state| {
            let topic = header.origin_topic.as_deref().map(str::to_owned);
            state.dead.push((header.offset, header.delay_level, topic));
        });
        Command::success(0)
    }

    async fn answer(&self, addr: &str, cmd: Command) -> Command {
        let field = |name: &str| cmd.ext.get(name).unwrap_or_default().to_owned();
        match cmd.code {
            req::GET_ROUTEINFO_BY_TOPIC => self.route(&field("topic")),
            req::GET_BROKER_CLUSTER_INFO => self.cluster(),
            req::GET_TOPIC_CONFIG => {
                let mut config = TopicConfig::named(field("topic"));
                if let Some(Some(kind)) = self.state().topics.get(&field("topic")) {
                    config
                        .attributes
                        .insert("message.type".into(), kind.clone());
                }
                Command::success(0).with_body(config.to_json())
            }
            req::GET_SUBSCRIPTIONGROUP_CONFIG => match self.state().groups.get(&field("group")) {
                Some(group) => Command::success(0).with_body(group.to_json()),
                None => Command::response(0, resp::SUBSCRIPTION_GROUP_NOT_EXIST),
            },
            req::SEND_MESSAGE_V2 | req::SEND_BATCH_MESSAGE => self.send(addr, &cmd),
            req::POP_MESSAGE => {
                let answer = self.pop(&cmd).await;
                self.set(|state| state.pops_now -= 1);
                answer
            }
            req::ACK_MESSAGE => self.ack(&cmd),
            req::CHANGE_MESSAGE_INVISIBLETIME => self.change(&cmd),
            req::CONSUMER_SEND_MSG_BACK => self.send_back(&cmd),
            req::END_TRANSACTION => {
                let how = field("commitOrRollback").parse().unwrap();
                self.set(|state| state.ended.push(how));
                Command::success(0)
            }
            code => Command::response(0, resp::REQUEST_CODE_NOT_SUPPORTED)
                .with_remark(format!("fake: {code}")),
        }
    }
}

impl Upstream for Fake {
    fn call<'a>(&'a self, addr: &'a str, cmd: Command, within: Duration) -> Answer<'a> {
        Box::pin(async move {
            if self.state().down.iter().any(|down| down == addr) {
                return Err(CallError::Connect {
                    addr: addr.to_owned(),
                    source: std::io::ErrorKind::ConnectionRefused.into(),
                });
            }
            let code = cmd.code;
            // What a broker gets has gone over a wire: names are text.
            let answer = tokio::time::timeout(within, self.answer(addr, cmd)).await;
            answer.map_err(|_| CallError::Timeout {
                addr: addr.to_owned(),
                code,
                after: within,
            })
        })
    }
}

/// A record as a broker gives it.
pub fn record(offset: i64, properties: &str, body: &[u8]) -> Vec<u8> {
    let record = Record {
        body_crc: rmq_protocol::message::body_crc(body),
        queue_id: 0,
        flag: 0,
        queue_offset: offset,
        physical_offset: 1_000 + offset,
        sys_flag: 0,
        born_at: NOW,
        born_host: ([127, 0, 0, 1], 9).into(),
        stored_at: NOW,
        store_host: ([127, 0, 0, 1], 10911).into(),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body,
        topic: "t",
        properties: properties.as_bytes(),
    };
    let mut bytes = vec![0; record.encoded_len()];
    record.encode_into(&mut bytes).unwrap();
    bytes
}

pub type Client = MessagingServiceClient<Channel>;

/// A gateway in front of a fake cluster.
pub struct Stage {
    pub proxy: Proxy,
    pub fake: Arc<Fake>,
    pub clock: Arc<TestClock>,
    pub client: Client,
}

impl Stage {
    pub async fn new() -> Self {
        Self::with(&[("a", "h:1")], |_| {}).await
    }

    pub async fn with(
        brokers: &[(&'static str, &'static str)],
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let fake = Fake::new(brokers);
        fake.set(|state| {
            state.topics.insert("t".into(), None);
            state.topics.insert("fifo".into(), Some("FIFO".into()));
            state.topics.insert("mixed".into(), Some("MIXED".into()));
        });
        let clock = Arc::new(TestClock(AtomicI64::new(NOW)));
        let mut options = Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            name_servers: vec!["ns:9876".into()],
            ..Options::default()
        };
        change(&mut options);
        let (way, time): (Arc<dyn Upstream>, Arc<dyn Clock>) = (fake.clone(), clock.clone());
        let proxy = Proxy::start_with(options, time, way).await.unwrap();
        let client = connect(proxy.local_addr()).await;
        Self {
            proxy,
            fake,
            clock,
            client,
        }
    }
}

pub async fn connect(addr: SocketAddr) -> Client {
    let channel = Channel::from_shared(format!("http://{addr}"))
        .unwrap()
        .connect()
        .await
        .unwrap();
    MessagingServiceClient::new(channel).max_decoding_message_size(64 * 1024 * 1024)
}

/// A request of client `c`.
pub fn call<T>(message: T) -> Request<T> {
    call_of("c", message)
}

pub fn call_of<T>(client: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request
        .metadata_mut()
        .insert("x-mq-client-id", client.parse().unwrap());
    request
        .metadata_mut()
        .insert("x-mq-language", "RUST".parse().unwrap());
    request
}

pub fn named(name: &str) -> Option<v2::Resource> {
    Some(v2::Resource {
        resource_namespace: String::new(),
        name: name.to_owned(),
    })
}

pub fn endpoints() -> Option<v2::Endpoints> {
    Some(v2::Endpoints {
        scheme: v2::AddressScheme::IPv4.into(),
        addresses: vec![v2::Address {
            host: "198.51.100.7".into(),
            port: 18_081,
        }],
    })
}

pub fn message(topic: &str, id: &str) -> v2::Message {
    v2::Message {
        topic: named(topic),
        user_properties: [("colour".to_owned(), "blue".to_owned())].into(),
        system_properties: Some(v2::SystemProperties {
            message_id: id.to_owned(),
            tag: Some("a".into()),
            ..v2::SystemProperties::default()
        }),
        body: "hello".into(),
    }
}

pub fn receive(group: &str, topic: &str) -> v2::ReceiveMessageRequest {
    v2::ReceiveMessageRequest {
        group: named(group),
        message_queue: Some(v2::MessageQueue {
            topic: named(topic),
            id: -1,
            broker: Some(v2::Broker {
                name: "a".into(),
                ..v2::Broker::default()
            }),
            ..v2::MessageQueue::default()
        }),
        batch_size: 32,
        invisible_duration: Some(prost_types::Duration {
            seconds: 30,
            nanos: 0,
        }),
        ..v2::ReceiveMessageRequest::default()
    }
}

/// What a receive gave.
#[derive(Debug, Default)]
pub struct Received {
    pub status: Option<v2::Status>,
    pub messages: Vec<v2::Message>,
    pub delivered_at: Option<prost_types::Timestamp>,
}

impl Received {
    pub fn code(&self) -> Code {
        self.status.as_ref().unwrap().code()
    }

    pub fn handle(&self, index: usize) -> String {
        let system = self.messages[index].system_properties.as_ref().unwrap();
        system.receipt_handle.clone().unwrap()
    }
}

pub async fn received(
    client: &mut Client,
    request: Request<v2::ReceiveMessageRequest>,
) -> Result<Received, Status> {
    use v2::receive_message_response::Content;
    let mut stream = client.receive_message(request).await?.into_inner();
    let mut received = Received::default();
    while let Some(part) = stream.message().await? {
        match part.content.unwrap() {
            Content::Status(status) => {
                assert!(received.messages.is_empty(), "the status comes first");
                received.status = Some(status);
            }
            Content::Message(message) => received.messages.push(message),
            Content::DeliveryTimestamp(at) => received.delivered_at = Some(at),
        }
    }
    Ok(received)
}
