//! Configuration of running brokers and NameServers: show and change.
//!
//! **Invariant:** a change is taken whole or not at all by whoever is asked, and names no key that
//! was not given here. Keys and values are Java's.

use std::collections::BTreeMap;

use rmq_protocol::{
    header::{BrokerHeader, BrokerNameHeader},
    java_properties,
    remoting::{Command, request_code},
};
use rmq_types::{BrokerName, ClusterName};

use crate::{AdminClient, AskError, client::request};

/// Keys and values of a configuration.
pub type ConfigMap = BTreeMap<String, String>;

impl AdminClient {
    /// The configuration in force of the broker at `addr` (code 26).
    pub async fn broker_config(&self, addr: &str) -> Result<ConfigMap, AskError> {
        self.show_config(addr, request_code::GET_BROKER_CONFIG)
            .await
    }

    /// Changes keys of the broker at `addr` (code 25).
    pub async fn set_broker_config(&self, addr: &str, keys: &ConfigMap) -> Result<(), AskError> {
        self.set_config(addr, request_code::UPDATE_BROKER_CONFIG, keys)
            .await
    }

    /// The configuration in force of the NameServer at `addr` (code 319).
    pub async fn name_server_config(&self, addr: &str) -> Result<ConfigMap, AskError> {
        self.show_config(addr, request_code::GET_NAMESRV_CONFIG)
            .await
    }

    /// Changes keys of the NameServer at `addr` (code 318).
    pub async fn set_name_server_config(
        &self,
        addr: &str,
        keys: &ConfigMap,
    ) -> Result<(), AskError> {
        self.set_config(addr, request_code::UPDATE_NAMESRV_CONFIG, keys)
            .await
    }

    /// Takes the permission to write away from every topic of a broker group at the NameServer at
    /// `addr` (code 205).
    pub async fn wipe_write_permission(
        &self,
        addr: &str,
        broker: &BrokerName,
    ) -> Result<(), AskError> {
        self.permission(addr, request_code::WIPE_WRITE_PERM_OF_BROKER, broker)
            .await
    }

    /// Takes [`Self::wipe_write_permission`] back (code 327).
    pub async fn add_write_permission(
        &self,
        addr: &str,
        broker: &BrokerName,
    ) -> Result<(), AskError> {
        self.permission(addr, request_code::ADD_WRITE_PERM_OF_BROKER, broker)
            .await
    }

    /// Takes one broker from the NameServer at `addr`, as it would itself when it stops (code 104).
    pub async fn unregister_broker(
        &self,
        addr: &str,
        cluster: &ClusterName,
        broker: &BrokerName,
        (id, broker_addr): (i64, &str),
    ) -> Result<(), AskError> {
        let header = BrokerHeader {
            broker_name: broker.as_str().into(),
            broker_addr: broker_addr.into(),
            cluster_name: cluster.as_str().into(),
            broker_id: id,
        };
        let code = request_code::UNREGISTER_BROKER;
        self.ask(addr, request(code, &header)).await.map(drop)
    }

    async fn permission(&self, addr: &str, code: i32, broker: &BrokerName) -> Result<(), AskError> {
        let header = BrokerNameHeader {
            broker_name: broker.as_str().into(),
        };
        self.ask(addr, request(code, &header)).await.map(drop)
    }

    async fn show_config(&self, addr: &str, code: i32) -> Result<ConfigMap, AskError> {
        let answer = self.ask(addr, Command::request(code)).await?;
        java_properties::parse_map(&answer.body).map_err(|source| AskError::Properties {
            addr: addr.to_owned(),
            request: code,
            source,
        })
    }

    async fn set_config(&self, addr: &str, code: i32, keys: &ConfigMap) -> Result<(), AskError> {
        let text = java_properties::write(keys);
        let command = Command::request(code).with_body(text);
        self.ask(addr, command).await.map(drop)
    }
}
