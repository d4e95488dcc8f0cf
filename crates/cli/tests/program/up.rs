//! A cluster on this computer, as a user sees it: up, a crash, a stop, and up again.

use crate::program::{Running, eventually, get, is_alive, refusal, run, signal, write};
use rmq_admin::{AdminClient, AdminOptions, MessagePlace, Outgoing, SendTo};
use rmq_types::TopicName;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

const QUICKSTART: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/quickstart.yaml"
);

const PRODUCTION: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/production.yaml"
);

/// A topic that exists from the first start on.
const TOPIC: &str = "BenchmarkTest";

fn up(dir: &TempDir) -> Running {
    Running::start(&[
        "up",
        QUICKSTART,
        "--ports",
        "free",
        "-o",
        "json",
        "--data",
        data(dir),
    ])
}

fn data(dir: &TempDir) -> &str {
    dir.path().to_str().unwrap()
}

fn text<'a>(report: &'a Value, path: &str) -> &'a str {
    report
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{path} in {report}"))
}

fn pid(report: &Value, path: &str) -> u32 {
    report
        .pointer(path)
        .and_then(Value::as_u64)
        .and_then(|pid| pid.try_into().ok())
        .unwrap()
}

/// The process in a line such as `broker-0-0 is ready (pid 7, restarts: 1)`.
fn pid_in(line: &str) -> u32 {
    let rest = line.split("pid ").nth(1);
    let digits = rest.and_then(|rest| rest.split(',').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn admin(report: &Value) -> AdminClient {
    let name_server = text(report, "/nameServers/0/address").to_owned();
    AdminClient::new(&[name_server], AdminOptions::default())
}

/// Sends a message and gives its place.
fn send(report: &Value, body: &'static str) -> MessagePlace {
    let topic = TopicName::parse(TOPIC).unwrap();
    let sent = runtime().block_on(async {
        let mut sender = admin(report)
            .sender(&topic, &SendTo::default())
            .await
            .unwrap();
        let message = Outgoing {
            body: body.into(),
            ..Outgoing::default()
        };
        sender.send(&message).await.unwrap()
    });
    MessagePlace {
        topic,
        broker: Some(sent.queue.broker),
        queue: sent.queue.id,
        offset: sent.queue_offset,
    }
}

fn body_at(report: &Value, place: &MessagePlace) -> Vec<u8> {
    let read = runtime().block_on(async { admin(report).message_at(place).await.unwrap() });
    read.1.body.to_vec()
}

#[test]
fn a_killed_broker_comes_back_at_its_address_with_its_messages_and_a_stop_ends_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = up(&dir);
    let report = cluster.json();
    assert_eq!(text(&report, "/cluster"), "DefaultCluster");
    assert_eq!(report["brokers"][0]["id"], 0);
    assert_eq!(text(&report, "/brokers/0/role"), "master");
    let health = text(&report, "/brokers/0/health");
    assert_eq!(get(health, "/readyz").unwrap().0, 200);
    let metrics = get(text(&report, "/brokers/0/metrics"), "/metrics")
        .unwrap()
        .1;
    assert!(metrics.contains("rocketmq_broker_permission"), "{metrics}");
    let place = send(&report, "before the crash");

    let first = pid(&report, "/brokers/0/pid");
    signal(first, Signal::KILL);
    assert!(
        cluster
            .said("broker-0-0")
            .contains("was killed by signal 9")
    );
    let back = cluster.said("broker-0-0 is ready");
    assert!(!back.contains(&format!("pid {first},")), "{back}");
    let second = pid_in(&back);
    assert_eq!(get(health, "/readyz").unwrap().0, 200);
    assert_eq!(body_at(&report, &place), b"before the crash");

    let name_server = pid(&report, "/nameServers/0/pid");
    assert_eq!(cluster.terminate().code(), Some(0));
    assert!(
        [first, second, name_server]
            .iter()
            .all(|pid| !is_alive(*pid))
    );
}

#[test]
fn a_broker_that_crashes_again_and_again_keeps_its_ports_and_waits_no_longer_than_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Running::start(&[
        "up",
        QUICKSTART,
        "--ports",
        "free",
        "-o",
        "json",
        "--restart-wait-max",
        "0",
        "--data",
        data(&dir),
    ]);
    let report = cluster.json();
    let place = send(&report, "before all crashes");
    let mut process = pid(&report, "/brokers/0/pid");
    for crash in 1..=4 {
        signal(process, Signal::KILL);
        let back = cluster.said("broker-0-0 is ready");
        assert!(back.contains(&format!("restarts: {crash})")), "{back}");
        process = pid_in(&back);
        let health = text(&report, "/brokers/0/health");
        assert_eq!(get(health, "/readyz").unwrap().0, 200);
    }
    assert_eq!(body_at(&report, &place), b"before all crashes");
    assert_eq!(cluster.terminate().code(), Some(0));
}

