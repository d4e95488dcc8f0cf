//! `rocketmq admin` against the Java NameServer and broker, as a user types it.
//!
//! **Invariant:** every verb runs as a process of its own, with `-o json` and for people; a case
//! checks what is printed, where and with which exit code. The cases go on from each other: one
//! server, one topic, one group.

use super::{Case, Outcome};
use crate::cluster::program;
use crate::java::{JavaServer, JavaTools};
use crate::poll;
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const TOPIC: &str = "AdminTopic";
const GROUP: &str = "admin-group";
/// A Java broker writes its key index and registers topics a moment later.
const SOON: Duration = Duration::from_secs(30);

type Check = fn(&Admin) -> anyhow::Result<()>;

const CASES: &[(&str, Check)] = &[
    (
        "the Java broker is shown with its version, rates and permissions",
        cluster,
    ),
    ("a topic is created, left alone, altered and listed", topic),
    (
        "messages are sent as an argument and as lines and read back by tag",
        messages,
    ),
    (
        "a group is created, its progress is stored, shown and moved",
        group,
    ),
    ("a message is found by its place, its ids and its key", find),
    ("the lag of every group is on the screen of status", lag),
    ("what is not there is refused with what to do", refusals),
    (
        "a group and a topic are deleted with what belongs to them",
        delete,
    ),
];

/// Runs the cases whose names hold `only`; a case needs those before it, so all run up to it.
pub(super) fn run(only: Option<&str>, log: &Path) -> anyhow::Result<Vec<Case>> {
    let server = JavaServer::start(&JavaTools::prepare()?)?;
    let admin = Admin {
        name_server: server.name_servers().to_owned(),
        broker: server.broker().to_owned(),
        cluster: server.cluster(),
        log,
    };
    let wanted = |name: &str| only.is_none_or(|part| name.contains(part));
    let last = CASES.iter().rposition(|(name, _)| wanted(name));
    let mut cases = Vec::new();
    for (name, check) in CASES.iter().take(last.map_or(0, |last| last + 1)) {
        let result = check(&admin);
        if !wanted(name) {
            continue;
        }
        let outcome = if result.is_ok() {
            Outcome::Passed
        } else {
            Outcome::Failed
        };
        let detail = result.err().map_or_else(String::new, |e| format!("{e:#}"));
        cases.push(Case {
            name: (*name).to_owned(),
            outcome,
            detail,
        });
    }
    Ok(cases)
}

struct Admin<'a> {
    name_server: String,
    broker: String,
    cluster: &'static str,
    log: &'a Path,
}

