//! `admin send`: one body so many times, or every line of standard input.

use std::{
    collections::BTreeMap,
    io::{BufRead, Read},
};

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use rmq_admin::{AdminClient, Outgoing, SendStatus, SendTo, Sender, Sent};
use rmq_types::{TopicName, limits};
use serde::Serialize;
use tokio::sync::mpsc;

use super::{
    advice::advise,
    output::{Output, json_line, write_line},
    topic::pair,
};

/// Up to here every message has its own line; beyond it only their number is told.
const LINES_MAX: u64 = 20;
/// Lines read ahead of sending.
const LINES_AHEAD: usize = 16;

#[derive(Debug, clap::Args)]
pub(super) struct SendArgs {
    #[arg(value_name = "TOPIC")]
    topic: TopicName,
    /// The body; without it each line of standard input is one
    #[arg(value_name = "BODY")]
    body: Option<String>,
    /// The tag
    #[arg(long, value_name = "TAG", alias = "tag")]
    tags: Option<String>,
    /// Keys to find the message by, separated by spaces
    #[arg(short = 'k', long, value_name = "KEYS", alias = "key")]
    keys: Option<String>,
    /// A property; may be given several times
    #[arg(short = 'p', long = "property", value_name = "NAME=VALUE", value_parser = pair)]
    properties: Vec<(String, String)>,
    /// To this broker only, by name
    #[arg(short = 'b', long, value_name = "NAME")]
    broker: Option<String>,
    /// To this queue only
    #[arg(short = 'q', long, value_name = "N")]
    queue: Option<u32>,
    /// How often the body is sent
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "body",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    count: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SentView<'a> {
    topic: &'a str,
    broker: &'a str,
    queue: u32,
    offset: u64,
    unique_id: &'a str,
    offset_id: &'a str,
    status: &'static str,
}

pub(super) async fn run(admin: &AdminClient, args: &SendArgs, out: Output) -> anyhow::Result<()> {
    let to = SendTo {
        broker: args.broker.clone(),
        queue: args.queue,
    };
    let sender = admin.sender(&args.topic, &to).await.map_err(advise)?;
    let shows_each = args.body.is_none() || args.count <= LINES_MAX || out == Output::Json;
    let mut sending = Sending {
        sender,
        args,
        out,
        shows_each,
        by_queue: BTreeMap::new(),
        sent: 0,
    };
    let outcome = match &args.body {
        Some(body) => sending.repeat(body.clone().into()).await,
        None => sending.lines().await,
    };
    if let Err(error) = outcome {
        let sent = sending.sent;
        return Err(if sent > 0 {
            error.context(format!("after {sent} messages"))
        } else {
            error
        });
    }
    sending.finish()
}

struct Sending<'a> {
    sender: Sender,
    args: &'a SendArgs,
    out: Output,
    shows_each: bool,
    by_queue: BTreeMap<String, u64>,
    sent: u64,
}

impl Sending<'_> {
    async fn repeat(&mut self, body: Bytes) -> anyhow::Result<()> {
        ensure!(
            !body.is_empty(),
            "the body is empty: a message needs at least one byte"
        );
        for _ in 0..self.args.count {
            if !self.one(body.clone()).await? {
                break;
            }
        }
        Ok(())
    }

    async fn lines(&mut self) -> anyhow::Result<()> {
        let mut lines = read_lines()?;
        while let Some(line) = lines.recv().await {
            let line = line?;
            if !line.is_empty() && !self.one(line).await? {
                break;
            }
        }
        Ok(())
    }

    /// Sends one message and says so; false if nobody reads what is said.
    async fn one(&mut self, body: Bytes) -> anyhow::Result<bool> {
        let message = Outgoing {
            body,
            tags: self.args.tags.clone(),
            keys: self.args.keys.clone(),
            properties: self.args.properties.clone(),
        };
        let sent = self.sender.send(&message).await.map_err(advise)?;
        self.sent += 1;
        *self.by_queue.entry(sent.queue.to_string()).or_default() += 1;
        if !self.shows_each {
            return Ok(true);
        }
        match self.out {
            Output::Json => write_line(&json_line(&self.view(&sent))?),
            Output::Table => write_line(&text(&sent)),
        }
    }

    fn view<'v>(&'v self, sent: &'v Sent) -> SentView<'v> {
        SentView {
            topic: self.args.topic.as_str(),
            broker: &sent.queue.broker,
            queue: sent.queue.id,
            offset: sent.queue_offset.get(),
            unique_id: &sent.unique_id,
            offset_id: &sent.offset_id,
            status: sent.status.name(),
        }
    }

    fn finish(&self) -> anyhow::Result<()> {
        if !self.shows_each {
            let queues = self.by_queue.len();
            write_line(&format!("{} messages stored in {queues} queues", self.sent))?;
        }
        if self.sent == 0 {
            bail!("standard input had no line to send");
        }
        Ok(())
    }
}

