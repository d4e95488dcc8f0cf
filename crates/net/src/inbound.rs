//! Read buffers: one large one per thread, and a small exact one per connection for what is left.
//!
//! Invariant: a connection at rest between frames holds no buffer, and a frame in progress holds no
//! more than twice the bytes that arrived of it, whatever length it claims. It does not split frames.

use std::cell::Cell;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

/// Most bytes taken from a socket at once.
const READ_BYTES: usize = 256 * 1024;
/// Room before the read area for the tail of the last read.
const HEADROOM: usize = 32 * 1024;
/// Least room made for the rest of a large frame.
const GROW_BYTES: usize = 16 * 1024;

thread_local! {
    static SCRATCH: Cell<Option<Scratch>> = const { Cell::new(None) };
}

/// The thread's read buffer, lent to one connection for the time of one poll.
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Scratch {
    /// The thread's buffer; a new one if it is lent already.
    pub(crate) fn borrow() -> Self {
        SCRATCH.take().unwrap_or_else(|| Self {
            bytes: vec![0; HEADROOM + READ_BYTES],
            start: 0,
            end: 0,
        })
    }

    /// Gives the buffer back to the thread.
    pub(crate) fn give_back(self) {
        SCRATCH.set(Some(self));
    }

    fn data(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }
}

/// Bytes of a connection that no frame has been made of yet.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    tail: BytesMut,
}

impl Inbound {
    /// Reads once. `Ok(0)` is the end of the stream.
    pub(crate) fn poll_read<S: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut S,
        scratch: &mut Scratch,
        needed: usize,
    ) -> Poll<io::Result<usize>> {
        if self.is_direct() {
            let missing = needed.saturating_sub(self.tail.len());
            self.tail.reserve(missing.clamp(GROW_BYTES, READ_BYTES));
            return pin!(stream.read_buf(&mut self.tail)).poll(cx);
        }
        let tail = self.tail.len();
        let (head, area) = scratch.bytes.split_at_mut(HEADROOM);
        let mut buf = ReadBuf::new(area);
        ready!(Pin::new(stream).poll_read(cx, &mut buf))?;
        let count = buf.filled().len();
        scratch.start = HEADROOM - tail;
        scratch.end = HEADROOM + count;
        if let Some(room) = head.get_mut(scratch.start..) {
            room.copy_from_slice(&self.tail);
        }
        Poll::Ready(Ok(count))
    }

    /// Gives all unread bytes to `eat` after a read, and keeps what it did not consume.
    pub(crate) fn feed<E>(
        &mut self,
        scratch: &Scratch,
        eat: impl FnOnce(&[u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        if self.is_direct() {
            return self.feed_tail(eat);
        }
        let data = scratch.data();
        let consumed = eat(data)?;
        let rest = data.get(consumed..).unwrap_or_default();
        self.tail.clear();
        if rest.is_empty() {
            self.tail = BytesMut::new();
        } else {
            self.tail.extend_from_slice(rest);
        }
        Ok(())
    }

    /// Gives the bytes kept from earlier to `eat`, without a read.
    pub(crate) fn feed_tail<E>(
        &mut self,
        eat: impl FnOnce(&[u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let consumed = eat(&self.tail)?;
        self.tail.advance(consumed.min(self.tail.len()));
        if self.tail.is_empty() {
            self.tail = BytesMut::new();
        } else if consumed >= self.tail.len() {
            // What was consumed is still part of the memory: it goes, for a copy of what is left.
            self.tail = BytesMut::from(self.tail.chunk());
        }
        Ok(())
    }

    /// The tail does not fit before the thread's read area: the socket is read into it directly.
    fn is_direct(&self) -> bool {
        self.tail.len() > HEADROOM
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::Waker;

    use super::*;

    fn read(
        inbound: &mut Inbound,
        scratch: &mut Scratch,
        mut bytes: &[u8],
        needed: usize,
    ) -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        match inbound.poll_read(&mut cx, &mut bytes, scratch, needed) {
            Poll::Ready(Ok(count)) => count,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_tail_stands_before_the_bytes_of_the_next_read() {
        let (mut inbound, mut scratch) = (Inbound::default(), Scratch::borrow());
        read(&mut inbound, &mut scratch, b"abcdef", 0);
        inbound.feed(&scratch, |_| Ok::<_, Infallible>(4)).unwrap();
        read(&mut inbound, &mut scratch, b"gh", 0);
        let mut seen = Vec::new();
        inbound
            .feed(&scratch, |data| {
                seen.extend_from_slice(data);
                Ok::<_, Infallible>(data.len())
            })
            .unwrap();
        assert_eq!(seen, b"efgh");
        assert!(inbound.tail.is_empty());
    }

    #[test]
    fn a_claimed_size_allocates_only_for_what_arrived() {
        let (mut inbound, mut scratch) = (Inbound::default(), Scratch::borrow());
        read(&mut inbound, &mut scratch, &vec![7; 40_000], usize::MAX);
        inbound.feed(&scratch, |_| Ok::<_, Infallible>(0)).unwrap();
        read(&mut inbound, &mut scratch, b"x", usize::MAX);
        assert!(inbound.tail.capacity() < 40_000 + 2 * READ_BYTES);
        assert_eq!(inbound.tail.len(), 40_001);
    }

    #[test]
    fn what_is_left_behind_a_large_frame_does_not_keep_the_memory_of_the_frame() {
        let (mut inbound, mut scratch) = (Inbound::default(), Scratch::borrow());
        let whole = vec![3; 200_000];
        let mut fed = 0;
        while fed < whole.len() {
            fed += read(&mut inbound, &mut scratch, &whole[fed..], usize::MAX);
            inbound.feed(&scratch, |_| Ok::<_, Infallible>(0)).unwrap();
        }
        inbound
            .feed_tail(|data| Ok::<_, Infallible>(data.len() - 50_000))
            .unwrap();
        assert_eq!(
            (inbound.tail.len(), inbound.tail.capacity()),
            (50_000, 50_000)
        );
    }

    #[test]
    fn a_connection_at_rest_holds_no_buffer() {
        let (mut inbound, mut scratch) = (Inbound::default(), Scratch::borrow());
        let large = vec![1; 200_000];
        let mut fed = 0;
        read(&mut inbound, &mut scratch, &large, 400_000);
        inbound.feed(&scratch, |_| Ok::<_, Infallible>(0)).unwrap();
        while fed < large.len() {
            fed += read(&mut inbound, &mut scratch, &large[fed..], 400_000);
            inbound.feed(&scratch, |_| Ok::<_, Infallible>(0)).unwrap();
        }
        inbound
            .feed_tail(|data| Ok::<_, Infallible>(data.len()))
            .unwrap();
        assert_eq!(inbound.tail.capacity(), 0);
    }
}
