//! Stopping and starting: a stop must not lose sends that were answered, and a broker that cannot
//! listen must not say it is ready.

use std::{
    collections::BTreeSet,
    net::TcpListener,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmq_protocol::remoting::{Command, request_code as code};
use rmq_types::SystemClock;
use tokio::task::JoinSet;

use super::{TestBroker, send_header};
use crate::{
    Broker, StartError,
    config::{Loaded, parse_properties},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_send_that_was_taken_while_the_broker_stops_is_lost() {
    let mut broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    let taken = Arc::new(Mutex::new(BTreeSet::new()));
    let mut senders = JoinSet::new();
    for sender in 0..4 {
        let (client, address) = (broker.client(), broker.address().to_owned());
        let taken = Arc::clone(&taken);
        senders.spawn(async move {
            for number in 0.. {
                let body = format!("{sender}-{number}");
                let command = Command::request(code::SEND_MESSAGE_V2)
                    .with_header(&send_header(("T", 0)))
                    .with_body(body.clone());
                match client
                    .call(&address, command, Duration::from_secs(30))
                    .await
                {
                    Ok(answer) if answer.code == 0 => taken.lock().unwrap().insert(body),
                    // Told to go elsewhere, or the connection ended.
                    Ok(answer) => return Some(answer.code),
                    Err(_) => return None,
                };
            }
            None
        });
    }
    while taken.lock().unwrap().len() < 200 {
        tokio::task::yield_now().await;
    }
    broker.stop().await;
    while let Some(ended) = senders.join_next().await {
        assert!(matches!(ended.unwrap(), None | Some(14)));
    }
    broker.start_again().await;
    let mut offset = 0;
    let mut found = BTreeSet::new();
    loop {
        let pulled = broker.pull("G", ("T", 0), offset).await;
        if pulled.bodies.is_empty() {
            break;
        }
        found.extend(pulled.bodies);
        offset = pulled.next;
    }
    assert!(taken.lock().unwrap().is_subset(&found));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_whose_port_is_taken_does_not_start_and_says_which() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut loaded = Loaded::default();
    let text = format!(
        "bindAddress=127.0.0.1\nlistenPort={port}\nstorePathRootDir={}\n\
         mappedFileSizeCommitLog=4194304\nmappedFileSizeConsumeQueue=20000\n",
        folder.path().display()
    );
    parse_properties(&mut loaded, &text).unwrap();
    let refused = Broker::start(loaded.settings, Arc::new(SystemClock), Arc::default()).await;
    let error = refused.expect_err("the port is taken");
    assert!(matches!(error, StartError::Bind(_)), "{error}");
    assert!(error.to_string().contains(&port.to_string()), "{error}");
    let mut loaded = Loaded::default();
    assert!(parse_properties(&mut loaded, "listenPort=70000").is_err());
}
