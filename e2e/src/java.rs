//! The official Java server and tools, from Maven.
//!
//! **Invariant:** heaps are small, logs and home folders are inside the fixture's own folder, and
//! each role is a JVM of its own, so that a broker can be killed while its NameServer goes on.

use crate::cluster::project_root;
use crate::ports;
use crate::process::{End, Process};
use anyhow::Context as _;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const START: Duration = Duration::from_mins(2);
const CLUSTER: &str = "JavaCluster";
const BROKER: &str = "java-a";

/// The compiled Java project of `e2e/java`.
#[derive(Clone, Debug)]
pub struct JavaTools {
    classpath: String,
}

impl JavaTools {
    /// Compiles the project and asks Maven for its class path.
    pub fn prepare() -> anyhow::Result<Self> {
        let project = project_root().join("e2e/java");
        let list = project.join("target/classpath.txt");
        let status = Command::new("mvn")
            .args(["-q", "-B", "-ntp", "compile", "dependency:build-classpath"])
            .arg(format!("-Dmdep.outputFile={}", list.display()))
            .current_dir(&project)
            .status()
            .context("cannot start mvn: install Maven (Debian: apt-get install maven)")?;
        anyhow::ensure!(status.success(), "mvn compile ended with {status}");
        let jars = std::fs::read_to_string(&list).context("no class path from Maven")?;
        let classes = project.join("target/classes");
        Ok(Self {
            classpath: format!("{}:{}", classes.display(), jars.trim()),
        })
    }

    /// `java … Driver ARGUMENTS` with its home in `home`.
    pub(crate) fn driver(&self, home: &Path, log_name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("java");
        command
            .args(["-Xms64m", "-Xmx512m", "-XX:+UseSerialGC"])
            // Short lives: the second compiler would cost more than it saves.
            .arg("-XX:TieredStopAtLevel=1")
            .arg(format!("-Duser.home={}", home.display()))
            .arg(format!("-Drocketmq.home.dir={}", home.display()))
            .arg(format!("-Drmq.log.name={log_name}"))
            .args(["-cp", &self.classpath, "rmq.e2e.Driver"])
            .args(arguments);
        command
    }
}

/// A Java NameServer and broker.
#[derive(Debug)]
pub struct JavaServer {
    tools: JavaTools,
    folder: tempfile::TempDir,
    name_server: String,
    broker_address: String,
    broker: Option<Process>,
    _name_server_process: Process,
}

impl JavaServer {
    /// Starts both on free ports and waits until the broker is registered.
    pub fn start(tools: &JavaTools) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let (process, name_server) = start_name_server(tools, folder.path())?;
        let port = ports::free_for_broker()?;
        let store = folder.path().join("store");
        let settings = [
            ("brokerClusterName", CLUSTER.to_owned()),
            ("brokerName", BROKER.to_owned()),
            ("namesrvAddr", name_server.clone()),
            ("mappedFileSizeCommitLog", (64 << 20).to_string()),
            ("mappedFileSizeConsumeQueue", "600000".to_owned()),
        ];
        let conf = broker_conf(port, &store, &settings);
        std::fs::write(folder.path().join("broker.conf"), conf)?;
        let mut server = Self {
            tools: tools.clone(),
            folder,
            name_server,
            broker_address: format!("127.0.0.1:{port}"),
            broker: None,
            _name_server_process: process,
        };
        server.start_broker()?;
        Ok(server)
    }

    fn start_broker(&mut self) -> anyhow::Result<()> {
        let conf = self.folder.path().join("broker.conf");
        self.broker = Some(start_broker(&self.tools, self.folder.path(), &conf)?);
        Ok(())
    }

    /// NameServer address.
    pub fn name_servers(&self) -> &str {
        &self.name_server
    }

    /// Broker address.
    pub fn broker(&self) -> &str {
        &self.broker_address
    }

    /// The cluster's name.
    pub fn cluster(&self) -> &'static str {
        CLUSTER
    }

    /// Ends the broker and starts it again on the same data.
    pub fn restart_broker(&mut self, how: End) -> anyhow::Result<()> {
        if let Some(mut broker) = self.broker.take() {
            broker.end(how)?;
        }
        self.start_broker()
    }
}

/// Starts a Java NameServer on a free port; answers it and its address.
pub(crate) fn start_name_server(
    tools: &JavaTools,
    folder: &Path,
) -> anyhow::Result<(Process, String)> {
    let conf = folder.join("namesrv.conf");
    let port = ports::free()?;
    let text = format!(
        "rocketmqHome={home}\nlistenPort={port}\nkvConfigPath={home}/kv.json\nconfigStorePath={home}/namesrv.properties\n",
        home = folder.display()
    );
    std::fs::write(&conf, text)?;
    let command = tools.driver(folder, "namesrv", &["namesrv", "--conf", path_text(&conf)?]);
    let mut process = Process::start("Java NameServer", command, &folder.join("namesrv.err"))?;
    process.wait_for_line(START, "ready line", ready)?;
    Ok((process, format!("127.0.0.1:{port}")))
}

/// Starts a Java broker from a `broker.conf` and waits until it is registered.
pub(crate) fn start_broker(
    tools: &JavaTools,
    folder: &Path,
    conf: &Path,
) -> anyhow::Result<Process> {
    let command = tools.driver(folder, "broker", &["broker", "--conf", path_text(conf)?]);
    let mut process = Process::start("Java broker", command, &folder.join("java-broker.err"))?;
    process.wait_for_line(START, "ready line", ready)?;
    Ok(process)
}

fn ready(line: &str) -> Option<()> {
    line.starts_with("READY ").then_some(())
}

/// A `broker.conf` that the Java broker and ours both read.
pub(crate) fn broker_conf(port: u16, store: &Path, settings: &[(&str, String)]) -> String {
    let store = store.display();
    let mut text = format!(
        "brokerId=0\nbrokerIP1=127.0.0.1\nlistenPort={port}\nhaListenPort={ha}\n\
         storePathRootDir={store}\nstorePathCommitLog={store}/commitlog\n\
         brokerRole=ASYNC_MASTER\nflushDiskType=ASYNC_FLUSH\n",
        ha = port.saturating_add(1)
    );
    // On a busy computer a client would rather wait than be told that the broker is busy.
    text.push_str("waitTimeMillsInSendQueue=5000\n");
    for (key, value) in settings {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{key}={value}");
    }
    text
}

pub(crate) fn path_text(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .with_context(|| format!("a path that is no text: {}", path.display()))
}

/// Where the reports of Surefire are.
pub(crate) fn surefire_reports(project: &str) -> PathBuf {
    project_root().join(project).join("target/surefire-reports")
}
