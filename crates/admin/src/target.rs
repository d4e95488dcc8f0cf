//! Which brokers an operation is for: the masters of a cluster, or brokers by name or address.
//!
//! **Invariant:** a broker group without a master stays in the list, so that its absence is shown
//! and not passed over.

use std::{collections::BTreeMap, convert::Infallible, str::FromStr};

use rmq_protocol::{
    body::{BrokerData, ClusterInfo},
    remoting::{Command, request_code},
};
use rmq_types::{BrokerId, ClusterName, MASTER_ID, TopicName};

use crate::{AdminClient, AskError, NameServerError, TargetError, client::body};

/// One broker as NameServers know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The cluster; unknown when the broker was given by an address nobody has registered.
    pub cluster: Option<String>,
    /// The broker group; unknown as above.
    pub broker: Option<String>,
    /// Which member of the group.
    pub id: BrokerId,
    /// Its address; none if the group has no master and a master is needed.
    pub addr: Option<String>,
}

impl Target {
    /// What to call it: the group's name, or the address.
    #[must_use]
    pub fn label(&self) -> &str {
        self.broker
            .as_deref()
            .or(self.addr.as_deref())
            .unwrap_or("?")
    }

    pub(crate) fn master(data: &BrokerData) -> Self {
        Self {
            cluster: Some(data.cluster.clone()).filter(|cluster| !cluster.is_empty()),
            broker: Some(data.broker_name.clone()),
            id: MASTER_ID,
            addr: data.broker_addrs.get(&0).cloned(),
        }
    }
}

/// A broker as people name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerRef {
    /// The group's name: its master is meant.
    Name(String),
    /// `host:port`.
    Addr(String),
}

impl FromStr for BrokerRef {
    type Err = Infallible;

    /// Text with a colon is an address.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let text = text.trim().to_owned();
        Ok(if text.contains(':') {
            Self::Addr(text)
        } else {
            Self::Name(text)
        })
    }
}

/// Which brokers an operation is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The masters of the only cluster there is; an error if there are several.
    #[default]
    OnlyCluster,
    /// The masters of every cluster.
    AllClusters,
    /// The masters of one cluster.
    Cluster(ClusterName),
    /// These brokers.
    Brokers(Vec<BrokerRef>),
    /// The masters that have a topic, as its route says.
    Having(TopicName),
}

impl AdminClient {
    /// All clusters and brokers (code 106), and which NameServer said so.
    pub async fn cluster_info(&self) -> Result<(String, ClusterInfo), NameServerError> {
        let request = Command::request(request_code::GET_BROKER_CLUSTER_INFO);
        self.ask_name_servers_for(&request, ClusterInfo::from_json)
            .await
    }

    /// All clusters and brokers that the NameServer at `addr` knows (code 106).
    pub async fn cluster_info_at(&self, addr: &str) -> Result<ClusterInfo, AskError> {
        let code = request_code::GET_BROKER_CLUSTER_INFO;
        let answer = self.ask(addr, Command::request(code)).await?;
        body(addr, code, &answer, ClusterInfo::from_json)
    }

    /// The brokers that `scope` means, by name. Brokers given by address are not looked up when
    /// all are.
    pub async fn targets(&self, scope: &Scope) -> Result<Vec<Target>, TargetError> {
        match scope {
            Scope::Having(topic) => return Ok(self.route(topic).await?.masters()),
            Scope::Brokers(brokers) => {
                if let Some(targets) = by_address_only(brokers) {
                    return Ok(targets);
                }
            }
            Scope::OnlyCluster | Scope::AllClusters | Scope::Cluster(_) => {}
        }
        let (addr, info) = self.cluster_info().await?;
        resolve(&info, scope, &addr)
    }
}

fn unregistered(addr: &str) -> Target {
    Target {
        cluster: None,
        broker: None,
        id: MASTER_ID,
        addr: Some(addr.to_owned()),
    }
}

fn by_address_only(brokers: &[BrokerRef]) -> Option<Vec<Target>> {
    let addr = |broker: &BrokerRef| match broker {
        BrokerRef::Addr(addr) => Some(unregistered(addr)),
        BrokerRef::Name(_) => None,
    };
    brokers.iter().map(addr).collect()
}

