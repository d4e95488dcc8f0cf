//! A message as JSON, as a line, and as a page.

use std::{collections::BTreeMap, fmt::Write as _};

use rmq_admin::{BodyForm, Message, Queue};
use serde::Serialize;

use super::{
    output::{visible, visible_bytes},
    time,
};

/// A message with names that stay. The body is `body` if it is text, else `bodyHex`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageView {
    topic: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<String>,
    queue: u32,
    offset: u64,
    tags: Option<String>,
    keys: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_hex: Option<String>,
    /// Why the body is not what the producer sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_note: Option<String>,
    stored_at: String,
    store_host: String,
    born_at: String,
    born_host: String,
    reconsume_times: i32,
    commit_log_offset: i64,
    offset_id: String,
    unique_id: Option<String>,
    properties: BTreeMap<String, String>,
}

impl MessageView {
    pub(super) fn new(message: &Message, queue: Option<&Queue>) -> Self {
        let text = std::str::from_utf8(&message.body).ok().map(str::to_owned);

        let note = match message.form {
            BodyForm::Plain | BodyForm::Inflated => None,
            BodyForm::Compressed(why) => Some(why.to_string()),
        };
        Self {
            topic: message.topic.clone(),
            broker: queue.map(|queue| queue.broker.clone()),
            queue: message.queue,
            offset: message.queue_offset.get(),
            tags: message.tags().map(str::to_owned),
            keys: message.keys().map(str::to_owned),
            body_hex: text.is_none().then(|| hex(&message.body)),
            body: text,
            body_note: note,
            stored_at: time::show(message.stored_at),
            store_host: message.store_host.to_string(),
            born_at: time::show(message.born_at),
            born_host: message.born_host.to_string(),
            reconsume_times: message.reconsume_times,
            commit_log_offset: message.commit_log_offset,
            offset_id: message.offset_id(),
            unique_id: message.unique_id().map(str::to_owned),
            properties: message.properties.iter().cloned().collect(),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Place, tag, keys and body, separated by tabs, in one line.
pub(super) fn line(message: &Message, queue: &Queue) -> String {
    let or_dash = |text: Option<&str>| text.map_or_else(|| "-".to_owned(), visible);
    format!(
        "{queue}@{}\t{}\t{}\t{}",
        message.queue_offset,
        or_dash(message.tags()),
        or_dash(message.keys()),
        body(message)
    )
}

fn body(message: &Message) -> String {
    match message.form {
        BodyForm::Plain | BodyForm::Inflated => visible_bytes(&message.body),
        BodyForm::Compressed(why) => format!("({} bytes, {why})", message.body.len()),
    }
}

/// Everything of a message, a line each, then its properties and its body.
pub(super) fn page(message: &Message, queue: Option<&Queue>) -> String {
    let place = match queue {
        Some(queue) => queue.to_string(),
        None => message.queue.to_string(),
    };
    let mut lines = vec![
        ("topic", message.topic.clone()),
        ("queue", place),
        ("offset", message.queue_offset.to_string()),
        ("tag", message.tags().unwrap_or("-").to_owned()),
        ("keys", message.keys().unwrap_or("-").to_owned()),
        (
            "stored at",
            format!(
                "{} on {}",
                time::show(message.stored_at),
                message.store_host
            ),
        ),
        (
            "born at",
            format!("{} on {}", time::show(message.born_at), message.born_host),
        ),
        ("handed back", format!("{} times", message.reconsume_times)),
        ("unique id", message.unique_id().unwrap_or("-").to_owned()),
        ("offset id", message.offset_id()),
    ];
    for (name, value) in &message.properties {
        lines.push(("property", format!("{name} = {value}")));
    }
    let mut text = String::new();
    for (name, value) in lines {
        let _ = writeln!(text, "{name:<13}{}", visible(&value));
    }
    let _ = write!(text, "{:<13}{}", "body", body(message));
    text
}

#[cfg(test)]
mod tests {
    use rmq_admin::Unreadable;
    use rmq_types::{QueueOffset, Timestamp};

    use super::*;
    use crate::admin::output::json_line;

    fn message(body: &'static [u8], form: BodyForm) -> Message {
        let property = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Message {
            topic: "orders".into(),
            queue: 3,
            queue_offset: QueueOffset::new(17),
            commit_log_offset: 0x1234,
            store_host: "127.0.0.1:10911".parse().unwrap(),
            stored_at: Timestamp::from_millis(1_700_000_000_123),
            born_host: "127.0.0.1:50000".parse().unwrap(),
            born_at: Timestamp::from_millis(1_700_000_000_000),
            reconsume_times: 0,
            sys_flag: 0,
            flag: 0,
            properties: vec![
                property("KEYS", "k1"),
                property("TAGS", "red"),
                property("UNIQ_KEY", "7F00000100010000000100000001"),
            ],
            body: body.into(),
            form,
        }
    }

    fn queue() -> Queue {
        Queue {
            broker: "broker-0".into(),
            id: 3,
        }
    }

    #[test]
    fn a_message_is_shown_as_documented() {
        let message = message(b"hello\n", BodyForm::Plain);
        let json = json_line(&MessageView::new(&message, Some(&queue()))).unwrap();
        assert_eq!(json, include_str!("goldens/message.json").trim_end());
        assert_eq!(
            page(&message, Some(&queue())),
            include_str!("goldens/message.txt").trim_end()
        );
        assert_eq!(line(&message, &queue()), "broker-0/3@17\tred\tk1\thello\\n");
    }

    #[test]
    fn a_body_that_is_no_text_is_hexadecimal_and_a_compressed_one_says_so() {
        let raw = message(b"\xff\x00", BodyForm::Compressed(Unreadable::Lz4));
        let view = MessageView::new(&raw, None);
        assert_eq!(
            (view.body.as_deref(), view.body_hex.as_deref()),
            (None, Some("ff00"))
        );
        assert!(view.body_note.unwrap().contains("LZ4"));
        assert!(
            line(&raw, &queue())
                .ends_with("(2 bytes, compressed with LZ4, which this tool cannot read)")
        );
    }
}
