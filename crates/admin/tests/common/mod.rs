//! A cluster that exists only as far as admin calls can see: a NameServer and brokers over loopback,
//! their state open to the test.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "every test file uses a part of this module"
)]

pub mod broker;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmq_admin::{AdminClient, AdminOptions, Batch, Event, Follower, MessagePlace};
use rmq_net::{Connection, IoThreads, ListenOptions, Listener, Outbox, Request, Service};
use rmq_protocol::{
    body::{BrokerData, ClusterInfo, QueueData, TopicList, TopicRouteData},
    remoting::{Command, request_code as req, response_code as resp},
};

use rmq_types::{GroupName, QueueOffset, TopicName};

pub use broker::Broker;

/// What a fake does with one request.
pub trait Answering: Send + Sync + 'static {
    fn answer(&self, request: &Request<'_>) -> Command;
}

/// Answers requests one by one and remembers their codes.
pub struct Fake<A> {
    pub state: Arc<A>,
    pub asked: Arc<Mutex<Vec<i32>>>,
}

impl<A: Answering> Service for Fake<A> {
    fn serve(&self, _conn: &Arc<Connection>, requests: &[Request<'_>], out: &mut Outbox) {
        for request in requests {
            self.asked.lock().unwrap().push(request.header.code);
            let mut answer = self.state.answer(request);
            answer.opaque = request.header.opaque;
            if request.wants_reply() && answer.code != NO_ANSWER {
                out.send(&answer);
            }
        }
    }
}

/// Code of an answer that is not sent.
pub const NO_ANSWER: i32 = -77;

pub fn ok() -> Command {
    Command::success(0)
}

pub fn error(code: i32, remark: &str) -> Command {
    Command::response(0, code).with_remark(remark)
}

pub fn field<'a>(request: &'a Request<'_>, name: &str) -> &'a str {
    request.header.ext.get(name).unwrap_or_default()
}

/// One broker as the cluster knows it.
pub struct Member {
    pub broker: Arc<Broker>,
    pub asked: Arc<Mutex<Vec<i32>>>,
    pub addr: String,
    listener: Option<Listener>,
}

/// A broker as the NameServer knows it: cluster, broker, the master's address.
pub type Known = (String, Arc<Broker>, Option<String>);

/// The NameServer's state.
#[derive(Default)]
pub struct NameServer {
    pub brokers: Mutex<Vec<Known>>,
    pub removed: Mutex<BTreeSet<String>>,
    pub kv: Mutex<BTreeMap<String, String>>,
}

impl Answering for NameServer {
    fn answer(&self, request: &Request<'_>) -> Command {
        match request.header.code {
            req::GET_BROKER_CLUSTER_INFO => ok().with_body(self.cluster().to_json()),
            req::GET_ROUTEINFO_BY_TOPIC => self.route(field(request, "topic")),
            req::GET_ALL_TOPIC_LIST_FROM_NAMESERVER | req::GET_TOPICS_BY_CLUSTER => {
                let cluster = request.header.ext.get("cluster");
                let list = TopicList {
                    topic_list: self.topics(cluster),
                    ..TopicList::default()
                };
                ok().with_body(list.to_json())
            }
            req::DELETE_TOPIC_IN_NAMESRV => {
                self.removed
                    .lock()
                    .unwrap()
                    .insert(field(request, "topic").to_owned());
                ok()
            }
            req::GET_KV_CONFIG => match self.kv.lock().unwrap().get(field(request, "key")) {
                Some(value) => ok().with_ext("value", value.clone()),
                None => error(resp::QUERY_NOT_FOUND, "none"),
            },
            req::PUT_KV_CONFIG => {
                let (key, value) = (field(request, "key"), field(request, "value"));
                self.kv
                    .lock()
                    .unwrap()
                    .insert(key.to_owned(), value.to_owned());
                ok()
            }
            req::DELETE_KV_CONFIG => {
                self.kv.lock().unwrap().remove(field(request, "key"));
                ok()
            }
            _ => error(resp::REQUEST_CODE_NOT_SUPPORTED, "fake"),
        }
    }
}

impl NameServer {
    fn cluster(&self) -> ClusterInfo {
        let mut info = ClusterInfo::default();
        for (cluster, broker, addr) in self.brokers.lock().unwrap().iter() {
            let name = broker.name.clone();
            info.cluster_addr_table
                .entry(cluster.clone())
                .or_default()
                .insert(name.clone());
            info.broker_addr_table
                .insert(name.clone(), broker_data(cluster, name, addr.as_ref()));
        }
        info
    }

