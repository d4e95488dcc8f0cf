//! A listening port: accepts, spreads connections over the threads, reaps the idle, shuts down.
//!
//! Invariant: never more than `connections_max` connections; one task owns the port and every
//! connection's task, and none outlives it.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmq_protocol::remoting::Serializer;
use rmq_types::limits::FRAME_BYTES_MAX;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::drive::Driver;
use crate::endpoint::{Endpoint, Limits};
use crate::io::Seat;
use crate::outbound::Phase;
use crate::{BindError, IoThreads, Service};

const BACKLOG: i32 = 1024;
/// Calls to one client that may wait for an answer.
const PENDING_MAX: usize = 4096;
/// Longest time between two looks for idle connections.
const TICK_MAX: Duration = Duration::from_secs(5);
const TICK_MIN: Duration = Duration::from_millis(5);
/// Rest after the system refused to accept (out of descriptors or memory).
const ACCEPT_REST: Duration = Duration::from_millis(100);
/// How long replies may take to leave on shutdown.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// How to listen.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Address and port; port 0 takes a free one.
    pub addr: SocketAddr,
    /// Longest frame taken, its length word not counted.
    pub frame_bytes_max: usize,
    /// A connection without a byte in either direction for this long is closed.
    pub idle_timeout: Duration,
    /// Bytes that may wait for a peer; one that lets them pass this is closed.
    pub outbound_bytes_max: usize,
    /// Connections beyond this are closed as soon as they are accepted.
    pub connections_max: usize,
    /// How this side writes its headers.
    pub serializer: Serializer,
}

impl ListenOptions {
    /// Java's defaults for `addr`.
    #[must_use]
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            frame_bytes_max: FRAME_BYTES_MAX,
            idle_timeout: Duration::from_mins(2),
            outbound_bytes_max: 32 * 1024 * 1024,
            connections_max: 50_000,
            serializer: Serializer::Json,
        }
    }
}

/// What happened at a port since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerStats {
    /// Connections open now.
    pub open: usize,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed at once because there were too many.
    pub refused: u64,
    /// Connections closed because they did not speak the protocol.
    pub broken: u64,
    /// Connections closed for silence.
    pub idle: u64,
}

/// An open port. Dropping it closes the port and all its connections at once.
#[derive(Debug)]
pub struct Listener {
    addr: SocketAddr,
    endpoint: Arc<Endpoint>,
    phase: watch::Sender<Phase>,
    task: JoinHandle<()>,
}

impl Listener {
    /// Opens the port; when this returns, clients can connect.
    pub fn bind(
        io: &IoThreads,
        options: ListenOptions,
        service: Arc<dyn Service>,
    ) -> Result<Self, BindError> {
        let wanted = options.addr;
        let failed = |source| BindError::Listen {
            addr: wanted,
            source,
        };
        let socket = listen(wanted).map_err(failed)?;
        let addr = socket.local_addr().map_err(failed)?;
        let limits = Limits {
            frame_bytes_max: options.frame_bytes_max,
            outbound_bytes_max: options.outbound_bytes_max,
            pending_max: PENDING_MAX,
        };
        let endpoint = Arc::new(Endpoint::new(limits, options.serializer, service));
        let seats = io.seats_in_turn();
        let Some(first) = seats.first().cloned() else {
            return Err(BindError::NoThreads { addr: wanted });
        };
        let listener = {
            let _entered = first.handle.enter();
            TcpListener::from_std(socket).map_err(failed)?
        };
        let (phase, phases) = watch::channel(Phase::Open);
        let acceptor = Acceptor {
            endpoint: Arc::clone(&endpoint),
            options,
            seats,
            next: 0,
            tasks: JoinSet::new(),
            phases,
        };
        // This task is aborted on drop and awaited in `shutdown`.
        let task = first.handle.spawn(acceptor.run(listener));
        Ok(Self {
            addr,
            endpoint,
            phase,
            task,
        })
    }

    /// The address taken.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Counts.
    #[must_use]
    pub fn stats(&self) -> ListenerStats {
        let counters = &self.endpoint.counters;
        ListenerStats {
            open: self.endpoint.count(),
            accepted: counters.accepted.load(Ordering::Relaxed),
            refused: counters.refused.load(Ordering::Relaxed),
            broken: counters.broken.load(Ordering::Relaxed),
            idle: counters.idle.load(Ordering::Relaxed),
        }
    }

    /// Stops accepting and reading; replies still leave. For an orderly end: pause, let what is in
    /// flight be answered, then [`Self::shutdown`].
    pub fn pause(&self) {
        self.phase.send_replace(Phase::Paused);
    }

