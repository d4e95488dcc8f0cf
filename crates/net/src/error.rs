//! What can go wrong when binding, sending and calling; one enum per operation.
//!
//! Invariant: every error names the peer or address it is about. Broken frames are not here: they
//! close their connection and are logged, no caller sees them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A listener that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address cannot be taken: in use, no permission, not of this computer.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// There is no thread to serve it.
    #[error("cannot listen on {addr}: there are no io threads")]
    NoThreads {
        /// The address asked for.
        addr: SocketAddr,
    },
}

/// A frame that did not enter a connection's outgoing buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection is closed or closing.
    #[error("connection is closed")]
    Closed,
    /// The peer does not read: its buffer is full, and the connection has been closed for it.
    #[error("peer does not read: more than {bytes_max} bytes wait for it, connection closed")]
    Full {
        /// The bound of the buffer.
        bytes_max: usize,
    },
}

/// A call that got no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No connection could be opened.
    #[error("cannot connect to {addr}: {source}")]
    Connect {
        /// Where to.
        addr: String,
        /// What the system said.
        source: io::Error,
    },
    /// Connecting took too long.
    #[error("cannot connect to {addr}: no answer within {after:?}")]
    ConnectTimeout {
        /// Where to.
        addr: String,
        /// How long it was tried.
        after: Duration,
    },
    /// The peer did not answer in time; whether it did the work is unknown.
    #[error("no answer from {addr} to request {code} within {after:?}")]
    Timeout {
        /// The peer.
        addr: String,
        /// The request code.
        code: i32,
        /// The limit given.
        after: Duration,
    },
    /// The connection closed before the answer came; whether the work was done is unknown.
    #[error("connection to {addr} closed before it answered request {code}")]
    Closed {
        /// The peer.
        addr: String,
        /// The request code.
        code: i32,
    },
    /// The request never left.
    #[error("cannot send request {code} to {addr}: {source}")]
    Send {
        /// The peer.
        addr: String,
        /// The request code.
        code: i32,
        /// Why.
        source: SendError,
    },
    /// Too many calls wait for this peer already.
    #[error("{max} calls to {addr} already wait for an answer")]
    TooManyPending {
        /// The peer.
        addr: String,
        /// The bound.
        max: usize,
    },
}

impl CallError {
    /// True when the request certainly never reached the peer, so that it may be sent elsewhere
    /// without doing its work twice.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::Send { .. }
            | Self::TooManyPending { .. } => true,
            Self::Timeout { .. } | Self::Closed { .. } => false,
        }
    }
}
