//! Whether the ports of a plan can be had: all of them, before anything starts.
//!
//! **Invariant:** every port is tried in the way in which its role will take it, and given back at
//! once; all that are taken are told together, each with its role and, where the system says so,
//! the process that has it. Ports that the kernel shall choose are not asked about.

use crate::local::holder::{Holder, holder_of};
use crate::local::plan::{LocalPlan, ProcessPlan, Role};
use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};

/// What a role has a port for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortUse {
    /// Clients.
    Clients,
    /// A broker's second port for clients, two below the first.
    FastChannel,
    /// A broker's port for replicas, one above.
    Replication,
    /// `/metrics`, `/livez`, `/readyz` and `/startupz`.
    Health,
}

impl PortUse {
    /// In words, after "for".
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::FastChannel => "the fast channel",
            Self::Replication => "replication",
            Self::Health => "health and metrics",
        }
    }
}

/// A port that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenPort {
    /// Name of the process that needs it.
    pub process: String,
    /// What for.
    pub purpose: PortUse,
    /// The address.
    pub addr: SocketAddr,
    /// Why it cannot be had.
    pub obstacle: Obstacle,
}

/// Why a port cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Somebody listens there; who, if the system tells us.
    Taken(Option<Holder>),
    /// The system says no for another reason.
    Refused(String),
}

impl fmt::Display for TakenPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (process, addr, purpose) = (&self.process, self.addr, self.purpose.as_str());
        write!(f, "{process} needs {addr} for {purpose}: ")?;
        match &self.obstacle {
            Obstacle::Taken(Some(holder)) => write!(f, "{holder} has it"),
            Obstacle::Taken(None) => f.write_str("another program has it"),
            Obstacle::Refused(why) => f.write_str(why),
        }
    }
}

/// What is wrong with the ports of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortProblem {
    /// The address is not one of this computer.
    NoSuchAddress(IpAddr),
    /// Some ports cannot be had.
    Taken(Vec<TakenPort>),
}

impl ProcessPlan {
    /// Every port that it takes by number; none if the kernel chooses.
    #[must_use]
    pub fn ports(&self) -> Vec<(PortUse, SocketAddr)> {
        let mut ports = vec![(PortUse::Clients, self.listen)];
        if self.role == Role::Broker {
            let beside = |step: i16| {
                let port = self.listen.port().checked_add_signed(step)?;
                Some(SocketAddr::new(self.listen.ip(), port))
            };
            let steps = [(PortUse::FastChannel, -2), (PortUse::Replication, 1)];
            ports.extend(
                steps
                    .into_iter()
                    .filter_map(|(purpose, step)| Some((purpose, beside(step)?))),
            );
        }
        ports.push((PortUse::Health, self.health));
        if self.listen.port() == 0 {
            ports.retain(|(purpose, addr)| *purpose == PortUse::Health && addr.port() != 0);
        }
        ports
    }
}

/// Tries every port of the plan.
pub(crate) fn check(plan: &LocalPlan) -> Result<(), PortProblem> {
    let mut taken = Vec::new();
    let processes = plan.name_servers.iter().chain(&plan.brokers);
    for process in processes.chain(&plan.proxies) {
        for (purpose, addr) in process.ports() {
            // As the roles do it: beside connections that are still closing, not beside a listener.
            let Err(error) = TcpListener::bind(addr) else {
                continue;
            };
            let obstacle = match error.kind() {
                ErrorKind::AddrNotAvailable => {
                    return Err(PortProblem::NoSuchAddress(addr.ip()));
                }
                ErrorKind::AddrInUse => Obstacle::Taken(holder_of(addr)),
                _ => Obstacle::Refused(error.to_string()),
            };
            taken.push(TakenPort {
                process: process.name.clone(),
                purpose,
                addr,
                obstacle,
            });
        }
    }
    if taken.is_empty() {
        Ok(())
    } else {
        Err(PortProblem::Taken(taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::path::PathBuf;

    fn process(role: Role, listen: SocketAddr, health: SocketAddr) -> ProcessPlan {
        ProcessPlan {
            role,
            name: format!("{}-0", role.as_str()),
            group: None,
            id: None,
            listen,
            health,
            dir: PathBuf::from("/d"),
            config: String::new(),
        }
    }

    fn plan(name_server: ProcessPlan, broker: ProcessPlan) -> LocalPlan {
        LocalPlan {
            name_servers: vec![name_server],
            brokers: vec![broker],
            ..LocalPlan::default()
        }
    }

    fn local(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    #[test]
    fn all_taken_ports_are_told_at_once_with_role_purpose_and_holder() {
        let held: Vec<TcpListener> = (0..2)
            .map(|_| TcpListener::bind(local(0)).unwrap())
            .collect();
        let ports: Vec<SocketAddr> = held.iter().map(|h| h.local_addr().unwrap()).collect();
        let plan = plan(
            process(Role::NameServer, ports[0], ports[1]),
            process(Role::Broker, local(0), local(0)),
        );
        let Err(PortProblem::Taken(taken)) = check(&plan) else {
            panic!("both ports are held by this test");
        };
        let said: Vec<String> = taken.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with(&format!("namesrv-0 needs {} for clients: ", ports[0])));
        assert!(said[1].contains("for health and metrics: "), "{said:?}");
        if cfg!(target_os = "linux") {
            let own = format!("process {} ", std::process::id());
            assert!(said.iter().all(|line| line.contains(&own)), "{said:?}");
        }
        drop(held);
        assert_eq!(check(&plan), Ok(()));
    }

    #[test]
    fn a_broker_needs_the_ports_beside_its_own() {
        let broker = process(Role::Broker, local(10911), local(10910));
        let ports: Vec<u16> = broker.ports().iter().map(|(_, addr)| addr.port()).collect();
        assert_eq!(ports, [10911, 10909, 10912, 10910]);
        assert_eq!(process(Role::Broker, local(0), local(0)).ports(), []);
    }

    #[test]
    fn an_address_that_is_not_of_this_computer_is_told_as_such() {
        // 192.0.2.0/24 is for documentation: no computer has it.
        let elsewhere = SocketAddr::from(([192, 0, 2, 1], 9876));
        let name_server = process(Role::NameServer, elsewhere, elsewhere);
        let broker = process(Role::Broker, local(0), local(0));
        assert_eq!(
            check(&plan(name_server, broker)),
            Err(PortProblem::NoSuchAddress(elsewhere.ip()))
        );
    }
}
