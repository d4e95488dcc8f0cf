//! A broker for tests: small files, no NameServer, port 0 on loopback, one client connection.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use rmq_net::{
    Client, ClientOptions, Connection, IoThreads, ListenOptions, Listener, Outbox, Request, Service,
};
use rmq_protocol::{
    body::{
        ConsumerData, HeartbeatData, KvTable, MessageModel, ProducerData, SubscriptionData,
        TopicConfig,
    },
    header::{CreateTopic, PULL_SUSPEND, PullMessage, SendMessageV2},
    message::{Record, properties},
    remoting::{Command, request_code as code},
};
use rmq_store::OpenError;
use rmq_types::{Clock as _, SystemClock};

use crate::{
    Broker, StartError,
    config::{Loaded, parse_properties},
};

/// Longest wait for any answer; a test that meets it fails.
const PATIENCE: Duration = Duration::from_secs(30);

const SMALL: &str = "brokerClusterName=c\nbrokerName=b\nbindAddress=127.0.0.1\nbrokerIP1=127.0.0.1\n\
    listenPort=0\nmappedFileSizeCommitLog=4194304\nmappedFileSizeConsumeQueue=20000\n\
    maxHashSlotNum=1000\nmaxIndexNum=4000\nserverSelectorThreads=1\n\
    diskMaxUsedSpaceRatio=99\ndiskSpaceCleanForciblyRatio=99\ndiskSpaceWarningLevelRatio=99\n";

/// A running broker with its folder.
pub(super) struct TestBroker {
    broker: Option<Broker>,
    client: Client,
    address: String,
    settings: String,
    // Dropped last: the broker writes into it.
    folder: tempfile::TempDir,
}

/// The answer of a request that must have succeeded.
#[track_caller]
pub(super) fn ok(answer: Command) -> Command {
    assert_eq!(answer.code, 0, "refused: {:?}", answer.remark);
    answer
}

/// Checks that a request was refused with a code, and why.
#[track_caller]
pub(super) fn refused(answer: &Command, code: i32, word: &str) {
    let remark = answer.remark.as_deref().unwrap_or_default();
    assert_eq!(answer.code, code, "remark: {remark}");
    assert!(remark.contains(word), "{word:?} is not in {remark:?}");
}

/// What a pull gave.
pub(super) struct Pulled {
    /// The answer.
    pub(super) answer: Command,
    /// Bodies of the messages.
    pub(super) bodies: Vec<String>,
    /// Log offset of each.
    pub(super) offsets: Vec<i64>,
    /// Time at which each was stored.
    pub(super) stored_at: Vec<i64>,
    /// System flag of each.
    pub(super) sys_flags: Vec<i32>,
    /// Properties of each.
    pub(super) texts: Vec<Vec<u8>>,
    /// `nextBeginOffset`.
    pub(super) next: i64,
}

impl Pulled {
    /// A property of a message.
    pub(super) fn property(&self, index: usize, name: &str) -> Option<&str> {
        properties::get_str(&self.texts[index], name)
    }
}

/// A pull that does not wait, of everything, whether or not the group is online.
pub(super) fn pull_header<'a>(
    group: &'a str,
    (topic, queue_id): (&'a str, i32),
    offset: i64,
) -> PullMessage<'a> {
    PullMessage::of_all(group, topic, queue_id, offset, 32)
}

/// A send without properties.
pub(super) fn send_header((topic, queue_id): (&str, i32)) -> SendMessageV2<'_> {
    SendMessageV2 {
        producer_group: "p".into(),
        topic: topic.into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: 4,
        queue_id,
        sys_flag: 0,
        born_timestamp: 1_700_000_000_000,
        flag: 0,
        properties: None,
        reconsume_times: Some(0),
        unit_mode: false,
        max_reconsume_times: None,
        batch: false,
        broker_name: None,
    }
}

impl TestBroker {
    /// A broker with defaults, made small.
    pub(super) async fn start() -> Self {
        Self::start_with("").await
    }

    /// As [`TestBroker::start`], with more lines of `broker.conf`.
    pub(super) async fn start_with(lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display();
        let settings = format!("{SMALL}storePathRootDir={root}\n{lines}");
        let broker = run(&settings).await;
        let address = broker.local_addr().to_string();
        let client = Client::new(ClientOptions::default());
        Self {
            broker: Some(broker),
            client,
            address,
            settings,
            folder,
        }
    }

