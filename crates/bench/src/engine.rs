//! The event loop of the load generator: keeps requests in flight and counts what comes back.
//!
//! Invariant: every request sent is answered, or counted as unanswered at the end; a latency runs
//! from when its request was due (open loop) or written (closed loop). What requests look like is
//! the [`Traffic`]'s business.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::conn::{Conn, SCRATCH_BYTES};
use crate::frames::OPAQUE_FIRST;
use crate::pace::Schedule;
use crate::process::{Usage, usage};
use crate::progress::Progress;
use crate::reply::Reply;
use crate::stalls::Gaps;
use crate::timer::Timer;

const TIMER: Token = Token(usize::MAX);
/// How long answers may take after the last request was sent.
const DRAIN_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Requests and what their answers mean. A lane is one place for a request in flight.
pub(crate) trait Traffic {
    /// Appends the next request of `lane`.
    fn request(&mut self, lane: usize, opaque: i32, out: &mut Vec<u8>);

    /// Takes an answer: the messages it stands for, or `None` if it is a failure.
    fn answer(&mut self, lane: usize, reply: &Reply<'_>) -> Option<u64>;
}

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) title: String,
    pub(crate) addr: SocketAddr,
    pub(crate) connections: usize,
    pub(crate) inflight: usize,
    pub(crate) rate: Option<f64>,
    pub(crate) warmup: Duration,
    pub(crate) duration: Duration,
    /// Stop after this many requests, however long they take.
    pub(crate) requests_max: Option<u64>,
    pub(crate) pid: Option<u32>,
}

/// What was counted.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Length of the measured window in seconds.
    pub(crate) seconds: f64,
    /// Requests answered with success in the window.
    pub(crate) requests: u64,
    /// Messages these stand for.
    pub(crate) messages: u64,
    /// Nanoseconds of these requests.
    pub(crate) latency: Histogram<u64>,
    /// Failures by code, over the whole run.
    pub(crate) errors: BTreeMap<i32, u64>,
    /// What the server said first.
    pub(crate) first_error: Option<String>,
    /// Connections lost over the whole run.
    pub(crate) lost: usize,
    /// Requests never answered.
    pub(crate) unanswered: u64,
    /// Messages acknowledged over the whole run.
    pub(crate) acknowledged: u64,
    /// Those of them that came before the window.
    pub(crate) acknowledged_before: u64,
    /// Times of the window in which no answer came.
    pub(crate) gaps: Option<Gaps>,
    /// Messages of every second of the window.
    pub(crate) series: Vec<u64>,
    /// Usage of the server at both ends of the window.
    pub(crate) server: Option<(Usage, Usage)>,
    /// Usage of this process at both ends of the window.
    pub(crate) own: Option<(Usage, Usage)>,
}

impl Measured {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            seconds: 0.0,
            requests: 0,
            messages: 0,
            latency: Histogram::new_with_bounds(100, 600_000_000_000, 3)?,
            errors: BTreeMap::new(),
            first_error: None,
            lost: 0,
            unanswered: 0,
            acknowledged: 0,
            acknowledged_before: 0,
            gaps: None,
            series: Vec::new(),
            server: None,
            own: None,
        })
    }
}

/// One connection with its places for requests in flight.
struct Line {
    conn: Conn,
    /// Free places.
    free: Vec<usize>,
    /// When the request of each place was due.
    due: Vec<u64>,
    open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Warmup,
    Measure,
    Drain,
}

struct Engine<'a, T> {
    plan: &'a Plan,
    traffic: &'a mut T,
    lines: Vec<Line>,
    start: Instant,
    stage: Stage,
    /// When the stage began.
    since: Instant,
    schedule: Option<Schedule>,
    turn: usize,
    issued: u64,
    waiting: u64,
    begun: (Option<Usage>, Option<Usage>),
    measured: Measured,
}

