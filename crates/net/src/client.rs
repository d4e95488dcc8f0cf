//! The calling side: one connection per address, opened when first needed and again after failure.
//!
//! Invariant: callers of one address share one attempt to connect, and dropping the client ends all
//! its connections. It keeps no retry policy: a failed call is the caller's to repeat.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmq_protocol::remoting::{Command, FLAG_ONEWAY, Serializer, response_code};
use rmq_types::limits::FRAME_BYTES_MAX;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::drive::Driver;
use crate::endpoint::{Endpoint, Limits};
use crate::{CallError, Connection, Outbox, Request, Service};

/// Addresses remembered before closed ones are forgotten.
const ADDRESSES_KEPT: usize = 256;
/// A peer that does not acknowledge bytes for this long is gone (the process frozen or the host
/// lost; an idle one is probed by keep-alive).
const UNACKED_MAX: Duration = Duration::from_secs(20);

/// How a client behaves.
#[derive(Clone)]
pub struct ClientOptions {
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest frame taken, its length word not counted.
    pub frame_bytes_max: usize,
    /// Bytes that may wait for a peer before its connection is given up.
    pub outbound_bytes_max: usize,
    /// Calls that may wait for an answer on one connection.
    pub pending_max: usize,
    /// How headers are written.
    pub serializer: Serializer,
    /// Serves requests that servers send to us; without it they are answered as not supported.
    pub on_request: Option<Arc<dyn Service>>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(3),
            frame_bytes_max: FRAME_BYTES_MAX,
            outbound_bytes_max: 64 * 1024 * 1024,
            pending_max: 65_535,
            serializer: Serializer::Json,
            on_request: None,
        }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("connect_timeout", &self.connect_timeout)
            .field("frame_bytes_max", &self.frame_bytes_max)
            .field("outbound_bytes_max", &self.outbound_bytes_max)
            .field("pending_max", &self.pending_max)
            .field("serializer", &self.serializer)
            .field("serves_requests", &self.on_request.is_some())
            .finish()
    }
}

/// The connection of one address; the lock is held while connecting, so that it happens once.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Connection>>>>;

#[derive(Debug)]
struct Shared {
    endpoint: Arc<Endpoint>,
    connect_timeout: Duration,
    slots: Mutex<HashMap<String, Slot>>,
    tasks: Mutex<JoinSet<()>>,
}

/// A client; clones share its connections. Usable from any tokio runtime: a connection lives on the
/// runtime of the call that opened it, and is opened again if that runtime went away.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

impl Client {
    /// A client without connections.
    #[must_use]
    pub fn new(options: ClientOptions) -> Self {
        let limits = Limits {
            frame_bytes_max: options.frame_bytes_max,
            outbound_bytes_max: options.outbound_bytes_max,
            pending_max: options.pending_max,
        };
        let service = options
            .on_request
            .unwrap_or_else(|| Arc::new(RefuseRequests));
        let shared = Shared {
            endpoint: Arc::new(Endpoint::new(limits, options.serializer, service)),
            connect_timeout: options.connect_timeout,
            slots: Mutex::default(),
            tasks: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Sends a request and waits for its answer; `within` covers connecting, sending and waiting.
    pub async fn call(
        &self,
        addr: &str,
        cmd: Command,
        within: Duration,
    ) -> Result<Command, CallError> {
        let code = cmd.code;
        let exchange = async { self.connection(addr).await?.call_untimed(cmd).await };
        match timeout(within, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(CallError::Timeout {
                addr: addr.to_owned(),
                code,
                after: within,
            }),
        }
    }

    /// Sends a one-way request; success means it was handed to an open connection.
    pub async fn notify(&self, addr: &str, mut cmd: Command) -> Result<(), CallError> {
        cmd.flag |= FLAG_ONEWAY;
        let conn = self.connection(addr).await?;
        conn.send(&cmd).map_err(|source| CallError::Send {
            addr: addr.to_owned(),
            code: cmd.code,
            source,
        })
    }

    /// The open connection to `addr`, opened now if there is none.
    pub async fn connection(&self, addr: &str) -> Result<Arc<Connection>, CallError> {
        let slot = self.slot(addr);
        let mut held = slot.lock().await;
        if let Some(conn) = held.as_ref().filter(|conn| conn.is_open()) {
            return Ok(Arc::clone(conn));
        }
        let conn = self.connect(addr).await?;
        *held = Some(Arc::clone(&conn));
        Ok(conn)
    }

    /// Closes the connection to `addr` if there is one; its waiting calls fail.
    pub fn close(&self, addr: &str) {
        let slot = lock(&self.shared.slots).remove(addr);
        if let Some(conn) = slot.as_ref().and_then(|slot| slot.try_lock().ok()?.take()) {
            conn.close();
        }
    }

    fn slot(&self, addr: &str) -> Slot {
        let mut slots = lock(&self.shared.slots);
        if let Some(slot) = slots.get(addr) {
            return Arc::clone(slot);
        }
        if slots.len() >= ADDRESSES_KEPT {
            slots.retain(|_, slot| is_in_use(slot));
        }
        Arc::clone(slots.entry(addr.to_owned()).or_default())
    }

    async fn connect(&self, addr: &str) -> Result<Arc<Connection>, CallError> {
        let after = self.shared.connect_timeout;
        let stream = match timeout(after, TcpStream::connect(addr)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(source)) => {
                return Err(CallError::Connect {
                    addr: addr.to_owned(),
                    source,
                });
            }
            Err(_) => {
                return Err(CallError::ConnectTimeout {
                    addr: addr.to_owned(),
                    after,
                });
            }
        };
        self.start(stream).map_err(|source| CallError::Connect {
            addr: addr.to_owned(),
            source,
        })
    }

    fn start(&self, stream: TcpStream) -> io::Result<Arc<Connection>> {
        let (peer, local) = (stream.peer_addr()?, stream.local_addr()?);
        stream.set_nodelay(true)?;
        watch_for_silence(&stream)?;
        let endpoint = &self.shared.endpoint;
        let conn = endpoint.enter(peer, local, None);
        let driver = Driver::new(stream, Arc::clone(&conn), Arc::clone(endpoint));
        let mut tasks = lock(&self.shared.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(driver);
        Ok(conn)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A slot that cannot be looked into is connecting.
fn is_in_use(slot: &Slot) -> bool {
    match slot.try_lock() {
        Ok(conn) => conn.as_ref().is_some_and(|conn| conn.is_open()),
        Err(_) => true,
    }
}

fn watch_for_silence(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(15))
        .with_interval(Duration::from_secs(5))
        .with_retries(3);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKED_MAX))?;
    Ok(())
}

/// Answers every request of a server with "not supported".
struct RefuseRequests;

impl Service for RefuseRequests {
    fn serve(&self, _conn: &Arc<Connection>, requests: &[Request<'_>], out: &mut Outbox) {
        for request in requests.iter().filter(|request| request.wants_reply()) {
            let header = &request.header;
            let remark = format!(" request type {} not supported", header.code);
            let code = response_code::REQUEST_CODE_NOT_SUPPORTED;
            out.send(&Command::response(header.opaque, code).with_remark(remark));
        }
    }
}
