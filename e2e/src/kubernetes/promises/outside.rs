//! Clients outside of Kubernetes, through a NodePort.
//!
//! **Invariant:** the address that a NameServer gives for a broker is one that the client outside
//! reaches, and the one that the manifest asks for.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::own::address;
use super::super::rocketmq::RocketMq;
use anyhow::Context as _;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(5);

pub(super) fn check(kube: &KubeCluster) -> Found {
    if kube.own().is_none() {
        return Ok("not asked: nodes may not be reachable from here".to_owned());
    }
    let spec = "{version: 0.1.0, nameServer: {replicas: 1}, brokers: {groups: 1, replicasPerGroup: \
                0, storage: {size: 1Gi}}, listeners: [{name: outside, type: NodePort, advertised: \
                {from: HostIP}}]}";
    let (cluster, _) = RocketMq::up(kube, "outside", spec)?;
    let object = cluster.object()?;
    let brokers = object["status"]["endpoints"]["brokers"].as_array();
    let told = brokers
        .and_then(|list| list.first())
        .and_then(|line| line.as_str());
    let told = told.context("the status tells no broker")?;
    let at = told.split_whitespace().last().unwrap_or_default();
    let socket: SocketAddr = at.parse().with_context(|| told.to_owned())?;
    let nodes: Vec<String> = kube
        .nodes()
        .iter()
        .map(|n| address(n))
        .collect::<Result<_, _>>()?;
    anyhow::ensure!(
        nodes.contains(&socket.ip().to_string()),
        "{told} is no node of {nodes:?}"
    );
    TcpStream::connect_timeout(&socket, CONNECT).with_context(|| told.to_owned())?;
    Ok(format!("({told})"))
}
