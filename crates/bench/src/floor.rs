//! The floor broker: the least work that answers a send, to know what the computer can do at all.
//!
//! It splits frames, finds the opaque, checksums and copies the body, and answers as a send is
//! answered; with sync flush it writes and flushes once for all requests of an event round.
//! Invariant: it stays on one thread, and does nothing that no broker could leave out.

use std::io::{self, Write, stdin, stdout};
use std::net::SocketAddr;

use anyhow::{Context, Result};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Token};
use rmq_protocol::remoting::RawFrame;

use crate::conn::{Conn, SCRATCH_BYTES};
use crate::control::resolve;
use crate::floor_log::FloorLog;
use crate::reply::Reply;
use crate::{FloorArgs, FlushMode};

const LISTENER: Token = Token(usize::MAX);

/// First word of the line that tells the address.
pub(crate) const READY: &str = "floor broker listens on";

const BEFORE_OPAQUE: &[u8] = b"{\"code\":0,\"extFields\":{\"MSG_REGION\":\"DefaultRegion\",\
\"msgId\":\"7F00000100002A9F0000000000000000\",\"queueId\":\"0\",\"queueOffset\":\"0\",\
\"TRACE_ON\":\"true\"},\"flag\":1,\"language\":\"JAVA\",\"opaque\":";
const BEHIND_OPAQUE: &[u8] = b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":479}";

/// See the module.
#[derive(Debug)]
pub(crate) struct Floor {
    poll: Poll,
    listener: TcpListener,
    addr: SocketAddr,
    conns: Vec<Option<Conn>>,
    log: FloorLog,
    checksum: u32,
}

/// `bench floor`: serves until the process ends.
pub(crate) fn run(args: &FloorArgs) -> Result<()> {
    let log = match args.flush {
        FlushMode::Async => FloorLog::memory(args.area),
        FlushMode::Sync => FloorLog::file(&args.file, args.area)
            .with_context(|| format!("cannot prepare {}", args.file.display()))?,
    };
    let mut floor = Floor::bind(resolve(&args.addr)?, log)?;
    if args.until_stdin_ends {
        std::thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(|| {
                // However reading ends, the parent is gone.
                let _ = io::copy(&mut stdin().lock(), &mut io::sink());
                std::process::exit(0);
            })?;
    }
    writeln!(stdout(), "{READY} {}", floor.addr)?;
    loop {
        floor.round()?;
    }
}

impl Floor {
    pub(crate) fn bind(addr: SocketAddr, log: FloorLog) -> Result<Self> {
        let poll = Poll::new()?;
        let mut listener =
            TcpListener::bind(addr).with_context(|| format!("cannot listen on {addr}"))?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)?;
        let addr = listener.local_addr()?;
        Ok(Self {
            poll,
            listener,
            addr,
            conns: Vec::new(),
            log,
            checksum: 0,
        })
    }

    #[cfg(test)]
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Waits for events and serves all of them.
    pub(crate) fn round(&mut self) -> Result<()> {
        thread_local! {
            static BUFFERS: std::cell::RefCell<(Events, Vec<u8>)> =
                std::cell::RefCell::new((Events::with_capacity(1024), vec![0; SCRATCH_BYTES]));
        }
        BUFFERS.with_borrow_mut(|(events, scratch)| {
            match self.poll.poll(events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
                other => other?,
            }
            for event in &*events {
                match event.token() {
                    LISTENER => self.accept()?,
                    Token(index) => self.serve(index, scratch),
                }
            }
            if self.log.holds_answers() {
                self.log.commit().context("cannot flush")?;
                for event in &*events {
                    self.flush(event.token().0);
                }
            }
            Ok(())
        })
    }

    fn accept(&mut self) -> Result<()> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("cannot accept"),
            };
            let index = self
                .conns
                .iter()
                .position(Option::is_none)
                .unwrap_or(self.conns.len());
            let Ok(conn) = register(self.poll.registry(), stream, Token(index)) else {
                continue;
            };
            match self.conns.get_mut(index) {
                Some(place) => *place = Some(conn),
                None => self.conns.push(Some(conn)),
            }
        }
    }

    fn serve(&mut self, index: usize, scratch: &mut [u8]) {
        let Some(Some(conn)) = self.conns.get_mut(index) else {
            return;
        };
        let (log, checksum) = (&mut self.log, &mut self.checksum);
        let outcome = conn.read(scratch, |out, frame| answer(frame, log, checksum, out));
        if outcome.is_err() {
            self.close(index);
        } else if !self.log.holds_answers() {
            self.flush(index);
        }
    }

    fn flush(&mut self, index: usize) {
        let Some(Some(conn)) = self.conns.get_mut(index) else {
            return;
        };
        if conn.flush().is_err() {
            self.close(index);
        }
    }

    fn close(&mut self, index: usize) {
        if let Some(place) = self.conns.get_mut(index) {
            *place = None;
        }
    }
}

