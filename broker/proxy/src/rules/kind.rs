//! Kinds of messages, and which of them a topic takes (`message.type`).
//!
//! **Invariant:** a topic without the attribute takes normal messages only, as with the Java proxy.

use rmq_protocol::message::properties::{self, names};

use crate::proto::v2::{Code, MessageType};
use crate::rules::refusal::Refusal;

/// The attribute's key in a topic's configuration.
pub(crate) const ATTRIBUTE: &str = "message.type";

/// What a topic takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopicKind {
    /// One kind.
    Only(MessageType),
    /// All kinds.
    Mixed,
}

impl TopicKind {
    /// From the attribute's value.
    pub(crate) fn parse(attribute: Option<&str>) -> Self {
        let only = match attribute.unwrap_or("NORMAL") {
            "NORMAL" => MessageType::Normal,
            "FIFO" => MessageType::Fifo,
            "DELAY" => MessageType::Delay,
            "TRANSACTION" => MessageType::Transaction,
            "LITE" => MessageType::Lite,
            "PRIORITY" => MessageType::Priority,
            "MIXED" => return Self::Mixed,
            _ => MessageType::Unspecified,
        };
        Self::Only(only)
    }

    /// What routes say of it.
    pub(crate) fn accepted(self) -> Vec<i32> {
        match self {
            Self::Only(kind) => vec![kind.into()],
            Self::Mixed => [
                MessageType::Normal,
                MessageType::Fifo,
                MessageType::Delay,
                MessageType::Transaction,
            ]
            .map(i32::from)
            .to_vec(),
        }
    }

    /// Whether a message of this kind may go to the topic.
    pub(crate) fn check(self, topic: &str, kind: MessageType) -> Result<(), Refusal> {
        let only = match self {
            Self::Mixed => return Ok(()),
            Self::Only(only) if only == kind => return Ok(()),
            Self::Only(only) => only,
        };
        let text = format!(
            "topic {topic} takes {} messages, this one is {}",
            only.as_str_name(),
            kind.as_str_name()
        );
        Err(Refusal::new(Code::MessagePropertyConflictWithType, text))
    }
}

/// The kind that a message's properties make it.
pub(crate) fn of_properties(text: &[u8]) -> MessageType {
    let has = |name| properties::get(text, name).is_some();
    if properties::get(text, names::TRAN_MSG) == Some(b"true") {
        MessageType::Transaction
    } else if has(names::DELAY)
        || has(names::TIMER_DELIVER_MS)
        || has(names::TIMER_DELAY_SEC)
        || has(names::TIMER_DELAY_MS)
    {
        MessageType::Delay
    } else if has(names::SHARDING_KEY) {
        MessageType::Fifo
    } else {
        MessageType::Normal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_without_the_attribute_takes_normal_messages_only() {
        let kind = TopicKind::parse(None);
        assert!(kind.check("t", MessageType::Normal).is_ok());
        for other in [
            MessageType::Fifo,
            MessageType::Delay,
            MessageType::Transaction,
        ] {
            let refusal = kind.check("t", other).unwrap_err();
            assert_eq!(refusal.code, Code::MessagePropertyConflictWithType);
        }
    }

    #[test]
    fn a_typed_topic_refuses_normal_messages_and_a_mixed_one_takes_all() {
        let fifo = TopicKind::parse(Some("FIFO"));
        assert!(fifo.check("t", MessageType::Fifo).is_ok());
        assert!(fifo.check("t", MessageType::Normal).is_err());
        let mixed = TopicKind::parse(Some("MIXED"));
        assert!(mixed.check("t", MessageType::Transaction).is_ok());
        assert_eq!(mixed.accepted(), [1, 2, 3, 4]);
        assert!(
            TopicKind::parse(Some("?"))
                .check("t", MessageType::Normal)
                .is_err()
        );
    }

    #[test]
    fn properties_make_the_kind_with_transactions_before_delays_before_groups() {
        let text = |names: &[&str]| {
            let mut text = Vec::new();
            for name in names {
                properties::push(&mut text, name, b"true");
            }
            of_properties(&text)
        };
        assert_eq!(text(&[]), MessageType::Normal);
        assert_eq!(text(&[names::SHARDING_KEY]), MessageType::Fifo);
        assert_eq!(
            text(&[names::SHARDING_KEY, names::DELAY]),
            MessageType::Delay
        );
        assert_eq!(
            text(&[names::TIMER_DELIVER_MS, names::TRAN_MSG]),
            MessageType::Transaction
        );
    }
}
