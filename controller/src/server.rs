//! The running controller: its port, its node, what it does while it leads.
//!
//! **Invariant:** io threads only copy a request and hand it on; too many at once are answered "busy".
//! A connection that its peer closed is told to the detector, whoever closed it otherwise is not.

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use rmq_controller_fsm::detector::ConnectionId;
use rmq_net::{
    BindError, Client, ClientOptions, Connection, IoThreads, ListenOptions, Listener,
    ListenerStats, Outbox, Request, Service,
};
use rmq_protocol::remoting::{Command, response_code};
use rmq_raft::{Node, NodeOptions, OpenError};
use rmq_types::Clock;
use tokio::{runtime::Handle, sync::watch, task::JoinSet};

use crate::{
    answer::Call, config::ControllerOptions, core::Core, handler::handle, lead, tasks::Tasks,
};

/// Why a controller did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The options make no sense.
    #[error("{0}")]
    Options(String),
    /// The folder.
    #[error("cannot make the folder {path}: {source}")]
    Folder {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The file of log and snapshots.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The port.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// A controller that serves. Dropping it closes the port at once.
#[derive(Debug)]
pub struct Controller {
    core: Arc<Core>,
    listener: Listener,
    failed: watch::Receiver<Option<String>>,
    tasks: JoinSet<()>,
}

/// Figures of this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Whether it leads.
    pub leads: bool,
    /// Whether it votes: not after the loss of its disk, until it has caught up.
    pub votes: bool,
    /// Groups that are known.
    pub groups: usize,
    /// Index of the last applied entry.
    pub applied: u64,
}

/// Answers questions about a controller, for its health page.
#[derive(Clone, Debug)]
pub struct Probe {
    core: Arc<Core>,
    failed: watch::Receiver<Option<String>>,
}

impl Controller {
    /// Opens the file and the port; when this returns, peers and brokers are answered. Must be called
    /// inside a tokio runtime.
    pub fn start(
        io: &IoThreads,
        options: ControllerOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let addr = options.listen_addr().map_err(StartError::Options)?;
        std::fs::create_dir_all(&options.store_path).map_err(|source| StartError::Folder {
            path: options.store_path.display().to_string(),
            source,
        })?;
        let peers: BTreeMap<u64, String> = options
            .peers
            .iter()
            .map(|(id, peer)| (*id, peer.address.clone()))
            .collect();
        let node = NodeOptions::new(
            options.group.clone(),
            options.id,
            peers,
            options.store_path.clone(),
        );
        let client = Client::new(ClientOptions::default());
        let node = Arc::new(Node::open(node, client.clone())?);
        let runtime = Handle::current();
        let tasks = Tasks::new(runtime);
        let core = Arc::new(Core::new(options, Arc::clone(&node), client, tasks, clock));
        let port = Arc::new(Port {
            core: Arc::clone(&core),
        });
        let listener = Listener::bind(io, ListenOptions::new(addr), port)?;
        let (failure, failed) = watch::channel(None);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            if let Err(error) = node.run().await {
                tracing::error!(%error, "the controller cannot go on");
                failure.send_replace(Some(error.to_string()));
            }
        });
        tasks.spawn(lead::run(Arc::clone(&core)));
        tracing::info!(addr = %listener.local_addr(), id = core.options.id, "controller listens");
        Ok(Self {
            core,
            listener,
            failed,
            tasks,
        })
    }

    /// The address it listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Figures of the port.
    #[must_use]
    pub fn listener_stats(&self) -> ListenerStats {
        self.listener.stats()
    }

    /// A handle for health pages.
    #[must_use]
    pub fn probe(&self) -> Probe {
        Probe {
            core: Arc::clone(&self.core),
            failed: self.failed.clone(),
        }
    }

    /// Stops: leaves the group of controllers, lets answers leave, closes the port.
    pub async fn shutdown(mut self) {
        self.listener.pause();
        self.core.node.stop().await;
        self.core.tasks.abort();
        self.tasks.shutdown().await;
        self.listener.shutdown().await;
        tracing::info!("controller stopped");
    }
}

impl Probe {
    /// Whether the process does its work.
    pub fn live(&self) -> Result<(), String> {
        self.failed.borrow().clone().map_or(Ok(()), Err)
    }

    /// Whether brokers are served: somebody leads.
    pub fn ready(&self) -> Result<(), String> {
        self.live()?;
        match self.core.node.leader() {
            Some(_) => Ok(()),
            None => Err("no leader is known among the controllers".to_owned()),
        }
    }

    /// Figures of this moment.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let node = &self.core.node;
        Figures {
            leads: node.leadership().is_some(),
            votes: node.votes(),
            groups: node.state(|state| state.groups().count()),
            applied: node.log_range().0,
        }
    }
}

struct Port {
    core: Arc<Core>,
}

impl Service for Port {
    fn serve(&self, conn: &Arc<Connection>, requests: &[Request<'_>], out: &mut Outbox) {
        for request in requests {
            let header = &request.header;
            let call = Call {
                conn: Arc::clone(conn),
                code: header.code,
                opaque: header.opaque,
                ext: header.ext.clone().into_owned(),
                body: Bytes::copy_from_slice(request.body),
                received: self.core.now(),
            };
            let (core, wants_reply) = (Arc::clone(&self.core), request.wants_reply());
            let begun = self.core.tasks.run(async move {
                let answer = handle(&core, &call).await;
                if wants_reply {
                    // A peer that is gone asks the next controller.
                    let _ = call.conn.send(&answer);
                }
            });
            if !begun && wants_reply {
                let busy = Command::response(header.opaque, response_code::SYSTEM_BUSY);
                out.send(&busy.with_remark("[OVERLOAD]too many requests are under way"));
            }
        }
    }

    fn closed(&self, conn: &Arc<Connection>) {
        if conn.ended_by_peer() {
            let (now, id) = (self.core.now(), ConnectionId(conn.id().0));
            let closed = self
                .core
                .leading(|detector, state| detector.closed(now, state, id));
            if closed.is_ok() {
                self.core.due.notify_one();
            }
        }
    }
}
