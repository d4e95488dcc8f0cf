//! What a subscription lets through: tag lists in every way they are written, SQL92 while it is off,
//! and filter classes that a client would have loaded.

use rmq_protocol::remoting::request_code as code;

use super::{TestBroker, ok, pull_header, refused};

async fn with_tags(tags: &[&str]) -> TestBroker {
    let broker = TestBroker::start().await;
    broker.topic("T", 1).await;
    broker.group("G").await;
    for tag in tags {
        ok(broker.send_to(("T", 0), tag, &[("TAGS", tag)]).await);
    }
    broker
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tag_lists_are_trimmed_and_tags_of_one_hash_told_apart() {
    // `Aa` and `BB` have one hash in Java.
    let broker = with_tags(&["A", "B", "Aa", "BB"]).await;
    let all: &[&str] = &["A", "B", "Aa", "BB"];
    let both: &[&str] = &["A", "B"];
    for (expression, found) in [
        ("A||B", both),
        (" A || B ", both),
        ("B||A||", both),
        ("||A||||B", both),
        ("A", &["A"]),
        ("Aa", &["Aa"]),
        ("BB || none", &["BB"]),
        ("*", all),
        (" ", all),
        ("", all),
    ] {
        let mut header = pull_header("G", ("T", 0), 0);
        header.subscription = Some(expression.into());
        let mut bodies = Vec::new();
        while header.queue_offset < 4 {
            let pulled = broker.pull_as(&header).await;
            assert!(pulled.next > header.queue_offset, "{expression:?}");
            bodies.extend(pulled.bodies);
            header.queue_offset = pulled.next;
        }
        assert_eq!(bodies, found, "{expression:?}");
    }
    let mut header = pull_header("G", ("T", 0), 0);
    header.subscription = Some("||".into());
    refused(&broker.pull_as(&header).await.answer, 23, "no tag");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_in_sql_is_refused_clearly_and_tags_go_on() {
    let broker = with_tags(&["A"]).await;
    let mut header = pull_header("G", ("T", 0), 0);
    header.subscription = Some("a > 1".into());
    header.expression_type = Some("SQL92".into());
    refused(&broker.pull_as(&header).await.answer, 1, "SQL92");
    let check = r#"{"clientId":"c","group":"G","subscriptionData":
        {"topic":"T","subString":"a > 1","expressionType":"SQL92"}}"#;
    refused(
        &broker.ask_body(code::CHECK_CLIENT_CONFIG, check).await,
        1,
        "SQL92",
    );
    assert_eq!(broker.pull("G", ("T", 0), 0).await.bodies, ["A"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_code_of_a_client_is_ever_loaded() {
    let broker = with_tags(&[]).await;
    for request in [301, 302] {
        refused(&broker.ask(request).await, 3, &request.to_string());
    }
}
