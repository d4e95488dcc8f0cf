//! Pulling: every lane walks one queue from its start to its end, again and again.
//!
//! Invariant: messages are counted in the answer's body, not taken from what was asked for.

use anyhow::{Context, Result, ensure};

use super::{describe, fill_plan, plan, reading, send::Sends};
use crate::PullArgs;
use crate::control::{Control, resolve};
use crate::engine::{self, Traffic};
use crate::frames::{Template, topic_names};
use crate::reply::Reply;
use crate::report::Report;

/// Messages of one request when filling.
const FILL_BATCH: usize = 32;
const PULL_MESSAGE: i32 = 11;
const PULL_NOT_FOUND: i32 = 19;
const PULL_RETRY_IMMEDIATELY: i32 = 20;
const PULL_OFFSET_MOVED: i32 = 21;

/// Where one lane reads.
#[derive(Clone, Debug)]
struct Cursor {
    topic: String,
    queue: u32,
    offset: i64,
}

/// See the module.
#[derive(Debug)]
struct Pulls {
    cursors: Vec<Cursor>,
    group: String,
    max: u32,
}

/// A pull request at an offset; `hold` is how long the server may keep it, in milliseconds.
pub(crate) fn pull_template(
    group: &str,
    topic: &str,
    (queue, offset): (u32, i64),
    max: u32,
    hold: u32,
) -> Template {
    // Subscription in the header (4), and suspend (2) when it may be held.
    let sys_flag = if hold > 0 { "6" } else { "4" };
    let fields = [
        ("commitOffset", "0"),
        ("consumerGroup", group),
        ("expressionType", "TAG"),
        ("maxMsgNums", &max.to_string()),
        ("queueId", &queue.to_string()),
        ("queueOffset", &offset.to_string()),
        ("subVersion", "0"),
        ("subscription", "*"),
        ("suspendTimeoutMillis", &hold.to_string()),
        ("sysFlag", sys_flag),
        ("topic", topic),
    ];
    Template::new(PULL_MESSAGE, &fields, 0)
}

/// Counts the records of a pull answer by their length words.
fn count_records(mut body: &[u8]) -> u64 {
    let mut count = 0;
    while let Some(word) = body.first_chunk::<4>() {
        let length = u32::from_be_bytes(*word) as usize;
        match body.get(length..) {
            Some(rest) if length > 0 => body = rest,
            _ => break,
        }
        count += 1;
    }
    count
}

impl Traffic for Pulls {
    fn request(&mut self, lane: usize, opaque: i32, out: &mut Vec<u8>) {
        if let Some(at) = self.cursors.get(lane) {
            let place = (at.queue, at.offset);
            pull_template(&self.group, &at.topic, place, self.max, 0).write(opaque, 0, out);
        }
    }

    fn answer(&mut self, lane: usize, reply: &Reply<'_>) -> Option<u64> {
        let cursor = self.cursors.get_mut(lane)?;
        match reply.code {
            0 => {
                let count = count_records(reply.body());
                let next = reply.field(b"\"nextBeginOffset\":");
                cursor.offset = next.unwrap_or(cursor.offset + count as i64);
                Some(count)
            }
            PULL_NOT_FOUND | PULL_RETRY_IMMEDIATELY | PULL_OFFSET_MOVED => {
                cursor.offset = reply.field(b"\"minOffset\":").unwrap_or(0);
                Some(0)
            }
            _ => None,
        }
    }
}

/// `bench pull`.
pub(crate) fn run(args: &PullArgs) -> Result<Report> {
    let setup_seconds = prepare(args)?;
    let mut report = measure(args)?;
    report.setup_seconds = setup_seconds;
    Ok(report)
}

/// Makes the topics and fills them; how many seconds filling took.
pub(crate) fn prepare(args: &PullArgs) -> Result<Option<f64>> {
    let addr = resolve(&args.addr)?;
    let mut message = args.message.clone();
    ensure!(message.queues > 0, "needs a queue");
    let topics = topic_names(&message.topic, message.topics);
    if !message.no_create {
        let mut control = Control::connect(addr)?;
        control.create_topics(&topics, message.queues, |_| {})?;
        control.create_group(&args.pull.group)?;
    }
    if args.pull.fill == 0 {
        return Ok(None);
    }
    message.batch = FILL_BATCH;
    let mut sends = Sends::new(&topics, &message)?;
    let fill = fill_plan(addr, args.pull.fill.div_ceil(FILL_BATCH as u64));
    let filled = engine::run(&fill, &mut sends).context("filling")?;
    let reason = filled.first_error.unwrap_or_default();
    ensure!(
        filled.errors.is_empty(),
        "filling failed: {:?} {reason}",
        filled.errors
    );
    Ok(Some(filled.seconds))
}

/// Pulls what is there.
pub(crate) fn measure(args: &PullArgs) -> Result<Report> {
    let addr = resolve(&args.addr)?;
    let (load, message, max) = (&args.load, &args.message, args.pull.max);
    ensure!(message.queues > 0, "needs a queue");
    let topics = topic_names(&message.topic, message.topics);
    let cursors = (0..load.connections * load.inflight)
        .map(|lane| Cursor {
            topic: topics
                .get(lane / message.queues as usize % topics.len())
                .cloned()
                .unwrap_or_default(),
            queue: (lane % message.queues as usize) as u32,
            offset: 0,
        })
        .collect();
    let mut pulls = Pulls {
        cursors,
        group: args.pull.group.clone(),
        max,
    };
    let title = format!("pull {max} × {} B, {}", message.size, describe(load));
    let plan = plan(title, addr, load);
    let measured = engine::run(&plan, &mut pulls).context("pulling")?;
    reading(plan, &measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_up_to_a_torn_one() {
        let record = |length: u32| {
            let mut bytes = length.to_be_bytes().to_vec();
            bytes.resize(length as usize, 0);
            bytes
        };
        let body = [record(10), record(20), record(4)].concat();
        assert_eq!(count_records(&body), 3);
        assert_eq!(count_records(&body[..29]), 1);
        assert_eq!(count_records(&[0, 0, 0, 0, 1]), 0);
        assert_eq!(count_records(&[]), 0);
    }
}
