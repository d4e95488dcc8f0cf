//! Sends at the edges of what may be sent. Brokers have answered one-way requests, cut a longest body
//! off at the frame limit, written a wrong length of properties, stopped at one poison message, let a
//! client forge inner properties, sent a timed batch at once and crashed at a retry topic.

use rmq_protocol::{
    message::batch::{self, BatchItem},
    remoting::{Command, Serializer, request_code as code},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{TestBroker, ok, refused, send_header};

async fn with_topic(lines: &str) -> TestBroker {
    let broker = TestBroker::start_with(lines).await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    broker
}

/// A batch of bodies, each with a properties text.
fn batch_of(items: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (text, properties) in items {
        let item = BatchItem {
            flag: 0,
            body: text.as_bytes(),
            properties: properties.as_bytes(),
        };
        assert!(batch::push(&mut body, &item));
    }
    body
}

async fn send_batch(broker: &TestBroker, topic: &str, body: Vec<u8>) -> Command {
    let mut header = send_header((topic, 0));
    header.batch = true;
    let command = Command::request(code::SEND_BATCH_MESSAGE).with_header(&header);
    broker.call(command.with_body(body)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_way_requests_are_done_and_get_no_frame() {
    let broker = with_topic("").await;
    let mut socket = TcpStream::connect(broker.address()).await.unwrap();
    let mut bytes = bytes::BytesMut::new();
    let one_way = [
        Command::oneway(code::HEART_BEAT),
        Command::oneway(code::PULL_MESSAGE),
        Command::oneway(9999),
        Command::oneway(code::SEND_MESSAGE_V2)
            .with_header(&send_header(("none/of/these", 0)))
            .with_body("refused"),
        Command::oneway(code::SEND_MESSAGE_V2)
            .with_header(&send_header(("made_by_it", 0)))
            .with_body("x"),
        Command::oneway(code::SEND_MESSAGE_V2)
            .with_header(&send_header(("T", 0)))
            .with_body("x"),
    ];
    for command in one_way {
        command.encode(Serializer::Json, &mut bytes);
    }
    let mut last = Command::request(code::GET_BROKER_RUNTIME_INFO);
    last.opaque = 4711;
    last.encode(Serializer::Json, &mut bytes);
    socket.write_all(&bytes).await.unwrap();
    let total = socket.read_u32().await.unwrap();
    let mut frame = vec![0; total as usize];
    socket.read_exact(&mut frame).await.unwrap();
    let text = String::from_utf8_lossy(&frame);
    assert!(text.contains("\"opaque\":4711"), "{text}");
    while broker.pull("G", ("T", 0), 0).await.bodies != ["x"] {}
    while broker.pull("G", ("made_by_it", 0), 0).await.bodies != ["x"] {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_the_longest_size_passes_with_its_properties_and_comes_back() {
    let broker = with_topic("mappedFileSizeCommitLog=33554432").await;
    let longest = "x".repeat(4 << 20);
    let pairs = [("k", "v".repeat(32_000))];
    let pairs = pairs
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    for _ in 0..3 {
        ok(broker.send_to(("T", 0), &longest, &pairs).await);
    }
    let over = format!("{longest}x");
    refused(&broker.send_to(("T", 0), &over, &[]).await, 13, "4194304");
    for offset in 0..3 {
        let pulled = broker.pull("G", ("T", 0), offset).await;
        assert_eq!(pulled.bodies.len(), 1);
        assert_eq!(pulled.bodies[0].len(), longest.len());
        assert_eq!(pulled.next, offset + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn properties_longer_than_their_length_field_are_refused_and_harm_nothing() {
    let broker = with_topic("").await;
    for bytes in [32_767, 32_768, 65_536 + 10] {
        let value = "v".repeat(bytes - 3);
        let answer = broker.send_to(("T", 0), "long", &[("k", &value)]).await;
        refused(&answer, 13, "propert");
        if let Ok(length) = u16::try_from(bytes) {
            // A batch item has room for more than a record may have.
            let item = format!("k\u{1}{}", "v".repeat(usize::from(length.min(32_767)) - 2));
            let answer = send_batch(&broker, "T", batch_of(&[("long", &item)])).await;
            assert!(matches!(answer.code, 0 | 13), "{answer:?}");
        }
    }
    let stored = broker.pull("G", ("T", 0), 0).await.bodies.len() as i64;
    broker.send("T", "after").await;
    assert_eq!(broker.pull("G", ("T", 0), stored).await.bodies, ["after"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_property_texts_are_stored_and_the_next_message_is_seen() {
    let broker = with_topic("").await;
    let texts = [
        "k\u{1}v",
        "k\u{1}\u{2}",
        "k\u{1}1\u{2}k\u{1}2\u{2}",
        "\u{1}\u{2}",
        "\u{2}\u{2}\u{2}",
        "k",
        "\u{1}v\u{2}k\u{1}v\u{2}",
        "TAGS\u{1}a\u{1}b\u{2}",
        "INNER_MULTI_DISPATCH\u{1},,,\u{2}",
    ];
    let long_tag = format!("TAGS\u{1}{}", "t".repeat(20_000));
    for text in texts.into_iter().chain([long_tag.as_str()]) {
        let mut header = send_header(("T", 0));
        header.properties = Some(text.into());
        ok(broker.send_as(&header, "odd").await);
    }
    broker.send("T", "after").await;
    let mut bodies = Vec::new();
    while bodies.last().is_none_or(|body| body != "after") {
        let pulled = broker.pull("G", ("T", 0), bodies.len() as i64).await;
        assert_eq!(pulled.answer.code, 0);
        bodies.extend(pulled.bodies);
    }
    assert_eq!(bodies.len(), 11);
    refused(
        &broker.send_to(("T", 0), "x", &[("DELAY", "x")]).await,
        13,
        "delay",
    );
    let pulled = broker.pull("G", ("T", 0), 0).await;
    assert_eq!(pulled.property(0, "k"), Some("v"));
    // Java skips an empty value, and the last of two wins.
    assert_eq!(pulled.property(1, "k"), None);
    assert_eq!(pulled.property(2, "k"), Some("2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_inner_properties_do_not_lead_a_message_elsewhere() {
    let broker = with_topic("").await;
    broker.topic("other", 1).await;
    let forged = [
        ("REAL_TOPIC", "other"),
        ("REAL_QID", "99"),
        ("TIMER_OUT_MS", "1"),
        ("TIMER_ENQUEUE_MS", "1"),
    ];
    ok(broker.send_to(("T", 0), "x", &forged).await);
    let pulled = broker.pull("G", ("T", 0), 0).await;
    assert_eq!(pulled.bodies, ["x"]);
    for (name, _) in forged {
        assert_eq!(pulled.property(0, name), None, "{name}");
    }
    assert!(broker.pull("G", ("other", 0), 0).await.bodies.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_and_transactions_are_refused_and_never_sent_at_once() {
    let broker = with_topic("").await;
    for pair in [
        ("TIMER_DELAY_SEC", "3"),
        ("TIMER_DELAY_MS", "3000"),
        ("TIMER_DELIVER_MS", "9999999999999"),
        ("TRAN_MSG", "true"),
    ] {
        let answer = broker.send_to(("T", 0), "x", &[pair]).await;
        assert!(matches!(answer.code, 1 | 13 | 16), "{pair:?}: {answer:?}");
        let text = format!("{}\u{1}{}", pair.0, pair.1);
        let answer = send_batch(&broker, "T", batch_of(&[("y", ""), ("x", &text)])).await;
        refused(&answer, 13, "batch");
    }
    let answer = send_batch(&broker, "T", batch_of(&[("y", "DELAY\u{1}3\u{2}")])).await;
    refused(&answer, 13, "batch");
    assert!(broker.pull("G", ("T", 0), 0).await.bodies.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_one_is_taken_and_empty_torn_or_too_long_ones_are_not() {
    let broker = with_topic("maxMessageSize=1000").await;
    ok(send_batch(&broker, "T", batch_of(&[("one", "")])).await);
    let long = "x".repeat(600);
    let two = batch_of(&[(&long, ""), (&long, "")]);
    refused(&send_batch(&broker, "T", two).await, 13, "1000");
    refused(&send_batch(&broker, "T", Vec::new()).await, 13, "");
    let mut torn = batch_of(&[("one", ""), ("two", "")]);
    torn.truncate(torn.len() - 1);
    refused(&send_batch(&broker, "T", torn).await, 13, "");
    refused(
        &send_batch(&broker, "%RETRY%G", batch_of(&[("one", "")])).await,
        13,
        "retry",
    );
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies, ["one"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compression_flags_are_kept_and_bodies_not_looked_at() {
    let broker = with_topic("").await;
    // Compressed; of the types LZ4, zstd and zlib; of a type that there is not.
    for (offset, flag) in [0x1, 0x101, 0x201, 0x301, 0x701].into_iter().enumerate() {
        let mut header = send_header(("T", 0));
        header.sys_flag = flag;
        ok(broker.send_as(&header, "not compressed").await);
        let pulled = broker.pull("G", ("T", 0), offset as i64).await;
        assert_eq!(pulled.bodies, ["not compressed"]);
        assert_eq!(pulled.sys_flags, [flag]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_not_there_is_refused_and_none_is_chosen_for_a_negative_one() {
    let broker = with_topic("").await;
    for queue in [1, 7, i32::MAX] {
        let answer = broker.send_to(("T", queue), "x", &[]).await;
        refused(&answer, 29, &queue.to_string());
    }
    let answer = ok(broker.send_to(("T", -1), "x", &[]).await);
    assert_eq!(answer.ext.get("queueId"), Some("0"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_sends_to_a_retry_topic_are_stored_refused_or_dead_letters() {
    let broker = with_topic("").await;
    for (times, topic) in [
        (None, "%RETRY%G"),
        (Some(-1), "%RETRY%G"),
        (Some(i32::MAX), "%DLQ%G"),
    ] {
        let mut header = send_header(("%RETRY%G", 0));
        header.reconsume_times = times;
        let body = format!("{times:?}");
        ok(broker.send_as(&header, body.clone()).await);
        let stored = broker.pull("G", (topic, 0), 0).await;
        assert_eq!(stored.bodies.last(), Some(&body));
    }
    let header = send_header(("%RETRY%unknown", 0));
    refused(&broker.send_as(&header, "x").await, 26, "unknown");
}
