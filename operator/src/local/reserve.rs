//! Free ports that stay a role's own for the whole run.
//!
//! **Invariant:** a reserved port is bound by this process, without listening, from before its role
//! starts until the run ends, so the kernel gives it to nobody else: not while the role is still
//! reading its data, and not between a crash and the next start. Linux lets the role listen beside
//! our socket because both ask for `SO_REUSEADDR`. Other systems do not; there a role with port 0
//! asks the kernel itself, and may be too late.

use crate::local::plan::{ProcessPlan, Role};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Tries for a port whose neighbours are free as well.
const TRIES: usize = 200;
/// The fast channel and the health page below a broker's port, and replication above it, as with
/// the usual ports.
const BROKER_NEIGHBOURS: [i32; 3] = [-2, -1, 1];
const BROKER_HEALTH: i32 = -1;

/// The ports of one process, held until the value is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) listen: SocketAddr,
    pub(crate) health: SocketAddr,
    _held: Vec<Socket>,
}

/// Takes free ports for a process that was planned without; `None` if it has its ports.
pub(crate) fn reserve(plan: &ProcessPlan) -> io::Result<Option<Reserved>> {
    if !cfg!(target_os = "linux") || plan.listen.port() != 0 {
        return Ok(None);
    }
    let ip = plan.listen.ip();
    match plan.role {
        Role::NameServer | Role::Proxy => {
            let (listen, first) = hold(ip, 0)?;
            let (health, second) = hold(plan.health.ip(), 0)?;
            Ok(Some(Reserved {
                listen,
                health,
                _held: vec![first, second],
            }))
        }
        Role::Broker => broker(ip).map(Some),
    }
}

fn broker(ip: IpAddr) -> io::Result<Reserved> {
    // Refused ones are kept until the end, so that no try meets the same port again.
    let mut refused = Vec::new();
    for _ in 0..TRIES {
        let (listen, socket) = hold(ip, 0)?;
        let neighbours: Option<Vec<Socket>> = BROKER_NEIGHBOURS
            .iter()
            .map(|step| hold(ip, beside(listen, *step)?).ok().map(|held| held.1))
            .collect();
        let health = beside(listen, BROKER_HEALTH);
        if let (Some(mut held), Some(health)) = (neighbours, health) {
            held.push(socket);
            return Ok(Reserved {
                listen,
                health: SocketAddr::new(ip, health),
                _held: held,
            });
        }
        refused.push(socket);
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        format!("no four free ports in a row on {ip}"),
    ))
}

/// The port `step` away; `None` where there is none for an ordinary user.
fn beside(addr: SocketAddr, step: i32) -> Option<u16> {
    let port = i32::from(addr.port()) + step;
    u16::try_from(port).ok().filter(|port| *port > 1024)
}

/// Binds without listening; port 0 takes a free one.
fn hold(ip: IpAddr, port: u16) -> io::Result<(SocketAddr, Socket)> {
    let wanted = SocketAddr::new(ip, port);
    let socket = Socket::new(
        Domain::for_address(wanted),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Asked for only after the bind: with it, a port that somebody else holds in the same way
    // would be taken for free.
    socket.bind(&SockAddr::from(wanted))?;
    socket.set_reuse_address(true)?;
    let bound = socket.local_addr()?.as_socket();
    let bound = bound.ok_or_else(|| io::Error::other("a TCP socket without an IP address"))?;
    Ok((bound, socket))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::path::PathBuf;

    fn process(role: Role, port: u16) -> ProcessPlan {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        ProcessPlan {
            role,
            name: "a".to_owned(),
            group: None,
            id: None,
            listen: addr,
            health: addr,
            dir: PathBuf::from("/d"),
            config: String::new(),
        }
    }

    #[test]
    fn a_role_listens_on_its_reserved_ports_again_and_again() {
        for role in [Role::NameServer, Role::Broker] {
            let reserved = reserve(&process(role, 0)).unwrap().unwrap();
            for _ in 0..3 {
                for addr in [reserved.listen, reserved.health] {
                    let listener = TcpListener::bind(addr).unwrap();
                    TcpStream::connect(addr).unwrap();
                    drop(listener);
                    assert!(
                        TcpStream::connect(addr).is_err(),
                        "{addr}: we do not listen"
                    );
                }
            }
        }
    }

    #[test]
    fn the_kernel_gives_a_reserved_port_to_nobody_else() {
        let all: Vec<Reserved> = (0..20)
            .map(|_| reserve(&process(Role::Broker, 0)).unwrap().unwrap())
            .collect();
        let mut ports: Vec<u16> = all
            .iter()
            .flat_map(|reserved| [-2, -1, 0, 1].map(|step| beside(reserved.listen, step).unwrap()))
            .collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 4 * all.len());
        let others: Vec<TcpListener> = (0..200)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
            .collect();
        assert!(others.iter().all(|other| {
            let port = other.local_addr().unwrap().port();
            ports.binary_search(&port).is_err()
        }));
    }

    #[test]
    fn the_health_page_of_a_broker_is_one_port_below_as_with_the_usual_ports() {
        let reserved = reserve(&process(Role::Broker, 0)).unwrap().unwrap();
        assert_eq!(reserved.health.port() + 1, reserved.listen.port());
    }

    #[test]
    fn a_port_of_the_plan_is_left_to_the_plan() {
        assert!(reserve(&process(Role::Broker, 10911)).unwrap().is_none());
    }
}
