//! The client against our own listener and against peers that fail.

#[cfg(test)]
mod common;

use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{ECHO, IGNORE, LONG, PANIC, Server, Toy};
use rmq_net::{CallError, Client, ClientOptions};
use rmq_protocol::remoting::Command;

fn client() -> Client {
    Client::new(ClientOptions::default())
}

#[tokio::test]
async fn a_call_gets_its_own_answer_among_many() {
    let (server, client) = (Server::start(), client());
    let addr = server.addr();
    let mut calls = tokio::task::JoinSet::new();
    for i in 0..200 {
        let (client, addr) = (client.clone(), addr.clone());
        calls.spawn(async move {
            let request = Command::request(ECHO).with_body(format!("call {i}"));
            let answer = client.call(&addr, request, LONG).await.unwrap();
            assert_eq!(answer.body, format!("call {i}"));
        });
    }
    calls.join_all().await;
    assert_eq!(
        server.listener.stats().accepted,
        1,
        "one connection serves all calls"
    );
}

#[tokio::test]
async fn a_notice_arrives_without_an_answer() {
    let (server, client) = (Server::start(), client());
    client
        .notify(&server.addr(), Command::request(ECHO))
        .await
        .unwrap();
    client
        .call(&server.addr(), Command::request(ECHO), LONG)
        .await
        .unwrap();
    assert_eq!(server.toy.served.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_server_can_ask_its_client() {
    let server = Server::start();
    let toy = Arc::new(Toy::default());
    let options = ClientOptions {
        on_request: Some(toy.clone()),
        ..ClientOptions::default()
    };
    let client = Client::new(options);
    client
        .call(&server.addr(), Command::request(ECHO), LONG)
        .await
        .unwrap();
    let conn = server.toy.any_connection().unwrap();
    let answer = conn
        .call(Command::request(ECHO).with_body("back"), LONG)
        .await
        .unwrap();
    assert_eq!(&answer.body[..], b"back");
    assert_eq!(toy.served.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_without_a_service_refuses_requests() {
    let (server, client) = (Server::start(), client());
    client
        .call(&server.addr(), Command::request(ECHO), LONG)
        .await
        .unwrap();
    let conn = server.toy.any_connection().unwrap();
    let answer = conn.call(Command::request(40), LONG).await.unwrap();
    assert_eq!(answer.code, 3);
    assert_eq!(
        answer.remark.as_deref(),
        Some(" request type 40 not supported")
    );
}

#[tokio::test]
async fn a_call_without_an_answer_times_out_and_the_connection_stays() {
    let (server, client) = (Server::start(), client());
    let addr = server.addr();
    let within = Duration::from_millis(20);
    let error = client
        .call(&addr, Command::request(IGNORE), within)
        .await
        .unwrap_err();
    assert!(
        matches!(error, CallError::Timeout { code: IGNORE, .. }),
        "{error}"
    );
    assert!(!error.is_unsent());
    client
        .call(&addr, Command::request(ECHO), LONG)
        .await
        .unwrap();
    assert_eq!(server.listener.stats().accepted, 1);
}

#[tokio::test]
async fn a_lost_connection_fails_its_calls_and_is_opened_again() {
    let (server, client) = (Server::start(), client());
    let addr = server.addr();
    let waiting = client.call(&addr, Command::request(IGNORE), LONG);
    let (waiting, _) = tokio::join!(waiting, client.notify(&addr, Command::oneway(PANIC)));
    assert!(matches!(
        waiting.unwrap_err(),
        CallError::Closed { code: IGNORE, .. }
    ));
    client
        .call(&addr, Command::request(ECHO), LONG)
        .await
        .unwrap();
    assert_eq!(server.listener.stats().accepted, 2);
}

#[tokio::test]
async fn closing_an_address_fails_its_calls() {
    let (server, client) = (Server::start(), client());
    let addr = server.addr();
    client.connection(&addr).await.unwrap();
    let waiting = client.call(&addr, Command::request(IGNORE), LONG);
    let (waiting, ()) = tokio::join!(waiting, async { client.close(&addr) });
    assert!(matches!(waiting.unwrap_err(), CallError::Closed { .. }));
}

#[tokio::test]
async fn nobody_listening_is_an_error_that_names_the_address() {
    let addr = {
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let error = client()
        .call(&addr, Command::request(ECHO), LONG)
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Connect { .. }));
    assert!(
        error.is_unsent() && error.to_string().contains(&addr),
        "{error}"
    );
}

#[tokio::test]
async fn more_waiting_calls_than_the_bound_are_refused() {
    let server = Server::start();
    let client = Client::new(ClientOptions {
        pending_max: 1,
        ..ClientOptions::default()
    });
    let addr = server.addr();
    client.connection(&addr).await.unwrap();
    let first = client.call(&addr, Command::request(IGNORE), Duration::from_millis(50));
    let second = client.call(&addr, Command::request(ECHO), LONG);
    let (_, second) = tokio::join!(first, second);
    assert!(matches!(
        second.unwrap_err(),
        CallError::TooManyPending { max: 1, .. }
    ));
}

#[test]
fn a_connection_whose_runtime_is_gone_is_opened_again_on_the_next_one() {
    let (server, client) = (Server::start(), client());
    for _ in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let addr = server.addr();
        let call = client.call(&addr, Command::request(ECHO), LONG);
        assert_eq!(runtime.block_on(call).unwrap().code, 0);
    }
    assert_eq!(server.listener.stats().accepted, 3);
}

#[tokio::test]
async fn dropping_the_client_closes_its_connections() {
    let (server, client) = (Server::start(), client());
    client
        .call(&server.addr(), Command::request(ECHO), LONG)
        .await
        .unwrap();
    drop(client);
    while server.listener.stats().open > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_peer_that_accepts_and_stays_silent_costs_no_more_than_the_given_time() {
    // The kernel accepts into the backlog; nobody ever answers.
    let silent = StdListener::bind("127.0.0.1:0").unwrap();
    let addr = silent.local_addr().unwrap().to_string();
    let within = Duration::from_millis(20);
    let error = client()
        .call(&addr, Command::request(ECHO), within)
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
}
