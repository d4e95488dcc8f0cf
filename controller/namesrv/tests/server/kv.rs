//! The KV configuration over the wire.

use rmq_protocol::{
    body::KvTable,
    remoting::{Command, request_code as code},
};

use crate::rig::Rig;

fn key(request: i32, namespace: &str, key: &str) -> Command {
    Command::request(request)
        .with_ext("namespace", namespace)
        .with_ext("key", key)
}

fn put(namespace: &str, name: &str, value: &str) -> Command {
    key(code::PUT_KV_CONFIG, namespace, name).with_ext("value", value)
}

fn get(namespace: &str, name: &str) -> Command {
    key(code::GET_KV_CONFIG, namespace, name)
}

#[tokio::test]
async fn values_are_put_read_listed_deleted_and_survive_a_restart() {
    let rig = Rig::start();
    rig.done(put("n", "kept", "\"1\" ü")).await;
    rig.done(put("n", "gone", "2")).await;
    assert_eq!(rig.done(get("n", "gone")).await.ext.get("value"), Some("2"));
    rig.done(key(code::DELETE_KV_CONFIG, "n", "gone")).await;
    let missing = rig.call(get("n", "gone")).await;
    assert_eq!(missing.code, 22);
    assert_eq!(
        missing.remark.as_deref(),
        Some("No config item, Namespace: n Key: gone")
    );

    let list = Command::request(code::GET_KVLIST_BY_NAMESPACE);
    let rig = rig.restart().await;
    let answer = rig.done(list.clone().with_ext("namespace", "n")).await;
    let table = KvTable::from_json(&answer.body).unwrap().table;
    assert_eq!(table.len(), 1);
    assert_eq!(table["kept"], "\"1\" ü");
    assert_eq!(rig.call(list.with_ext("namespace", "x")).await.code, 22);
}

#[tokio::test]
async fn names_that_broke_old_name_servers_are_refused_and_the_next_start_works() {
    let rig = Rig::start();
    rig.done(put("n", "old", "1")).await;
    let bare = Command::request(code::PUT_KV_CONFIG);
    let bad = [
        put("", "k", "v"),
        put("n", "", "v"),
        put(" ", "k", "v"),
        bare.clone()
            .with_ext("namespace", "n")
            .with_ext("value", "v"),
        bare.clone().with_ext("key", "k").with_ext("value", "v"),
        bare.with_ext("namespace", "n").with_ext("key", "k"),
    ];
    for request in bad {
        let answer = rig.call(request).await;
        assert_eq!(answer.code, 1);
        assert!(answer.remark.is_some_and(|remark| remark.contains("null")));
    }
    let rig = rig.restart().await;
    assert_eq!(rig.done(get("n", "old")).await.ext.get("value"), Some("1"));
}

#[tokio::test]
async fn a_value_that_cannot_be_kept_is_an_error_and_not_there() {
    let rig = Rig::start();
    rig.done(put("n", "k", "old")).await;
    let mut blocker = rig.kv_path.clone().into_os_string();
    blocker.push(".tmp");
    std::fs::create_dir(&blocker).unwrap();
    for request in [put("n", "k", "new"), key(code::DELETE_KV_CONFIG, "n", "k")] {
        let answer = rig.call(request).await;
        assert_eq!(answer.code, 1);
        assert!(answer.remark.unwrap().contains("could not be kept"));
    }
    assert_eq!(rig.done(get("n", "k")).await.ext.get("value"), Some("old"));
    std::fs::remove_dir(blocker).unwrap();
    let rig = rig.restart().await;
    assert_eq!(rig.done(get("n", "k")).await.ext.get("value"), Some("old"));
}

#[tokio::test]
async fn many_puts_at_once_are_all_kept() {
    let rig = Rig::start();
    let puts = (0..50).map(|at| put("n", &format!("k{at}"), "v"));
    let mut calls = tokio::task::JoinSet::new();
    for request in puts {
        let (client, addr) = (rig.client.clone(), rig.addr.clone());
        calls.spawn(async move {
            client
                .call(&addr, request, std::time::Duration::from_secs(10))
                .await
                .unwrap()
                .code
        });
    }
    assert!(calls.join_all().await.iter().all(|code| *code == 0));
    let rig = rig.restart().await;
    let list = Command::request(code::GET_KVLIST_BY_NAMESPACE).with_ext("namespace", "n");
    let answer = rig.done(list).await;
    assert_eq!(KvTable::from_json(&answer.body).unwrap().table.len(), 50);
}
