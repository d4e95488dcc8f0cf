//! Options of a controller and the Java keys they are known by.
//!
//! **Invariant:** text becomes options whole or not at all; an unknown key is refused by name. Keys of
//! the replicated configuration are read too: a leader sets those that nobody has set yet.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use rmq_controller_fsm::{State, config_in_force};
use rmq_protocol::java_properties::{self, PropertiesError, Property};

/// Controllers of a group.
const PEERS_MAX: usize = 16;
/// Keys that mean something to the Java server only.
const INERT: &[&str] = &[
    "controllerType",
    "controllerThreadPoolNums",
    "controllerRequestThreadPoolQueueCapacity",
    "electMasterMaxRetryCount",
    "isProcessReadEvent",
    "listenPort",
    "mappedFileSize",
    "rocketmqHome",
    "configStorePath",
    "configBlackList",
    "metricsExporterType",
    "metricsGrpcExporterTarget",
    "metricsGrpcExporterHeader",
    "metricGrpcExporterTimeOutInMills",
    "metricGrpcExporterIntervalInMills",
    "metricLoggingExporterIntervalInMills",
    "metricsPromExporterPort",
    "metricsPromExporterHost",
    "metricsLabel",
    "metricsInDelta",
];

/// Why a configuration text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The text is no properties text.
    #[error(transparent)]
    Syntax(#[from] PropertiesError),
    /// Nobody knows the key.
    #[error("line {line}: unknown key {key}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Its line, from 1.
        line: usize,
    },
    /// The value is no value of the key.
    #[error("line {line}: {key} is refused: {problem}")]
    Value {
        /// The key.
        key: String,
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The controller's own id is not in the list of peers.
    #[error("controllerDLegerSelfId={0} is not in controllerDLegerPeers")]
    NotAPeer(String),
}

/// One controller of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// `n0`.
    pub name: String,
    /// `host:port`.
    pub address: String,
}

/// Everything a controller is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerOptions {
    /// Name of the group of controllers.
    pub group: String,
    /// All controllers by number: the digits of their names.
    pub peers: BTreeMap<u64, Peer>,
    /// This one's number.
    pub id: u64,
    /// Its folder.
    pub store_path: PathBuf,
    /// Where to listen, if not on every address with the port of its own peer.
    pub listen: Option<SocketAddr>,
    /// Keys of the replicated configuration that the file sets.
    pub seeds: BTreeMap<String, String>,
}

/// Options read from a file, and what its reader should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The options.
    pub options: ControllerOptions,
    /// Java keys in the text that have no effect here, one line each.
    pub notes: Vec<String>,
}

impl ControllerOptions {
    /// One controller alone on this computer.
    #[must_use]
    pub fn new(store_path: &Path) -> Self {
        let alone = Peer {
            name: "n0".to_owned(),
            address: "127.0.0.1:9878".to_owned(),
        };
        Self {
            group: "DefaultControllerGroup".to_owned(),
            peers: BTreeMap::from([(0, alone)]),
            id: 0,
            store_path: store_path.to_owned(),
            listen: None,
            seeds: BTreeMap::new(),
        }
    }

    /// Reads a Java `controller.conf` on top of these options.
    pub fn parse(mut self, text: &str) -> Result<Parsed, ConfigError> {
        let mut notes = Vec::new();
        let mut id = None;
        let replicated = config_in_force(&State::default());
        for Property { line, key, value } in java_properties::parse(text.as_bytes())? {
            let value = value.trim();
            let refused = |problem: String| ConfigError::Value {
                key: key.clone(),
                line,
                problem,
            };
            match key.as_str() {
                "controllerDLegerGroup" if value.is_empty() => {
                    return Err(refused("it is empty".to_owned()));
                }
                "controllerDLegerGroup" => value.clone_into(&mut self.group),
                "controllerDLegerPeers" => self.peers = parse_peers(value).map_err(refused)?,
                "controllerDLegerSelfId" => id = Some(parse_name(value).map_err(refused)?),
                "controllerStorePath" => self.store_path = PathBuf::from(value),
                name if replicated.contains_key(name) => {
                    self.seeds.insert(key.clone(), value.to_owned());
                }
                name if INERT.contains(&name) || name.starts_with("jRaft") => {
                    notes.push(format!("line {line}: {key} has no effect here"));
                }
                _ => return Err(ConfigError::UnknownKey { key, line }),
            }
        }
        self.id = id.unwrap_or(self.id);
        if !self.peers.contains_key(&self.id) {
            return Err(ConfigError::NotAPeer(format!("n{}", self.id)));
        }
        check_seeds(&self.seeds)?;
        Ok(Parsed {
            options: self,
            notes,
        })
    }