#[test]
fn a_second_run_on_the_same_data_is_refused_and_a_later_one_finds_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = up(&dir);
    let report = cluster.json();
    let place = send(&report, "kept");
    let refused = refusal(&["up", QUICKSTART, "--ports", "free", "--data", data(&dir)]);
    assert!(
        refused.contains(&format!("process {}", cluster.child.id())),
        "{refused}"
    );
    assert_eq!(cluster.terminate().code(), Some(0));

    let mut cluster = up(&dir);
    let report = cluster.json();
    assert_eq!(body_at(&report, &place), b"kept");
    assert_eq!(cluster.terminate().code(), Some(0));
}

#[test]
fn no_process_outlives_a_killed_run_and_the_next_run_waits_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = up(&dir);
    let report = cluster.json();
    let processes = [
        pid(&report, "/brokers/0/pid"),
        pid(&report, "/nameServers/0/pid"),
    ];
    cluster.kill();
    let mut next = up(&dir);
    let report = next.json();
    assert!(processes.iter().all(|process| !is_alive(*process)));
    assert_eq!(
        get(text(&report, "/brokers/0/health"), "/readyz")
            .unwrap()
            .0,
        200
    );
    assert_eq!(next.terminate().code(), Some(0));
}

#[test]
fn a_role_that_cannot_start_ends_the_run_with_its_words_and_leaves_nothing_running() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\n\
                    metadata: {name: a}\nspec:\n  version: 0.1.0\n  brokers: {groups: 1}\n";
    let manifest = write(dir.path(), "m.yaml", manifest);
    let data = dir.path().join("data");
    // A file where the broker wants its folder: nobody sees that before it starts.
    std::fs::create_dir_all(data.join("broker-0-0")).unwrap();
    std::fs::write(data.join("broker-0-0/data"), "in the way").unwrap();
    let data = data.to_str().unwrap();
    let output = run(&["up", &manifest, "--ports", "free", "--data", data]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("error: broker-0-0 ended"), "{text}");
    assert!(text.contains("broker-0-0/data"), "{text}");
    assert!(
        text.contains("note: spec.brokers.replicasPerGroup"),
        "{text}"
    );
    let lock = dir.path().join("data/namesrv-0/data/process.lock");
    let process: u32 = std::fs::read_to_string(lock)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    eventually("the NameServer ends", || !is_alive(process));
}

#[test]
fn several_groups_and_name_servers_come_up_and_all_know_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\n\
                    metadata: {name: several}\nspec:\n  version: 0.1.0\n  \
                    nameServer: {replicas: 2}\n  brokers: {groups: 3, replicasPerGroup: 0}\n";
    let manifest = write(dir.path(), "m.yaml", manifest);
    let data = dir.path().join("data");
    let mut cluster = Running::start(&[
        "up",
        &manifest,
        "--ports",
        "free",
        "-o",
        "json",
        "--data",
        data.to_str().unwrap(),
    ]);
    let report = cluster.json();
    let groups: Vec<&str> = (0..3)
        .map(|i| text(&report["brokers"][i], "/group"))
        .collect();
    assert_eq!(groups, ["broker-0", "broker-1", "broker-2"]);
    for name_server in report["nameServers"].as_array().unwrap() {
        let address = text(name_server, "/address").to_owned();
        let admin = AdminClient::new(&[address], AdminOptions::default());
        let (_, info) = runtime().block_on(admin.cluster_info()).unwrap();
        let known: Vec<&str> = info.broker_addr_table.keys().map(String::as_str).collect();
        assert_eq!(known, groups);
    }
    assert_eq!(cluster.terminate().code(), Some(0));
}