    /// As [`TestBroker::restart`], with more lines of `broker.conf`.
    pub(super) async fn restart_with(&mut self, lines: &str) {
        self.stop().await;
        self.start_again_with(lines).await;
    }

    /// Stops in order and starts again on the same folder.
    pub(super) async fn restart(&mut self) {
        self.stop().await;
        self.start_again().await;
    }

    /// The folder of the store.
    pub(super) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Stops in order while requests may be on their way.
    pub(super) async fn stop(&mut self) {
        self.broker.take().unwrap().shutdown().await.unwrap();
    }

    /// Ends it as a kill does: nothing is written any more.
    pub(super) fn kill(&mut self) {
        drop(self.broker.take().unwrap());
    }

    /// Starts again after [`TestBroker::stop`].
    pub(super) async fn start_again(&mut self) {
        let broker = run(&self.settings).await;
        self.address = broker.local_addr().to_string();
        self.broker = Some(broker);
    }

    /// As [`TestBroker::start_again`], with more lines of `broker.conf`.
    pub(super) async fn start_again_with(&mut self, lines: &str) {
        self.settings.push('\n');
        self.settings.push_str(lines);
        self.start_again().await;
    }

    /// The client that the other calls use.
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Where its fast channel listens, if its port was free.
    pub(super) fn fast_address(&self) -> Option<String> {
        let fast = self.broker.as_ref().unwrap().endpoints().fast?;
        Some(fast.to_string())
    }

    /// Where it listens.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Asks over the one connection.
    pub(super) async fn call(&self, command: Command) -> Command {
        let code = command.code;
        let outcome = self.client.call(&self.address, command, PATIENCE).await;
        outcome.unwrap_or_else(|error| panic!("request {code}: {error}"))
    }

    /// Asks without fields or body.
    pub(super) async fn ask(&self, code: i32) -> Command {
        self.call(Command::request(code)).await
    }

