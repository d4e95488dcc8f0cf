//! Connections of clients, counted and bounded.
//!
//! **Invariant:** at most `max` connections are open; one beyond is closed as soon as it is
//! accepted. A connection counts until its socket is dropped.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// Wait after a failure that is not one connection's own (no descriptor left).
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// The open connections and their bound.
#[derive(Clone, Debug)]
pub(crate) struct Seats {
    free: Arc<Semaphore>,
    max: usize,
}

impl Seats {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(max)),
            max,
        }
    }

    /// Connections that are open.
    pub(crate) fn taken(&self) -> usize {
        self.max.saturating_sub(self.free.available_permits())
    }
}

/// Accepts connections.
#[derive(Debug)]
pub(crate) struct Incoming {
    listener: TcpListener,
    seats: Seats,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Incoming {
    pub(crate) fn new(listener: TcpListener, seats: Seats) -> Self {
        Self {
            listener,
            seats,
            pause: None,
        }
    }
}

impl Stream for Incoming {
    type Item = io::Result<Seated>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(pause) = &mut self.pause {
                std::task::ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            let (stream, peer) = match std::task::ready!(self.listener.poll_accept(cx)) {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    self.pause = Some(Box::pin(tokio::time::sleep(AFTER_FAILURE)));
                    continue;
                }
            };
            let Ok(seat) = Arc::clone(&self.seats.free).try_acquire_owned() else {
                tracing::debug!(%peer, "closed: too many connections");
                continue;
            };
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%peer, %error, "closed");
                continue;
            }
            return Poll::Ready(Some(Ok(Seated {
                stream,
                peer,
                _seat: seat,
            })));
        }
    }
}

/// A connection with its seat.
#[derive(Debug)]
pub(crate) struct Seated {
    stream: TcpStream,
    peer: SocketAddr,
    _seat: OwnedSemaphorePermit,
}

impl Connected for Seated {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        TcpConnectInfo {
            local_addr: self.stream.local_addr().ok(),
            remote_addr: Some(self.peer),
        }
    }
}

impl AsyncRead for Seated {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Seated {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
