//! `admin send`: one body so many times, or every line of standard input.

use std::{
    collections::BTreeMap,
    io::{BufRead, IsTerminal as _, Read},
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail, ensure};
use bytes::Bytes;
use rmq_admin::{AdminClient, Outgoing, SendStatus, SendTo, Sender, Sent};
use rmq_types::{TopicName, limits};
use serde::Serialize;
use tokio::{sync::mpsc, time::Instant};

use super::{
    advice::advise,
    output::{Output, json_line, write_line},
    topic::pair,
};
use crate::role::StopSignal;

/// Up to here every message has its own line; beyond it only their number is told.
const LINES_MAX: u64 = 20;
/// Between two words about a send that takes long.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// Lines read ahead of sending.
const LINES_AHEAD: usize = 16;

#[derive(Debug, clap::Args)]
pub(super) struct SendArgs {
    /// Name of the topic
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
    let mut stop = StopSignal::listen(false)?;
    let sender = admin.sender(&args.topic, &to).await.map_err(advise)?;
    let shows_each = args.body.is_none() || args.count <= LINES_MAX || out == Output::Json;
    let mut sending = Sending {
        sender,
        args,
        out,
        shows_each,
        is_read: true,
        by_queue: BTreeMap::new(),
        sent: 0,
        said_at: Instant::now(),
    };
    let outcome = tokio::select! {
        biased;
        reason = stop.wait() => Err(anyhow!("{reason}: a message on its way may be stored as well")),
        outcome = sending.all() => outcome,
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
    /// Whether somebody reads standard output.
    is_read: bool,
    by_queue: BTreeMap<String, u64>,
    sent: u64,
    said_at: Instant,
}

impl Sending<'_> {
    async fn all(&mut self) -> anyhow::Result<()> {
        match &self.args.body {
            Some(body) => self.repeat(body.clone().into()).await,
            None => self.lines().await,
        }
    }

    /// What was asked for is sent even if nobody reads on (`… | head`).
    async fn repeat(&mut self, body: Bytes) -> anyhow::Result<()> {
        ensure!(
            !body.is_empty(),
            "the body is empty: a message needs at least one byte"
        );
        for _ in 0..self.args.count {
            self.one(body.clone()).await?;
        }
        Ok(())
    }

    /// Standard input may be without end: when nobody reads on, neither does this.
    async fn lines(&mut self) -> anyhow::Result<()> {
        if std::io::stdin().is_terminal() {
            eprintln!("each line is a message; Ctrl-D ends");
        }
        let mut lines = read_lines()?;
        while let Some(line) = lines.recv().await {
            let line = line?;
            if !line.is_empty() {
                self.one(line).await?;
            }
            if !self.is_read {
                break;
            }
        }
        Ok(())
    }

    /// Sends one message and says so.
    async fn one(&mut self, body: Bytes) -> anyhow::Result<()> {
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
            self.sign_of_life();
        } else if self.is_read {
            self.is_read = match self.out {
                Output::Json => write_line(&json_line(&self.view(&sent))?)?,
                Output::Table => write_line(&text(&sent))?,
            };
        }
        Ok(())
    }

    fn sign_of_life(&mut self) {
        if self.said_at.elapsed() >= SIGN_OF_LIFE {
            eprintln!("{} of {} messages stored", self.sent, self.args.count);
            self.said_at = Instant::now();
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
        if !self.is_read {
            let sent = self.sent;
            eprintln!("{sent} messages stored; nobody reads what is written about them");
        }
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
