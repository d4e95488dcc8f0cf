//! Starting, stopping, and what the figures say.

use std::sync::Arc;

use rmq_namesrv::{NameServer, NamesrvOptions, StartError};
use rmq_net::IoThreads;
use rmq_protocol::remoting::{Command, request_code as code};
use rmq_types::SystemClock;

use crate::rig::{Rig, connection, registration, route_query};

#[tokio::test]
async fn a_port_in_use_is_a_start_error_that_names_it() {
    let rig = Rig::start();
    let io = IoThreads::start(1, "ns-second").unwrap();
    let mut options = rig.server.options();
    options.kv_path = rig.kv_path.with_file_name("second.json");
    let error = NameServer::start(&io, options, Arc::new(SystemClock)).unwrap_err();
    assert!(matches!(error, StartError::Bind(_)));
    assert!(error.to_string().contains(&rig.addr), "{error}");
}

#[tokio::test]
async fn a_broken_kv_file_is_a_start_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = NamesrvOptions::new(folder.path());
    options.listen_port = 0;
    std::fs::write(&options.kv_path, b"{\"configTable\":").unwrap();
    let io = IoThreads::start(1, "ns-broken").unwrap();
    let error = NameServer::start(&io, options, Arc::new(SystemClock)).unwrap_err();
    assert!(matches!(error, StartError::Kv(_)), "{error}");
}

#[tokio::test]
async fn a_stopped_server_takes_no_more_connections() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    let addr = rig.addr.clone();
    let stopped = rig.restart().await;
    let call = connection()
        .call(&addr, route_query("T"), std::time::Duration::from_secs(1))
        .await;
    assert!(call.is_err());
    assert!(
        stopped.route("T").await.is_none(),
        "routes are not kept: brokers register again"
    );
}

#[tokio::test]
async fn figures_count_what_is_there_and_what_was_asked() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    rig.done(registration("a", 1)).await;
    rig.done(registration("b", 0)).await;
    rig.done(Command::request(code::GET_NAMESRV_CONFIG)).await;
    let metrics = rig.server.metrics();
    assert_eq!(
        (metrics.brokers, metrics.broker_groups, metrics.clusters),
        (3, 2, 1)
    );
    assert_eq!(metrics.topics, 2);
    let count = |request| {
        metrics
            .requests
            .iter()
            .find(|(code, _)| *code == request)
            .unwrap()
            .1
    };
    assert_eq!(count(code::REGISTER_BROKER), 3);
    assert_eq!(count(code::GET_NAMESRV_CONFIG), 1);
    assert_eq!(count(code::PUT_KV_CONFIG), 0);
}

#[tokio::test]
async fn members_are_told_of_a_new_smallest_id() {
    use std::sync::Mutex;

    use rmq_net::{Connection, ListenOptions, Listener, Outbox, Request, Service};
    use tokio::sync::mpsc;

    struct Ear(Mutex<mpsc::Sender<(i32, Option<String>)>>);
    impl Service for Ear {
        fn serve(&self, _: &Arc<Connection>, requests: &[Request<'_>], _: &mut Outbox) {
            for request in requests {
                let offline = request
                    .header
                    .ext
                    .get("offlineBrokerAddr")
                    .map(str::to_owned);
                let heard = (request.header.code, offline);
                self.0.lock().unwrap().try_send(heard).unwrap();
            }
        }
    }

    let rig = Rig::with("notifyMinBrokerIdChanged=true");
    let io = IoThreads::start(1, "ear").unwrap();
    let (sender, mut heard) = mpsc::channel(8);
    let ear = Arc::new(Ear(Mutex::new(sender)));
    let listener =
        Listener::bind(&io, ListenOptions::new("127.0.0.1:0".parse().unwrap()), ear).unwrap();
    let mut replica = registration("a", 1).with_ext("enableActingMaster", "true");
    replica
        .ext
        .set("brokerAddr", listener.local_addr().to_string());
    rig.done(replica).await;
    let master = connection();
    let coming = registration("a", 0).with_ext("enableActingMaster", "true");
    rig.call_over(&master, coming).await;
    assert_eq!(
        heard.recv().await,
        Some((code::NOTIFY_MIN_BROKER_ID_CHANGE, None))
    );
    master.close(&rig.addr);
    let leaving = (
        code::NOTIFY_MIN_BROKER_ID_CHANGE,
        Some("a-0:10911".to_owned()),
    );
    assert_eq!(heard.recv().await, Some(leaving));
}
