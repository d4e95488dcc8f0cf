//! How a gateway is set up: Java's keys of `rmq-proxy.json`, which YAML reads as well.
//!
//! **Invariant:** a key that is not known is an error, named; a value out of its range too. Only the
//! program reads files; this crate gets the text.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::Deserialize;

/// Why a configuration is none.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The text cannot be read, or has a key that is not known.
    #[error("the configuration cannot be read: {0}")]
    Text(#[source] Box<serde_saphyr::Error>),
    /// A value is out of its range.
    #[error("{key}={value} is not within {range}")]
    Range {
        /// Which key.
        key: &'static str,
        /// What stands there.
        value: u64,
        /// What may stand there.
        range: &'static str,
    },
    /// No NameServer is named.
    #[error("no NameServer is named: namesrvAddr=host:9876;host:9876")]
    NoNameServer,
    /// A mode that this gateway does not have.
    #[error("proxyMode={0} is not supported: run a broker and a gateway in cluster mode beside it")]
    Mode(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Raw {
    #[serde(rename = "rocketMQClusterName")]
    _cluster: Option<String>,
    proxy_mode: Option<String>,
    namesrv_addr: Option<String>,
    bind_address: Option<IpAddr>,
    grpc_server_port: Option<u16>,
    grpc_max_inbound_message_size: Option<u64>,
    grpc_shutdown_time_seconds: Option<u64>,
    max_message_size: Option<u64>,
    grpc_connections_max: Option<u64>,
    grpc_streams_per_connection_max: Option<u64>,
    grpc_requests_max: Option<u64>,
    grpc_receives_max: Option<u64>,
    grpc_clients_max: Option<u64>,
    grpc_delivery_bytes_max: Option<u64>,
    renewed_messages_max: Option<u64>,
    enable_topic_message_type_check: Option<bool>,
}

/// Bounds of what clients may hold in the gateway. Beyond each of them the answer is
/// `TOO_MANY_REQUESTS`, or a connection that is closed at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest request, in bytes (`grpcMaxInboundMessageSize`).
    pub request_bytes_max: usize,
    /// Longest body of a message, in bytes (`maxMessageSize`).
    pub body_bytes_max: usize,
    /// Open connections.
    pub connections_max: usize,
    /// Calls at a time on one connection.
    pub streams_per_connection_max: u32,
    /// Calls at a time that do not wait for messages.
    pub requests_max: usize,
    /// Calls at a time that wait for messages.
    pub receives_max: usize,
    /// Clients with settings, and streams of telemetry.
    pub clients_max: usize,
    /// Bytes of popped messages that clients have not taken yet.
    pub delivery_bytes_max: usize,
    /// Messages that are kept invisible for push consumers.
    pub renewed_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes_max: 16 * 1024 * 1024,
            body_bytes_max: rmq_types::limits::BODY_BYTES_MAX,
            connections_max: 20_000,
            streams_per_connection_max: 1_024,
            requests_max: 10_000,
            receives_max: 50_000,
            clients_max: 50_000,
            delivery_bytes_max: 256 * 1024 * 1024,
            renewed_max: 500_000,
        }
    }
}

/// A gateway's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where clients connect; port 0 takes a free one.
    pub listen: SocketAddr,
    /// NameServers, `host:port`.
    pub name_servers: Vec<String>,
    /// Bounds.
    pub limits: Limits,
    /// Whether a message must be of the kind its topic takes.
    pub check_message_type: bool,
    /// How long an orderly stop waits for calls.
    pub shutdown_patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8081),
            name_servers: Vec::new(),
            limits: Limits::default(),
            check_message_type: true,
            shutdown_patience: Duration::from_secs(30),
        }
    }
}

impl Options {
    /// Reads a configuration: JSON or YAML with Java's keys.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let raw: Raw = if text.trim().is_empty() {
            Raw::default()
        } else {
            serde_saphyr::from_str(text).map_err(|e| ConfigError::Text(Box::new(e)))?
        };
        if let Some(mode) = raw.proxy_mode.as_deref()
            && !mode.eq_ignore_ascii_case("cluster")
        {
            return Err(ConfigError::Mode(mode.to_owned()));
        }
        let mut options = Self::default();
        if let Some(ip) = raw.bind_address {
            options.listen.set_ip(ip);
        }
        if let Some(port) = raw.grpc_server_port {
            options.listen.set_port(port);
        }
        if let Some(list) = &raw.namesrv_addr {
            options.name_servers = addresses(list);
        }
        if let Some(check) = raw.enable_topic_message_type_check {
            options.check_message_type = check;
        }
        if let Some(seconds) = raw.grpc_shutdown_time_seconds {
            let seconds = ranged("grpcShutdownTimeSeconds", seconds, 0..=3_600, "0 and 3600")?;
            options.shutdown_patience = Duration::from_secs(seconds);
        }
        options.limits = raw.limits()?;
        Ok(options)
    }

    /// The configuration in force, as [`Options::parse`] reads it.
    #[must_use]
    pub fn show(&self) -> String {
        let limits = &self.limits;
        let lines = [
            ("proxyMode", "CLUSTER".to_owned()),
            ("namesrvAddr", format!("{:?}", self.name_servers.join(";"))),
            ("bindAddress", format!("{:?}", self.listen.ip().to_string())),
            ("grpcServerPort", self.listen.port().to_string()),
            (
                "grpcMaxInboundMessageSize",
                limits.request_bytes_max.to_string(),
            ),
            ("maxMessageSize", limits.body_bytes_max.to_string()),
            ("grpcConnectionsMax", limits.connections_max.to_string()),
            (
                "grpcStreamsPerConnectionMax",
                limits.streams_per_connection_max.to_string(),
            ),
            ("grpcRequestsMax", limits.requests_max.to_string()),
            ("grpcReceivesMax", limits.receives_max.to_string()),
            ("grpcClientsMax", limits.clients_max.to_string()),
            (
                "grpcDeliveryBytesMax",
                limits.delivery_bytes_max.to_string(),
            ),
            ("renewedMessagesMax", limits.renewed_max.to_string()),
            (
                "enableTopicMessageTypeCheck",
                self.check_message_type.to_string(),
            ),
            (
                "grpcShutdownTimeSeconds",
                self.shutdown_patience.as_secs().to_string(),
            ),
        ];
        let mut text = String::new();
        for (key, value) in lines {
            text.push_str(key);
            text.push_str(": ");
            text.push_str(&value);
            text.push('\n');
        }
        text
    }

    /// Whether a gateway can be started with it.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.name_servers.is_empty() {
            return Err(ConfigError::NoNameServer);
        }
        Ok(())
    }
}

