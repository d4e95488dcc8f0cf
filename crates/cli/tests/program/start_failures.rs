//! What cannot start says why in one line and ends with an error code; it is never ready before.

use crate::program::{
    Running, eventually, get, is_alive, refusal, refusal_of, rocketmq, run, signal, write,
};
use rustix::process::Signal;
use std::net::TcpListener;
use tempfile::TempDir;

const FREE: &str = "127.0.0.1:0";

fn dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn path(dir: &TempDir) -> &str {
    dir.path().to_str().unwrap()
}

/// A role with a configuration text and free ports.
#[track_caller]
fn configured(role: &str, text: &str) -> String {
    let dir = dir();
    let config = write(dir.path(), "role.conf", text);
    refusal(&[role, "-c", &config, "--data", path(&dir), "--http", FREE])
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind(FREE).unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    for role in ["namesrv", "broker"] {
        let dir = dir();
        let text = refusal(&[
            role,
            "--data",
            path(&dir),
            "--listen",
            &addr,
            "--http",
            FREE,
        ]);
        assert!(text.contains(&addr), "{role}: {text}");
        assert_eq!(text.matches("in use").count(), 1, "{role}: {text}");
        let dir = self::dir();
        let text = refusal(&[
            role,
            "--data",
            path(&dir),
            "--listen",
            FREE,
            "--http",
            &addr,
        ]);
        assert!(
            text.contains(&addr) && text.contains("health"),
            "{role}: {text}"
        );
        assert_eq!(text.matches("in use").count(), 1, "{role}: {text}");
    }
}

