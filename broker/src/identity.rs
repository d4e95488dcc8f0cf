//! Who this broker is, as clients and NameServers are told.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use rmq_types::{BrokerId, BrokerName, ClusterName};

/// Name, id and addresses of a broker.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Its cluster.
    pub cluster: ClusterName,
    /// Its group.
    pub name: BrokerName,
    /// Its id in the group; 0 is the master.
    pub id: BrokerId,
    /// Address that clients connect to and that stands in offset ids.
    pub address: SocketAddr,
    /// Address for replicas.
    pub ha_address: SocketAddr,
}

impl Identity {
    /// `host:port` as in routes.
    #[must_use]
    pub(crate) fn advertised(&self) -> String {
        self.address.to_string()
    }
}

/// The address of the interface that leads out of this computer, else loopback. Nothing is sent: a
/// UDP socket that is "connected" only looks up the route.
#[must_use]
pub(crate) fn local_ip() -> IpAddr {
    let probe = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        Ok(socket.local_addr()?.ip())
    };
    match probe() {
        Ok(ip) if !ip.is_unspecified() => ip,
        _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
    }
}
