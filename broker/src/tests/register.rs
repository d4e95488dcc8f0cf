//! Registration (103) as a NameServer sees it: at once again after a lost connection, topics in part,
//! the whole table marked as such.

use rmq_protocol::{
    body::{RegisterBrokerBody, TopicConfigWrapper},
    remoting::{Command, request_code as code, response_code},
};
use tokio::sync::mpsc;

use super::{Peer, TestBroker, ok};

/// A registration: is it the whole table, and its topics.
struct Seen {
    complete: bool,
    wrapper: TopicConfigWrapper,
}

impl Seen {
    fn names(&self, topic: &str) -> bool {
        self.wrapper.topic_config_table.contains_key(topic)
    }
}

/// A NameServer that takes every registration and hands it to the test.
fn name_server() -> (
    impl Fn(&Command) -> Command + Clone + Send + Sync + 'static,
    mpsc::Receiver<Seen>,
) {
    let (seen, registrations) = mpsc::channel(64);
    let answer = move |request: &Command| {
        if request.code == code::REGISTER_BROKER {
            let body = RegisterBrokerBody::decode(&request.body, false, 0, request.version);
            let _ = seen.try_send(Seen {
                complete: request.ext.is_true("topicTableComplete"),
                wrapper: body.unwrap().topic_config_serialize_wrapper,
            });
        }
        Command::response(0, response_code::SUCCESS)
    };
    (answer, registrations)
}

const SLOW: &str = "registerNameServerPeriod=60000\nnamesrvAddr=";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_server_that_comes_back_gets_the_whole_table_long_before_the_next_period() {
    let (answer, mut seen) = name_server();
    let peer = Peer::start(answer.clone());
    let broker = TestBroker::start_with(&format!("{SLOW}{}", peer.address())).await;
    assert!(seen.recv().await.unwrap().complete);
    broker.topic("kept", 1).await;
    broker.topic("gone", 1).await;
    for topic in ["kept", "gone"] {
        let part = seen.recv().await.unwrap();
        assert!(!part.complete && part.names(topic));
    }
    let address = peer.stop().await;
    ok(broker
        .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", "gone")])
        .await);
    let _again = Peer::start_at(address, answer);
    let whole = seen.recv().await.unwrap();
    assert!(whole.complete && whole.names("kept") && !whole.names("gone"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_is_made_at_once_while_a_name_server_is_away_and_the_other_hears_of_it() {
    let (answer, mut seen) = name_server();
    let (here, away) = (Peer::start(answer.clone()), Peer::start(answer.clone()));
    let list = format!("{};{}", here.address(), away.address());
    let broker = TestBroker::start_with(&format!("{SLOW}{list}")).await;
    for _ in 0..2 {
        seen.recv().await.unwrap();
    }
    let address = away.stop().await;
    broker.topic("T", 1).await;
    assert!(seen.recv().await.unwrap().names("T"));
    let _again = Peer::start_at(address, answer);
    while !seen.recv().await.unwrap().complete {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_topic_is_told_with_the_whole_table_at_once() {
    let (answer, mut seen) = name_server();
    let peer = Peer::start(answer);
    let broker = TestBroker::start_with(&format!("{SLOW}{}", peer.address())).await;
    assert!(seen.recv().await.unwrap().complete);
    broker.topic("T", 1).await;
    assert!(seen.recv().await.unwrap().names("T"));
    ok(broker
        .ask_with(code::DELETE_TOPIC_IN_BROKER, &[("topic", "T")])
        .await);
    let whole = seen.recv().await.unwrap();
    assert!(whole.complete && !whole.names("T"));
}

/// A list of NameServers changed at run time has had no effect in other brokers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_list_of_name_servers_is_followed_at_once_and_the_dropped_one_is_left() {
    let (left, mut leaves) = mpsc::channel(4);
    let old = Peer::start(move |request| {
        if request.code == code::UNREGISTER_BROKER {
            left.try_send(()).unwrap();
        }
        Command::response(0, response_code::SUCCESS)
    });
    let (answer, mut seen) = name_server();
    let new = Peer::start(answer);
    let broker = TestBroker::start_with(&format!("{SLOW}{}", old.address())).await;
    broker.topic("T", 1).await;
    let text = format!("namesrvAddr={}", new.address());
    ok(broker.ask_body(code::UPDATE_BROKER_CONFIG, text).await);
    let whole = seen.recv().await.unwrap();
    assert!(whole.complete && whole.names("T"));
    leaves.recv().await.unwrap();
}
