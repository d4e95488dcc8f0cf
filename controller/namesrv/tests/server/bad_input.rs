//! Input that makes no sense, for every code: answered at once, and the connection goes on.

use bytes::BytesMut;
use rmq_net::Client;
use rmq_protocol::remoting::{
    Command, FLAG_ONEWAY, Serializer, Split, request_code as code, split_frame,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::rig::{Rig, broker, connection, registration, route_query};

/// Codes with required fields, and the first of these.
const WITH_FIELDS: [(i32, &str); 15] = [
    (code::PUT_KV_CONFIG, "namespace"),
    (code::GET_KV_CONFIG, "namespace"),
    (code::DELETE_KV_CONFIG, "namespace"),
    (code::REGISTER_BROKER, "brokerName"),
    (code::UNREGISTER_BROKER, "brokerName"),
    (code::GET_ROUTEINFO_BY_TOPIC, "topic"),
    (code::WIPE_WRITE_PERM_OF_BROKER, "brokerName"),
    (code::ADD_WRITE_PERM_OF_BROKER, "brokerName"),
    (code::DELETE_TOPIC_IN_NAMESRV, "topic"),
    (code::REGISTER_TOPIC_IN_NAMESRV, "topic"),
    (code::GET_KVLIST_BY_NAMESPACE, "namespace"),
    (code::GET_TOPICS_BY_CLUSTER, "cluster"),
    (code::QUERY_DATA_VERSION, "brokerName"),
    (code::GET_BROKER_MEMBER_GROUP, "clusterName"),
    (code::BROKER_HEARTBEAT, "clusterName"),
];

/// Codes without fields.
const WITHOUT_FIELDS: [i32; 8] = [
    code::GET_BROKER_CLUSTER_INFO,
    code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
    code::GET_SYSTEM_TOPIC_LIST_FROM_NS,
    code::GET_UNIT_TOPIC_LIST,
    code::GET_HAS_UNIT_SUB_TOPIC_LIST,
    code::GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
    code::UPDATE_NAMESRV_CONFIG,
    code::GET_NAMESRV_CONFIG,
];

fn bodies() -> Vec<Vec<u8>> {
    vec![
        Vec::new(),
        b"{}".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        b"{\"a\":".to_vec(),
        b"\"\\x".to_vec(),
        vec![b'['; 100_000],
        vec![b'9'; 1024 * 1024],
        br#"{"@type":"x.y.Z","topicConfigSerializeWrapper":{"topicConfigTable":{"T":7}}}"#.to_vec(),
        vec![0xFF; 64],
    ]
}

async fn still_serves(rig: &Rig, client: &Client) {
    let answer = rig.call_over(client, route_query("T")).await;
    assert_eq!(answer.code, 0);
}

#[tokio::test]
async fn a_request_without_fields_is_answered_with_the_missing_field() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    for (request, field) in WITH_FIELDS {
        let answer = rig.call(Command::request(request)).await;
        assert_eq!(answer.code, 1, "code {request}");
        let remark = answer.remark.unwrap();
        assert!(
            remark.contains(&format!("<{field}>")),
            "code {request}: {remark}"
        );
    }
    still_serves(&rig, &rig.client).await;
}

#[tokio::test]
async fn absurd_numbers_are_answered_with_the_field() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    for request in [
        code::REGISTER_BROKER,
        code::UNREGISTER_BROKER,
        code::QUERY_DATA_VERSION,
        code::BROKER_HEARTBEAT,
    ] {
        for number in ["abc", "99999999999999999999", "", "1.5"] {
            let mut bad = registration("b", 0);
            bad.code = request;
            bad.ext.set("brokerId", number);
            let answer = rig.call(bad).await;
            assert_eq!(answer.code, 1);
            assert!(answer.remark.unwrap().contains("<brokerId>"));
        }
    }
    let mut negative = registration("b", 0);
    negative.ext.set("brokerId", "-1");
    assert_eq!(rig.call(negative).await.code, 1);
    let odd_bool = registration("b", 0).with_ext("enableActingMaster", "maybe");
    rig.done(odd_bool).await;
    still_serves(&rig, &rig.client).await;
}

