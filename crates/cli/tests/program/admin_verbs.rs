//! `rocketmq admin` against a real local cluster, as a user types it.

use crate::program::{Running, eventually, refusal, rocketmq, run};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Output, Stdio};
use tempfile::TempDir;

const QUICKSTART: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/quickstart.yaml"
);

/// A running cluster and how to reach it.
struct Cluster {
    name_server: String,
    _running: Running,
    _dir: TempDir,
}

impl Cluster {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().to_str().unwrap();
        let args = [
            "up", QUICKSTART, "--ports", "free", "-o", "json", "--data", data,
        ];
        let mut running = Running::start(&args);
        let report = running.json();
        let name_server = report["nameServers"][0]["address"].as_str().unwrap();
        Self {
            name_server: name_server.to_owned(),
            _running: running,
            _dir: dir,
        }
    }

    fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let mut all = vec!["admin", "-n", &self.name_server];
        all.extend(args);
        all
    }

    /// Runs a verb with `-o json`, wants success, and gives its lines.
    #[track_caller]
    fn json(&self, args: &[&str]) -> Vec<Value> {
        let mut all = self.args(args);
        all.extend(["-o", "json"]);
        lines(&run(&all))
    }

    /// The first line of [`Self::json`].
    #[track_caller]
    fn one(&self, args: &[&str]) -> Value {
        self.json(args).into_iter().next().expect("one line")
    }

    /// Runs a verb for people and gives what it writes.
    #[track_caller]
    fn text(&self, args: &[&str]) -> String {
        let output = run(&self.args(args));
        assert_success(&output);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a verb that fails without an answer, and gives its one line.
    #[track_caller]
    fn refusal(&self, args: &[&str]) -> String {
        refusal(&self.args(args))
    }
}