    fn route(&self, topic: &str) -> Command {
        let mut route = TopicRouteData::default();
        for (cluster, broker, addr) in self.brokers.lock().unwrap().iter() {
            if let Some(config) = broker.topics.lock().unwrap().get(topic) {
                let name = broker.name.clone();
                route
                    .broker_datas
                    .push(broker_data(cluster, name.clone(), addr.as_ref()));
                route.queue_datas.push(QueueData {
                    broker_name: name,
                    perm: config.perm,
                    read_queue_nums: config.read_queue_nums,
                    write_queue_nums: config.write_queue_nums,
                    topic_sys_flag: 0,
                });
            }
        }
        if route.queue_datas.is_empty() {
            return error(resp::TOPIC_NOT_EXIST, "No topic route info");
        }
        ok().with_body(route.to_json())
    }

    fn topics(&self, wanted: Option<&str>) -> BTreeSet<String> {
        let brokers = self.brokers.lock().unwrap();
        let mine = brokers
            .iter()
            .filter(|(cluster, _, _)| wanted.is_none_or(|w| w == cluster));
        mine.flat_map(|(_, broker, _)| {
            broker
                .topics
                .lock()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        })
        .collect()
    }
}

fn broker_data(cluster: &str, broker_name: String, addr: Option<&String>) -> BrokerData {
    BrokerData {
        broker_addrs: addr.iter().map(|addr| (0, (*addr).clone())).collect(),
        broker_name,
        cluster: cluster.to_owned(),
        ..BrokerData::default()
    }
}

/// A NameServer and its brokers.
pub struct Cluster {
    pub name_server: Arc<NameServer>,
    pub asked: Arc<Mutex<Vec<i32>>>,
    pub members: Vec<Member>,
    addr: String,
    _listener: Listener,
    io: IoThreads,
}

impl Cluster {
    /// One cluster `c` with brokers of these names.
    pub fn start(names: &[&str]) -> Self {
        let io = IoThreads::start(1, "fake-io").unwrap();
        let name_server = Arc::new(NameServer::default());
        let asked = Arc::default();
        let listener = listen(&io, &name_server, &asked);
        let addr = listener.local_addr().to_string();
        let mut cluster = Self {
            name_server,
            asked,
            members: Vec::new(),
            addr,
            _listener: listener,
            io,
        };
        for name in names {
            cluster.add(name, "c");
        }
        cluster
    }

    pub fn add(&mut self, name: &str, cluster: &str) {
        let broker = Arc::new(Broker::new(name));
        let asked = Arc::default();
        let listener = listen(&self.io, &broker, &asked);
        let addr = listener.local_addr().to_string();
        let known = (cluster.to_owned(), Arc::clone(&broker), Some(addr.clone()));
        self.name_server.brokers.lock().unwrap().push(known);
        self.members.push(Member {
            broker,
            asked,
            addr,
            listener: Some(listener),
        });
    }

    /// The broker's port is closed; the NameServer still has it.
    pub fn kill(&mut self, index: usize) {
        self.members[index].listener = None;
    }

    /// The group has no master at the NameServer.
    pub fn forget_master(&self, index: usize) {
        self.name_server.brokers.lock().unwrap()[index].2 = None;
    }

    pub fn broker(&self, index: usize) -> &Broker {
        &self.members[index].broker
    }

    pub fn asked(&self, index: usize) -> Vec<i32> {
        self.members[index].asked.lock().unwrap().clone()
    }

    pub fn addr(&self) -> String {
        self.addr.clone()
    }

    pub fn client(&self) -> AdminClient {
        client(&[self.addr()])
    }
}

fn listen<A: Answering>(io: &IoThreads, state: &Arc<A>, asked: &Arc<Mutex<Vec<i32>>>) -> Listener {
    let fake = Fake {
        state: Arc::clone(state),
        asked: Arc::clone(asked),
    };
    let options = ListenOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    Listener::bind(io, options, Arc::new(fake)).unwrap()
}

pub fn client(name_servers: &[String]) -> AdminClient {
    client_within(name_servers, Duration::from_secs(20))
}

pub fn client_within(name_servers: &[String], timeout: Duration) -> AdminClient {
    AdminClient::new(
        name_servers,
        AdminOptions {
            timeout,
            ..AdminOptions::default()
        },
    )
}

/// An address where nobody listens.
pub fn nobody() -> String {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().to_string()
}

/// The next messages; trouble fails the test.
pub async fn next_batch(follower: &mut Follower) -> Batch {
    loop {
        match follower.next().await.unwrap().expect("another event") {
            Event::Messages(batch) if batch.messages.is_empty() => {}
            Event::Messages(batch) => return batch,
            Event::Trouble(trouble) => panic!("{trouble:?}"),
        }
    }
}

pub fn topic(name: &str) -> TopicName {
    TopicName::parse(name).unwrap()
}

pub fn at(queue: u32, offset: u64) -> MessagePlace {
    MessagePlace {
        topic: topic("T"),
        broker: None,
        queue,
        offset: QueueOffset::new(offset),
    }
}

pub fn group(name: &str) -> GroupName {
    GroupName::parse(name).unwrap()
}
