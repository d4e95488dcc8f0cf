//! Store folders handed from one broker to the other.
//!
//! **Invariant:** a step compares all that clients can see (every message with its offsets, times,
//! hosts and properties, queue bounds, topic and group settings, progress) with what the step before
//! showed, line by line; then it adds to the same topics for the next.

use super::{Case, Outcome};
use crate::cluster::program;
use crate::java::{self, JavaTools, path_text};
use crate::ports;
use crate::process::{End, Process};
use crate::target::Against;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const START: Duration = Duration::from_mins(1);
/// Both brokers write the progress of groups every five seconds.
const PERSIST: Duration = Duration::from_mins(1);

/// Who runs a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Java,
    Ours,
}

/// Sizes of the files of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    /// What both have when nothing is set.
    Usual,
    /// So small that the data crosses many of them.
    Small,
}

struct Scenario {
    name: &'static str,
    files: Files,
    /// Who runs, and how it ends.
    steps: &'static [(By, End)],
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "a folder of a stopped Java broker opens here with everything in it",
        files: Files::Usual,
        steps: &[(By::Java, End::Orderly), (By::Ours, End::Orderly)],
    },
    Scenario {
        name: "a folder of a killed Java broker opens here with everything in it",
        files: Files::Small,
        steps: &[(By::Java, End::Kill), (By::Ours, End::Orderly)],
    },
    Scenario {
        name: "a folder of ours, stopped, opens in the Java broker with everything in it",
        files: Files::Usual,
        steps: &[(By::Ours, End::Orderly), (By::Java, End::Orderly)],
    },
    Scenario {
        name: "a folder of ours, killed, opens in the Java broker with everything in it",
        files: Files::Small,
        steps: &[(By::Ours, End::Kill), (By::Java, End::Orderly)],
    },
    Scenario {
        name: "a folder goes from Java to ours and back again and grows at every step",
        files: Files::Small,
        steps: &[
            (By::Java, End::Orderly),
            (By::Ours, End::Orderly),
            (By::Java, End::Kill),
            (By::Ours, End::Kill),
            (By::Java, End::Orderly),
        ],
    },
];

/// Runs every scenario; with [`Against::Java`] the Java broker also plays our part.
pub(super) fn run(against: Against, only: Option<&str>, log: &Path) -> anyhow::Result<Vec<Case>> {
    let tools = JavaTools::prepare()?;
    let chosen = SCENARIOS
        .iter()
        .filter(|scenario| only.is_none_or(|part| scenario.name.contains(part)));
    let mut cases = Vec::new();
    for (number, scenario) in chosen.enumerate() {
        let log = log.with_extension(format!("{number}.log"));
        let result = Folder::new(&tools, against, &log, scenario).and_then(|mut folder| {
            let played = folder.play(scenario);
            if played.is_err() {
                folder.keep();
            }
            played
        });
        let detail = result
            .as_ref()
            .err()
            .map_or_else(String::new, |error| format!("{error:#}"));
        cases.push(Case {
            name: scenario.name.to_owned(),
            outcome: if result.is_ok() {
                Outcome::Passed
            } else {
                Outcome::Failed
            },
            detail,
        });
    }
    Ok(cases)
}

/// The store folder of a scenario, with the NameServer that outlives its brokers.
struct Folder<'a> {
    tools: &'a JavaTools,
    against: Against,
    log: &'a Path,
    folder: tempfile::TempDir,
    address: String,
    name_server: String,
    _name_server_process: Process,
}

impl<'a> Folder<'a> {
    fn new(
        tools: &'a JavaTools,
        against: Against,
        log: &'a Path,
        scenario: &Scenario,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let (name_server_process, name_server) = java::start_name_server(tools, folder.path())?;
        let port = ports::free_for_broker()?;
        let mut settings = vec![
            ("brokerClusterName", "SwapCluster".to_owned()),
            ("brokerName", "swap-a".to_owned()),
            ("namesrvAddr", name_server.clone()),
        ];
        if scenario.files == Files::Small {
            settings.push(("mappedFileSizeCommitLog", (1 << 20).to_string()));
            settings.push(("mappedFileSizeConsumeQueue", (50 * 20).to_string()));
        }
        let conf = java::broker_conf(port, &folder.path().join("store"), &settings);
        std::fs::write(folder.path().join("broker.conf"), conf)?;
        Ok(Self {
            tools,
            against,
            log,
            folder,
            address: format!("127.0.0.1:{port}"),
            name_server,
            _name_server_process: name_server_process,
        })
    }

