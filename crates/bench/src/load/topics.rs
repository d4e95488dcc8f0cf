//! Many topics: how long creating them takes, and how fast sending over all of them is.
//!
//! Invariant: the send load afterwards is the one of `bench send`, over every queue in turn.

use std::time::Instant;

use anyhow::Result;

use super::send;
use crate::control::{Control, resolve};
use crate::frames::topic_names;
use crate::progress::Progress;
use crate::report::Report;
use crate::{MessageArgs, TopicsArgs};

/// `bench topics`.
pub(crate) fn run(args: &TopicsArgs) -> Result<Report> {
    let addr = resolve(&args.addr)?;
    let message = MessageArgs {
        size: args.size,
        topic: args.topic.clone(),
        topics: args.topics,
        queues: args.queues,
        batch: 1,
        no_create: false,
    };
    let names = topic_names(&message.topic, message.topics);
    let start = Instant::now();
    let mut progress = Progress::new("creating topics");
    Control::connect(addr)?.create_topics(&names, args.queues, |done| {
        progress.show(Instant::now(), || format!("{done} of {}", names.len()));
    })?;
    drop(progress);
    let created = start.elapsed();
    let mut report = send::measure(addr, &args.load, &message)?;
    report.setup_seconds = Some(created.as_secs_f64());
    Ok(report)
}
