//! A pod, and a node, reach nothing outside this computer.
//!
//! **Invariant:** the same probe reaches the cluster's own API server, so a probe that cannot reach
//! anything fails the check. Addresses outside are those that documentation is made with (RFC 5737).

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::docker::docker;
use super::super::own::address;
use anyhow::Context as _;

/// Nobody's address.
const OUTSIDE: &str = "203.0.113.1";

pub(super) fn check(cluster: &KubeCluster) -> Found {
    let Some(own) = cluster.own() else {
        return Ok("not asked: the cluster is not one of ours".to_owned());
    };
    let inside = address(cluster.nodes().first().context("no node")?)?;
    let before = own.dropped_packets()?;
    for node in cluster.nodes() {
        anyhow::ensure!(
            reaches(node, &inside, 6443),
            "{node} does not even reach {inside}:6443"
        );
        anyhow::ensure!(!reaches(node, OUTSIDE, 443), "{node} reached {OUTSIDE}");
    }
    let dropped = own.dropped_packets()? - before;
    anyhow::ensure!(
        dropped >= u64::try_from(cluster.nodes().len())?,
        "nobody reached {OUTSIDE}, but the rule that drops its packets counted {dropped} of them"
    );
    Ok(format!("of {} nodes", cluster.nodes().len()))
}

/// Whether a connection can be made from a node, as from its pods, whose packets go the same way.
fn reaches(node: &str, address: &str, port: u16) -> bool {
    let connect = format!("exec 3<>/dev/tcp/{address}/{port}");
    docker(&["exec", node, "timeout", "3", "bash", "-c", &connect]).is_ok()
}
