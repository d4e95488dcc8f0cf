//! Which processes a manifest means on one computer, where they listen and what they are told.
//!
//! **Invariant:** a function of its arguments: the same manifest and placement give the same plan,
//! byte by byte, so that a restart finds its data. Usual ports, which never meet each other:
//!
//! | role | clients | health and metrics |
//! |---|---|---|
//! | NameServer *i* | 9876 + *i* | 9976 + *i* |
//! | gateway | 8081 | 5557 |
//! | broker *n*, counted over all groups | 10911 + 10 *n* (fast channel two below, HA one above) | 10910 + 10 *n* |

mod notes;

use rmq_operator_api::{Flush, RocketMQCluster, defaults};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

const NAME_SERVER_PORT: u16 = 9876;
const NAME_SERVER_HEALTH_PORT: u16 = 9976;
const PROXY_PORT: u16 = 8081;
const PROXY_HEALTH_PORT: u16 = 5557;
const BROKER_PORT: u16 = 10911;
const BROKER_HEALTH_PORT: u16 = 10910;
const BROKER_PORT_STEP: u16 = 10;

/// How ports are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// The table at the head of this file.
    Usual,
    /// Whatever is free: each role asks the kernel and says what it got.
    Free,
}

/// Where the cluster shall run.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Address on which every role listens and which it tells others.
    pub host: IpAddr,
    /// How ports are chosen.
    pub ports: PortChoice,
    /// Folder of the cluster's data.
    pub data_dir: PathBuf,
    /// Version of this program.
    pub program_version: String,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Keeps the routes.
    NameServer,
    /// Keeps messages.
    Broker,
    /// Serves 5.x clients over gRPC.
    Proxy,
}

impl Role {
    /// The sub-command, which is also the word in tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NameServer => "namesrv",
            Self::Broker => "broker",
            Self::Proxy => "proxy",
        }
    }
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessPlan {
    /// What it does.
    pub role: Role,
    /// Its name, unique in the cluster.
    pub name: String,
    /// Its broker group.
    pub group: Option<String>,
    /// Its id in the group; 0 is the master.
    pub id: Option<u64>,
    /// Where it shall listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where its health page shall be; port 0 takes a free one.
    pub health: SocketAddr,
    /// Its own folder.
    pub dir: PathBuf,
    /// Text of its configuration file.
    pub config: String,
}

impl ProcessPlan {
    /// Its configuration file.
    #[must_use]
    pub fn config_path(&self) -> PathBuf {
        self.dir.join(match self.role {
            Role::NameServer => "namesrv.conf",
            Role::Broker => "broker.conf",
            Role::Proxy => "proxy.yaml",
        })
    }

    /// Where its data is.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Where its log goes.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.dir
            .join("log")
            .join(format!("{}.log", self.role.as_str()))
    }

    /// The arguments of its command. `name_servers` in the form clients take.
    #[must_use]
    pub fn args(&self, listen: SocketAddr, health: SocketAddr, name_servers: &str) -> Vec<String> {
        let text = |path: PathBuf| path.display().to_string();
        let mut args = vec![
            self.role.as_str().to_owned(),
            "-c".to_owned(),
            text(self.config_path()),
            "--data".to_owned(),
            text(self.data_dir()),
            "--listen".to_owned(),
            listen.to_string(),
            "--http".to_owned(),
            health.to_string(),
            "--ready-line".to_owned(),
            "--stop-with-stdin".to_owned(),
        ];
        if self.role != Role::NameServer {
            args.extend(["-n".to_owned(), name_servers.to_owned()]);
        }
        args
    }
}

/// A part of the manifest that counts for nothing, or less, on one computer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note(pub String);

/// What shall run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalPlan {
    /// `metadata.name`.
    pub object: String,
    /// The cluster's name as clients know it.
    pub cluster: String,
    /// `spec.version`.
    pub version_asked: String,
    /// Version of this program, which is what runs.
    pub program_version: String,
    /// NameServers that somebody else runs, `host:port` each; then none is started.
    pub external_name_servers: Vec<String>,
    /// Started first and stopped last.
    pub name_servers: Vec<ProcessPlan>,
    /// Started when every NameServer listens.
    pub brokers: Vec<ProcessPlan>,
    /// Started when every broker is ready.
    pub proxies: Vec<ProcessPlan>,
    /// What the manifest asks and one computer does not give.
    pub notes: Vec<Note>,
}

impl LocalPlan {
    /// Names of the broker groups, in order.
    #[must_use]
    pub fn groups(&self) -> Vec<String> {
        let mut groups: Vec<String> = Vec::new();
        for group in self
            .brokers
            .iter()
            .filter_map(|broker| broker.group.as_ref())
        {
            if !groups.contains(group) {
                groups.push(group.clone());
            }
        }
        groups
    }
}

