//! What clients rely on around sends and pulls: the fast channel, namespaces, topics made by sends,
//! notices of who comes and goes.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use rmq_net::{Client, ClientOptions, Connection, Outbox, Request, Service};
use rmq_protocol::{
    body::TopicConfigAndQueueMapping,
    remoting::{Command, request_code as code},
};
use tokio::sync::Notify;

use super::{TestBroker, ok, pull_header, refused, send_header};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_port_two_below_takes_sends_and_refuses_pulls() {
    let mut broker = TestBroker::start().await;
    // That port may be somebody else's; the broker then runs without it.
    let fast = loop {
        match broker.fast_address() {
            Some(address) => break address,
            None => broker.restart().await,
        }
    };
    broker.topic("T", 1).await;
    broker.group("G").await;
    let client = broker.client();
    let send = Command::request(code::SEND_MESSAGE_V2)
        .with_header(&send_header(("T", 0)))
        .with_body("x");
    ok(client.call(&fast, send, PATIENCE).await.unwrap());
    let header = pull_header("G", ("T", 0), 0);
    let pull = Command::request(code::PULL_MESSAGE).with_header(&header);
    let answer = client.call(&fast, pull, PATIENCE).await.unwrap();
    refused(&answer, 3, "not supported");
    assert_eq!(broker.pull_as(&header).await.bodies, ["x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_a_client_with_a_namespace_are_those_of_its_namespace() {
    let broker = TestBroker::start_with("autoCreateTopicEnable=false").await;
    for topic in ["T", "N%T"] {
        broker.topic(topic, 1).await;
    }
    for group in ["G", "N%G"] {
        broker.group(group).await;
    }
    let inside = |command: Command| command.with_ext("nsd", "true").with_ext("ns", "N");
    let send = Command::request(code::SEND_MESSAGE_V2)
        .with_header(&send_header(("T", 0)))
        .with_body("inside");
    ok(broker.call(inside(send)).await);
    broker.send("T", "outside").await;
    let pull = Command::request(code::PULL_MESSAGE).with_header(&pull_header("G", ("T", 0), 0));
    let pulled = super::fixture::Pulled::from(broker.call(inside(pull)).await);
    assert_eq!(pulled.bodies, ["inside"]);
    assert_eq!(broker.pull("N%G", ("N%T", 0), 0).await.bodies, ["inside"]);
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies, ["outside"]);
    let commit = Command::request(code::UPDATE_CONSUMER_OFFSET)
        .with_ext("consumerGroup", "G")
        .with_ext("topic", "T")
        .with_ext("queueId", "0")
        .with_ext("commitOffset", "1");
    ok(broker.call(inside(commit)).await);
    let stored = async |group: &str, topic: &str| {
        let fields = [
            ("consumerGroup", group),
            ("topic", topic),
            ("queueId", "0"),
            ("setZeroIfNotFound", "false"),
        ];
        broker.ask_with(code::QUERY_CONSUMER_OFFSET, &fields).await
    };
    assert_eq!(ok(stored("N%G", "N%T").await).ext.get("offset"), Some("1"));
    refused(&stored("G", "T").await, 22, "Not found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_makes_its_topic_after_the_template_only_if_that_is_allowed() {
    let mut broker = TestBroker::start().await;
    broker.send("new", "x").await;
    let shown = ok(broker
        .ask_with(code::GET_TOPIC_CONFIG, &[("topic", "new")])
        .await);
    let made = TopicConfigAndQueueMapping::from_json(&shown.body).unwrap();
    assert_eq!(
        (made.read_queue_nums, made.write_queue_nums, made.perm),
        (4, 4, 6)
    );
    broker.restart_with("autoCreateTopicEnable=false").await;
    broker.send("new", "y").await;
    refused(&broker.send_to(("other", 0), "z", &[]).await, 17, "other");
    refused(
        &broker
            .ask_with(code::GET_TOPIC_CONFIG, &[("topic", "other")])
            .await,
        17,
        "other",
    );
}

/// Counts the notices that members changed.
#[derive(Default)]
struct Notices {
    groups: Mutex<Vec<String>>,
    came: Notify,
}

impl Service for Notices {
    fn serve(&self, _conn: &Arc<Connection>, requests: &[Request<'_>], _out: &mut Outbox) {
        for request in requests {
            if request.header.code == code::NOTIFY_CONSUMER_IDS_CHANGED {
                let group = request.header.ext.get("consumerGroup").unwrap_or_default();
                self.groups.lock().unwrap().push(group.to_owned());
                self.came.notify_one();
            }
        }
    }
}

impl Notices {
    async fn next(&self) -> String {
        loop {
            let first = self.groups.lock().unwrap().pop();
            match first {
                Some(group) => return group,
                None => self.came.notified().await,
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_a_group_hear_when_one_comes_and_when_its_connection_ends() {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    let notices = Arc::new(Notices::default());
    let listening: Arc<dyn Service> = Arc::<Notices>::clone(&notices);
    let first = Client::new(ClientOptions {
        on_request: Some(listening),
        ..ClientOptions::default()
    });
    let beat = super::fixture::heartbeat("first", "G", &["T"]).to_json();
    let beat = Command::request(code::HEART_BEAT).with_body(beat);
    ok(first.call(broker.address(), beat, PATIENCE).await.unwrap());
    // Of itself.
    assert_eq!(notices.next().await, "G");
    let members = async || {
        let answer = broker
            .ask_with(code::GET_CONSUMER_LIST_BY_GROUP, &[("consumerGroup", "G")])
            .await;
        String::from_utf8_lossy(&ok(answer).body).into_owned()
    };
    let second = broker
        .consumer("second", ("G", &["T"]), |_| Command::response(0, 0))
        .await;
    assert_eq!(notices.next().await, "G");
    assert!(members().await.contains("second"));
    drop(second);
    assert_eq!(notices.next().await, "G");
    assert!(!members().await.contains("second"));
}
