//! The task of one connection: a hand-written future that reads, serves and writes.
//!
//! Invariant: while anything is unsent nothing is read and no request is served, so a peer that
//! does not read costs at most one group of replies plus the bounded outgoing buffer; and a group
//! ends where its replies become large, if its service looks ([`Outbox::is_full`]). Buffers
//! belong to the thread and are lent until what they hold is sent: a connection at rest holds none.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use rmq_protocol::remoting::{Command, FrameError, Header, HeaderError, Split, split_frame};
use tokio::io::{AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::Connection;
use crate::endpoint::Endpoint;
use crate::inbound::{Inbound, Scratch};
use crate::outbound::Phase;
use crate::service::{GROUP_REPLY_BYTES, Outbox, Request};

/// Reads in one poll before other connections of the thread get their turn.
const ROUNDS_PER_POLL: usize = 8;
/// Most requests served in one group.
const GROUP_MAX: usize = 64;
/// Reply size assumed before any was seen.
const FIRST_REPLY_BYTES: usize = 64 * 1024;
/// Largest write buffer a thread keeps.
const KEPT_WRITE_BYTES: usize = 1024 * 1024;
/// Largest one of those it keeps beside the first.
const KEPT_SMALL_BYTES: usize = 16 * 1024;
/// Write buffers a thread keeps: as many connections as answer in one turn.
const KEPT_WRITES: usize = 128;

thread_local! {
    static WRITE_BUFFERS: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
    static REQUESTS: Cell<Vec<Request<'static>>> = const { Cell::new(Vec::new()) };
    /// Where the frame of each of them begins.
    static STARTS: Cell<Vec<usize>> = const { Cell::new(Vec::new()) };
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("peer closed")]
    Peer,
    #[error("closed here")]
    Here,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("service panicked")]
    Panic,
}

/// What stopped a group of requests.
enum Stop {
    /// The group is full; there may be more.
    Full,
    /// No further complete frame.
    Incomplete,
    /// What follows is no frame.
    Broken(End),
}

/// See the module. Resolves when the connection has ended.
#[derive(Debug)]
pub(crate) struct Driver {
    inbound: Inbound,
    io: Io,
}

#[derive(Debug)]
struct Io {
    stream: TcpStream,
    conn: Arc<Connection>,
    endpoint: Arc<Endpoint>,
    unsent: BytesMut,
    /// Bytes wanted before splitting again makes sense.
    needed: usize,
    /// Frames read but not served, because the socket was full.
    backlog: bool,
    reply_bytes_mean: usize,
    opened: bool,
    half_closed: bool,
}

impl Driver {
    pub(crate) fn new(stream: TcpStream, conn: Arc<Connection>, endpoint: Arc<Endpoint>) -> Self {
        let io = Io {
            stream,
            conn,
            endpoint,
            unsent: BytesMut::new(),
            needed: 0,
            backlog: false,
            reply_bytes_mean: FIRST_REPLY_BYTES,
            opened: false,
            half_closed: false,
        };
        Self {
            inbound: Inbound::default(),
            io,
        }
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        if !self.io.opened {
            self.io.opened = true;
            let conn = Arc::clone(&self.io.conn);
            if !self
                .io
                .endpoint
                .guard(conn.peer_addr(), |service| service.opened(&conn))
            {
                return Poll::Ready(Err(End::Panic));
            }
        }
        for _ in 0..ROUNDS_PER_POLL {
            let phase = self.io.flush(cx)?;
            if phase == Phase::Closed {
                return Poll::Ready(Err(End::Here));
            }
            if !self.io.unsent.is_empty() || phase == Phase::Paused {
                return Poll::Pending;
            }
            if phase == Phase::Draining {
                return self.io.linger(cx);
            }
            if self.io.backlog {
                self.inbound.feed_tail(|data| self.io.serve(cx, data))?;
                continue;
            }
            ready!(self.receive(cx))?;
            if !self.io.unsent.is_empty() {
                // The replies leave on the next turn, after every other connection with requests
                // has had its own: the peer is woken once for all of them, and the requests of
                // many connections cost one sleep of this thread.
                break;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let mut scratch = Scratch::borrow();
        let Self { inbound, io } = self;
        let outcome = match inbound.poll_read(cx, &mut io.stream, &mut scratch, io.needed) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(End::Io(error))),
            Poll::Ready(Ok(0)) => {
                io.conn.note_end_by_peer();
                Poll::Ready(Err(End::Peer))
            }
            Poll::Ready(Ok(_)) => {
                io.conn.touch(io.endpoint.tick());
                Poll::Ready(inbound.feed(&scratch, |data| io.serve(cx, data)))
            }
        };
        scratch.give_back();
        outcome
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = self.as_mut().get_mut();
        if driver.io.unsent.is_empty() {
            driver.io.unsent = lend_buffer();
        }
        let outcome = driver.run(cx);
        if driver.io.unsent.is_empty() {
            keep_buffer(std::mem::take(&mut driver.io.unsent));
        }
        match ready!(outcome) {
            Ok(()) => {}
            Err(end) => driver.io.report(&end),
        }
        Poll::Ready(())
    }
}

