//! Sending: single messages or batches, over one topic or many.
//!
//! Invariant: a message counts as acknowledged only by an answer of success for its request.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};

use super::{describe, now_millis, plan};
use crate::control::{Control, resolve};
use crate::engine::{self, Plan, Traffic};
use crate::frames::{SendShape, Template, topic_names};
use crate::reply::Reply;
use crate::report::Report;
use crate::roll::{self, LogEnd};
use crate::{LoadArgs, MessageArgs, SendArgs};

/// See the module.
#[derive(Debug)]
pub(crate) struct Sends {
    templates: Vec<Template>,
    body: Vec<u8>,
    batch: u64,
    sent: u64,
}

impl Sends {
    /// Requests that go around all queues of all topics.
    pub(crate) fn new(topics: &[String], message: &MessageArgs) -> Result<Self> {
        ensure!(
            message.queues > 0 && message.batch > 0,
            "needs a queue and a message"
        );
        let shape = SendShape {
            batch: message.batch,
            size: message.size,
            born_at: now_millis(),
            queues: message.queues,
        };
        let body = shape.body();
        let queues = 0..message.queues;
        let templates = queues
            .flat_map(|queue| topics.iter().map(move |topic| (topic, queue)))
            .map(|(topic, queue)| shape.template(topic, queue, body.len()))
            .collect();
        Ok(Self {
            templates,
            body,
            batch: message.batch as u64,
            sent: 0,
        })
    }
}

impl Traffic for Sends {
    fn request(&mut self, _lane: usize, opaque: i32, out: &mut Vec<u8>) {
        let count = self.templates.len() as u64;
        if let Some(template) = self.templates.get((self.sent % count) as usize) {
            template.write(opaque, self.sent, out);
            out.extend_from_slice(&self.body);
        }
        self.sent += 1;
    }

    fn answer(&mut self, _lane: usize, reply: &Reply<'_>) -> Option<u64> {
        (reply.code == 0).then_some(self.batch)
    }
}

/// `bench send`.
pub(crate) fn run(args: &SendArgs) -> Result<Report> {
    let addr = resolve(&args.addr)?;
    let message = &args.message;
    let topics = topic_names(&message.topic, message.topics);
    let mut control = Control::connect(addr)?;
    if !message.no_create {
        control.create_topics(&topics, message.queues, |_| {})?;
    }
    if args.across_roll {
        roll::fill(addr, &args.load, message)?;
    }
    let before = args
        .verify
        .then(|| control.max_offsets(&topics, message.queues))
        .transpose()?;
    let mut report = measure(addr, &args.load, message)?;
    if let Some(before) = before {
        let after = Control::connect(addr)?.max_offsets(&topics, message.queues)?;
        report.stored = Some(after.iter().sum::<i64>() - before.iter().sum::<i64>());
    }
    Ok(report)
}

/// Sends over topics that exist.
pub(crate) fn measure(addr: SocketAddr, load: &LoadArgs, message: &MessageArgs) -> Result<Report> {
    let topics = topic_names(&message.topic, message.topics);
    let mut traffic = Sends::new(&topics, message)?;
    let plan: Plan = plan(title(load, message), addr, load);
    let begun = LogEnd::ask(addr);
    let measured = engine::run(&plan, &mut traffic).context("sending")?;
    let ends = begun.zip(LogEnd::ask(addr));
    let mut report = Report::of(plan.title, addr.to_string(), plan.pid, &measured);
    report.commit_log = ends.map(|(begun, end)| roll::span(begun, end, &measured));
    Ok(report)
}

fn title(load: &LoadArgs, message: &MessageArgs) -> String {
    let batch = if message.batch > 1 {
        format!("{} × ", message.batch)
    } else {
        String::new()
    };
    let topics = if message.topics > 1 {
        format!("{} topics × ", message.topics)
    } else {
        String::new()
    };
    let (size, queues) = (message.size, message.queues);
    format!(
        "send {batch}{size} B, {}, {topics}{queues} queues",
        describe(load)
    )
}