/// The addresses of a list with semicolons between.
fn addresses(list: &str) -> Vec<String> {
    list.split(';')
        .map(str::trim)
        .filter(|addr| !addr.is_empty())
        .map(str::to_owned)
        .collect()
}

fn ranged(
    key: &'static str,
    value: u64,
    range: std::ops::RangeInclusive<u64>,
    told: &'static str,
) -> Result<u64, ConfigError> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(ConfigError::Range {
        key,
        value,
        range: told,
    })
}

impl Raw {
    fn limits(&self) -> Result<Limits, ConfigError> {
        let mut limits = Limits::default();
        let bytes = |key, value: Option<u64>, old: usize| match value {
            None => Ok(old),
            Some(value) => ranged(key, value, 1_024..=(1 << 32), "1024 and 4294967296")
                .map(|value| value as usize),
        };
        let count = |key, value: Option<u64>, old: usize| match value {
            None => Ok(old),
            Some(value) => {
                ranged(key, value, 1..=10_000_000, "1 and 10000000").map(|value| value as usize)
            }
        };
        limits.request_bytes_max = bytes(
            "grpcMaxInboundMessageSize",
            self.grpc_max_inbound_message_size,
            limits.request_bytes_max,
        )?;
        limits.body_bytes_max = bytes(
            "maxMessageSize",
            self.max_message_size,
            limits.body_bytes_max,
        )?;
        limits.delivery_bytes_max = bytes(
            "grpcDeliveryBytesMax",
            self.grpc_delivery_bytes_max,
            limits.delivery_bytes_max,
        )?;
        limits.connections_max = count(
            "grpcConnectionsMax",
            self.grpc_connections_max,
            limits.connections_max,
        )?;
        limits.streams_per_connection_max = count(
            "grpcStreamsPerConnectionMax",
            self.grpc_streams_per_connection_max,
            limits.streams_per_connection_max as usize,
        )? as u32;
        limits.requests_max = count(
            "grpcRequestsMax",
            self.grpc_requests_max,
            limits.requests_max,
        )?;
        limits.receives_max = count(
            "grpcReceivesMax",
            self.grpc_receives_max,
            limits.receives_max,
        )?;
        limits.clients_max = count("grpcClientsMax", self.grpc_clients_max, limits.clients_max)?;
        limits.renewed_max = count(
            "renewedMessagesMax",
            self.renewed_messages_max,
            limits.renewed_max,
        )?;
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn javas_json_and_yaml_are_read_and_what_is_shown_reads_back() {
        let json = r#"{"rocketMQClusterName":"DefaultCluster","namesrvAddr":"a:1; b:2",
            "grpcServerPort":18081,"proxyMode":"cluster"}"#;
        let options = Options::parse(json).unwrap();
        assert_eq!(options.name_servers, ["a:1", "b:2"]);
        assert_eq!(options.listen.port(), 18_081);
        let yaml = "bindAddress: 127.0.0.1\ngrpcReceivesMax: 7\nmaxMessageSize: 2048\n";
        let other = Options::parse(yaml).unwrap();
        assert_eq!(other.limits.receives_max, 7);
        for options in [options, other, Options::default()] {
            assert_eq!(Options::parse(&options.show()).unwrap(), options);
        }
    }

    #[test]
    fn what_is_unknown_or_out_of_range_is_named() {
        let said = |text: &str| Options::parse(text).unwrap_err().to_string();
        assert!(said("nonsense: 1").contains("nonsense"));
        assert!(said("proxyMode: LOCAL").contains("LOCAL"));
        assert!(said("grpcReceivesMax: 0").contains("grpcReceivesMax=0"));
        assert!(said("grpcServerPort: 99999").contains("cannot be read"));
        assert!(said("[").contains("cannot be read"));
    }

    #[test]
    fn a_gateway_needs_a_name_server() {
        assert!(Options::default().check().is_err());
        assert!(
            Options::parse("namesrvAddr: ' ; '")
                .unwrap()
                .check()
                .is_err()
        );
    }
}
