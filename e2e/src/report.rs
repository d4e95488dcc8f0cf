//! The JSON line that `rocketmq up -o json` prints when the cluster is ready.
//!
//! **Invariant:** only the fields that tests use are read; more may come.

use serde::Deserialize;

/// What runs and where.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    /// The cluster's name as clients know it.
    pub cluster: String,
    /// The NameServers.
    pub name_servers: Vec<NameServerReport>,
    /// The brokers.
    pub brokers: Vec<BrokerReport>,
    /// The gateways.
    #[serde(default)]
    pub proxies: Vec<ProxyReport>,
}

/// A NameServer.
#[derive(Clone, Debug, Deserialize)]
pub struct NameServerReport {
    /// Where clients connect.
    pub address: String,
    /// Its process.
    pub pid: u32,
    /// Where its metrics are read.
    pub metrics: Option<String>,
    /// Where its health is read.
    pub health: Option<String>,
}

/// A gateway.
#[derive(Clone, Debug, Deserialize)]
pub struct ProxyReport {
    /// Where 5.x clients connect.
    pub address: String,
}

/// A broker.
#[derive(Clone, Debug, Deserialize)]
pub struct BrokerReport {
    /// Its name in the cluster's table.
    #[serde(default)]
    pub name: String,
    /// The broker group, which clients call the broker name.
    pub group: String,
    /// 0 for the master.
    pub id: u64,
    /// Master or replica.
    pub role: String,
    /// Where clients connect.
    pub address: String,
    /// Its process.
    pub pid: u32,
    /// Where its metrics are read.
    pub metrics: Option<String>,
    /// Where its health is read.
    pub health: Option<String>,
}
