//! `admin message`: one message by its place, its id or its key.

use anyhow::{Context as _, bail, ensure};
use rmq_admin::{AdminClient, KeyKind, Message, MessagePlace, Queue};
use rmq_types::{QueueOffset, TopicName};
use serde::Serialize;

use super::{
    advice::advise,
    outcome::require_all,
    output::Output,
    view::{self, MessageView},
};

#[derive(Debug, clap::Args)]
#[group(skip)]
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
    #[arg(
        long,
        value_name = "N",
        requires = "queue",
        required_unless_present_any = ["id", "key", "unique_id"]
    )]
    offset: Option<u64>,
    /// The broker, by name, if several have the queue
    #[arg(short = 'b', long, value_name = "NAME", requires = "offset")]
    broker: Option<String>,
    /// The id the broker made (offset message id)
    #[arg(long, value_name = "OFFSET_ID", conflicts_with_all = ["offset", "key", "unique_id"])]
    id: Option<String>,
    /// A key of the message; the newest 64 of each broker are shown
    #[arg(short = 'k', long, value_name = "KEY", conflicts_with_all = ["offset", "unique_id"])]
    key: Option<String>,
    /// The id the producer made (UNIQ_KEY)
    #[arg(long, value_name = "ID", conflicts_with = "offset")]
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
    let answers = admin
        .messages_by_key(topic, key, kind)
        .await
        .map_err(advise)?;
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
        "topic {topic} has no message with the key {key:?}"
    );
    Ok(())
}