#[track_caller]
fn assert_success(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[track_caller]
fn lines(output: &Output) -> Vec<Value> {
    assert_success(output);
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[track_caller]
fn outcomes(change: &Value) -> Vec<&str> {
    let servers = change["servers"].as_array().unwrap();
    servers
        .iter()
        .map(|server| server["outcome"].as_str().unwrap())
        .collect()
}

fn bodies(messages: &[Value]) -> Vec<&str> {
    let mut bodies: Vec<_> = messages
        .iter()
        .map(|message| message["body"].as_str().unwrap())
        .collect();
    bodies.sort_unstable();
    bodies
}

#[test]
fn a_topic_lives_from_creation_through_messages_and_progress_to_deletion() {
    let cluster = Cluster::start();
    create_and_alter(&cluster);
    let sent = send_three(&cluster);
    consume_as_group(&cluster);
    find(&cluster, &sent);
    delete(&cluster);
}

fn create_and_alter(cluster: &Cluster) {
    let create = ["topic", "create", "orders", "-q", "2"];
    assert_eq!(outcomes(&cluster.one(&create)), ["created"]);
    assert_eq!(outcomes(&cluster.one(&create)), ["unchanged"]);
    let other = run(&cluster.args(&["topic", "create", "orders", "-q", "4"]));
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(
        !other.status.success() && said.contains("topic alter orders"),
        "{said}"
    );
    let topics = cluster.one(&["topic", "list"]);
    assert_eq!(topics["topics"], serde_json::json!(["orders"]));
    let altered = cluster.one(&["topic", "alter", "orders", "--perm", "r"]);
    assert_eq!(outcomes(&altered), ["changed"]);
    eventually("the route has the new permission", || {
        cluster.one(&["topic", "route", "orders"])["brokers"][0]["perm"] == "r"
    });
    cluster.one(&["topic", "alter", "orders", "--perm", "rw"]);
    eventually("the route has the old permission", || {
        cluster.one(&["topic", "route", "orders"])["brokers"][0]["perm"] == "rw"
    });
    let route = cluster.one(&["topic", "route", "orders"]);
    assert_eq!(route["brokers"][0]["readQueues"], 2);
    assert_eq!(cluster.one(&["topic", "status", "orders"])["messages"], 0);
}

/// One message as an argument to a queue, two as lines to any.
fn send_three(cluster: &Cluster) -> Value {
    let sent = cluster.one(&[
        "send", "orders", "first", "--tags", "red", "-k", "k1", "-p", "a=b", "-q", "1",
    ]);
    assert_eq!((&sent["queue"], &sent["offset"]), (&1.into(), &0.into()));
    assert_eq!(sent["status"], "SEND_OK");
    let mut child = rocketmq(&cluster.args(&["send", "orders", "-o", "json"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"second\n\nthird").unwrap();
    drop(stdin);
    assert_eq!(lines(&child.wait_with_output().unwrap()).len(), 2);
    assert_eq!(cluster.one(&["topic", "status", "orders"])["messages"], 3);
    sent
}

fn consume_as_group(cluster: &Cluster) {
    let created = cluster.one(&["group", "create", "billing", "--retries", "3"]);
    assert_eq!(outcomes(&created), ["created"]);
    let groups = cluster.one(&["group", "list"]);
    assert_eq!(groups["groups"][0]["group"], "billing");
    assert_eq!(groups["groups"][0]["retries"], 3);
    let unused = cluster.one(&["group", "progress", "billing"]);
    assert_eq!(unused["lag"], 0);

    let consume = ["consume", "orders", "-g", "billing", "--from", "first"];
    let peek = cluster.json(&[&consume[..], &["--max", "3", "--no-commit"]].concat());
    assert_eq!(bodies(&peek), ["first", "second", "third"]);
    let read = cluster.json(&[&consume[..], &["--max", "3"]].concat());
    assert_eq!(bodies(&read), ["first", "second", "third"]);
    let again = cluster.json(&[&consume[..], &["--no-follow"]].concat());
    assert!(again.is_empty(), "all was committed: {again:?}");
    let red = cluster.json(&[
        "consume",
        "orders",
        "--tags",
        "red || blue",
        "--from",
        "first",
        "--no-follow",
    ]);
    assert_eq!(bodies(&red), ["first"]);

    let progress = cluster.one(&["group", "progress", "billing"]);
    assert_eq!(progress["lag"], 0, "{progress}");
    let committed: i64 = progress["queues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|queue| queue["committed"].as_i64().unwrap())
        .sum();
    assert_eq!(committed, 3, "{progress}");
    assert!(
        cluster
            .refusal(&["group", "progress", "nobody"])
            .contains("group nobody does not exist")
    );
}

fn find(cluster: &Cluster, sent: &Value) {
    let by_place = cluster.one(&["message", "-t", "orders", "-q", "1", "--offset", "0"]);
    let by_id = cluster.one(&["message", "--id", sent["offsetId"].as_str().unwrap()]);
    for found in [&by_place, &by_id] {
        assert_eq!(found["body"], "first");
        assert_eq!(found["tags"], "red");
        assert_eq!(found["properties"]["a"], "b");
        assert_eq!(found["uniqueId"], sent["uniqueId"]);
    }
    let key = ["message", "-t", "orders", "-k", "k1", "-o", "json"];
    eventually("the key is indexed", || {
        run(&cluster.args(&key)).status.success()
    });
    let said = cluster.refusal(&["message", "-t", "orders", "-k", "nokey"]);
    assert!(said.contains("no message with the key \"nokey\""), "{said}");
    assert_eq!(cluster.json(&key[..5]).len(), 1);
    assert!(
        cluster
            .refusal(&["message", "-t", "orders", "-q", "1", "--offset", "77"])
            .contains("holds offsets 0 to")
    );
    let reset = cluster.one(&[
        "offset", "reset", "-g", "billing", "-t", "orders", "--to", "first",
    ]);
    assert_eq!(outcomes(&reset), ["reset"]);
}

fn delete(cluster: &Cluster) {
    assert_eq!(
        outcomes(&cluster.one(&["group", "delete", "billing", "--clean-offsets"])),
        ["deleted"]
    );
    assert_eq!(
        outcomes(&cluster.one(&["topic", "delete", "orders"])),
        ["deleted", "route removed"]
    );
    let topics = cluster.one(&["topic", "list"]);
    assert_eq!(topics["topics"], serde_json::json!([]));
    let said = cluster.refusal(&["send", "orders", "late"]);
    assert!(
        said.contains("rocketmq admin topic create orders"),
        "{said}"
    );
    for verb in [
        &["topic", "delete", "orders"][..],
        &["topic", "alter", "orders", "-q", "2"],
    ] {
        let said = cluster.refusal(verb);
        assert!(said.contains("there is nothing to"), "{said}");
    }
}

#[test]
fn the_cluster_is_shown_with_what_its_brokers_say() {
    let cluster = Cluster::start();
    let view = cluster.one(&["cluster", "list"]);
    let broker = &view["brokers"][0];
    assert_eq!(broker["broker"], "broker-0");
    assert_eq!(broker["role"], "master");
    one_screen(&cluster);
    let said = cluster.refusal(&["topic", "list", "-c", "Nowhere"]);
    assert!(said.contains("known: DefaultCluster"), "{said}");
    let said = cluster.refusal(&["group", "delete", "nobody"]);
    assert!(said.contains("there is nothing to delete"), "{said}");
    assert!(
        broker["version"].is_string() && broker["inTps"].is_number(),
        "{broker}"
    );
    let ratio = broker["diskRatio"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&ratio), "{broker}");
    let addr = broker["address"].as_str().unwrap();
    let said = refusal(&["admin", "-n", addr, "topic", "list"]);
    assert!(
        said.starts_with(&format!("{addr} is no NameServer")),
        "{said}"
    );
    let text = cluster.text(&["cluster"]);
    let mut lines = text.lines();
    assert!(lines.next().unwrap().starts_with("CLUSTER"));
    assert!(lines.next().unwrap().ends_with("ok"), "{text}");
}

fn one_screen(cluster: &Cluster) {
    let status = cluster.one(&["status"]);
    assert_eq!(status["nameServers"][0]["address"], cluster.name_server);
    assert_eq!(status["nameServers"][0]["brokers"], 1);
    let group = &status["brokerGroups"][0];
    assert_eq!(group["broker"], "broker-0");
    for says in ["readable", "writable"] {
        assert_eq!(group[says], true, "{status}");
    }
    assert_eq!(
        (&group["inSync"], &group["members"]),
        (&1.into(), &1.into())
    );
    assert_eq!(status["lag"], 0, "{status}");
    let text = cluster.text(&["status"]);
    assert!(
        text.ends_with("1 of 1 broker group writable, consumer lag 0\n"),
        "{text}"
    );
}

#[test]
fn what_is_written_to_a_reader_that_goes_away_is_no_failure_and_all_is_sent() {
    let cluster = Cluster::start();
    cluster.one(&["topic", "create", "pipe", "-q", "1"]);
    // More than a pipe holds: it cannot have ended before its reader goes.
    let args = cluster.args(&["send", "pipe", "x", "--count", "1000", "-o", "json"]);
    let mut sender = rocketmq(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(sender.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    assert!(first.starts_with('{'), "{first}");
    drop(reader);
    let output = sender.wait_with_output().unwrap();
    assert_success(&output);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("1000 messages stored"), "{said}");
    assert_eq!(cluster.one(&["topic", "status", "pipe"])["messages"], 1000);
}

#[test]
fn a_follower_shows_what_comes_and_ends_cleanly_on_ctrl_c() {
    let cluster = Cluster::start();
    cluster.one(&["topic", "create", "news", "-q", "1"]);
    let mut follower = Running::start(&cluster.args(&["consume", "news"]));
    follower.said("following topic news");
    cluster.one(&["send", "news", "hello", "--tags", "red"]);
    assert_eq!(follower.line(), "broker-0/0@0\tred\t-\thello\n");
    crate::program::signal(follower.child.id(), Signal::INT);
    assert!(follower.said("1 message").starts_with("1 message\n"));
    assert_eq!(follower.child.wait().unwrap().code(), Some(0));
}

#[test]
fn without_a_name_server_the_error_says_how_to_get_one() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let said = refusal(&["admin", "-n", &addr, "topic", "list"]);
    let wanted = format!(
        "no NameServer answers at {addr}: start one with `rocketmq up examples/quickstart.yaml` \
         or give --namesrv"
    );
    assert!(said.starts_with(&wanted), "{said}");
    let mut command = rocketmq(&["admin", "topic", "list"]);
    let said = crate::program::refusal_of(command.env("NAMESRV_ADDR", "a:99999"));
    assert!(
        said.contains("NAMESRV_ADDR") && said.contains("a:99999"),
        "{said}"
    );
}