fn text(sent: &Sent) -> String {
    let mut text = format!(
        "stored in queue {} at offset {}, id {}",
        sent.queue, sent.queue_offset, sent.offset_id
    );
    if sent.status != SendStatus::Ok {
        text = format!("{text} ({})", sent.status.name());
    }
    text
}

/// Lines of standard input, read on a thread of its own: reading must not stop the connection.
fn read_lines() -> anyhow::Result<mpsc::Receiver<anyhow::Result<Bytes>>> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut stdin = std::io::stdin().lock();
            while let Some(line) = next_line(&mut stdin) {
                let is_last = line.is_err();
                if sender.blocking_send(line).is_err() || is_last {
                    break;
                }
            }
        })
        .context("cannot start a thread")?;
    Ok(receiver)
}

/// The next line without its end; `None` after the last.
fn next_line(input: &mut impl BufRead) -> Option<anyhow::Result<Bytes>> {
    let mut line = Vec::new();
    let limit = limits::BODY_BYTES_MAX as u64 + 1;
    match input.take(limit + 1).read_until(b'\n', &mut line) {
        Ok(0) => return None,
        Ok(_) => {}
        Err(error) => {
            return Some(Err(error).context("cannot read standard input"));
        }
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > limits::BODY_BYTES_MAX {
        let max = limits::BODY_BYTES_MAX;
        return Some(Err(anyhow::anyhow!(
            "a line of standard input is longer than {max} bytes"
        )));
    }
    Some(Ok(line.into()))
}

#[cfg(test)]
mod tests {
    use rmq_admin::Queue;
    use rmq_types::QueueOffset;

    use super::*;

    fn lines(mut text: &[u8]) -> Vec<Result<Bytes, String>> {
        let next = || next_line(&mut text).map(|line| line.map_err(|error| error.to_string()));
        std::iter::from_fn(next).take(10).collect()
    }

    #[test]
    fn every_line_is_a_body_whether_the_last_one_ends_or_not() {
        let two = [Ok(Bytes::from("a")), Ok(Bytes::from("b"))];
        assert_eq!(lines(b"a\nb\n"), two);
        assert_eq!(lines(b"a\nb"), two);
        assert!(lines(b"").is_empty());
    }

    #[test]
    fn a_line_longer_than_any_body_is_refused_without_reading_it_all() {
        let long = vec![b'x'; limits::BODY_BYTES_MAX + 10];
        assert!(
            lines(&long)[0]
                .as_ref()
                .unwrap_err()
                .contains("longer than 4194304 bytes")
        );
        let mut fits = vec![b'x'; limits::BODY_BYTES_MAX];
        fits.push(b'\n');
        assert_eq!(lines(&fits).len(), 1);
    }

    #[test]
    fn a_message_that_is_not_yet_safe_says_so() {
        let sent = |status| Sent {
            unique_id: "U".into(),
            offset_id: "ID".into(),
            queue: Queue {
                broker: "a".into(),
                id: 1,
            },
            queue_offset: QueueOffset::new(7),
            status,
        };
        assert_eq!(
            text(&sent(SendStatus::Ok)),
            "stored in queue a/1 at offset 7, id ID"
        );
        assert!(text(&sent(SendStatus::FlushDiskTimeout)).ends_with("(FLUSH_DISK_TIMEOUT)"));
    }
}
