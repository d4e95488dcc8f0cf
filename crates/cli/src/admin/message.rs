//! `admin message`: one message by its place, its id or its key.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::ArgGroup;
use rmq_admin::{AdminClient, Answers, KeyKind, Message, MessagePlace, Queue};
use rmq_types::{QueueOffset, TopicName};
use serde::Serialize;

use super::{
    advice::advise,
    outcome::require_all,
    output::Output,
    view::{self, MessageView},
};

/// A message just sent is found by its key only after the broker's index has followed: so often
/// and with this pause a key that nobody has yet is looked for.
const LOOKS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group(ArgGroup::new("which").required(true).args(["offset", "id", "key", "unique_id"])))]
pub(super) struct MessageArgs {
    /// The topic
    #[arg(
        short = 't',
        long,
        value_name = "TOPIC",
        required_unless_present = "id"
    )]
    topic: Option<TopicName>,
    /// The queue, with --offset
    #[arg(short = 'q', long, value_name = "N", requires = "offset")]
    queue: Option<u32>,
    /// The offset in the queue
    #[arg(long, value_name = "N", requires = "queue")]
    offset: Option<u64>,
    /// The broker, by name, if several have the queue
    #[arg(short = 'b', long, value_name = "NAME", requires = "offset")]
    broker: Option<String>,
    /// The id the broker made (offset message id)
    #[arg(long, value_name = "OFFSET_ID")]
    id: Option<String>,
    /// A key of the message; the newest 64 of each broker are shown
    #[arg(short = 'k', long, value_name = "KEY")]
    key: Option<String>,
    /// The id the producer made (UNIQ_KEY)
    #[arg(long, value_name = "ID")]
    unique_id: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct OneView(MessageView);

pub(super) async fn run(
    admin: &AdminClient,
    args: &MessageArgs,
    out: Output,
) -> anyhow::Result<()> {
    if let Some(id) = &args.id {
        let message = admin
            .message_by_id(id, args.topic.as_ref())
            .await
            .map_err(advise)?;
        if let Some(topic) = &args.topic {
            ensure!(
                message.topic == topic.as_str(),
                "the message with this id is of topic {}, not {topic}",
                message.topic
            );
        }
        return print(&message, None, out);
    }
    let topic = args.topic.as_ref().context("give --topic")?;
    match (args.queue, args.offset) {
        (Some(queue), Some(offset)) => {
            let place = MessagePlace {
                topic: topic.clone(),
                broker: args.broker.clone(),
                queue,
                offset: QueueOffset::new(offset),
            };
            let (queue, message) = admin.message_at(&place).await.map_err(advise)?;
            print(&message, Some(&queue), out)
        }
        _ => by_key(admin, topic, args, out).await,
    }
}

fn print(message: &Message, queue: Option<&Queue>, out: Output) -> anyhow::Result<()> {
    let text = view::page(message, queue);
    out.answer(&OneView(MessageView::new(message, queue)), |_| text)
}

async fn by_key(
    admin: &AdminClient,
    topic: &TopicName,
    args: &MessageArgs,
    out: Output,
) -> anyhow::Result<()> {
    let (key, kind) = match (&args.key, &args.unique_id) {
        (Some(key), _) => (key, KeyKind::Key),
        (None, Some(id)) => (id, KeyKind::UniqueId),
        (None, None) => bail!("give --queue and --offset, --id, --key or --unique-id"),
    };
    let ask = async || admin.messages_by_key(topic, key, kind).await;
    let answers = until_found(ask, is_settled).await.map_err(advise)?;
    let mut count = 0;
    for (target, messages) in answers.successes() {
        for message in messages {
            if count > 0 && out == Output::Table {
                super::output::write_line("")?;
            }
            let queue = Queue {
                broker: target.label().to_owned(),
                id: message.queue,
            };
            print(message, Some(&queue), out)?;
            count += 1;
        }
    }
    require_all(&answers)?;
    ensure!(
        count > 0,
        "topic {topic} has no message with the key {key:?}; one sent a moment ago is found only \
         after the broker's index has followed: try again in a second"
    );
    Ok(())
}

/// True if looking again would not help.
fn is_settled(answers: &Answers<Vec<Message>>) -> bool {
    !answers.is_complete() || answers.successes().any(|(_, found)| !found.is_empty())
}

/// Asks until the answer is settled, but not for ever; gives the last answer.
async fn until_found<T, E>(
    mut ask: impl AsyncFnMut() -> Result<T, E>,
    is_settled: impl Fn(&T) -> bool,
) -> Result<T, E> {
    let mut answer = ask().await?;
    for _ in 1..LOOKS {
        if is_settled(&answer) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        answer = ask().await?;
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        _message: MessageArgs,
    }

    fn refusal(args: &[&str]) -> Option<String> {
        let words = ["message"].iter().chain(args);
        Line::try_parse_from(words).err().map(|e| e.to_string())
    }

    #[test]
    fn without_arguments_every_way_to_name_a_message_is_told() {
        for args in [&[][..], &["-t", "T"]] {
            let text = refusal(args).unwrap();
            for way in ["--offset", "--id", "--key", "--unique-id"] {
                assert!(text.contains(way), "{args:?}: {text}");
            }
        }
    }

    #[test]
    fn one_way_is_enough_and_two_are_refused() {
        for args in [
            &["--id", "X"][..],
            &["-t", "T", "--id", "X"],
            &["-t", "T", "-k", "K"],
            &["-t", "T", "--unique-id", "U"],
            &["-t", "T", "-q", "0", "--offset", "5", "-b", "a"],
        ] {
            assert_eq!(refusal(args), None, "{args:?}");
        }
        for args in [
            &["-k", "K"][..],
            &["-t", "T", "-q", "0"],
            &["-t", "T", "--offset", "0"],
            &["-t", "T", "-k", "K", "--unique-id", "U"],
            &["-t", "T", "-k", "K", "-q", "0", "--offset", "5"],
        ] {
            assert!(refusal(args).is_some(), "{args:?}");
        }
    }

    #[tokio::test]
    async fn what_is_not_there_yet_is_looked_for_again_but_not_for_ever() {
        tokio::time::pause();
        let mut asked = 0;
        let mut ask = async || {
            asked += 1;
            Ok::<u32, ()>(asked)
        };
        assert_eq!(until_found(&mut ask, |found| *found == 3).await, Ok(3));
        assert_eq!(until_found(ask, |_| false).await, Ok(3 + LOOKS));
        let broken = async || Err::<(), _>("no answer");
        assert_eq!(until_found(broken, |()| false).await, Err("no answer"));
    }
}