/// Runs the plan to its end.
pub(crate) fn run<T: Traffic>(plan: &Plan, traffic: &mut T) -> Result<Measured> {
    ensure!(
        plan.connections > 0 && plan.inflight > 0,
        "needs a connection and a request on it"
    );
    let mut poll = Poll::new()?;
    let timer = Timer::new(poll.registry(), TIMER)?;
    let lines = connect(plan, &poll)?;
    let start = Instant::now();
    let mut engine = Engine {
        plan,
        traffic,
        lines,
        start,
        stage: Stage::Warmup,
        since: start,
        schedule: plan.rate.map(Schedule::new),
        turn: 0,
        issued: 0,
        waiting: 0,
        begun: (None, None),
        measured: Measured::new()?,
    };
    engine.drive(&mut poll, &timer)?;
    Ok(engine.measured)
}

fn connect(plan: &Plan, poll: &Poll) -> Result<Vec<Line>> {
    let mut lines = Vec::with_capacity(plan.connections);
    for index in 0..plan.connections {
        let stream = std::net::TcpStream::connect_timeout(&plan.addr, Duration::from_secs(3))
            .with_context(|| {
                format!(
                    "cannot connect to {}: is a server running there?",
                    plan.addr
                )
            })?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry()
            .register(&mut stream, Token(index), interest)?;
        lines.push(Line {
            conn: Conn::new(stream),
            free: (0..plan.inflight).rev().collect(),
            due: vec![0; plan.inflight],
            open: true,
        });
    }
    Ok(lines)
}