#[test]
fn a_second_signal_ends_what_does_not_stop_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = up(&dir);
    let report = cluster.json();
    let frozen = pid(&report, "/brokers/0/pid");
    signal(frozen, Signal::STOP);
    signal(cluster.child.id(), Signal::TERM);
    cluster.said("stopping");
    signal(cluster.child.id(), Signal::TERM);
    cluster.said("ending all processes now");
    assert_eq!(cluster.child.wait().unwrap().code(), Some(0));
    assert!(!is_alive(frozen));
}

#[test]
fn a_killed_name_server_comes_back_at_its_address() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = up(&dir);
    let report = cluster.json();
    signal(pid(&report, "/nameServers/0/pid"), Signal::KILL);
    cluster.said("namesrv-0 is ready");
    assert!(runtime().block_on(admin(&report).cluster_info()).is_ok());
    assert_eq!(cluster.terminate().code(), Some(0));
}

#[test]
fn a_frozen_broker_is_shown_as_not_ready_until_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = up(&dir);
    let report = cluster.json();
    let frozen = pid(&report, "/brokers/0/pid");
    signal(frozen, Signal::STOP);
    cluster.said("broker-0-0 is not ready");
    signal(frozen, Signal::CONT);
    assert!(
        cluster
            .said("broker-0-0 is ready")
            .contains(&format!("pid {frozen}, restarts: 0"))
    );
    assert_eq!(cluster.terminate().code(), Some(0));
}

#[test]
fn the_production_example_comes_up_and_says_what_one_computer_leaves_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Running::start(&[
        "up",
        PRODUCTION,
        "--ports",
        "free",
        "-o",
        "json",
        "--data",
        data(&dir),
    ]);
    for left_out in [
        "note: spec.brokers.replicasPerGroup: 1 asked",
        "note: spec.brokers.storage.size: 200Gi",
        "note: spec.controller",
        "note: spec.proxy",
    ] {
        cluster.said(left_out);
    }
    let report = cluster.json();
    assert_eq!(text(&report, "/cluster"), "production");
    assert_eq!(report["nameServers"].as_array().unwrap().len(), 3);
    let groups: Vec<&str> = (0..3)
        .map(|i| text(&report["brokers"][i], "/group"))
        .collect();
    assert_eq!(groups, ["mq-0", "mq-1", "mq-2"]);
    // What the manifest configures is in force: nobody makes a topic by sending to it.
    let unknown = TopicName::parse("misspelt").unwrap();
    let refused = runtime().block_on(admin(&report).sender(&unknown, &SendTo::default()));
    assert!(refused.is_err());
    assert_eq!(cluster.terminate().code(), Some(0));
}

#[test]
fn the_tables_are_those_of_kubectl_and_a_row_for_each_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Running::start(&["up", QUICKSTART, "--ports", "free", "--data", data(&dir)]);
    let words =
        |line: String| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let head = words(cluster.line());
    for column in [
        "NAME", "READY", "GROUPS", "WRITABLE", "VERSION", "STATUS", "AGE",
    ] {
        assert!(head.iter().any(|head| head == column), "{head:?}");
    }
    let row = words(cluster.line());
    assert_eq!(row.len(), head.len(), "{row:?}");
    assert_eq!(row[..4], ["quickstart", "True", "1/1", "1"]);
    assert_eq!(cluster.line(), "\n");
    assert_eq!(
        words(cluster.line()),
        [
            "CLUSTER", "BROKER", "MASTER", "EPOCH", "INSYNC", "READABLE", "WRITABLE", "LAG", "STEP"
        ]
    );
    assert_eq!(
        words(cluster.line()),
        [
            "DefaultCluster",
            "broker-0",
            "broker-0-0",
            "0",
            "1/1",
            "1/1",
            "true",
            "0",
            "Idle"
        ]
    );
    assert_eq!(cluster.line(), "\n");
    assert_eq!(
        words(cluster.line()),
        [
            "ROLE", "NAME", "GROUP", "ID", "ADDRESS", "PID", "HEALTH", "STATUS"
        ]
    );
    let name_server = words(cluster.line());
    assert_eq!(name_server[..4], ["namesrv", "namesrv-0", "-", "-"]);
    let broker = words(cluster.line());
    assert_eq!(broker[..4], ["broker", "broker-0-0", "broker-0", "0"]);
    let gateway = words(cluster.line());
    assert_eq!(gateway[..4], ["proxy", "proxy-0", "-", "-"]);
    for row in [name_server, broker, gateway] {
        assert!(is_alive(row[5].parse().unwrap()), "{row:?}");
        assert_eq!(get(&row[6], "/readyz").unwrap().0, 200, "{row:?}");
        assert_eq!(row[7], "Ready");
    }
    assert_eq!(cluster.line(), "\n");
    assert!(cluster.line().starts_with("data and logs: "));
    assert!(cluster.line().contains("Ctrl-C"));
    assert_eq!(cluster.terminate().code(), Some(0));
}