impl Admin<'_> {
    fn run(&self, args: &[&str], input: Option<&str>) -> anyhow::Result<Output> {
        let mut command = Command::new(program()?);
        command
            .args(["admin", "-n", &self.name_server])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start rocketmq")?;
        let stdin = child.stdin.take();
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            stdin.write_all(input.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        self.note(args, &output);
        Ok(output)
    }

    fn note(&self, args: &[&str], output: &Output) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.log);
        if let Ok(mut log) = log {
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            // A log that cannot be written spoils no test.
            let _ = writeln!(log, "$ rocketmq admin {}\n{out}{err}", args.join(" "));
        }
    }

    /// What a verb prints for people.
    fn people(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = self.run(args, None)?;
        succeeded(args, &output)?;
        Ok(text(&output.stdout))
    }

    /// The lines of a verb with `-o json`.
    fn json_of(&self, args: &[&str], input: Option<&str>) -> anyhow::Result<Vec<Value>> {
        let args = [args, &["-o", "json"]].concat();
        let output = self.run(&args, input)?;
        succeeded(&args, &output)?;
        let lines = text(&output.stdout);
        let line = |line| {
            serde_json::from_str(line)
                .with_context(|| format!("{}: no JSON: {line}", args.join(" ")))
        };
        lines.lines().map(line).collect()
    }

    fn lines(&self, args: &[&str]) -> anyhow::Result<Vec<Value>> {
        self.json_of(args, None)
    }

    /// The only line.
    fn one(&self, args: &[&str]) -> anyhow::Result<Value> {
        let mut lines = self.lines(args)?;
        ensure!(
            lines.len() == 1,
            "{}: {} lines",
            args.join(" "),
            lines.len()
        );
        lines.pop().context("one line")
    }

    /// The line of a verb that fails; nothing is on standard output unless `with_answer`.
    fn refused(&self, args: &[&str], holds: &str) -> anyhow::Result<()> {
        let output = self.run(args, None)?;
        let said = text(&output.stderr);
        ensure!(
            output.status.code() == Some(1),
            "{} ended with {}: {said}",
            args.join(" "),
            output.status
        );
        let errors = said.lines().filter(|line| line.starts_with("error: "));
        ensure!(errors.count() == 1, "one clear line, not {said:?}");
        ensure!(
            said.contains(holds),
            "{} does not say {holds:?}: {said}",
            args.join(" ")
        );
        Ok(())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeded(args: &[&str], output: &Output) -> anyhow::Result<()> {
    ensure!(
        output.status.success(),
        "{} ended with {}: {}",
        args.join(" "),
        output.status,
        text(&output.stderr)
    );
    Ok(())
}

fn same(what: &str, found: &Value, wanted: &Value) -> anyhow::Result<()> {
    ensure!(found == wanted, "{what} is {found}, not {wanted}");
    Ok(())
}

/// What each server did, as `admin` says.
fn outcomes(change: &Value) -> Vec<String> {
    let servers = change["servers"].as_array().map_or(&[][..], Vec::as_slice);
    let outcome = |server: &Value| server["outcome"].as_str().unwrap_or_default().to_owned();
    servers.iter().map(outcome).collect()
}

fn did(change: &Value, wanted: &[&str]) -> anyhow::Result<()> {
    let found = outcomes(change);
    ensure!(found == wanted, "{found:?}, not {wanted:?}: {change}");
    Ok(())
}

fn bodies(messages: &[Value]) -> Vec<&str> {
    let mut bodies: Vec<_> = messages
        .iter()
        .filter_map(|message| message["body"].as_str())
        .collect();
    bodies.sort_unstable();
    bodies
}

fn cluster(admin: &Admin<'_>) -> anyhow::Result<()> {
    // A Java broker has no rate before its first ten samples, one a second.
    let mut view = Value::Null;
    poll::until(SOON, "a rate of the Java broker", || {
        view = admin.one(&["cluster"])?;
        Ok(view["brokers"][0]["inTps"].is_number())
    })?;
    let broker = &view["brokers"][0];
    same("the cluster", &broker["cluster"], &json!(admin.cluster))?;
    same("the broker", &broker["broker"], &json!("java-a"))?;
    same("the role", &broker["role"], &json!("master"))?;
    same("the address", &broker["address"], &json!(admin.broker))?;
    same("the version", &broker["version"], &json!("V5_5_0"))?;
    ensure!(
        broker["inTps"].is_number() && broker["diskRatio"].is_number(),
        "{broker}"
    );
    let table = admin.people(&["cluster", "-c", admin.cluster])?;
    ensure!(
        table.starts_with("CLUSTER") && table.contains("V5_5_0"),
        "{table}"
    );
    admin.refused(&["cluster", "-c", "Nowhere"], "known: JavaCluster")?;
    let status = admin.one(&["status"])?;
    same(
        "registered brokers",
        &status["nameServers"][0]["brokers"],
        &json!(1),
    )?;
    let group = &status["brokerGroups"][0];
    same("the master", &group["master"], &json!(admin.broker))?;
    for says in ["readable", "writable"] {
        same(says, &group[says], &json!(true))?;
    }
    same("members in sync", &group["inSync"], &json!(1))
}

fn topic(admin: &Admin<'_>) -> anyhow::Result<()> {
    let create = ["topic", "create", TOPIC, "-q", "2"];
    did(&admin.one(&create)?, &["created"])?;
    did(&admin.one(&create)?, &["unchanged"])?;
    let other = ["topic", "create", TOPIC, "-q", "4"];
    admin.refused(&other, &format!("topic alter {TOPIC}"))?;
    let topics = admin.one(&["topic", "list"])?;
    same("the topics", &topics["topics"], &json!([TOPIC]))?;
    did(
        &admin.one(&["topic", "alter", TOPIC, "--perm", "r"])?,
        &["changed"],
    )?;
    let perm = |wanted: &'static str| {
        crate::until(SOON, "the permission in the route", || {
            let route = admin.one(&["topic", "route", TOPIC])?;
            Ok(route["brokers"][0]["perm"] == wanted)
        })
    };
    perm("r")?;
    admin.refused(
        &["send", TOPIC, "x"],
        &format!("topic alter {TOPIC} --perm rw"),
    )?;
    admin.one(&["topic", "alter", TOPIC, "--perm", "rw"])?;
    perm("rw")?;
    let table = admin.people(&["topic", "route", TOPIC])?;
    ensure!(
        table.starts_with("BROKER") && table.contains(&admin.broker),
        "{table}"
    );
    let status = admin.one(&["topic", "status", TOPIC])?;
    same("the messages", &status["messages"], &json!(0))?;
    let queues = status["queues"].as_array().map_or(0, Vec::len);
    ensure!(queues == 2, "{queues} queues: {status}");
    Ok(())
}