#[tokio::test]
async fn addresses_and_names_that_make_no_route_are_refused() {
    let rig = Rig::start();
    for (field, value) in [
        ("brokerAddr", ""),
        ("brokerAddr", "host"),
        ("brokerAddr", ":10911"),
        ("brokerAddr", "host:0"),
        ("brokerAddr", "host:70000"),
        ("brokerAddr", "ho st:1"),
        ("brokerName", ""),
        ("brokerName", "a/b"),
        ("clusterName", " "),
        ("clusterName", "../c"),
    ] {
        let mut bad = registration("a", 0);
        bad.ext.set(field, value);
        let answer = rig.call(bad).await;
        assert_eq!(answer.code, 1, "{field}={value}");
        assert!(answer.remark.unwrap().contains(&format!("<{field}>")));
    }
    assert_eq!(rig.server.metrics().brokers, 0);
}

#[tokio::test]
async fn broken_bodies_are_answered_for_every_code() {
    let rig = Rig::start();
    rig.done(registration("a", 0)).await;
    let client = connection();
    let requests = WITH_FIELDS
        .iter()
        .map(|(code, _)| *code)
        .chain(WITHOUT_FIELDS);
    for request in requests {
        for body in bodies() {
            let length = body.len();
            let mut bad = broker(request, "bad", 0)
                .with_ext("haServerAddr", "bad:1")
                .with_ext("topic", "Bad")
                .with_ext("cluster", "c")
                .with_ext("namespace", "n")
                .with_ext("key", "k")
                .with_ext("value", "v")
                .with_body(body);
            bad.version = 479;
            let answer = rig.call_over(&client, bad).await;
            let sane = answer.code == 0 || answer.remark.is_some();
            assert!(sane, "code {request} with {length} bytes: {}", answer.code);
        }
        still_serves(&rig, &client).await;
    }
}

#[tokio::test]
async fn an_unknown_code_is_answered_3_with_javas_remark() {
    let rig = Rig::start();
    for request in [0, -1, 10, 999_999, 301, 302, 54] {
        let answer = rig.call(Command::request(request)).await;
        assert_eq!(answer.code, 3);
        assert_eq!(
            answer.remark.unwrap(),
            format!(" request type {request} not supported")
        );
    }
    assert_eq!(rig.server.metrics().requests_unsupported, 7);
}

#[tokio::test]
async fn a_one_way_request_is_done_and_never_answered() {
    let rig = Rig::start();
    let requests = [
        registration("a", 0),
        route_query("T"),
        route_query("nobody"),
        Command::request(424_242),
        Command::request(code::PUT_KV_CONFIG),
    ];
    let count = requests.len() as u64;
    let mut bytes = BytesMut::new();
    for mut request in requests {
        request.flag |= FLAG_ONEWAY;
        request.encode(Serializer::Json, &mut bytes);
    }
    let asked = route_query("T");
    asked.encode(Serializer::Json, &mut bytes);
    let mut socket = TcpStream::connect(&rig.addr).await.unwrap();
    socket.write_all(&bytes).await.unwrap();

    let length = socket.read_u32().await.unwrap() as usize;
    let mut frame = vec![0; length + 4];
    frame[..4].copy_from_slice(&(length as u32).to_be_bytes());
    socket.read_exact(&mut frame[4..]).await.unwrap();
    let Split::Frame { frame, .. } = split_frame(&frame, 1 << 20).unwrap() else {
        panic!()
    };
    let answer = Command::decode(frame).unwrap();
    assert_eq!(
        answer.opaque, asked.opaque,
        "the first answer is for the last request"
    );
    assert_eq!(answer.code, 0, "the registration was done");
    let metrics = rig.server.metrics();
    let served: u64 = metrics.requests.iter().map(|(_, count)| count).sum();
    assert_eq!(served + metrics.requests_unsupported, count + 1);
}