#[test]
fn a_port_that_is_none_is_named_with_its_key() {
    for role in ["namesrv", "broker"] {
        for port in ["70000", "-1", "x"] {
            let text = configured(role, &format!("listenPort={port}\n"));
            assert!(
                text.contains("listenPort") && text.contains(port),
                "{role}: {text}"
            );
        }
    }
    for argument in ["--listen", "--http"] {
        let output = run(&["broker", argument, "127.0.0.1:70000"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .contains("127.0.0.1:70000")
        );
    }
}

#[test]
fn a_number_that_cannot_be_honoured_is_refused_with_its_key() {
    for setting in [
        "serverSelectorThreads=65",
        "serverConnectionsMax=0",
        "brokerPermission=8",
    ] {
        let key = setting.split('=').next().unwrap();
        assert!(configured("broker", setting).contains(key), "{setting}");
    }
}

#[test]
fn a_misspelt_key_is_refused_with_its_line_and_the_right_spelling() {
    let text = configured("broker", "brokerName=a\nbrokerIp1=127.0.0.1\n");
    assert!(
        text.contains("line 2") && text.contains("brokerIP1"),
        "{text}"
    );
    let text = configured("namesrv", "\nlistenport=9876\n");
    assert!(
        text.contains("line 2") && text.contains("listenPort"),
        "{text}"
    );
    for role in ["namesrv", "broker"] {
        let text = configured(role, "listnPort=9876\n");
        assert_eq!(text.matches("unknown key").count(), 1, "{text}");
    }
}

#[test]
fn both_roles_read_our_own_form() {
    let dir = dir();
    for role in ["namesrv", "broker"] {
        let config = write(dir.path(), "role.yaml", "listen-port: 1234\n");
        let output = run(&[role, "-c", &config, "--print-config"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().any(|line| line == "listenPort=1234"), "{text}");
        let config = write(dir.path(), "role.yaml", "listn-port: 1234\n");
        let text = refusal(&[role, "-c", &config, "--data", path(&dir), "--http", FREE]);
        assert!(text.contains("unknown key"), "{text}");
    }
}

#[test]
fn a_configuration_that_is_not_there_is_named() {
    for role in ["namesrv", "broker"] {
        let text = refusal(&[role, "-c", "/nonexistent/role.conf", "--http", FREE]);
        assert!(text.contains("/nonexistent/role.conf"), "{text}");
    }
}

#[test]
fn a_list_of_name_servers_without_ports_or_with_wrong_ones_is_refused() {
    for list in ["a", "a:99999", "a:9876;b", "a:", ":9876", "a:9876,b:x"] {
        let dir = dir();
        let text = refusal(&[
            "broker",
            "-n",
            list,
            "--data",
            path(&dir),
            "--listen",
            FREE,
            "--http",
            FREE,
        ]);
        assert!(text.contains("namesrvAddr"), "{list}: {text}");
    }
}

#[test]
fn a_broker_whose_name_server_is_unknown_runs_but_is_not_ready() {
    let dir = dir();
    let mut broker = Running::start(&[
        "broker",
        "-n",
        "no-such-host.invalid:9876",
        "--data",
        path(&dir),
        "--listen",
        FREE,
        "--http",
        FREE,
        "--ready-line",
    ]);
    let line = broker.json();
    let health = line["health"].as_str().unwrap();
    let (code, body) = get(health, "/readyz").unwrap();
    assert_eq!(code, 503, "{body}");
    assert!(body.contains("NameServer"), "{body}");
    assert_eq!(get(health, "/livez").unwrap().0, 200);
    assert!(
        get(health, "/metrics")
            .unwrap()
            .1
            .contains("rocketmq_ready{role=\"broker\"} 0")
    );
    assert_eq!(broker.terminate().code(), Some(0));
}

#[test]
fn a_data_folder_in_use_is_refused_with_its_owner() {
    let dir = dir();
    let args = [
        "namesrv",
        "--data",
        path(&dir),
        "--listen",
        FREE,
        "--http",
        FREE,
        "--ready-line",
    ];
    let mut first = Running::start(&args);
    let pid = first.json()["pid"].to_string();
    let text = refusal(&args);
    assert!(text.contains(&format!("in use by process {pid}")), "{text}");
    assert_eq!(first.terminate().code(), Some(0));
}

#[test]
fn a_role_stops_when_its_parent_goes() {
    let dir = dir();
    let mut command = rocketmq(&[
        "namesrv",
        "--data",
        path(&dir),
        "--listen",
        FREE,
        "--http",
        FREE,
        "--stop-with-stdin",
    ]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    assert!(is_alive(pid));
    drop(child.stdin.take());
    eventually("it ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// `timeout` and service managers signal a process and then its group: an orderly stop has been cut
/// short by the second of two equal signals.
#[test]
fn a_sigterm_that_arrives_more_than_once_is_one_orderly_stop() {
    for role in ["namesrv", "broker"] {
        let dir = dir();
        let mut running = Running::start(&[
            role,
            "--data",
            path(&dir),
            "--listen",
            FREE,
            "--http",
            FREE,
            "--ready-line",
        ]);
        running.json();
        let pid = running.child.id();
        for _ in 0..3 {
            signal(pid, Signal::TERM);
            std::thread::yield_now();
        }
        assert_eq!(running.terminate().code(), Some(0), "{role}");
    }
}

#[test]
fn a_wrong_log_filter_is_refused_rather_than_silent() {
    let dir = dir();
    let mut command = rocketmq(&["namesrv", "--data", path(&dir), "--http", FREE]);
    let text = refusal_of(command.env("RUST_LOG", "a=b=c"));
    assert!(text.contains("RUST_LOG=a=b=c"), "{text}");
}

#[test]
fn the_configuration_in_force_is_printed_with_arguments_over_the_file() {
    let dir = dir();
    let config = write(dir.path(), "role.conf", "listenPort=1234\n");
    for role in ["namesrv", "broker"] {
        for flag in ["--print-config", "-p"] {
            let output = run(&[role, "-c", &config, "--listen", "127.0.0.1:4321", flag]);
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success());
            assert!(text.lines().any(|line| line == "listenPort=4321"), "{text}");
        }
    }
}

/// What `--print-config` says about the nth example in our documentation.
fn printed_example(role: &str, form: &str, nth: usize) -> String {
    let text = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/configuration.md"
    ));
    let fence = format!("```{form}\n");
    let block = text.split(&fence).nth(nth).unwrap();
    let block = block.split("```").next().unwrap();
    assert_eq!(block.lines().count(), 10);
    let dir = dir();
    let config = write(dir.path(), &format!("role.{form}"), block);
    let output = run(&[role, "-c", &config, "--print-config"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.is_empty(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_documented_examples_are_taken_and_both_forms_say_the_same() {
    for (nth, role) in [(1, "broker"), (2, "namesrv")] {
        let java = printed_example(role, "properties", nth);
        assert_eq!(java, printed_example(role, "yaml", nth), "{role}");
        assert!(java.contains("/var/lib/rocketmq"), "{java}");
    }
}

#[test]
fn a_wrong_manifest_is_refused_before_anything_runs() {
    let dir = dir();
    let head = "apiVersion: rocketmq.rs/v1alpha1\nkind: RocketMQCluster\nmetadata:\n  name: a\n";
    let up = |spec: &str| {
        let file = write(dir.path(), "m.yaml", &format!("{head}{spec}"));
        let data = dir.path().join("data");
        let output = run(&["up", &file, "--data", data.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(!data.exists());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = up("spec:\n  version: 0.1.0\n  broker: {}\n");
    assert!(
        text.contains("line 7: unknown field `broker`; did you mean `brokers`?"),
        "{text}"
    );
    let text = up("spec:\n  version: 0.1.0\n  brokers: {groups: 0}\n");
    assert!(
        text.contains("spec.brokers.groups: must be from 1 to 128, but is 0"),
        "{text}"
    );
    let text = up("spec:\n  version: 0\n  nameServer: {replicas: 0}\n");
    assert!(
        text.contains("must be written") || text.contains("in quotes"),
        "{text}"
    );
    let text = up("spec:\n  version: 0.1.0\n  brokers: {config: {fileReservedTimes: \"1\"}}\n");
    assert!(
        text.contains("spec.brokers.config.fileReservedTimes: ")
            && text.contains("did you mean \"fileReservedTime\"?"),
        "{text}"
    );
    let text = up("spec:\n  version: a\n  nameServer: {replicas: 0}\n");
    assert!(
        text.contains("spec.version") && text.contains("2 problems"),
        "{text}"
    );
}

#[test]
fn a_manifest_that_is_not_there_is_named() {
    assert!(refusal(&["up", "/nonexistent.yaml"]).contains("/nonexistent.yaml"));
}

#[test]
fn the_definitions_are_printed_as_they_are_committed() {
    let output = run(&["crd"]);
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds");
    let mut kinds = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let committed = std::fs::read_to_string(&path).unwrap();
        let (_, definition) = committed.split_once('\n').unwrap();
        assert!(printed.contains(definition), "{}", path.display());
        kinds += 1;
    }
    assert_eq!(
        printed.matches("kind: CustomResourceDefinition").count(),
        kinds
    );
}
