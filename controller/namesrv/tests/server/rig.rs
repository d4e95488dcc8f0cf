//! A NameServer on a free port with a clock of its own, and requests in short form.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use rmq_namesrv::{NameServer, NamesrvOptions};
use rmq_net::{Client, ClientOptions, IoThreads};
use rmq_protocol::{
    body::{
        ClusterInfo, DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigWrapper,
        TopicRouteData,
    },
    remoting::{Command, request_code as code},
};
use rmq_types::{Clock, Timestamp};

const WITHIN: Duration = Duration::from_secs(10);

/// A clock that tests move.
#[derive(Debug, Default)]
pub(crate) struct HandClock(AtomicI64);

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

impl HandClock {
    pub(crate) fn advance(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

pub(crate) struct Rig {
    pub(crate) server: NameServer,
    pub(crate) clock: Arc<HandClock>,
    pub(crate) client: Client,
    pub(crate) addr: String,
    pub(crate) kv_path: PathBuf,
    folder: tempfile::TempDir,
    io: IoThreads,
}

impl Rig {
    pub(crate) fn start() -> Self {
        Self::with("")
    }

    /// Started with lines of a Java configuration file.
    pub(crate) fn with(lines: &str) -> Self {
        Self::on(tempfile::tempdir().unwrap(), lines)
    }

    fn on(folder: tempfile::TempDir, lines: &str) -> Self {
        let text = format!("bindAddress=127.0.0.1\nlistenPort=0\n{lines}");
        let options = NamesrvOptions::new(folder.path())
            .parse(&text)
            .unwrap()
            .options;
        let kv_path = options.kv_path.clone();
        let io = IoThreads::start(2, "ns-test").unwrap();
        let clock = Arc::new(HandClock::default());
        let server = NameServer::start(&io, options, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
        let addr = server.local_addr().to_string();
        Self {
            server,
            clock,
            client: connection(),
            addr,
            kv_path,
            folder,
            io,
        }
    }

    /// Stops and starts on the same folder.
    pub(crate) async fn restart(self) -> Self {
        let Self {
            server, folder, io, ..
        } = self;
        server.shutdown().await;
        drop(io);
        Self::on(folder, "")
    }

    pub(crate) async fn call(&self, cmd: Command) -> Command {
        self.call_over(&self.client, cmd).await
    }

    pub(crate) async fn call_over(&self, client: &Client, cmd: Command) -> Command {
        client.call(&self.addr, cmd, WITHIN).await.unwrap()
    }

    /// The call must succeed.
    pub(crate) async fn done(&self, cmd: Command) -> Command {
        let answer = self.call(cmd).await;
        assert_eq!(answer.code, 0, "{:?}", answer.remark);
        answer
    }

    pub(crate) async fn route(&self, topic: &str) -> Option<TopicRouteData> {
        let answer = self.call(route_query(topic)).await;
        match answer.code {
            0 => Some(TopicRouteData::from_json(&answer.body).unwrap()),
            17 => None,
            other => panic!("code {other}: {:?}", answer.remark),
        }
    }

    pub(crate) async fn clusters(&self) -> ClusterInfo {
        let answer = self
            .done(Command::request(code::GET_BROKER_CLUSTER_INFO))
            .await;
        ClusterInfo::from_json(&answer.body).unwrap()
    }
}

/// A client: one connection of its own.
pub(crate) fn connection() -> Client {
    Client::new(ClientOptions::default())
}

/// Polls until the condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let poll = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(WITHIN, poll)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

pub(crate) fn route_query(topic: &str) -> Command {
    Command::request(code::GET_ROUTEINFO_BY_TOPIC).with_ext("topic", topic)
}

/// Fields that name broker `name` with id `id` in cluster `c`.
pub(crate) fn broker(request: i32, name: &str, id: u64) -> Command {
    Command::request(request)
        .with_ext("brokerName", name)
        .with_ext("brokerAddr", format!("{name}-{id}:10911"))
        .with_ext("clusterName", "c")
        .with_ext("brokerId", id.to_string())
}

pub(crate) fn body(counter: i64, topics: &[&str]) -> RegisterBrokerBody {
    let table: BTreeMap<String, TopicConfig> = topics
        .iter()
        .map(|topic| ((*topic).to_owned(), TopicConfig::named(*topic)))
        .collect();
    RegisterBrokerBody {
        topic_config_serialize_wrapper: TopicConfigWrapper {
            data_version: DataVersion {
                counter,
                state_version: 0,
                timestamp: 1,
            },
            topic_config_table: table,
            ..TopicConfigWrapper::default()
        },
        ..RegisterBrokerBody::default()
    }
}

/// A registration with topics `T` and `U` at version 1.
pub(crate) fn registration(name: &str, id: u64) -> Command {
    registration_of(name, id, 1, &["T", "U"])
}

pub(crate) fn registration_of(name: &str, id: u64, counter: i64, topics: &[&str]) -> Command {
    broker(code::REGISTER_BROKER, name, id)
        .with_ext("haServerAddr", format!("{name}-{id}:10912"))
        .with_body(body(counter, topics).to_json())
}
