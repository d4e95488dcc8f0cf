//! A process that appends is killed with SIGKILL at some moment, several times over on one folder: every
//! message it acknowledged is there, queues are dense and unique.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

mod common;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use common::*;
use rmq_store::*;

const FOLDER: &str = "RMQ_STORE_KILL_TEST_FOLDER";
const SYNC: &str = "RMQ_STORE_KILL_TEST_SYNC";

/// Runs in the child only: appends for ever and says what is acknowledged.
#[test]
fn child_appends_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let sync = std::env::var_os(SYNC).is_some();
    let heard = Arc::new(Heard::default());
    let mut options = options(std::path::Path::new(&folder));
    options.queue_flush_interval = std::time::Duration::from_millis(5);
    if sync {
        options.flush = FlushMode::Sync;
    }
    let (store, _) = MessageStore::open(options, heard.clone(), HandClock::at(1)).unwrap();
    let mut results = Vec::new();
    let mut out = std::io::stdout().lock();
    for round in 0u32.. {
        let body = round.to_be_bytes().repeat(1 + round as usize % 300);
        let group: Vec<_> = (0..4)
            .map(|queue| message("T", queue % 3, &body, b""))
            .collect();
        store.append(&group, &mut results);
        let end = results
            .iter()
            .map(|one| one.as_ref().unwrap().end)
            .max()
            .unwrap();
        if sync {
            heard.wait(|told| told.durable >= end.get());
        }
        for (message, one) in group.iter().zip(&results) {
            let index = one.as_ref().unwrap().queue_offset;
            writeln!(out, "ACK {} {index} {round}", message.queue_id).unwrap();
        }
        out.flush().unwrap();
    }
}

/// One test at a time: a child that one test forks holds the open files of the other until it
/// executes, the lock of a store just dropped among them, and the other's next child is then refused.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn kill_rounds(sync: bool) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged: Vec<(u32, usize, u32)> = Vec::new();
    for round in 0..6u32 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child_appends_until_it_is_killed", "--nocapture"]);
        command
            .env(FOLDER, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        if sync {
            command.env(SYNC, "1");
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = 40 + 130 * round as usize;
        let mut take = |line: std::io::Result<String>| {
            let line = line.unwrap();
            let Some((_, text)) = line.split_once("ACK ") else {
                return 0;
            };
            let numbers: Vec<u32> = text
                .split(' ')
                .filter_map(|part| part.parse().ok())
                .collect();
            let [queue, index, body] = numbers[..] else {
                return 0;
            };
            acknowledged.push((queue, index as usize, body));
            1
        };
        let mut seen = 0;
        while seen < wanted {
            seen += take(lines.next().unwrap());
        }
        child.kill().unwrap();
        lines.map(&mut take).for_each(drop);
        child.wait().unwrap();
        let (store, report) = open(dir.path());
        assert!(!report.clean);
        let queues: Vec<_> = (0..3).map(|queue| bodies(&store, "T", queue)).collect();
        for (queue, index, body) in &acknowledged {
            let found = &queues[*queue as usize][*index];
            assert_eq!(
                found[..4],
                body.to_be_bytes(),
                "queue {queue} index {index}"
            );
        }
        drop(store);
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    kill_rounds(false);
}

#[test]
fn nothing_acknowledged_is_lost_under_sync_flush_when_the_process_is_killed() {
    kill_rounds(true);
}
