//! Whether the NameServers know every broker, asked as any client would.
//!
//! **Invariant:** a cluster is ready when each NameServer answers with each broker at its address;
//! a role's own word about itself is not enough.

use rmq_admin::{AdminClient, AdminOptions};
use rmq_protocol::body::ClusterInfo;
use std::net::SocketAddr;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(3);

/// A broker as routes should show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) group: String,
    pub(crate) id: u64,
    pub(crate) address: SocketAddr,
}

/// Asks every NameServer; the error names the first thing that is missing.
pub(crate) async fn complete(name_servers: &[String], brokers: &[Expected]) -> Result<(), String> {
    for name_server in name_servers {
        let options = AdminOptions {
            timeout: DEADLINE,
            ..AdminOptions::default()
        };
        let (_, info) = AdminClient::new(std::slice::from_ref(name_server), options)
            .cluster_info()
            .await
            .map_err(|error| error.to_string())?;
        if let Some(broker) = brokers.iter().find(|broker| !knows(&info, broker)) {
            return Err(format!(
                "NameServer {name_server} does not know {} (id {}) at {} yet",
                broker.group, broker.id, broker.address
            ));
        }
    }
    Ok(())
}

fn knows(info: &ClusterInfo, broker: &Expected) -> bool {
    let id = i64::try_from(broker.id).unwrap_or(i64::MAX);
    let address = info
        .broker_addr_table
        .get(&broker.group)
        .and_then(|g| g.broker_addrs.get(&id));
    address.is_some_and(|address| *address == broker.address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_protocol::body::BrokerData;

    #[test]
    fn a_broker_is_known_by_group_id_and_address() {
        let mut group = BrokerData::default();
        group.broker_addrs.insert(0, "127.0.0.1:10911".to_owned());
        let mut info = ClusterInfo::default();
        info.broker_addr_table.insert("broker-0".to_owned(), group);
        let broker = |group: &str, id, port| Expected {
            group: group.to_owned(),
            id,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        };
        assert!(knows(&info, &broker("broker-0", 0, 10911)));
        assert!(!knows(&info, &broker("broker-0", 1, 10911)));
        assert!(!knows(&info, &broker("broker-0", 0, 10921)));
        assert!(!knows(&info, &broker("broker-1", 0, 10911)));
    }
}
