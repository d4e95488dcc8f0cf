//! The floor broker: the least work that answers a send, to know what the computer can do at all.
//!
//! It splits frames, finds the code and opaque, and answers as `desk` says; with sync flush it writes
//! and flushes once for all requests of an event round. Invariant: it stays on one thread, and does
//! nothing that no broker could leave out.

mod desk;

use std::io::{self, Write, stdin, stdout};
use std::net::SocketAddr;

use anyhow::{Context, Result};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Token};

use crate::conn::{Conn, SCRATCH_BYTES};
use crate::control::resolve;
use crate::floor_log::FloorLog;
use crate::{FloorArgs, FlushMode};
use desk::Desk;

const LISTENER: Token = Token(usize::MAX);

/// First word of the line that tells the address.
pub(crate) const READY: &str = "floor broker listens on";

/// See the module.
#[derive(Debug)]
pub(crate) struct Floor {
    poll: Poll,
    listener: TcpListener,
    addr: SocketAddr,
    conns: Vec<Option<Conn>>,
    desk: Desk,
    /// Connections with an answer from another connection's request.
    touched: Vec<usize>,
}

/// `bench floor`: serves until the process ends.
pub(crate) fn run(args: &FloorArgs) -> Result<()> {
    let log = match args.flush {
        FlushMode::Async => FloorLog::memory(args.area),
        FlushMode::Sync => FloorLog::file(&args.file, args.area)
            .with_context(|| format!("cannot prepare {}", args.file.display()))?,
    };
    let desk = Desk::new(log, args.size, args.area);
    let mut floor = Floor::bind(resolve(&args.addr)?, desk)?;
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
    pub(crate) fn bind(addr: SocketAddr, desk: Desk) -> Result<Self> {
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
            desk,
            touched: Vec::new(),
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
            if self.desk.log.holds_answers() {
                self.desk.log.commit().context("cannot flush")?;
                for event in &*events {
                    self.flush(event.token().0);
                }
            }
            for index in std::mem::take(&mut self.touched) {
                self.flush(index);
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
        let desk = &mut self.desk;
        let outcome = conn.read(scratch, |out, frame| desk.answer(index, frame, out));
        if outcome.is_err() {
            self.close(index);
        } else if !self.desk.log.holds_answers() {
            self.flush(index);
        }
        for (other, frame) in self.desk.take_arrivals() {
            if let Some(Some(conn)) = self.conns.get_mut(other) {
                conn.out.extend_from_slice(&frame);
                self.touched.push(other);
            }
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
        self.desk.forget(index);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::{self, Measured, Plan};
    use crate::frames::topic_names;
    use crate::load::send::Sends;
    use crate::{LatencyArgs, LoadArgs, MessageArgs, PullArgs, PullShape, RouteArgs, load};

    /// A floor that serves until the test process ends.
    fn started(log: FloorLog) -> SocketAddr {
        let desk = Desk::new(log, 100, 1 << 20);
        let mut floor = Floor::bind(SocketAddr::from(([127, 0, 0, 1], 0)), desk).unwrap();
        let addr = floor.addr();
        std::thread::spawn(move || while floor.round().is_ok() {});
        addr
    }

    /// 400 requests, however long they take.
    fn against_the_floor(log: FloorLog, rate: Option<f64>, batch: usize) -> Measured {
        let plan = Plan {
            title: "test".to_owned(),
            addr: started(log),
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

    fn message() -> MessageArgs {
        MessageArgs {
            size: 100,
            topic: "t".to_owned(),
            topics: 1,
            queues: 4,
            batch: 1,
            no_create: false,
        }
    }

    /// A moment, whatever it brings.
    fn moment() -> LoadArgs {
        LoadArgs {
            connections: 2,
            inflight: 2,
            rate: None,
            duration: Duration::from_millis(30),
            warmup: Duration::ZERO,
            pid: None,
        }
    }

    #[test]
    fn pulls_get_prepared_records_as_many_as_they_ask_for() {
        let addr = started(FloorLog::memory(1 << 20)).to_string();
        let report = load::pull::run(&PullArgs {
            addr,
            load: moment(),
            message: message(),
            pull: PullShape {
                max: 7,
                fill: 64,
                group: "g".to_owned(),
            },
        });
        let report = report.unwrap();
        assert!(report.is_clean(), "{report:?}");
        assert!(report.messages > report.requests && report.messages <= 7 * report.requests);
    }

    #[test]
    fn route_queries_get_a_route() {
        let addr = started(FloorLog::memory(1 << 20)).to_string();
        let report = load::route::run(&RouteArgs {
            addr,
            load: moment(),
            topic: "t".to_owned(),
            topics: 3,
            queues: 8,
            register: true,
        });
        let report = report.unwrap();
        assert!(report.is_clean() && report.requests > 0, "{report:?}");
    }

    #[test]
    fn a_pull_that_may_wait_is_answered_by_the_next_send() {
        let dir = tempfile::tempdir().unwrap();
        let file = FloorLog::file(&dir.path().join("log"), 1 << 20).unwrap();
        for log in [FloorLog::memory(1 << 20), file] {
            let report = load::latency::run(&LatencyArgs {
                addr: started(log).to_string(),
                size: 100,
                topic: "t".to_owned(),
                count: 20,
                gap: Duration::ZERO,
                group: "g".to_owned(),
                pid: None,
            });
            assert_eq!(report.unwrap().messages, 20);
        }
    }
}
