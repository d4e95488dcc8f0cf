//! Popping: 32 messages a request, then an ack for each of them.
//!
//! Acks of a connection go before its next pop, so with one request in flight a message is acked
//! before the next is asked for, and with more the acks are pipelined as clients do. A group that
//! has consumed everything is followed by a new one, which begins at the start.
//!
//! Invariant: a message counts when its ack was answered with success.

use std::collections::VecDeque;
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use rmq_protocol::remoting::{Command, request_code};

use super::{describe, plan, pull, reading};
use crate::PullArgs;
use crate::control::{Control, resolve};
use crate::engine::{self, Traffic};
use crate::frames::{Template, topic_names};
use crate::reply::Reply;
use crate::report::Report;

const PULL_NOT_FOUND: i32 = 19;
const POLLING_FULL: i32 = 209;
const POLLING_TIMEOUT: i32 = 210;
/// Longer than a run.
const INVISIBLE_MILLIS: &str = "300000";

/// A message to ack.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ack {
    topic: usize,
    group: u64,
    queue: i64,
    offset: i64,
    handle: String,
}

/// What a lane has in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flying {
    Nothing,
    Pop { topic: usize, group: u64 },
    Ack,
}

/// See the module.
#[derive(Debug)]
struct Pops {
    topics: Vec<String>,
    broker: String,
    group: String,
    /// Tells one run's groups from another's.
    run: i64,
    max: u32,
    /// Groups of each topic that have consumed everything.
    groups: Vec<u64>,
    inflight: usize,
    lanes: Vec<Flying>,
    /// Acks that wait, by connection.
    acks: Vec<VecDeque<Ack>>,
    turn: usize,
}

impl Pops {
    fn group_name(&self, number: u64) -> String {
        format!("{}-{}-{number}", self.group, self.run)
    }

    fn pop_template(&self, topic: usize, group: u64) -> Option<Template> {
        let fields = [
            ("bornTime", "0"),
            ("consumerGroup", &*self.group_name(group)),
            ("exp", "*"),
            ("expType", "TAG"),
            ("initMode", "0"),
            ("invisibleTime", INVISIBLE_MILLIS),
            ("maxMsgNums", &self.max.to_string()),
            ("order", "false"),
            ("pollTime", "0"),
            ("queueId", "-1"),
            ("topic", self.topics.get(topic)?),
        ];
        Some(Template::new(request_code::POP_MESSAGE, &fields, 0))
    }

    fn ack_template(&self, ack: &Ack) -> Option<Template> {
        let fields = [
            ("consumerGroup", &*self.group_name(ack.group)),
            ("extraInfo", &ack.handle),
            ("offset", &ack.offset.to_string()),
            ("queueId", &ack.queue.to_string()),
            ("topic", self.topics.get(ack.topic)?),
        ];
        Some(Template::new(request_code::ACK_MESSAGE, &fields, 0))
    }

    /// The acks of what a pop gave.
    fn acks_of(&self, (topic, group): (usize, u64), reply: &Reply<'_>) -> Option<Vec<Ack>> {
        let pop_time = reply.field(b"\"popTime\":")?;
        let revive = reply.field(b"\"reviveQid\":")?;
        let starts = reply.text(b"\"startOffsetInfo\":\"")?;
        let offsets = reply.text(b"\"msgOffsetInfo\":\"")?;
        let mut acks = Vec::with_capacity(self.max as usize);
        for (start, list) in starts.split(';').zip(offsets.split(';')) {
            let mut place = start.split(' ');
            let (kind, queue) = (place.next()?, place.next()?);
            let start = place.next()?;
            for offset in list.rsplit(' ').next()?.split(',') {
                let mut handle = String::with_capacity(96);
                let broker = &self.broker;
                // Writing to a String cannot fail.
                let _ = write!(
                    handle,
                    "{start} {pop_time} {INVISIBLE_MILLIS} {revive} {kind} {broker} {queue} {offset}"
                );
                acks.push(Ack {
                    topic,
                    group,
                    queue: queue.parse().ok()?,
                    offset: offset.parse().ok()?,
                    handle,
                });
            }
        }
        Some(acks)
    }
}