/// The plan for a manifest that [`rmq_operator_api::validate`] found sound.
#[must_use]
pub fn plan(cluster: &RocketMQCluster, placement: &Placement) -> LocalPlan {
    let spec = &cluster.spec;
    let name_servers = (0..bounded(
        spec.own_name_servers(),
        &defaults::NAME_SERVER_REPLICAS_RANGE,
    ))
        .map(|index| name_server(cluster, placement, index))
        .collect();
    let brokers = (0..bounded(spec.brokers.groups, &defaults::BROKER_GROUPS_RANGE))
        .map(|index| master(cluster, placement, index))
        .collect();
    LocalPlan {
        object: cluster.metadata.name.clone().unwrap_or_default(),
        cluster: cluster.cluster_name().to_owned(),
        version_asked: spec.version.clone(),
        program_version: placement.program_version.clone(),
        external_name_servers: spec.name_server.external_ref.clone(),
        name_servers,
        brokers,
        proxies: vec![proxy(placement)],
        notes: notes::of(cluster, placement),
    }
}

/// A count as a port offset: within its bounds even if nobody validated it.
fn bounded(count: i32, range: &std::ops::RangeInclusive<i32>) -> u16 {
    u16::try_from(count.clamp(0, *range.end())).unwrap_or_default()
}

fn name_server(cluster: &RocketMQCluster, placement: &Placement, index: u16) -> ProcessPlan {
    let name = format!("namesrv-{index}");
    let mut config = head(&name);
    for (key, value) in &cluster.spec.name_server.config {
        line(&mut config, key, value);
    }
    ProcessPlan {
        role: Role::NameServer,
        dir: placement.data_dir.join(&name),
        name,
        group: None,
        id: None,
        listen: address(placement, NAME_SERVER_PORT + index),
        health: address(placement, NAME_SERVER_HEALTH_PORT + index),
        config,
    }
}

fn master(cluster: &RocketMQCluster, placement: &Placement, group: u16) -> ProcessPlan {
    let brokers = &cluster.spec.brokers;
    let broker_name = brokers.broker_name(i32::from(group));
    let name = format!("{broker_name}-0");
    let mut config = head(&name);
    line(&mut config, "brokerClusterName", cluster.cluster_name());
    line(&mut config, "brokerName", &broker_name);
    line(&mut config, "brokerId", "0");
    line(&mut config, "brokerIP1", &placement.host.to_string());
    let flush = match brokers.flush {
        Flush::Async => "ASYNC_FLUSH",
        Flush::Sync => "SYNC_FLUSH",
    };
    line(&mut config, "flushDiskType", flush);
    for (key, value) in brokers.config_of(i32::from(group)) {
        line(&mut config, &key, &value);
    }
    ProcessPlan {
        role: Role::Broker,
        dir: placement.data_dir.join(&name),
        name,
        group: Some(broker_name),
        id: Some(0),
        listen: address(placement, BROKER_PORT + BROKER_PORT_STEP * group),
        health: address(placement, BROKER_HEALTH_PORT + BROKER_PORT_STEP * group),
        config,
    }
}

/// One runs, asked for or not, so that every client finds its way; more would share the same cores.
fn proxy(placement: &Placement) -> ProcessPlan {
    let name = "proxy-0".to_owned();
    let mut config = head(&name);
    config.push_str("proxyMode: CLUSTER\n");
    ProcessPlan {
        role: Role::Proxy,
        dir: placement.data_dir.join(&name),
        name,
        group: None,
        id: None,
        listen: address(placement, PROXY_PORT),
        health: address(placement, PROXY_HEALTH_PORT),
        config,
    }
}

fn address(placement: &Placement, usual: u16) -> SocketAddr {
    let port = match placement.ports {
        PortChoice::Usual => usual,
        PortChoice::Free => 0,
    };
    SocketAddr::new(placement.host, port)
}

fn head(name: &str) -> String {
    format!("# {name}: written by `rocketmq up` at every start; change the manifest instead.\n")
}

/// One line of a properties file. `\` is the only byte of a value that needs care: validation has
/// refused line breaks.
fn line(config: &mut String, key: &str, value: &str) {
    let _ = writeln!(config, "{key}={}", value.replace('\\', "\\\\"));
}

/// The data folder of a cluster when none is named.
#[must_use]
pub fn default_data_dir(cluster: &RocketMQCluster) -> PathBuf {
    Path::new("data").join(cluster.metadata.name.as_deref().unwrap_or("cluster"))
}

#[cfg(test)]
mod tests;