fn messages(admin: &Admin<'_>) -> anyhow::Result<()> {
    let sent = admin.one(&[
        "send", TOPIC, "first", "--tags", "red", "-k", "k1", "-p", "a=b", "-q", "1",
    ])?;
    same("the queue", &sent["queue"], &json!(1))?;
    same("the status", &sent["status"], &json!("SEND_OK"))?;
    let lines = admin.json_of(&["send", TOPIC], Some("second\n\nthird"))?;
    ensure!(lines.len() == 2, "{lines:?}");
    let status = admin.one(&["topic", "status", TOPIC])?;
    same("the messages", &status["messages"], &json!(3))?;
    let all = admin.lines(&["consume", TOPIC, "--from", "first", "--max", "3"])?;
    ensure!(bodies(&all) == ["first", "second", "third"], "{all:?}");
    let red = [
        "consume",
        TOPIC,
        "--tags",
        "red || blue",
        "--from",
        "first",
        "--no-follow",
    ];
    let red = admin.lines(&red)?;
    ensure!(bodies(&red) == ["first"], "{red:?}");
    let people = admin.people(&[
        "consume",
        TOPIC,
        "--from",
        "first",
        "--max",
        "3",
        "--body-only",
    ])?;
    ensure!(people.lines().count() == 3, "{people}");
    Ok(())
}

fn group(admin: &Admin<'_>) -> anyhow::Result<()> {
    did(
        &admin.one(&["group", "create", GROUP, "--retries", "3"])?,
        &["created"],
    )?;
    did(
        &admin.one(&["group", "create", GROUP, "--retries", "3"])?,
        &["unchanged"],
    )?;
    let groups = admin.one(&["group", "list"])?;
    let all = groups["groups"].as_array().map_or(&[][..], Vec::as_slice);
    let own = all.iter().find(|group| group["group"] == GROUP);
    same(
        "the retries",
        &own.context("the group is listed")?["retries"],
        &json!(3),
    )?;
    let unused = admin.one(&["group", "progress", GROUP])?;
    same(
        "the lag of a group that was not used",
        &unused["lag"],
        &json!(0),
    )?;
    let consume = ["consume", TOPIC, "-g", GROUP, "--from", "first"];
    let read = admin.lines(&[&consume[..], &["--max", "3"]].concat())?;
    ensure!(bodies(&read) == ["first", "second", "third"], "{read:?}");
    let again = admin.lines(&[&consume[..], &["--no-follow"]].concat())?;
    ensure!(again.is_empty(), "all was committed: {again:?}");
    let progress = admin.one(&["group", "progress", GROUP, "-t", TOPIC])?;
    same("the lag", &progress["lag"], &json!(0))?;
    let reset = ["offset", "reset", "-g", GROUP, "-t", TOPIC, "--to", "first"];
    did(&admin.one(&reset)?, &["reset"])?;
    let behind = admin.one(&["group", "progress", GROUP, "-t", TOPIC])?;
    same("the lag after the reset", &behind["lag"], &json!(3))?;
    let table = admin.people(&["group", "progress", GROUP])?;
    ensure!(
        table.starts_with("TOPIC") && table.contains("lag 3"),
        "{table}"
    );
    Ok(())
}

