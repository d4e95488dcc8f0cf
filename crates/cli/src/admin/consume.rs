//! `admin consume`: messages of a topic as they come.
//!
//! **Invariant:** a group's offset is stored only for messages that were written to standard output.

use std::{collections::BTreeMap, time::Duration};

use anyhow::ensure;
use clap::ValueEnum;
use rmq_admin::{AdminClient, Batch, Event, FollowOptions, Follower, StartAt, TagFilter, Trouble};
use rmq_types::{Clock, GroupName, QueueOffset, SystemClock, TopicName};
use tokio::time::{MissedTickBehavior, interval};

use super::{
    advice::advise,
    output::{Output, json_line, write_bytes, write_line},
    time,
    view::{self, MessageView},
};
use crate::role::StopSignal;

/// How often a group's progress is stored.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(super) struct ConsumeArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC")]
    topic: TopicName,
    /// Where to begin; with --group on queues where it has no offset yet [default: last]
    #[arg(long, value_enum, conflicts_with_all = ["since", "offset"])]
    from: Option<From>,
    /// Begin at a time: 2026-01-31T12:00:00Z, milliseconds, or 10m ago
    #[arg(long, value_name = "TIME", conflicts_with = "offset")]
    since: Option<String>,
    /// Begin at this offset of each queue
    #[arg(long, value_name = "N")]
    offset: Option<u64>,
    /// Only messages with these tags, as 'red || blue'
    #[arg(long, value_name = "TAGS", alias = "tag", conflicts_with = "sql")]
    tags: Option<String>,
    /// Only messages whose properties match, as 'price > 3' (brokers with enablePropertyFilter)
    #[arg(long, value_name = "SQL92")]
    sql: Option<String>,
    /// Begin where this group has come to, and store its progress
    #[arg(short = 'g', long, value_name = "GROUP")]
    group: Option<GroupName>,
    /// With --group: leave its progress as it is
    #[arg(long, requires = "group")]
    no_commit: bool,
    /// Only this broker, by name
    #[arg(short = 'b', long, value_name = "NAME")]
    broker: Option<String>,
    /// Only this queue
    #[arg(short = 'q', long, value_name = "N")]
    queue: Option<u32>,
    /// End after so many messages
    #[arg(short = 'm', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max: Option<u64>,
    /// End at the newest message there is now
    #[arg(long)]
    no_follow: bool,
    /// Only the bodies, as they are, a line each
    #[arg(long)]
    body_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// The oldest message
    First,
    /// What comes from now on
    Last,
}

impl ConsumeArgs {
    fn options(&self) -> anyhow::Result<FollowOptions> {
        let start = match (self.from, &self.since, self.offset) {
            (_, Some(text), _) => StartAt::Timestamp(time::parse(text, SystemClock.now())?),
            (_, _, Some(offset)) => StartAt::Offset(QueueOffset::new(offset)),
            (Some(From::First), ..) => StartAt::First,
            (Some(From::Last) | None, ..) => StartAt::Last,
        };
        let filter = match (&self.tags, &self.sql) {
            (_, Some(expression)) => TagFilter::Sql(expression.clone()),
            (Some(tags), None) => TagFilter::tags(tags),
            (None, None) => TagFilter::All,
        };
        Ok(FollowOptions {
            broker: self.broker.clone(),
            queue: self.queue,
            start,
            filter,
            group: self.group.clone(),
            stop_at_end: self.no_follow,
            ..FollowOptions::new(self.topic.clone())
        })
    }
}

pub(super) async fn run(admin: &AdminClient, args: ConsumeArgs, out: Output) -> anyhow::Result<()> {
    ensure!(
        !(args.body_only && out == Output::Json),
        "--body-only writes bodies, -o json writes JSON: give one of them"
    );
    let mut stop = StopSignal::listen(false)?;
    let options = args.options()?;
    warn_of_members(admin, &args).await;
    let follower = admin.follow(options).await.map_err(advise)?;
    if !args.no_follow {
        eprintln!("following topic {}; Ctrl-C ends", args.topic);
    }
    let mut reading = Reading {
        follower,
        args,
        out,
        shown: 0,
        troubles: BTreeMap::new(),
    };
    let outcome = reading.until_end(&mut stop).await;
    let committed = reading.commit().await;
    let plural = if reading.shown == 1 { "" } else { "s" };
    eprintln!("{} message{plural}", reading.shown);
    outcome.and(committed)
}