    /// Stops accepting and reading, lets replies that were handed over leave (2 s at most), closes.
    pub async fn shutdown(mut self) {
        self.phase.send_replace(Phase::Draining);
        // An error means the threads are gone, and with them all there was to close.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn bound(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}

fn listen(addr: SocketAddr) -> io::Result<StdListener> {
    let socket = bound(addr)?;
    socket.set_nonblocking(true)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// An address that is this process's own before anybody listens on it.
///
/// The port is bound, without listening, until the value is dropped, so the kernel gives it to no
/// other process; a [`Listener`] of this process binds it as well, since both ask for
/// `SO_REUSEADDR`. Keep it until the listener is bound.
#[derive(Debug)]
pub struct ReservedPort {
    addr: SocketAddr,
    _held: Socket,
}

impl ReservedPort {
    /// Takes `addr`; with port 0 a free port. Fails if another process listens there.
    pub fn take(addr: SocketAddr) -> io::Result<Self> {
        let socket = bound(addr)?;
        let taken = socket.local_addr()?.as_socket();
        Ok(Self {
            addr: taken.ok_or(io::ErrorKind::Unsupported)?,
            _held: socket,
        })
    }

    /// The address taken.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

struct Acceptor {
    endpoint: Arc<Endpoint>,
    options: ListenOptions,
    seats: Vec<Seat>,
    next: usize,
    tasks: JoinSet<()>,
    phases: watch::Receiver<Phase>,
}

impl Acceptor {
    async fn run(mut self, listener: TcpListener) {
        let period = (self.options.idle_timeout / 4).clamp(TICK_MIN, TICK_MAX);
        let silent_ticks = self.options.idle_timeout.div_duration_f64(period).ceil() as u32;
        let mut tick = interval(period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut listener = Some(listener);
        loop {
            tokio::select! {
                accepted = accept(listener.as_ref()) => match accepted {
                    Ok((stream, peer)) => self.take(stream, peer),
                    Err(error) => {
                        self.complain(&error);
                        sleep(ACCEPT_REST).await;
                    }
                },
                _ = tick.tick() => self.endpoint.reap(silent_ticks),
                Some(_) = self.tasks.join_next() => {}
                changed = self.phases.changed() => {
                    let phase = *self.phases.borrow_and_update();
                    if changed.is_err() || phase >= Phase::Draining {
                        break;
                    }
                    listener = None;
                    self.endpoint.advance_all(phase);
                }
            }
        }
        drop(listener);
        self.drain().await;
    }

    fn take(&mut self, stream: TcpStream, peer: SocketAddr) {
        let counters = &self.endpoint.counters;
        if self.endpoint.count() >= self.options.connections_max {
            counters.refused.fetch_add(1, Ordering::Relaxed);
            if let Some(held_back) = self.endpoint.quiet.allow() {
                let max = self.options.connections_max;
                tracing::warn!(%peer, max, held_back, "closed: too many connections");
            }
            return;
        }
        counters.accepted.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.hand_over(stream, peer) {
            tracing::debug!(%peer, %error, "connection lost before it was used");
        }
    }

    /// Moves the socket to the thread whose turn it is.
    fn hand_over(&mut self, stream: TcpStream, peer: SocketAddr) -> io::Result<()> {
        let local = stream.local_addr()?;
        stream.set_nodelay(true)?;
        let stream = stream.into_std()?;
        let Some(seat) = self.seats.get(self.next % self.seats.len().max(1)) else {
            return Ok(());
        };
        self.next = self.next.wrapping_add(1);
        let stream = {
            let _entered = seat.handle.enter();
            TcpStream::from_std(stream)?
        };
        let conn = self
            .endpoint
            .enter(peer, local, Some(Arc::clone(&seat.mailbox)));
        self.tasks.spawn_on(
            Driver::new(stream, conn, Arc::clone(&self.endpoint)),
            &seat.handle,
        );
        Ok(())
    }

    fn complain(&self, error: &io::Error) {
        if let Some(held_back) = self.endpoint.quiet.allow() {
            tracing::warn!(addr = %self.options.addr, %error, held_back, "cannot accept");
        }
    }

    async fn drain(mut self) {
        self.endpoint.advance_all(Phase::Draining);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(DRAIN_MAX, all).await.is_err() {
            tracing::debug!(left = self.tasks.len(), "connections cut off on shutdown");
        }
        self.tasks.shutdown().await;
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}
