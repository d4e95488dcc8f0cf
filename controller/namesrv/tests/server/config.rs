//! Options over the wire: a closed list of keys, and what reads back is what runs.

use std::collections::BTreeMap;

use rmq_net::{Client, ClientOptions};
use rmq_protocol::{
    java_properties,
    remoting::{Command, request_code as code},
};

use crate::rig::{Rig, registration};

async fn update(rig: &Rig, text: &str) -> Command {
    rig.call(Command::request(code::UPDATE_NAMESRV_CONFIG).with_body(text.to_owned()))
        .await
}

async fn read(rig: &Rig) -> BTreeMap<String, String> {
    let answer = rig.done(Command::request(code::GET_NAMESRV_CONFIG)).await;
    java_properties::parse_map(&answer.body).unwrap()
}

#[tokio::test]
async fn a_live_key_changes_what_the_server_does_and_reads_back() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    let list = || Command::request(code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER);
    rig.done(list()).await;
    assert_eq!(update(&rig, "enableAllTopicList=false").await.code, 0);
    assert_eq!(rig.call(list()).await.code, 1);
    assert_eq!(read(&rig).await["enableAllTopicList"], "false");
}

#[tokio::test]
async fn what_reads_back_is_in_force_the_port_included() {
    let rig = Rig::start();
    let config = read(&rig).await;
    assert_eq!(
        config["listenPort"],
        rig.server.local_addr().port().to_string()
    );
    assert_eq!(config["bindAddress"], "127.0.0.1");
    assert_eq!(config["kvConfigPath"], rig.kv_path.display().to_string());
}

#[tokio::test]
async fn no_file_can_be_written_through_a_change_of_paths() {
    let rig = Rig::start();
    let before = read(&rig).await;
    let target = rig.kv_path.with_file_name("written-by-a-peer");
    for key in [
        "configStorePath",
        "kvConfigPath",
        "rocketmqHome",
        "configBlackList",
    ] {
        let text = format!(
            "{key}={}\nproductEnvName=pwned\nenableTopicList=false",
            target.display()
        );
        let answer = update(&rig, &text).await;
        assert_eq!(answer.code, 16, "{key}");
        assert_eq!(
            answer.remark.as_deref(),
            Some("Can not update config in black list.")
        );
    }
    assert_eq!(read(&rig).await, before);
    assert!(!target.exists());
    assert!(
        std::fs::read_dir(target.parent().unwrap())
            .unwrap()
            .next()
            .is_none()
    );
}

#[tokio::test]
async fn what_cannot_be_applied_is_refused_with_a_reason_and_nothing_is_half_applied() {
    let rig = Rig::start();
    let before = read(&rig).await;
    for (line, reason) in [
        ("listenPort=1", "cannot be changed while the server runs"),
        ("scanNotActiveBrokerInterval=-5", "it must be a number"),
        ("unknownKey=1", "unknown key unknownKey"),
        (
            "clientRequestThreadPoolQueueCapacity=0",
            "cannot be changed",
        ),
        ("enableTopicLst=false", "did you mean enableTopicList?"),
        ("\\u12=1", "malformed"),
    ] {
        let answer = update(&rig, &format!("enableAllTopicList=false\n{line}")).await;
        assert_eq!(answer.code, 1, "{line}");
        let remark = answer.remark.unwrap();
        assert!(remark.contains(reason), "{line}: {remark}");
    }
    let invalid = Command::request(code::UPDATE_NAMESRV_CONFIG).with_body(&b"a=\xff\xfe"[..]);
    assert_eq!(rig.call(invalid).await.code, 1);
    assert_eq!(read(&rig).await, before);
    assert_eq!(
        update(&rig, "").await.code,
        0,
        "nothing asked, nothing done, as in Java"
    );
}

#[tokio::test]
async fn a_new_scan_interval_takes_effect_at_once() {
    let rig = Rig::with("scanNotActiveBrokerInterval=3600000");
    // Over a connection of its own: the server closes that of a silent broker.
    let silent = Client::new(ClientOptions::default());
    let registration = registration("a", 0).with_ext("heartbeatTimeoutMillis", "50");
    assert_eq!(rig.call_over(&silent, registration).await.code, 0);
    assert_eq!(update(&rig, "scanNotActiveBrokerInterval=10").await.code, 0);
    crate::rig::eventually("the silent broker is found", async || {
        rig.clock.advance(15);
        rig.route("T").await.is_none()
    })
    .await;
}