    /// Asks with text fields.
    pub(super) async fn ask_with(&self, code: i32, fields: &[(&'static str, &str)]) -> Command {
        let mut command = Command::request(code);
        for (name, value) in fields {
            command = command.with_ext(name, *value);
        }
        self.call(command).await
    }

    /// Asks with a body.
    pub(super) async fn ask_body(&self, code: i32, body: impl Into<Bytes>) -> Command {
        self.call(Command::request(code).with_body(body)).await
    }

    /// Tries to create or change a topic.
    pub(super) async fn put_topic(&self, topic: TopicConfig, attributes: Option<&str>) -> Command {
        let header = CreateTopic {
            topic: topic.topic_name.into(),
            default_topic: "TBW102".into(),
            read_queue_nums: topic.read_queue_nums,
            write_queue_nums: topic.write_queue_nums,
            perm: topic.perm,
            topic_filter_type: topic.topic_filter_type.as_str().into(),
            topic_sys_flag: Some(topic.topic_sys_flag),
            order: topic.order,
            attributes: attributes.map(Into::into),
            force: None,
        };
        self.call(Command::request(code::UPDATE_AND_CREATE_TOPIC).with_header(&header))
            .await
    }

    /// Creates a topic with `queues` queues.
    pub(super) async fn topic(&self, name: &str, queues: i32) {
        let topic = TopicConfig {
            read_queue_nums: queues,
            write_queue_nums: queues,
            ..TopicConfig::named(name)
        };
        ok(self.put_topic(topic, None).await);
    }

    /// Creates a group.
    pub(super) async fn group(&self, name: &str) {
        let body = format!(r#"{{"groupName":"{name}"}}"#);
        ok(self
            .ask_body(code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body)
            .await);
    }

    /// Sends to a queue; properties as `name=value` pairs.
    pub(super) async fn send_to(
        &self,
        (topic, queue_id): (&str, i32),
        body: &str,
        pairs: &[(&str, &str)],
    ) -> Command {
        let mut text = Vec::new();
        for (name, value) in pairs {
            properties::push(&mut text, name, value.as_bytes());
        }
        let text = String::from_utf8(text).unwrap();
        let mut header = send_header((topic, queue_id));
        header.properties = Some(text.into());
        self.send_as(&header, body.to_owned()).await
    }

    /// Sends as a header says.
    pub(super) async fn send_as(
        &self,
        header: &SendMessageV2<'_>,
        body: impl Into<Bytes>,
    ) -> Command {
        let command = Command::request(code::SEND_MESSAGE_V2).with_header(header);
        self.call(command.with_body(body)).await
    }

    /// Sends to queue 0.
    pub(super) async fn send(&self, topic: &str, body: &str) -> Command {
        ok(self.send_to((topic, 0), body, &[]).await)
    }

    /// Pulls without waiting, whether or not the group is online.
    pub(super) async fn pull(
        &self,
        group: &str,
        (topic, queue): (&str, i32),
        offset: i64,
    ) -> Pulled {
        self.pull_for(group, (topic, queue), offset, 0).await
    }

    /// Pulls, waiting up to `millis` for a message.
    pub(super) async fn pull_for(
        &self,
        group: &str,
        from: (&str, i32),
        offset: i64,
        millis: i64,
    ) -> Pulled {
        let mut header = pull_header(group, from, offset);
        if millis > 0 {
            header.sys_flag |= PULL_SUSPEND;
        }
        header.suspend_timeout_millis = millis;
        self.pull_as(&header).await
    }

    /// Pulls as a header says.
    pub(super) async fn pull_as(&self, header: &PullMessage<'_>) -> Pulled {
        let command = Command::request(code::PULL_MESSAGE).with_header(header);
        Pulled::from(self.call(command).await)
    }

    /// A broker with three messages in queue 0 of two of topic `T`, of which group `G` has
    /// consumed one.
    pub(super) async fn with_backlog() -> Self {
        let broker = Self::start().await;
        broker.topic("T", 2).await;
        broker.group("G").await;
        for body in ["1", "2", "3"] {
            broker.send("T", body).await;
        }
        broker.commit("G", ("T", 0), 1).await;
        broker
    }

    /// Sends the message at an offset of the log back for a group.
    pub(super) async fn send_back(&self, group: &str, offset: &str, level: &str) -> Command {
        let fields = [("offset", offset), ("group", group), ("delayLevel", level)];
        self.ask_with(code::CONSUMER_SEND_MSG_BACK, &fields).await
    }

    /// Commits an offset.
    pub(super) async fn commit(&self, group: &str, (topic, queue): (&str, i32), offset: i64) {
        let fields = [
            ("consumerGroup", group),
            ("topic", topic),
            ("queueId", &queue.to_string()),
            ("commitOffset", &offset.to_string()),
        ];
        ok(self.ask_with(code::UPDATE_CONSUMER_OFFSET, &fields).await);
    }

    /// Sends without waiting for an answer; a later request of the same connection comes after it.
    pub(super) async fn notify(&self, command: Command) {
        self.client.notify(&self.address, command).await.unwrap();
    }

    /// The broker's clock, in milliseconds.
    #[expect(
        clippy::unused_self,
        reason = "the clock is that of the broker under test"
    )]
    pub(super) fn now(&self) -> i64 {
        SystemClock.now().millis()
    }

    /// The metrics page.
    pub(super) fn metrics(&self) -> String {
        self.broker.as_ref().unwrap().metrics_text()
    }

    /// One figure of the run-time table.
    pub(super) async fn runtime(&self, key: &str) -> String {
        let answer = ok(self.ask(code::GET_BROKER_RUNTIME_INFO).await);
        let table = KvTable::from_json(&answer.body).unwrap().table;
        table
            .get(key)
            .unwrap_or_else(|| panic!("no figure {key}"))
            .clone()
    }

    /// Beats once over the shared connection: a consumer of `topics`, and a producer of group `p`.
    pub(super) async fn beat(&self, client_id: &str, group: &str, topics: &[&str]) {
        ok(self
            .ask_body(
                code::HEART_BEAT,
                heartbeat(client_id, group, topics).to_json(),
            )
            .await);
    }

    /// As [`TestBroker::beat`], of a consumer that gets every message itself.
    pub(super) async fn broadcast(&self, client_id: &str, group: &str, topics: &[&str]) {
        let mut data = heartbeat(client_id, group, topics);
        for consumer in &mut data.consumer_data_set {
            consumer.message_model = MessageModel::Broadcasting;
        }
        ok(self.ask_body(code::HEART_BEAT, data.to_json()).await);
    }

    /// A consumer with a connection of its own, whose questions `service` answers.
    pub(super) async fn consumer(
        &self,
        client_id: &str,
        (group, topics): (&str, &[&str]),
        answer: impl Fn(&Command) -> Command + Send + Sync + 'static,
    ) -> Consumer {
        let service: Arc<dyn Service> = Arc::new(Answering(Box::new(answer)));
        let options = ClientOptions {
            on_request: Some(service),
            ..ClientOptions::default()
        };
        let client = Client::new(options);
        let beat = Command::request(code::HEART_BEAT)
            .with_body(heartbeat(client_id, group, topics).to_json());
        ok(client.call(&self.address, beat, PATIENCE).await.unwrap());
        Consumer { _client: client }
    }
}

/// A consumer that stays online while it is held.
pub(super) struct Consumer {
    _client: Client,
}

/// A peer of the broker, such as a NameServer, that answers as the test says.
pub(super) struct Peer {
    listener: Listener,
    // Dropped last: the connections' tasks run here.
    _io: IoThreads,
}

impl Peer {
    /// Listens on a free port.
    pub(super) fn start(answer: impl Fn(&Command) -> Command + Send + Sync + 'static) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), answer)
    }