impl Io {
    /// Writes what is unsent and what other threads have sent, as far as the socket takes it.
    fn flush(&mut self, cx: &mut Context<'_>) -> Result<Phase, End> {
        loop {
            let blocked = self.write(cx)?;
            let phase = self.conn.outbound.collect(cx, &mut self.unsent);
            if blocked || self.unsent.is_empty() {
                return Ok(phase);
            }
        }
    }

    /// Writes `unsent`; true if something had to stay.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        while !self.unsent.is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.unsent) {
                Poll::Pending => return Ok(true),
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Ready(Ok(0)) => return Err(End::Peer),
                Poll::Ready(Ok(count)) => {
                    if count >= self.unsent.len() {
                        self.unsent.clear();
                    } else {
                        self.unsent.advance(count);
                    }
                    self.conn.touch(self.endpoint.tick());
                }
            }
        }
        Ok(false)
    }

    /// Serves the frames in `data`, group by group; returns the bytes used up.
    fn serve(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Result<usize, End> {
        self.backlog = false;
        let mut at = 0;
        loop {
            let mut requests = recycle(REQUESTS.take());
            let mut starts = STARTS.take();
            starts.clear();
            let mut stop = self.split(data, &mut at, (&mut requests, &mut starts));
            let served = if requests.is_empty() {
                Some(0)
            } else {
                self.serve_group(&requests)
            };
            if let Some(first_left) = served.and_then(|served| starts.get(served)) {
                at = *first_left;
                stop = Stop::Full;
            }
            REQUESTS.set(recycle(requests));
            STARTS.set(starts);
            if served.is_none() {
                return Err(End::Panic);
            }
            match stop {
                Stop::Incomplete => return Ok(at),
                Stop::Broken(end) => {
                    self.write(cx)?;
                    return Err(end);
                }
                Stop::Full => {
                    if self.write(cx)? {
                        self.backlog = true;
                        return Ok(at);
                    }
                }
            }
        }
    }

    fn split<'a>(
        &mut self,
        data: &'a [u8],
        at: &mut usize,
        (requests, starts): (&mut Vec<Request<'a>>, &mut Vec<usize>),
    ) -> Stop {
        let group_max = (GROUP_REPLY_BYTES / self.reply_bytes_mean.max(1)).clamp(1, GROUP_MAX);
        while requests.len() < group_max {
            let rest = data.get(*at..).unwrap_or_default();
            let (frame, consumed) = match split_frame(rest, self.endpoint.limits.frame_bytes_max) {
                Ok(Split::Frame { frame, consumed }) => (frame, consumed),
                Ok(Split::Incomplete { needed }) => {
                    self.needed = needed;
                    return Stop::Incomplete;
                }
                Err(error) => return Stop::Broken(error.into()),
            };
            let header = match Header::decode(frame.serializer, frame.header) {
                Ok(header) => header,
                Err(error) => return Stop::Broken(error.into()),
            };
            if !header.is_response() {
                starts.push(*at);
                requests.push(Request {
                    header,
                    body: frame.body,
                });
            } else if self.conn.pending.waits(header.opaque) {
                let body = Bytes::copy_from_slice(frame.body);
                self.conn
                    .pending
                    .complete(Command::from_parts(header, body));
            }
            *at += consumed;
        }
        Stop::Full
    }

    /// How many of the requests were served; `None` if the service panicked.
    fn serve_group(&mut self, requests: &[Request<'_>]) -> Option<usize> {
        let mut out = Outbox::new(std::mem::take(&mut self.unsent), self.endpoint.serializer);
        let conn = &self.conn;
        let peer = conn.peer_addr();
        let served = self
            .endpoint
            .guard(peer, |service| service.serve(conn, requests, &mut out));
        let (bytes, left) = out.into_parts();
        self.unsent = bytes;
        // Without the first the group would come again for ever.
        let count = requests.len().saturating_sub(left).max(1);
        let mean = self.unsent.len() / count;
        // Large replies make the next group small at once; small ones let it grow again slowly.
        self.reply_bytes_mean = mean.max((self.reply_bytes_mean * 3 + mean) / 4);
        served.then_some(count)
    }

    /// All has been sent: says so to the peer, and throws away what it still sends until it closes
    /// too. Closing with unread bytes would reset the connection and destroy replies on their way.
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        use tokio::io::AsyncRead;
        if !self.half_closed {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.half_closed = true;
        }
        let mut waste = [0; 4096];
        loop {
            let mut buf = ReadBuf::new(&mut waste);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn report(&self, end: &End) {
        let peer = self.conn.peer_addr();
        match end {
            End::Frame(_) | End::Header(_) => {
                self.endpoint
                    .counters
                    .broken
                    .fetch_add(1, Ordering::Relaxed);
                if let Some(held_back) = self.endpoint.quiet.allow() {
                    tracing::warn!(%peer, reason = %end, held_back, "closed: not our protocol");
                }
            }
            End::Peer | End::Here | End::Io(_) | End::Panic => {
                tracing::debug!(%peer, reason = %end, "connection ended");
            }
        }
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        self.conn.outbound.advance(Phase::Closed);
        self.conn.pending.close();
        self.endpoint.leave(self.conn.id());
        if self.opened {
            let conn = Arc::clone(&self.conn);
            self.endpoint
                .guard(conn.peer_addr(), |service| service.closed(&conn));
        }
    }
}

fn lend_buffer() -> BytesMut {
    WRITE_BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

fn keep_buffer(buffer: BytesMut) {
    WRITE_BUFFERS.with_borrow_mut(|kept| {
        let most = if kept.is_empty() {
            KEPT_WRITE_BYTES
        } else {
            KEPT_SMALL_BYTES
        };
        if kept.len() < KEPT_WRITES && (1..=most).contains(&buffer.capacity()) {
            kept.push(buffer);
        }
    });
}

/// Empties the list and gives its memory to a list of another lifetime: collecting a vector's own
/// iterator works in place.
fn recycle<'b>(mut requests: Vec<Request<'_>>) -> Vec<Request<'b>> {
    requests.clear();
    requests.into_iter().map_while(|_| None).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_one_large_buffer_and_a_bounded_number_of_small_ones() {
        std::thread::spawn(|| {
            for _ in 0..3 {
                keep_buffer(BytesMut::with_capacity(64 * 1024 * 1024));
                keep_buffer(BytesMut::with_capacity(KEPT_WRITE_BYTES));
            }
            for _ in 0..2 * KEPT_WRITES {
                keep_buffer(BytesMut::with_capacity(KEPT_SMALL_BYTES));
            }
            WRITE_BUFFERS.with_borrow(|kept| {
                let bytes: usize = kept.iter().map(BytesMut::capacity).sum();
                let most = KEPT_WRITE_BYTES + (KEPT_WRITES - 1) * KEPT_SMALL_BYTES;
                assert_eq!((kept.len(), bytes), (KEPT_WRITES, most));
            });
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_recycled_list_keeps_its_memory() {
        let list: Vec<Request<'static>> = Vec::with_capacity(64);
        let before = list.as_ptr() as usize;
        let again: Vec<Request<'static>> = recycle(list);
        assert_eq!((again.as_ptr() as usize, again.capacity()), (before, 64));
    }
}