/// Members online go on from offsets of their own, so that messages may come to both.
async fn warn_of_members(admin: &AdminClient, args: &ConsumeArgs) {
    let (Some(group), false) = (&args.group, args.no_commit) else {
        return;
    };
    let Ok(route) = admin.route(&args.topic).await else {
        return;
    };
    for addr in route.masters().into_iter().filter_map(|master| master.addr) {
        if let Ok(members) = admin.members(&addr, group).await
            && !members.connections.is_empty()
        {
            let count = members.connections.len();
            eprintln!(
                "warning: {count} members of group {group} are online and consume as well; \
                 give --no-commit to leave the group's progress to them"
            );
            return;
        }
    }
}

struct Reading {
    follower: Follower,
    args: ConsumeArgs,
    out: Output,
    shown: u64,
    /// The last thing said about each broker.
    troubles: BTreeMap<String, String>,
}

impl Reading {
    async fn until_end(&mut self, stop: &mut StopSignal) -> anyhow::Result<()> {
        let mut commit = interval(COMMIT_EVERY);
        commit.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = stop.wait() => return Ok(()),
                _ = commit.tick() => match self.commit().await {
                    Ok(()) => drop(self.troubles.remove("commit")),
                    Err(error) => self.say("commit", &error.to_string()),
                },
                event = self.follower.next() => match event.map_err(advise)? {
                    None => return Ok(()),
                    Some(Event::Trouble(trouble)) => self.trouble(&trouble),
                    Some(Event::Messages(batch)) => {
                        if !self.show(&batch)? {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }

    /// Writes a batch; false when that was all.
    fn show(&mut self, batch: &Batch) -> anyhow::Result<bool> {
        if self.troubles.remove(&batch.queue.broker).is_some() {
            eprintln!("broker {} answers again", batch.queue.broker);
        }
        for message in &batch.messages {
            let goes_on = if self.args.body_only {
                write_bytes(&[&message.body[..], b"\n"].concat())?
            } else if self.out == Output::Json {
                write_line(&json_line(&MessageView::new(message, Some(&batch.queue)))?)?
            } else {
                write_line(&view::line(message, &batch.queue))?
            };
            if !goes_on {
                return Ok(false);
            }
            self.shown += 1;
            self.follower
                .consumed(&batch.queue, message.queue_offset.advance(1));
            if self.args.max.is_some_and(|max| self.shown >= max) {
                return Ok(false);
            }
        }
        self.follower.consumed(&batch.queue, batch.next);
        Ok(true)
    }

    fn trouble(&mut self, trouble: &Trouble) {
        match trouble {
            Trouble::Failed { queue, error } => {
                let broker = queue.broker.clone();
                self.say(&broker, &format!("broker {broker}: {error}; trying again"));
            }
            Trouble::Moved { queue, from, to } => {
                eprintln!("queue {queue}: offset {from} is not there, going on at {to}");
            }
            Trouble::Ended { queue, error } => {
                eprintln!("queue {queue} cannot be read any more: {error}");
            }
        }
    }

    /// Says it unless it was the last thing said about this subject.
    fn say(&mut self, subject: &str, text: &str) {
        if self.troubles.get(subject).is_none_or(|last| last != text) {
            eprintln!("{text}");
            self.troubles.insert(subject.to_owned(), text.to_owned());
        }
    }

    async fn commit(&mut self) -> anyhow::Result<()> {
        if self.args.no_commit {
            return Ok(());
        }
        self.follower.commit().await.map_err(advise)
    }
}