    /// Listens where an earlier one did.
    pub(super) fn start_at(
        address: SocketAddr,
        answer: impl Fn(&Command) -> Command + Send + Sync + 'static,
    ) -> Self {
        let io = IoThreads::start(1, "peer").unwrap();
        let service = Arc::new(Answering(Box::new(answer)));
        let listener = Listener::bind(&io, ListenOptions::new(address), service).unwrap();
        Self { listener, _io: io }
    }

    /// Closes its connections and goes away.
    pub(super) async fn stop(self) -> SocketAddr {
        let address = self.listener.local_addr();
        self.listener.shutdown().await;
        address
    }

    /// Where it listens.
    pub(super) fn address(&self) -> String {
        self.listener.local_addr().to_string()
    }
}

struct Answering(Box<dyn Fn(&Command) -> Command + Send + Sync>);

impl Service for Answering {
    fn serve(&self, _conn: &Arc<Connection>, requests: &[Request<'_>], out: &mut Outbox) {
        for request in requests.iter().filter(|request| request.wants_reply()) {
            let body = Bytes::copy_from_slice(request.body);
            let mut answer = (self.0)(&Command::from_parts(request.header.clone(), body));
            answer.opaque = request.header.opaque;
            out.send(&answer);
        }
    }
}

impl From<Command> for Pulled {
    fn from(answer: Command) -> Self {
        let (mut bodies, mut offsets) = (Vec::new(), Vec::new());
        let (mut stored_at, mut sys_flags, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        let mut rest: &[u8] = if answer.code == 0 { &answer.body } else { &[] };
        while !rest.is_empty() {
            let (record, length) = Record::decode(rest).unwrap();
            bodies.push(String::from_utf8(record.body.to_vec()).unwrap());
            offsets.push(record.physical_offset);
            stored_at.push(record.stored_at);
            sys_flags.push(record.sys_flag);
            texts.push(record.properties.to_vec());
            rest = &rest[length..];
        }
        let next = answer
            .ext
            .get("nextBeginOffset")
            .and_then(|text| text.parse().ok());
        Self {
            bodies,
            offsets,
            stored_at,
            sys_flags,
            texts,
            next: next.unwrap_or(-1),
            answer,
        }
    }
}

/// A heartbeat of a consumer of `topics`, and of a producer of group `p`.
pub(super) fn heartbeat(client_id: &str, group: &str, topics: &[&str]) -> HeartbeatData {
    let subscription = |topic: &&str| SubscriptionData {
        topic: (*topic).to_owned(),
        sub_string: "*".to_owned(),
        sub_version: 1,
        ..SubscriptionData::default()
    };
    HeartbeatData {
        client_id: client_id.to_owned(),
        consumer_data_set: vec![ConsumerData {
            group_name: group.to_owned(),
            message_model: MessageModel::Clustering,
            subscription_data_set: topics.iter().map(subscription).collect(),
            ..ConsumerData::default()
        }],
        producer_data_set: vec![ProducerData {
            group_name: "p".to_owned(),
        }],
        ..HeartbeatData::default()
    }
}

async fn run(settings: &str) -> Broker {
    loop {
        let mut loaded = Loaded::default();
        parse_properties(&mut loaded, settings).unwrap();
        match Broker::start(loaded.settings, Arc::new(SystemClock), Arc::default()).await {
            // Another test took the free port before the broker did.
            Err(StartError::Bind(_)) => {}
            // The one that was killed still lets go of its folder.
            Err(StartError::Store(OpenError::InUse(_))) => tokio::task::yield_now().await,
            other => return other.unwrap(),
        }
    }
}