    /// Where to listen.
    pub fn listen_addr(&self) -> Result<SocketAddr, String> {
        if let Some(listen) = self.listen {
            return Ok(listen);
        }
        let own = self
            .peers
            .get(&self.id)
            .map_or("", |peer| peer.address.as_str());
        let port = own.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = port.ok_or_else(|| format!("{own:?} is no host:port"))?;
        Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port))
    }

    /// `n0-host:port;n1-host:port`.
    #[must_use]
    pub fn peers_text(&self) -> String {
        let peers = self.peers.values();
        let texts: Vec<String> = peers.map(|p| format!("{}-{}", p.name, p.address)).collect();
        texts.join(";")
    }

    /// What is in force, as properties text: a file that would start the same controller.
    #[must_use]
    pub fn to_properties(&self) -> String {
        let mut entries = vec![
            ("controllerDLegerGroup".to_owned(), self.group.clone()),
            ("controllerDLegerPeers".to_owned(), self.peers_text()),
            ("controllerDLegerSelfId".to_owned(), format!("n{}", self.id)),
            (
                "controllerStorePath".to_owned(),
                self.store_path.display().to_string(),
            ),
        ];
        entries.extend(self.seeds.clone());
        let entries = entries
            .iter()
            .map(|(key, value)| (key.as_str(), value.clone()));
        java_properties::write(entries)
    }
}

/// The seeds are values that the replicated state would take.
fn check_seeds(seeds: &BTreeMap<String, String>) -> Result<(), ConfigError> {
    let command = rmq_controller_fsm::Command::SetConfig(seeds.clone());
    let outcome = rmq_controller_fsm::apply(&mut State::default(), &command);
    match outcome.refusal() {
        None => Ok(()),
        Some(refusal) => Err(ConfigError::Value {
            key: "the controllers' configuration".to_owned(),
            line: 0,
            problem: refusal.to_string(),
        }),
    }
}

/// The number of `n7`.
fn parse_name(name: &str) -> Result<u64, String> {
    let digits = name
        .strip_prefix('n')
        .filter(|d| !d.is_empty() && d.len() <= 3);
    let number: Option<u64> = digits.and_then(|digits| digits.parse().ok());
    number
        .filter(|number| *number < 256)
        .ok_or_else(|| format!("{name:?} is no id: n0 to n255"))
}

fn parse_peers(text: &str) -> Result<BTreeMap<u64, Peer>, String> {
    let mut peers = BTreeMap::new();
    for part in text
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (name, address) = part
            .split_once('-')
            .ok_or_else(|| format!("{part:?} is not id-host:port"))?;
        let number = parse_name(name)?;
        let port = address
            .rsplit_once(':')
            .map(|(_, port)| port.parse::<u16>());
        if !matches!(port, Some(Ok(1..))) {
            return Err(format!("{address:?} is no host:port"));
        }
        let peer = Peer {
            name: name.to_owned(),
            address: address.to_owned(),
        };
        if peers.insert(number, peer).is_some() {
            return Err(format!("{name} stands there twice"));
        }
    }
    if peers.is_empty() || peers.len() > PEERS_MAX {
        return Err(format!("1 to {PEERS_MAX} controllers"));
    }
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Parsed, ConfigError> {
        ControllerOptions::new(Path::new("data")).parse(text)
    }

    const THREE: &str = "controllerDLegerGroup = g\n\
        controllerDLegerPeers = n0-a-host:9877;n1-127.0.0.1:9878;n2-127.0.0.1:9868\n\
        controllerDLegerSelfId = n1\nreplicationAck = Quorum:2\nmappedFileSize = 1\n";

    #[test]
    fn javas_file_is_read_and_printed_back_as_the_same() {
        let parsed = parse(THREE).unwrap();
        let options = parsed.options;
        assert_eq!((options.id, options.peers.len()), (1, 3));
        assert_eq!(options.peers[&0].address, "a-host:9877");
        assert_eq!(options.listen_addr().unwrap().port(), 9878);
        assert_eq!(parsed.notes, ["line 5: mappedFileSize has no effect here"]);
        assert_eq!(parse(&options.to_properties()).unwrap().options, options);
    }

    #[test]
    fn what_nobody_knows_or_makes_no_sense_is_refused_by_name() {
        for (text, part) in [
            ("listenPrt = 1", "listenPrt"),
            ("controllerDLegerPeers = n0", "id-host:port"),
            ("controllerDLegerPeers = n0-a:0", "host:port"),
            ("controllerDLegerPeers = x-a:1", "is no id"),
            ("controllerDLegerPeers = n0-a:1;n0-b:1", "twice"),
            ("controllerDLegerPeers =", "1 to 16"),
            ("controllerDLegerSelfId = n9", "n9"),
            ("masterLeaseMillis = 5000", "masterDetectMillis"),
            ("replicationAck = Some", "Quorum"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
