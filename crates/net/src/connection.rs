//! One connection as everybody but its own task sees it: where to send, and calls to the peer.
//!
//! Invariant: nothing here blocks or touches the socket; the task in `drive` does all IO.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rmq_protocol::remoting::{Command, FLAG_RESPONSE, Serializer};

use crate::outbound::{Outbound, Phase};
use crate::pending::{Pending, Refused};
use crate::{CallError, SendError};

/// Number of a connection, unique in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An open (or just closed) connection.
#[derive(Debug)]
pub struct Connection {
    id: ConnectionId,
    peer: SocketAddr,
    local: SocketAddr,
    serializer: Serializer,
    pub(crate) outbound: Outbound,
    pub(crate) pending: Pending,
    last_active: AtomicU32,
    ended_by_peer: AtomicBool,
}

impl Connection {
    pub(crate) fn new(
        peer: SocketAddr,
        local: SocketAddr,
        serializer: Serializer,
        outbound: Outbound,
        pending: Pending,
    ) -> Self {
        let last_active = AtomicU32::new(0);
        Self {
            id: ConnectionId::next(),
            peer,
            local,
            serializer,
            outbound,
            pending,
            last_active,
            ended_by_peer: AtomicBool::new(false),
        }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// The other end.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// This end.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// How headers of this side are written.
    #[must_use]
    pub fn serializer(&self) -> Serializer {
        self.serializer
    }

    /// Puts a command into the outgoing buffer. From any thread; never blocks. A peer that does not
    /// read and so lets the buffer pass its bound is closed.
    pub fn send(&self, cmd: &Command) -> Result<(), SendError> {
        self.outbound.push(|buf| cmd.encode(self.serializer, buf))
    }

    /// Like [`Self::send`], for whole frames written by hand.
    pub fn send_frame(&self, frame: &[u8]) -> Result<(), SendError> {
        self.outbound.push(|buf| buf.extend_from_slice(frame))
    }

    /// Asks the peer and waits for its answer. Needs a tokio runtime with a timer around it.
    pub async fn call(&self, cmd: Command, timeout: Duration) -> Result<Command, CallError> {
        let code = cmd.code;
        match tokio::time::timeout(timeout, self.call_untimed(cmd)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(CallError::Timeout {
                addr: self.peer.to_string(),
                code,
                after: timeout,
            }),
        }
    }

    pub(crate) async fn call_untimed(&self, mut cmd: Command) -> Result<Command, CallError> {
        let addr = || self.peer.to_string();
        let code = cmd.code;
        let mut ticket = self.pending.begin().map_err(|refused| match refused {
            Refused::Full => CallError::TooManyPending {
                addr: addr(),
                max: self.pending.max(),
            },
            Refused::Closed => CallError::Send {
                addr: addr(),
                code,
                source: SendError::Closed,
            },
        })?;
        cmd.opaque = ticket.opaque;
        cmd.flag &= !FLAG_RESPONSE;
        self.send(&cmd).map_err(|source| CallError::Send {
            addr: addr(),
            code,
            source,
        })?;
        drop(cmd);
        (&mut ticket.answer)
            .await
            .map_err(|_| CallError::Closed { addr: addr(), code })
    }

    /// Closes without waiting for what is still to be sent.
    pub fn close(&self) {
        self.outbound.advance(Phase::Closed);
    }

    /// Closes once everything sent so far has left; nothing more is read or taken for sending.
    pub fn close_after_replies(&self) {
        self.outbound.advance(Phase::Draining);
    }

    /// True while commands can be sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.outbound.phase() < Phase::Draining
    }

    /// True once the peer's end of the stream came: its process closed the connection or ended. What
    /// this side closed, what timed out and what was reset on the way says nothing of the peer.
    #[must_use]
    pub fn ended_by_peer(&self) -> bool {
        self.ended_by_peer.load(Ordering::Acquire)
    }

    pub(crate) fn note_end_by_peer(&self) {
        self.ended_by_peer.store(true, Ordering::Release);
    }

    pub(crate) fn touch(&self, tick: u32) {
        self.last_active.store(tick, Ordering::Relaxed);
    }

    /// Ticks since the last byte in either direction.
    pub(crate) fn idle_ticks(&self, tick: u32) -> u32 {
        tick.wrapping_sub(self.last_active.load(Ordering::Relaxed))
    }
}