fn find(admin: &Admin<'_>) -> anyhow::Result<()> {
    let by_place = admin.one(&["message", "-t", TOPIC, "-q", "1", "--offset", "0"])?;
    same("the body", &by_place["body"], &json!("first"))?;
    same("the property", &by_place["properties"]["a"], &json!("b"))?;
    let id = by_place["offsetId"].as_str().context("an offset id")?;
    let by_id = admin.one(&["message", "--id", id])?;
    same(
        "the message by its id",
        &by_id["uniqueId"],
        &by_place["uniqueId"],
    )?;
    let unique = by_place["uniqueId"].as_str().context("a unique id")?;
    for which in [["-k", "k1"], ["--unique-id", unique]] {
        let args = [&["message", "-t", TOPIC][..], &which].concat();
        crate::until(SOON, "the message by its key", || {
            let args = [&args[..], &["-o", "json"]].concat();
            Ok(admin.run(&args, None)?.status.success())
        })?;
        let found = admin.lines(&args)?;
        ensure!(bodies(&found) == ["first"], "{found:?}");
    }
    let page = admin.people(&["message", "--id", id])?;
    ensure!(page.starts_with("topic") && page.contains("red"), "{page}");
    Ok(())
}

fn lag(admin: &Admin<'_>) -> anyhow::Result<()> {
    let status = admin.one(&["status", "-c", admin.cluster])?;
    let all = status["consumerGroups"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let own = all.iter().find(|group| group["group"] == GROUP);
    same(
        "the lag",
        &own.context("the group is shown")?["lag"],
        &json!(3),
    )?;
    let screen = admin.people(&["status"])?;
    ensure!(
        screen.contains("1 of 1 broker group writable") && screen.contains(GROUP),
        "{screen}"
    );
    Ok(())
}

fn refusals(admin: &Admin<'_>) -> anyhow::Result<()> {
    admin.refused(&["topic", "route", "nowhere"], "topic create nowhere")?;
    admin.refused(&["topic", "delete", "nowhere"], "nothing to delete")?;
    admin.refused(&["send", "nowhere", "x"], "topic create nowhere")?;
    admin.refused(&["group", "progress", "nobody"], "group create nobody")?;
    admin.refused(&["group", "delete", "nobody"], "nothing to delete")?;
    let place = ["message", "-t", TOPIC, "-q", "1", "--offset", "77"];
    admin.refused(&place, "holds offsets 0 to")?;
    admin.refused(
        &["message", "-t", TOPIC, "-k", "nokey"],
        "no message with the key",
    )?;
    admin.refused(
        &["topic", "create", "other", "-b", "nobody"],
        "known: java-a",
    )?;
    let broker = Admin {
        name_server: admin.broker.clone(),
        broker: admin.broker.clone(),
        ..*admin
    };
    broker.refused(&["topic", "list"], "is no NameServer")
}

fn delete(admin: &Admin<'_>) -> anyhow::Result<()> {
    let gone = admin.lines(&["group", "delete", GROUP, "--clean-offsets"])?;
    did(gone.first().context("a line")?, &["deleted"])?;
    admin.refused(&["group", "progress", GROUP], "does not exist")?;
    let topic = admin.one(&["topic", "delete", TOPIC])?;
    did(&topic, &["deleted", "route removed"])?;
    let topics = admin.one(&["topic", "list"])?;
    same("the topics", &topics["topics"], &json!([]))
}