    fn play(&self, scenario: &Scenario) -> anyhow::Result<()> {
        let ledger = self.folder.path().join("ledger");
        for (number, (by, end)) in scenario.steps.iter().enumerate() {
            let step = format!("step {} ({by:?}, then {end:?})", number + 1);
            let mut broker = self.start_broker(*by).with_context(|| step.clone())?;
            if number > 0 {
                self.driver("verify", &ledger).with_context(|| {
                    format!("{step}; the broker's log ends with: {}", broker.log_tail())
                })?;
            }
            // The last step writes as well: a folder that can be read but not added to is of no use.
            self.driver("produce", &ledger)
                .with_context(|| step.clone())?;
            if *end == End::Kill {
                self.await_progress_on_disk(&ledger)
                    .with_context(|| step.clone())?;
            }
            broker.end(*end).with_context(|| step.clone())?;
        }
        Ok(())
    }

    fn start_broker(&self, by: By) -> anyhow::Result<Process> {
        let conf = self.folder.path().join("broker.conf");
        if by == By::Java || self.against == Against::Java {
            return java::start_broker(self.tools, self.folder.path(), &conf);
        }
        let mut command = Command::new(program()?);
        command.args(["broker", "-c", path_text(&conf)?]);
        command.args(["--http", "127.0.0.1:0"]);
        let log = self.folder.path().join("broker.err");
        let broker = Process::start("our broker", command, &log)?;
        crate::until(START, "our broker listening", || {
            Ok(TcpStream::connect(&self.address).is_ok())
        })
        .with_context(|| format!("its log ends with: {}", broker.log_tail()))?;
        Ok(broker)
    }

    fn driver(&self, what: &str, ledger: &Path) -> anyhow::Result<()> {
        let mut arguments = vec![what, "--namesrv", &self.name_server];
        arguments.extend(["--ledger", path_text(ledger)?]);
        if what == "produce" {
            arguments.extend(["--seed", "swap"]);
        }
        let errors = File::options().create(true).append(true).open(self.log)?;
        let mut command = self.tools.driver(self.folder.path(), "driver", &arguments);
        let output = command
            .stderr(errors)
            .output()
            .context("cannot start java: install a JDK of version 17 or later")?;
        let said = String::from_utf8_lossy(&output.stdout);
        anyhow::ensure!(
            output.status.success(),
            "{what} ended with {}: {said}\n{}",
            output.status,
            crate::process::tail(self.log, 15)
        );
        Ok(())
    }

    /// Progress is written now and then; what a kill may take with it is not what is tested here.
    fn await_progress_on_disk(&self, ledger: &Path) -> anyhow::Result<()> {
        let ledger = std::fs::read_to_string(ledger)?;
        let wanted = progress_of_ledger(&ledger);
        let path = self.folder.path().join("store/config/consumerOffset.json");
        crate::until(PERSIST, "the progress of groups on disk", || {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            Ok(wanted.iter().all(|((key, queue), committed)| {
                progress_on_disk(&text, key).get(queue) == Some(committed)
            }))
        })
    }

    /// Leaves the folder of a failed scenario for a look.
    fn keep(&mut self) {
        self.folder.disable_cleanup(true);
        let kept: PathBuf = self.folder.path().to_owned();
        eprintln!("the folder is kept: {}", kept.display());
    }
}

/// `topic@group` and queue with the committed offset, from the lines that begin with `O`.
fn progress_of_ledger(ledger: &str) -> BTreeMap<(String, String), String> {
    let lines = ledger.lines().filter_map(|line| line.strip_prefix("O\t"));
    lines
        .filter_map(|line| {
            let mut cells = line.split('\t');
            let (group, topic, queue) = (cells.next()?, cells.next()?, cells.next()?);
            let committed = cells.next()?.strip_prefix("committed=")?;
            let key = format!("{topic}@{group}");
            Some(((key, queue.to_owned()), committed.to_owned()))
        })
        .collect()
}

/// Queue and offset of one `topic@group` in consumerOffset.json, whose numeric keys Java leaves
/// unquoted.
fn progress_on_disk(text: &str, key: &str) -> BTreeMap<String, String> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let Some((_, rest)) = compact.split_once(&format!("\"{key}\":{{")) else {
        return BTreeMap::new();
    };
    let table = rest.split('}').next().unwrap_or_default();
    table
        .split(',')
        .filter_map(|pair| pair.split_once(':'))
        .map(|(queue, offset)| (queue.trim_matches('"').to_owned(), offset.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_with_quoted_and_with_bare_keys() {
        for text in [
            "{\"offsetTable\":{\"t@g\":{0:30,\n\t1:31},\"u@g\":{0:1}}}",
            "{\"offsetTable\": {\"t@g\": {\"0\": 30, \"1\": 31}}}",
        ] {
            let table = progress_on_disk(text, "t@g");
            assert_eq!(table.get("0").map(String::as_str), Some("30"));
            assert_eq!(table.get("1").map(String::as_str), Some("31"));
        }
        let ledger = "G\tg\nO\tg\tt\t0\tcommitted=30\tmax=60\n";
        let wanted = progress_of_ledger(ledger);
        let key = ("t@g".to_owned(), "0".to_owned());
        assert_eq!(wanted.get(&key).map(String::as_str), Some("30"));
    }
}
