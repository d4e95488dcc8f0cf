//! End to end on an idle broker: a consumer waits in a long poll, a message is sent, it arrives.
//!
//! Invariant: one message at a time, and the consumer's poll is on its way before it is sent.

use std::io;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::{now_millis, pull::pull_template};
use crate::LatencyArgs;
use crate::conn::{Conn, SCRATCH_BYTES};
use crate::control::{Control, resolve};
use crate::engine::Measured;
use crate::frames::{OPAQUE_FIRST, SendShape, Template};
use crate::process::{listener_of, usage};
use crate::progress::Progress;
use crate::reply::Reply;
use crate::report::Report;

const SENDER: Token = Token(0);
const RECEIVER: Token = Token(1);
/// How long the server may hold a poll; a message is sent long before.
const HOLD_MILLIS: u32 = 15_000;
const ARRIVE_MAX: Duration = Duration::from_secs(20);

struct Pair {
    poll: Poll,
    sender: Conn,
    receiver: Conn,
    scratch: Vec<u8>,
}

/// Code and next offset of an answer.
#[derive(Clone, Copy, Debug)]
struct Answer {
    code: i32,
    next: Option<i64>,
}

impl Pair {
    fn open(addr: std::net::SocketAddr) -> Result<Self> {
        let poll = Poll::new()?;
        let connect = |token| -> Result<Conn> {
            let stream = std::net::TcpStream::connect(addr)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut stream, token, interest)?;
            Ok(Conn::new(stream))
        };
        let (sender, receiver) = (connect(SENDER)?, connect(RECEIVER)?);
        Ok(Self {
            poll,
            sender,
            receiver,
            scratch: vec![0; SCRATCH_BYTES],
        })
    }

    /// Waits for what comes next, up to `limit`: answers to the sender and to the receiver.
    fn wait(&mut self, limit: Duration) -> Result<(Option<Answer>, Option<Answer>)> {
        let mut events = Events::with_capacity(16);
        match self.poll.poll(&mut events, Some(limit)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok((None, None)),
            other => other?,
        }
        let (mut sent, mut received) = (None, None);
        for event in &events {
            let (conn, answer) = match event.token() {
                SENDER => (&mut self.sender, &mut sent),
                _ => (&mut self.receiver, &mut received),
            };
            conn.read(&mut self.scratch, |_, frame| {
                let reply = Reply::scan(frame).ok_or_else(|| io::Error::other("not a reply"))?;
                let next = reply.field(b"\"nextBeginOffset\":");
                *answer = Some(Answer {
                    code: reply.code,
                    next,
                });
                Ok(())
            })
            .context("connection lost")?;
        }
        Ok((sent, received))
    }
}

struct Probe<'a> {
    args: &'a LatencyArgs,
    pair: Pair,
    send: Template,
    body: Vec<u8>,
    offset: i64,
    end_to_end: Histogram<u64>,
}

impl Probe<'_> {
    /// Rests with the poll waiting, then sends one message and times its arrival.
    fn round(&mut self, number: u64) -> Result<()> {
        let place = (0, self.offset);
        let pull = pull_template(&self.args.group, &self.args.topic, place, 32, HOLD_MILLIS);
        pull.write(OPAQUE_FIRST, 0, &mut self.pair.receiver.out);
        self.pair.receiver.flush()?;
        let rested = Instant::now() + self.args.gap;
        loop {
            let left = rested.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let (_, early) = self.pair.wait(left)?;
            if let Some(answer) = early {
                bail!(
                    "a waiting poll was answered with code {} before a message came",
                    answer.code
                );
            }
        }
        self.send
            .write(OPAQUE_FIRST, number, &mut self.pair.sender.out);
        self.pair.sender.out.extend_from_slice(&self.body);
        let start = Instant::now();
        self.pair.sender.flush()?;
        let (mut sent, mut received) = (false, false);
        while !(sent && received) {
            ensure!(start.elapsed() < ARRIVE_MAX, "a message did not arrive");
            let (ack, arrival) = self.pair.wait(ARRIVE_MAX)?;
            if let Some(ack) = ack {
                ensure!(ack.code == 0, "a send was answered with code {}", ack.code);
                sent = true;
            }
            if let Some(arrival) = arrival {
                ensure!(
                    arrival.code == 0,
                    "a waiting poll got code {}",
                    arrival.code
                );
                self.end_to_end
                    .saturating_record(start.elapsed().as_nanos() as u64);
                self.offset = arrival.next.unwrap_or(self.offset + 1);
                received = true;
            }
        }
        Ok(())
    }
}

/// `bench latency`.
pub(crate) fn run(args: &LatencyArgs) -> Result<Report> {
    let addr = resolve(&args.addr)?;
    let mut control = Control::connect(addr)?;
    let topics = [args.topic.clone()];
    control.create_topics(&topics, 1, |_| {})?;
    control.create_group(&args.group)?;
    let offset = control
        .max_offsets(&topics, 1)?
        .first()
        .copied()
        .unwrap_or(0);
    let shape = SendShape {
        batch: 1,
        size: args.size,
        born_at: now_millis(),
        queues: 1,
    };
    let body = shape.body();
    let mut probe = Probe {
        args,
        pair: Pair::open(addr)?,
        send: shape.template(&args.topic, 0, body.len()),
        body,
        offset,
        end_to_end: Histogram::new_with_bounds(100, 60_000_000_000, 3)?,
    };
    for number in 0..u64::from(args.count.min(50)) {
        probe.round(number)?;
    }
    probe.end_to_end.reset();
    let pid = args.pid.or_else(|| listener_of(addr));
    let (begun, start) = (pid.and_then(usage), Instant::now());
    let mut progress = Progress::new("latency");
    for number in 0..u64::from(args.count) {
        progress.show(Instant::now(), || format!("{number} of {}", args.count));
        probe.round(100 + number)?;
    }
    let mut measured = Measured::new()?;
    measured.seconds = start.elapsed().as_secs_f64();
    measured.requests = u64::from(args.count);
    measured.messages = measured.requests;
    measured.acknowledged = measured.requests;
    measured.latency = probe.end_to_end;
    measured.server = begun.zip(pid.and_then(usage));
    let title = format!("end to end, idle, {} B, every {:?}", args.size, args.gap);
    Ok(Report::of(title, addr.to_string(), pid, &measured))
}