#[test]
fn brokers_register_at_name_servers_of_somebody_else_with_the_overrides_of_their_group() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = up(&dir);
    let report = first.json();
    let name_server = text(&report, "/nameServers/0/address");
    let manifest = |prefix: &str| {
        format!(
            "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata: {{name: b}}\n\
             spec:\n  version: 0.1.0\n  nameServer: {{externalRef: [\"{name_server}\"]}}\n  \
             brokers:\n    groups: 2\n    replicasPerGroup: 0\n    namePrefix: {prefix}\n    \
             groupOverrides: [{{groups: [1], config: {{fileReservedTime: \"9\"}}}}]\n"
        )
    };
    let data = dir.path().join("other");
    let start = |manifest: &str| {
        let manifest = write(dir.path(), "m.yaml", manifest);
        let data = data.to_str().unwrap();
        [
            "up", &manifest, "--ports", "free", "-o", "json", "--data", data,
        ]
        .map(str::to_owned)
    };
    let taken = start(&manifest("broker"));
    let said = refusal(&taken.each_ref().map(String::as_str));
    assert!(said.contains("has a broker broker-0 already"), "{said}");

    let other = start(&manifest("other"));
    let mut second = Running::start(&other.each_ref().map(String::as_str));
    second.said("no NameServer is started");
    let report = second.json();
    assert_eq!(text(&report, "/nameServers/0/address"), name_server);
    assert!(report["nameServers"][0]["pid"].is_null());
    let admin = AdminClient::new(&[name_server.to_owned()], AdminOptions::default());
    let (_, info) = runtime().block_on(admin.cluster_info()).unwrap();
    let known: Vec<&str> = info.broker_addr_table.keys().map(String::as_str).collect();
    assert_eq!(known, ["broker-0", "other-0", "other-1"]);
    let kept = |broker: &str| {
        let conf = data.join(broker).join("broker.conf");
        let conf = std::fs::read_to_string(conf).unwrap();
        conf.contains("fileReservedTime=9\n")
    };
    assert!(kept("other-1-0") && !kept("other-0-0"));
    assert_eq!(second.terminate().code(), Some(0));
    assert_eq!(first.terminate().code(), Some(0));
}

#[test]
fn a_value_that_only_a_role_would_refuse_is_told_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\n\
                    metadata: {name: a}\nspec:\n  version: 0.1.0\n  \
                    nameServer: {config: {needWaitForService: maybe}}\n  \
                    brokers: {config: {deleteWhen: \"25\"}}\n";
    let manifest = write(dir.path(), "m.yaml", manifest);
    let data = dir.path().join("data");
    let output = run(&["up", &manifest, "--data", data.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("spec.nameServer.config.needWaitForService: \"maybe\""),
        "{said}"
    );
    assert!(
        said.contains("spec.brokers.config.deleteWhen: \"25\" is no hour"),
        "{said}"
    );
    assert!(said.contains("has 2 problems"), "{said}");
    assert!(!data.exists());
}