impl Traffic for Pops {
    fn request(&mut self, lane: usize, opaque: i32, out: &mut Vec<u8>) {
        let waiting = self.acks.get_mut(lane / self.inflight);
        let (template, flying) = if let Some(ack) = waiting.and_then(VecDeque::pop_front) {
            (self.ack_template(&ack), Flying::Ack)
        } else {
            self.turn += 1;
            let topic = self.turn % self.topics.len();
            let group = self.groups.get(topic).copied().unwrap_or(0);
            (
                self.pop_template(topic, group),
                Flying::Pop { topic, group },
            )
        };
        if let Some(template) = template {
            template.write(opaque, 0, out);
        }
        if let Some(slot) = self.lanes.get_mut(lane) {
            *slot = flying;
        }
    }

    fn answer(&mut self, lane: usize, reply: &Reply<'_>) -> Option<u64> {
        let flying = self.lanes.get_mut(lane)?;
        match (std::mem::replace(flying, Flying::Nothing), reply.code) {
            (Flying::Ack, 0) => Some(1),
            (Flying::Pop { topic, group }, 0) => {
                let acks = self.acks_of((topic, group), reply)?;
                self.acks.get_mut(lane / self.inflight)?.extend(acks);
                Some(0)
            }
            (Flying::Pop { topic, group }, PULL_NOT_FOUND | POLLING_FULL | POLLING_TIMEOUT) => {
                let current = self.groups.get_mut(topic)?;
                // Only the first to see the end goes on.
                *current = (*current).max(group + 1);
                Some(0)
            }
            _ => None,
        }
    }
}

/// `bench pop`.
pub(crate) fn run(args: &PullArgs) -> Result<Report> {
    let setup_seconds = pull::prepare(args)?;
    let mut report = measure(args)?;
    report.setup_seconds = setup_seconds;
    Ok(report)
}

/// Pops and acks what is there.
fn measure(args: &PullArgs) -> Result<Report> {
    let addr = resolve(&args.addr)?;
    let (load, message, max) = (&args.load, &args.message, args.pull.max);
    ensure!((1..=32).contains(&max), "a pop takes 1 to 32 messages");
    let topics = topic_names(&message.topic, message.topics);
    let mut pops = Pops {
        groups: vec![0; topics.len()],
        topics,
        broker: broker_name(addr)?,
        group: args.pull.group.clone(),
        run: super::now_millis(),
        max,
        inflight: load.inflight,
        lanes: vec![Flying::Nothing; load.connections * load.inflight],
        acks: vec![VecDeque::new(); load.connections],
        turn: 0,
    };
    let title = format!(
        "pop {max} × {} B and ack each, {}",
        message.size,
        describe(load)
    );
    let plan = plan(title, addr, load);
    let measured = engine::run(&plan, &mut pops).context("popping")?;
    reading(plan, &measured)
}

/// The name in handles.
fn broker_name(addr: std::net::SocketAddr) -> Result<String> {
    let asked = Command::request(request_code::GET_BROKER_CONFIG);
    let answer = Control::connect(addr)?.call(asked)?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let mut lines = text.lines();
    let name = lines.find_map(|line| line.strip_prefix("brokerName="));
    Ok(name.context("the broker does not say its name")?.to_owned())
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use rmq_protocol::{
        pop::ReceiptHandle,
        remoting::{Serializer, Split, split_frame},
    };

    use super::*;

    #[test]
    fn every_message_of_an_answer_gets_its_handle() {
        let pops = Pops {
            topics: vec!["t".to_owned()],
            broker: "b".to_owned(),
            group: "g".to_owned(),
            run: 1,
            max: 32,
            groups: vec![0],
            inflight: 1,
            lanes: Vec::new(),
            acks: Vec::new(),
            turn: 0,
        };
        let mut bytes = BytesMut::new();
        Command::success(1_000_000_001)
            .with_ext("popTime", "77")
            .with_ext("reviveQid", "3")
            .with_ext("startOffsetInfo", "0 5 10;0 6 4")
            .with_ext("msgOffsetInfo", "0 5 10,12;0 6 4")
            .encode(Serializer::Json, &mut bytes);
        let Split::Frame { frame, .. } = split_frame(&bytes, 1 << 20).unwrap() else {
            panic!("no frame")
        };
        let acks = pops.acks_of((0, 9), &Reply::scan(frame).unwrap()).unwrap();
        let places: Vec<_> = acks.iter().map(|ack| (ack.queue, ack.offset)).collect();
        assert_eq!(places, [(5, 10), (5, 12), (6, 4)]);
        for ack in &acks {
            let handle = ReceiptHandle::parse_of_message(&ack.handle).unwrap();
            assert_eq!(handle.check("b"), Ok(()));
            assert_eq!((handle.pop_time, handle.revive_queue_id), (77, 3));
            assert_eq!(handle.queue_offset, Some(ack.offset));
        }
    }
}