impl<T: Traffic> Engine<'_, T> {
    fn drive(&mut self, poll: &mut Poll, timer: &Timer) -> Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut scratch = vec![0; SCRATCH_BYTES];
        let mut progress = Progress::new(self.plan.title.clone());
        for index in 0..self.lines.len() {
            self.refill(index);
        }
        loop {
            let now = Instant::now();
            self.turn_stage(now);
            if self.stage == Stage::Drain
                && (self.waiting == 0 || now - self.since > DRAIN_MAX || self.all_lost())
            {
                break;
            }
            progress.show(now, || self.progress(now));
            let woken_at = self.issue_due(timer)?;
            match poll.poll(&mut events, Some(LOOK_EVERY)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            }
            let ran_at = self.nanos();
            if let (Some(due), Some(gaps)) = (woken_at, &mut self.measured.gaps) {
                gaps.ran(due, ran_at);
            }
            for event in &events {
                if event.token() != TIMER {
                    self.handle(event.token().0, &mut scratch);
                }
            }
        }
        self.measured.unanswered = self.waiting;
        Ok(())
    }

    fn nanos(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn all_lost(&self) -> bool {
        self.lines.iter().all(|line| !line.open)
    }

    fn progress(&self, now: Instant) -> String {
        let seconds = (now - self.start).as_secs();
        let done = self.measured.acknowledged;
        let failed: u64 = self.measured.errors.values().sum();
        format!(
            "{:?} {seconds} s, {done} messages, {failed} failed",
            self.stage
        )
    }

    /// Moves on from warm-up to measuring to draining when their time is over.
    fn turn_stage(&mut self, now: Instant) {
        let in_stage = now - self.since;
        match self.stage {
            Stage::Warmup if in_stage >= self.plan.warmup => {
                self.begun = (self.plan.pid.and_then(usage), usage(std::process::id()));
                self.since = Instant::now();
                self.stage = Stage::Measure;
                self.measured.acknowledged_before = self.measured.acknowledged;
                self.measured.gaps = Some(Gaps::begin(self.nanos()));
            }
            Stage::Measure => {
                let all_sent = self.plan.requests_max.is_some_and(|max| self.issued >= max);
                let over = match self.plan.requests_max {
                    Some(_) => all_sent && self.waiting == 0,
                    None => in_stage >= self.plan.duration,
                };
                if over || self.all_lost() {
                    self.end_measuring(now);
                }
            }
            Stage::Warmup | Stage::Drain => {}
        }
    }

    fn end_measuring(&mut self, now: Instant) {
        let (server, own) = self.begun;
        let end = self.nanos();
        if let Some(gaps) = &mut self.measured.gaps {
            gaps.answer(end);
        }
        self.measured.server = server.zip(self.plan.pid.and_then(usage));
        self.measured.own = own.zip(usage(std::process::id()));
        self.measured.seconds = (now - self.since).as_secs_f64();
        self.since = Instant::now();
        self.stage = Stage::Drain;
    }

    fn handle(&mut self, index: usize, scratch: &mut [u8]) {
        let Some(line) = self.lines.get_mut(index).filter(|line| line.open) else {
            return;
        };
        let inflight = self.plan.inflight;
        let now = self.start.elapsed().as_nanos() as u64;
        let measuring = self.stage == Stage::Measure;
        let second = self.since.elapsed().as_secs() as usize;
        let (free, due) = (&mut line.free, &line.due);
        let (traffic, measured, waiting) =
            (&mut *self.traffic, &mut self.measured, &mut self.waiting);
        let outcome = line.conn.read(scratch, |_, frame| {
            let reply = Reply::scan(frame).ok_or_else(|| io::Error::other("not a reply"))?;
            let place = (reply.opaque - OPAQUE_FIRST) as usize;
            let Some(due) = due.get(place) else {
                return Ok(());
            };
            free.push(place);
            *waiting -= 1;
            let Some(messages) = traffic.answer(index * inflight + place, &reply) else {
                *measured.errors.entry(reply.code).or_default() += 1;
                if measured.first_error.is_none() {
                    measured.first_error = reply.remark();
                }
                return Ok(());
            };
            measured.acknowledged += messages;
            if measuring {
                measured.requests += 1;
                measured.messages += messages;
                if let Some(gaps) = &mut measured.gaps {
                    gaps.answer(now);
                }
                measured.latency.saturating_record(now.saturating_sub(*due));
                if measured.series.len() <= second {
                    measured.series.resize(second + 1, 0);
                }
                if let Some(sum) = measured.series.get_mut(second) {
                    *sum += messages;
                }
            }
            Ok(())
        });
        match outcome {
            Ok(()) => self.refill(index),
            Err(_) => self.lose(index),
        }
    }

    /// Closed loop: fills every free place. Then writes.
    fn refill(&mut self, index: usize) {
        if self.schedule.is_none() {
            let now = self.nanos();
            while self.may_issue() && self.issue(index, now) {}
        }
        self.flush(index);
    }

    fn flush(&mut self, index: usize) {
        let flushed = self.lines.get_mut(index).map(|line| line.conn.flush());
        if let Some(Err(_)) = flushed {
            self.lose(index);
        }
    }

    fn may_issue(&self) -> bool {
        self.stage != Stage::Drain && self.plan.requests_max.is_none_or(|max| self.issued < max)
    }

    /// Appends one request to a connection; false if it has no free place.
    fn issue(&mut self, index: usize, due: u64) -> bool {
        let Some(line) = self.lines.get_mut(index).filter(|line| line.open) else {
            return false;
        };
        let Some(place) = line.free.pop() else {
            return false;
        };
        if let Some(slot) = line.due.get_mut(place) {
            *slot = due;
        }
        let lane = index * self.plan.inflight + place;
        self.traffic
            .request(lane, OPAQUE_FIRST + place as i32, &mut line.conn.out);
        self.issued += 1;
        self.waiting += 1;
        true
    }

    /// Open loop: sends what is due, on whichever connection has a free place, and sets the timer;
    /// says for when.
    fn issue_due(&mut self, timer: &Timer) -> Result<Option<u64>> {
        if self.stage == Stage::Drain {
            return Ok(None);
        }
        let Some(mut schedule) = self.schedule else {
            return Ok(None);
        };
        let now = self.nanos();
        while schedule.next_at() <= now && self.may_issue() {
            let Some(index) = self.next_free() else { break };
            if let Some(due) = schedule.take(now) {
                self.issue(index, due);
                self.flush(index);
            }
        }
        let next = schedule.next_at();
        self.schedule = Some(schedule);
        if next <= now {
            return Ok(None);
        }
        timer.arm(next - now)?;
        Ok(Some(next))
    }

    fn next_free(&mut self) -> Option<usize> {
        let count = self.lines.len();
        let index = (0..count)
            .map(|step| (self.turn + step) % count)
            .find(|index| {
                self.lines
                    .get(*index)
                    .is_some_and(|line| line.open && !line.free.is_empty())
            })?;
        self.turn = index + 1;
        Some(index)
    }

    fn lose(&mut self, index: usize) {
        let Some(line) = self.lines.get_mut(index).filter(|line| line.open) else {
            return;
        };
        line.open = false;
        // Its requests in flight stay counted as waiting, and so as unanswered at the end.
        self.measured.lost += 1;
    }
}
