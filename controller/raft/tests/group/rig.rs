//! Three controllers: ports that stay, folders that may be emptied, nodes that come and go.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use rmq_controller_fsm::{ApplyBrokerId, Command, Outcome};
use rmq_net::{
    Client, ClientOptions, Connection, IoThreads, ListenOptions, Listener, Outbox, Request,
    ReservedPort, Service,
};
use rmq_protocol::remoting::Command as Frame;
use rmq_raft::{Node, NodeOptions, ProposeError};
use rmq_types::{BrokerId, BrokerName, ClusterName};
use tempfile::TempDir;
use tokio::{runtime::Handle, task::JoinHandle};

/// Far more than anything takes; a failure, not a measurement.
const PATIENCE: Duration = Duration::from_mins(1);

struct Serve {
    node: Arc<Node>,
    runtime: Handle,
}

impl Service for Serve {
    fn serve(&self, conn: &Arc<Connection>, requests: &[Request<'_>], _out: &mut Outbox) {
        for request in requests {
            let (node, conn) = (Arc::clone(&self.node), Arc::clone(conn));
            let body = request.body.to_vec();
            let ext = request.header.ext.clone().into_owned();
            let (code, opaque) = (request.header.code, request.header.opaque);
            self.runtime.spawn(async move {
                let answer = match node.serve(code, &ext, &body).await {
                    Ok(body) => Frame::success(opaque).with_body(body),
                    Err(remark) => Frame::response(opaque, 1).with_remark(remark),
                };
                let _ = conn.send(&answer);
            });
        }
    }
}

/// A controller that runs.
pub(crate) struct Running {
    pub(crate) node: Arc<Node>,
    task: JoinHandle<()>,
    listener: Listener,
}

pub(crate) struct Rig {
    ports: Vec<ReservedPort>,
    dirs: Vec<TempDir>,
    pub(crate) nodes: Vec<Option<Running>>,
    io: IoThreads,
    pub(crate) snapshot_after: u64,
}

impl Rig {
    pub(crate) fn new(count: usize) -> Self {
        let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
        Self {
            ports: (0..count)
                .map(|_| ReservedPort::take(free).unwrap())
                .collect(),
            dirs: (0..count).map(|_| TempDir::new().unwrap()).collect(),
            nodes: (0..count).map(|_| None).collect(),
            io: IoThreads::start(1, "raft-test").unwrap(),
            snapshot_after: 1000,
        }
    }

    pub(crate) fn options(&self, id: usize) -> NodeOptions {
        let peers: BTreeMap<u64, String> = (0u64..)
            .zip(&self.ports)
            .map(|(id, port)| (id, port.addr().to_string()))
            .collect();
        let dir: PathBuf = self.dirs[id].path().to_owned();
        NodeOptions {
            snapshot_after: self.snapshot_after,
            entries_kept: 5,
            ..NodeOptions::new("controllers".to_owned(), id as u64, peers, dir)
        }
    }

    pub(crate) fn start(&mut self, id: usize) {
        let client = Client::new(ClientOptions::default());
        let node = Arc::new(Node::open(self.options(id), client).unwrap());
        let service = Serve {
            node: Arc::clone(&node),
            runtime: Handle::current(),
        };
        let listen = ListenOptions::new(self.ports[id].addr());
        let listener = Listener::bind(&self.io, listen, Arc::new(service)).unwrap();
        let run = Arc::clone(&node);
        let task = Handle::current().spawn(async move { run.run().await.unwrap() });
        self.nodes[id] = Some(Running {
            node,
            task,
            listener,
        });
    }

    pub(crate) fn start_all(&mut self) {
        for id in 0..self.nodes.len() {
            self.start(id);
        }
    }

    /// Ends a controller; its file is closed when this returns.
    pub(crate) async fn stop(&mut self, id: usize) {
        let running = self.nodes[id].take().unwrap();
        running.node.stop().await;
        running.task.abort();
        let _ = running.task.await;
        running.listener.shutdown().await;
        let node = running.node;
        eventually("the node is let go", || Arc::strong_count(&node) == 1).await;
        drop(node);
    }

    pub(crate) fn empty_disk(&mut self, id: usize) {
        self.dirs[id] = TempDir::new().unwrap();
    }

    pub(crate) fn node(&self, id: usize) -> &Arc<Node> {
        &self.nodes[id].as_ref().unwrap().node
    }

    /// Proposes to whoever leads, again and again.
    pub(crate) async fn propose(&self, command: Command) -> Outcome {
        let decide = async {
            loop {
                for running in self.nodes.iter().flatten() {
                    match running.node.propose(command.clone()).await {
                        Ok(outcome) => return outcome,
                        Err(ProposeError::NotLeader | ProposeError::Unknown) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, decide)
            .await
            .expect("nobody leads")
    }

    /// Who leads once one of them does.
    pub(crate) async fn leader(&self) -> usize {
        let mut leader = 0;
        eventually("somebody leads", || {
            let leads = |running: &Option<Running>| {
                running
                    .as_ref()
                    .is_some_and(|r| r.node.leadership().is_some())
            };
            let found = self.nodes.iter().position(leads);
            leader = found.unwrap_or(leader);
            found.is_some()
        })
        .await;
        leader
    }

    /// Waits until a controller has the same state as another one.
    pub(crate) async fn same_state(&self, a: usize, b: usize) {
        eventually("the states are the same", || {
            let of_b = self.node(b).state(Clone::clone);
            self.node(a).state(|of_a| *of_a == of_b)
        })
        .await;
    }
}

/// Waits for a condition.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let poll = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(
        tokio::time::timeout(PATIENCE, poll).await.is_ok(),
        "never: {what}"
    );
}

/// A broker takes an id.
pub(crate) fn apply_id(group: &str, id: u64) -> Command {
    Command::ApplyBrokerId(ApplyBrokerId {
        cluster: ClusterName::parse("c").unwrap(),
        group: BrokerName::parse(group).unwrap(),
        broker: BrokerId::new(id),
        check_code: format!("127.0.0.1:{id};{id}"),
    })
}

/// The id that a new broker of a group is told to apply for.
pub(crate) fn next_id(node: &Node, group: &str) -> u64 {
    let group = BrokerName::parse(group).unwrap();
    node.state(|state| state.next_broker_id(&group).get())
}
