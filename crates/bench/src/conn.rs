//! One non-blocking connection of the generator or of the floor broker: buffers and frames.
//!
//! Invariant: a read that fills less than it could has emptied the socket (edge-triggered events
//! come again only for new bytes). It does not know what the frames mean.

use std::io::{self, Read, Write};

use mio::net::TcpStream;
use rmq_protocol::remoting::{RawFrame, Split, split_frame};

const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes read at once into the loop's shared buffer.
pub(crate) const SCRATCH_BYTES: usize = 256 * 1024;

/// See the module.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) stream: TcpStream,
    /// Frames to be written.
    pub(crate) out: Vec<u8>,
    sent: usize,
    tail: Vec<u8>,
}

impl Conn {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            out: Vec::new(),
            sent: 0,
            tail: Vec::new(),
        }
    }

    /// Writes what waits, as far as the socket takes it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads what is there and gives every complete frame to `each`.
    pub(crate) fn read(
        &mut self,
        scratch: &mut [u8],
        mut each: impl FnMut(&mut Vec<u8>, RawFrame<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            let count = match self.stream.read(scratch) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let fresh = scratch.get(..count).unwrap_or_default();
            if self.tail.is_empty() {
                let used = frames(fresh, |frame| each(&mut self.out, frame))?;
                self.tail
                    .extend_from_slice(fresh.get(used..).unwrap_or_default());
            } else {
                self.tail.extend_from_slice(fresh);
                let used = frames(&self.tail, |frame| each(&mut self.out, frame))?;
                self.tail.drain(..used);
            }
            if count < scratch.len() {
                return Ok(());
            }
        }
    }
}

/// Gives every complete frame of `bytes` to `each`; returns the bytes used up.
fn frames(bytes: &[u8], mut each: impl FnMut(RawFrame<'_>) -> io::Result<()>) -> io::Result<usize> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match split_frame(rest, FRAME_BYTES_MAX).map_err(io::Error::other)? {
            Split::Incomplete { .. } => return Ok(at),
            Split::Frame { frame, consumed } => {
                each(frame)?;
                at += consumed;
            }
        }
    }
}
