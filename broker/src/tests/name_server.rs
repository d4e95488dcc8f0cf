//! Brokers and our own NameServer: what routes show after changes and outages. A topic deleted on one
//! of two brokers must leave that broker's route only.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use rmq_namesrv::{NameServer, NamesrvOptions};
use rmq_net::{Client, ClientOptions, IoThreads};
use rmq_protocol::{
    body::TopicRouteData,
    remoting::{Command, request_code as code},
};
use rmq_types::SystemClock;

use super::{TestBroker, ok};

/// Registers seldom: what arrives does so because of a change.
const SLOW: &str = "registerNameServerPeriod=60000";

fn name_server(io: &IoThreads, folder: &Path, port: u16) -> NameServer {
    let mut options = NamesrvOptions::new(folder);
    options.bind_address = [127, 0, 0, 1].into();
    options.listen_port = port;
    NameServer::start(io, options, Arc::new(SystemClock)).unwrap()
}

/// Names of the brokers in a topic's route.
async fn brokers(client: &Client, server: SocketAddr, topic: &str) -> Vec<String> {
    let ask = Command::request(code::GET_ROUTEINFO_BY_TOPIC).with_ext("topic", topic);
    let answer = client
        .call(&server.to_string(), ask, Duration::from_secs(30))
        .await;
    // No answer: it is starting, or its connection was that of the one before.
    let Ok(answer) = answer else {
        return Vec::new();
    };
    if answer.code != 0 {
        return Vec::new();
    }
    let route = TopicRouteData::from_json(&answer.body).unwrap();
    let mut names: Vec<String> = route
        .queue_datas
        .into_iter()
        .map(|q| q.broker_name)
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_deleted_on_one_broker_leaves_its_route_there_only() {
    let folder = tempfile::tempdir().unwrap();
    let io = IoThreads::start(1, "names").unwrap();
    let names = name_server(&io, folder.path(), 0);
    let server = names.local_addr();
    let lines = format!("{SLOW}\nnamesrvAddr={server}");
    let a = TestBroker::start_with(&format!("{lines}\nbrokerName=a")).await;
    let b = TestBroker::start_with(&format!("{lines}\nbrokerName=b")).await;
    let client = Client::new(ClientOptions::default());
    for broker in [&a, &b] {
        broker.topic("T", 1).await;
    }
    // A topic that was acknowledged is in the route.
    assert_eq!(brokers(&client, server, "T").await, ["a", "b"]);
    ok(a.ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", "T")])
        .await);
    while brokers(&client, server, "T").await != ["b"] {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_server_that_starts_anew_gets_all_routes_back_but_those_of_deleted_topics() {
    let folder = tempfile::tempdir().unwrap();
    let io = IoThreads::start(1, "names").unwrap();
    let names = name_server(&io, folder.path(), 0);
    let server = names.local_addr();
    let lines = format!("{SLOW}\nnamesrvAddr={server}");
    let broker = TestBroker::start_with(&lines).await;
    let client = Client::new(ClientOptions::default());
    for topic in ["kept", "gone"] {
        broker.topic(topic, 1).await;
    }
    names.shutdown().await;
    ok(broker
        .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", "gone")])
        .await);
    broker.topic("made", 1).await;
    let _names = name_server(&io, folder.path(), server.port());
    for topic in ["kept", "made"] {
        while brokers(&client, server, topic).await != ["b"] {}
    }
    assert!(brokers(&client, server, "gone").await.is_empty());
}