fn register(registry: &Registry, mut stream: TcpStream, token: Token) -> io::Result<Conn> {
    stream.set_nodelay(true)?;
    registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
    Ok(Conn::new(stream))
}

fn answer(
    frame: RawFrame<'_>,
    log: &mut FloorLog,
    checksum: &mut u32,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let request = Reply::scan(frame).ok_or_else(|| io::Error::other("no opaque"))?;
    *checksum ^= crc32fast::hash(frame.body);
    log.append(frame.body);
    let mut digits = [0; 10];
    let opaque = decimal(request.opaque.unsigned_abs(), &mut digits);
    let header = BEFORE_OPAQUE.len() + opaque.len() + BEHIND_OPAQUE.len();
    out.extend_from_slice(&(4 + header as u32).to_be_bytes());
    out.extend_from_slice(&(header as u32).to_be_bytes());
    out.extend_from_slice(BEFORE_OPAQUE);
    out.extend_from_slice(opaque);
    out.extend_from_slice(BEHIND_OPAQUE);
    Ok(())
}

/// A number in decimal digits.
fn decimal(mut value: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut first = digits.len() - 1;
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
        first = index;
        if value == 0 {
            break;
        }
    }
    digits.get(first..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::MessageArgs;
    use crate::engine::{self, Measured, Plan};
    use crate::frames::topic_names;
    use crate::load::send::Sends;

    #[test]
    fn numbers_are_written_without_leading_zeros() {
        let mut digits = [0; 10];
        assert_eq!(decimal(0, &mut digits), b"0");
        assert_eq!(decimal(907, &mut digits), b"907");
        assert_eq!(decimal(u32::MAX, &mut digits), b"4294967295");
    }

    /// 400 requests, however long they take.
    fn against_the_floor(log: FloorLog, rate: Option<f64>, batch: usize) -> Measured {
        let mut floor = Floor::bind(SocketAddr::from(([127, 0, 0, 1], 0)), log).unwrap();
        let plan = Plan {
            title: "test".to_owned(),
            addr: floor.addr(),
            connections: 4,
            inflight: 3,
            rate,
            warmup: Duration::ZERO,
            duration: Duration::ZERO,
            requests_max: Some(400),
            pid: None,
        };
        let message = MessageArgs {
            size: 100,
            topic: "t".to_owned(),
            topics: 2,
            queues: 4,
            batch,
            no_create: true,
        };
        let mut sends = Sends::new(&topic_names("t", 2), &message).unwrap();
        // The floor serves until the test process ends.
        std::thread::spawn(move || while floor.round().is_ok() {});
        engine::run(&plan, &mut sends).unwrap()
    }

    fn assert_all_answered(measured: &Measured, messages: u64) {
        assert_eq!((measured.requests, measured.messages), (400, messages));
        assert_eq!((measured.unanswered, measured.lost), (0, 0));
        assert_eq!(measured.latency.len(), 400);
        assert_eq!(measured.series.iter().sum::<u64>(), messages);
    }

    #[test]
    fn a_closed_loop_against_the_floor_loses_nothing() {
        let measured = against_the_floor(FloorLog::memory(1 << 20), None, 1);
        assert_all_answered(&measured, 400);
    }

    #[test]
    fn an_open_loop_of_batches_counts_messages_not_requests() {
        let measured = against_the_floor(FloorLog::memory(1 << 20), Some(20_000.0), 8);
        assert_all_answered(&measured, 3_200);
    }

    #[test]
    fn sync_flush_answers_after_its_commit() {
        let dir = tempfile::tempdir().unwrap();
        let log = FloorLog::file(&dir.path().join("log"), 1 << 20).unwrap();
        assert_all_answered(&against_the_floor(log, None, 1), 400);
    }
}