fn resolve(info: &ClusterInfo, scope: &Scope, addr: &str) -> Result<Vec<Target>, TargetError> {
    let table = &info.broker_addr_table;
    match scope {
        Scope::Brokers(brokers) => {
            let mut targets = Vec::with_capacity(brokers.len());
            for broker in brokers {
                let target = one(table, broker)?;
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
            Ok(targets)
        }
        Scope::Cluster(name) => masters_of(info, name.as_str(), addr),
        Scope::OnlyCluster => {
            let mut names = info.cluster_addr_table.keys();
            match (names.next(), names.next()) {
                (Some(only), None) => masters_of(info, only, addr),
                (None, _) => Err(TargetError::NoBroker {
                    addr: addr.to_owned(),
                }),
                (Some(_), Some(_)) => Err(TargetError::SeveralClusters {
                    known: clusters(info),
                }),
            }
        }
        Scope::AllClusters if table.is_empty() => Err(TargetError::NoBroker {
            addr: addr.to_owned(),
        }),
        Scope::AllClusters | Scope::Having(_) => Ok(table.values().map(Target::master).collect()),
    }
}

fn clusters(info: &ClusterInfo) -> Vec<String> {
    info.cluster_addr_table.keys().cloned().collect()
}

fn masters_of(info: &ClusterInfo, name: &str, addr: &str) -> Result<Vec<Target>, TargetError> {
    let known = clusters(info);
    if known.is_empty() {
        return Err(TargetError::NoBroker {
            addr: addr.to_owned(),
        });
    }
    let Some(brokers) = info.cluster_addr_table.get(name) else {
        return Err(TargetError::NoSuchCluster {
            name: name.to_owned(),
            known,
        });
    };
    let groups = brokers
        .iter()
        .filter_map(|broker| info.broker_addr_table.get(broker));
    Ok(groups.map(Target::master).collect())
}

fn one(table: &BTreeMap<String, BrokerData>, broker: &BrokerRef) -> Result<Target, TargetError> {
    match broker {
        BrokerRef::Name(name) => table.get(name).map(Target::master).ok_or_else(|| {
            let known = table.keys().cloned().collect();
            TargetError::NoSuchBroker {
                name: name.clone(),
                known,
            }
        }),
        BrokerRef::Addr(addr) => {
            let member = |data: &BrokerData| {
                let (id, addr) = data.broker_addrs.iter().find(|(_, known)| *known == addr)?;
                let id = BrokerId::new(u64::try_from(*id).ok()?);
                Some(Target {
                    id,
                    addr: Some(addr.clone()),
                    ..Target::master(data)
                })
            };
            Ok(table
                .values()
                .find_map(member)
                .unwrap_or_else(|| unregistered(addr)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> ClusterInfo {
        let text = br#"{"brokerAddrTable":{
            "a":{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"a","cluster":"c1"},
            "b":{"brokerAddrs":{1:"10.0.0.4:10911"},"brokerName":"b","cluster":"c1"},
            "x":{"brokerAddrs":{0:"10.0.0.9:10911"},"brokerName":"x","cluster":"c2"}},
            "clusterAddrTable":{"c1":["a","b"],"c2":["x"]}}"#;
        ClusterInfo::from_json(text).unwrap()
    }

    fn labels(targets: &[Target]) -> Vec<(&str, Option<&str>)> {
        targets
            .iter()
            .map(|target| (target.label(), target.addr.as_deref()))
            .collect()
    }

    #[test]
    fn a_cluster_means_its_masters_and_a_group_without_one_stays() {
        let scope = Scope::Cluster(ClusterName::parse("c1").unwrap());
        let targets = resolve(&info(), &scope, "ns").unwrap();
        assert_eq!(
            labels(&targets),
            [("a", Some("10.0.0.1:10911")), ("b", None)]
        );
    }

    #[test]
    fn several_clusters_need_a_name_and_an_unknown_name_lists_them() {
        let error = resolve(&info(), &Scope::OnlyCluster, "ns").unwrap_err();
        assert_eq!(error.to_string(), "there are 2 clusters: c1, c2");
        let scope = Scope::Cluster(ClusterName::parse("c3").unwrap());
        let error = resolve(&info(), &scope, "ns").unwrap_err();
        assert_eq!(error.to_string(), "there is no cluster c3; known: c1, c2");
    }

    #[test]
    fn brokers_are_found_by_name_or_address_and_each_once() {
        let brokers = ["a", "10.0.0.1:10911", "10.0.0.2:10911", "10.9.9.9:1"];
        let scope = Scope::Brokers(brokers.iter().map(|text| text.parse().unwrap()).collect());
        let targets = resolve(&info(), &scope, "ns").unwrap();
        assert_eq!(
            labels(&targets),
            [
                ("a", Some("10.0.0.1:10911")),
                ("a", Some("10.0.0.2:10911")),
                ("10.9.9.9:1", Some("10.9.9.9:1")),
            ]
        );
        assert_eq!(targets[1].id, BrokerId::new(1));
    }

    #[test]
    fn without_any_broker_the_error_says_whom_it_asked() {
        for scope in [Scope::OnlyCluster, Scope::AllClusters] {
            let error = resolve(&ClusterInfo::default(), &scope, "ns:9876").unwrap_err();
            assert_eq!(
                error.to_string(),
                "no broker is registered at NameServer ns:9876"
            );
        }
    }
}
