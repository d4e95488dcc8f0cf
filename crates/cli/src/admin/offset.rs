//! `admin offset reset`: make a group go on somewhere else.

use clap::{Subcommand, ValueEnum};
use rmq_admin::{AdminClient, Answer, Queue, ResetOutcome, ResetTo};
use rmq_types::{Clock, GroupName, QueueOffset, SystemClock, TopicName};

use super::{
    advice::advise,
    outcome::{ChangeView, Row, require_all},
    output::Output,
    time,
};

#[derive(Debug, Subcommand)]
pub(super) enum OffsetVerb {
    /// Move a group to another place of a topic; its members follow with their next pull
    Reset(ResetArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ResetArgs {
    /// The group
    #[arg(short = 'g', long, value_name = "GROUP")]
    group: GroupName,
    /// The topic
    #[arg(short = 't', long, value_name = "TOPIC")]
    topic: TopicName,
    /// To the oldest message, or after the newest
    #[arg(
        long,
        value_enum,
        required_unless_present_any = ["since", "offset"],
        conflicts_with_all = ["since", "offset"]
    )]
    to: Option<To>,
    /// To the first message stored at a time: 2026-01-31T12:00:00Z, milliseconds, or 10m ago
    #[arg(long, value_name = "TIME", conflicts_with = "offset")]
    since: Option<String>,
    /// To this offset of one queue
    #[arg(long, value_name = "N", requires = "queue")]
    offset: Option<u64>,
    /// Only on this broker, by name
    #[arg(short = 'b', long, value_name = "NAME", requires = "queue")]
    broker: Option<String>,
    /// Only this queue of the broker
    #[arg(short = 'q', long, value_name = "N", requires = "broker")]
    queue: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// The oldest message
    First,
    /// After the newest message
    Last,
}

pub(super) async fn run(admin: &AdminClient, verb: &OffsetVerb, out: Output) -> anyhow::Result<()> {
    let OffsetVerb::Reset(args) = verb;
    let to = match (args.to, &args.since, args.offset) {
        (_, Some(text), _) => ResetTo::Timestamp(time::parse(text, SystemClock.now())?),
        (_, _, Some(offset)) => ResetTo::Offset(QueueOffset::new(offset)),
        (Some(To::First), ..) => ResetTo::First,
        (Some(To::Last) | None, ..) => ResetTo::Last,
    };
    let queue = match (&args.broker, args.queue) {
        (Some(broker), Some(id)) => Some(Queue {
            broker: broker.clone(),
            id,
        }),
        _ => None,
    };
    let (group, topic) = (&args.group, &args.topic);
    let answers = admin
        .reset_offsets(group, topic, queue.as_ref(), to)
        .await
        .map_err(advise)?;
    let subject = format!("group {group} on topic {topic}");
    ChangeView {
        subject,
        servers: answers.iter().map(row).collect(),
    }
    .print(out)?;
    require_all(&answers)
}

fn row(answer: &Answer<ResetOutcome>) -> Row {
    Row::of(answer, |outcome| {
        let queue = |(queue, offset): &(Queue, i64)| format!("queue {} to {offset}", queue.id);
        let moved = outcome.0.iter().map(queue).collect::<Vec<_>>().join(", ");
        ("reset", Some(moved).filter(|moved| !moved.is_empty()))
    })
}
