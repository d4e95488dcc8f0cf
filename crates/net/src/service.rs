//! What users of this crate implement and are handed: requests in, replies out.
//!
//! Invariant: a [`Request`] borrows from the connection's read buffer and an [`Outbox`] is the
//! buffer that is written to the socket: no copy stands between. Responses never come here.

use std::sync::Arc;

use bytes::BytesMut;
use rmq_protocol::remoting::{Command, Header, Serializer};

use crate::Connection;

/// One complete request of a peer.
#[derive(Debug)]
pub struct Request<'a> {
    /// Its header.
    pub header: Header<'a>,
    /// Its body; empty if it has none.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// False for a one-way request: nothing may be sent for it, not even an error.
    #[must_use]
    pub fn wants_reply(&self) -> bool {
        !self.header.is_oneway()
    }
}

/// What a server does with requests.
pub trait Service: Send + Sync + 'static {
    /// Serves every complete request found in a connection's buffer, in order of arrival (a large
    /// buffer comes in several groups).
    ///
    /// Runs on the connection's io thread and must not block. Replies written to `out` leave in one
    /// write when this returns; later replies go through `conn`. A panic closes this connection.
    ///
    /// A service whose replies may be large asks [`Outbox::is_full`] before each request but the
    /// first, and then leaves what is left of the group: see [`Outbox::leave`].
    fn serve(&self, conn: &Arc<Connection>, requests: &[Request<'_>], out: &mut Outbox);

    /// A connection was opened; nothing has been read from it yet.
    fn opened(&self, _conn: &Arc<Connection>) {}

    /// A connection is closed: nothing will be read from it or sent to it any more. Comes exactly
    /// once for every `opened`.
    fn closed(&self, _conn: &Arc<Connection>) {}
}

/// Replies of one group are meant to stay below this.
pub(crate) const GROUP_REPLY_BYTES: usize = 2 * 1024 * 1024;

/// The replies of one group of requests, on their way into one write.
#[derive(Debug)]
pub struct Outbox {
    bytes: BytesMut,
    serializer: Serializer,
    left: usize,
}

impl Outbox {
    pub(crate) fn new(bytes: BytesMut, serializer: Serializer) -> Self {
        Self {
            bytes,
            serializer,
            left: 0,
        }
    }

    /// True once the replies of this group are so large that they should leave first.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= GROUP_REPLY_BYTES
    }

    /// Leaves the last `count` requests of the group unserved: they come again once the peer has
    /// taken the replies before them. The first request of a group cannot be left.
    pub fn leave(&mut self, count: usize) {
        self.left = count;
    }

    /// Adds a command. Not for one-way requests: see [`Request::wants_reply`].
    pub fn send(&mut self, cmd: &Command) {
        cmd.encode(self.serializer, &mut self.bytes);
    }

    /// The buffer itself, for frames written by hand. Only whole frames may be appended.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// How headers of this side are to be written.
    #[must_use]
    pub fn serializer(&self) -> Serializer {
        self.serializer
    }

    /// The replies, and how many requests of the group were left.
    pub(crate) fn into_parts(self) -> (BytesMut, usize) {
        (self.bytes, self.left)
    }
}
