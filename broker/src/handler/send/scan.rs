//! One pass over a message's properties: what the broker itself must know of them.

use rmq_protocol::message::properties::{self, names};
use rmq_types::java_hash;

use crate::metrics::MessageType;

/// Properties that only the broker may set; a client's are taken out (a forged `REAL_TOPIC` would
/// send a message anywhere).
pub(super) const INTERNAL: [&str; 11] = [
    names::POP_CK,
    names::REAL_TOPIC,
    names::REAL_QID,
    names::TIMER_OUT_MS,
    names::TIMER_ENQUEUE_MS,
    names::TIMER_DEQUEUE_MS,
    names::TIMER_ROLL_TIMES,
    names::CLUSTER,
    names::MSG_REGION,
    names::TRACE_ON,
    names::INNER_NUM,
];

/// What stood there.
#[derive(Debug, Default)]
pub(super) struct Scan<'a> {
    /// Hash of the tag, 0 without one.
    pub(super) tags_code: i64,
    /// The client's id.
    pub(super) unique_key: Option<&'a str>,
    /// The sender does not wait for flush or replicas.
    pub(super) no_wait: bool,
    /// Delay level as text.
    pub(super) delay: Option<&'a [u8]>,
    /// A half message.
    pub(super) transaction: bool,
    /// A timer message.
    pub(super) timer: bool,
    /// It has a sharding key.
    pub(super) sharded: bool,
    /// Something of [`INTERNAL`] is there.
    pub(super) internal: bool,
}

impl Scan<'_> {
    /// The type of the message, in the order in which Java looks.
    pub(super) fn kind(&self) -> MessageType {
        if self.transaction {
            MessageType::Transaction
        } else if self.sharded {
            MessageType::Fifo
        } else if self.delay.is_some() || self.timer {
            MessageType::Delay
        } else {
            MessageType::Normal
        }
    }
}

pub(super) fn scan(text: &[u8]) -> Scan<'_> {
    let mut found = Scan::default();
    for (name, value) in properties::iter(text) {
        let Ok(name) = std::str::from_utf8(name) else {
            continue;
        };
        match name {
            names::TAGS => {
                let tags = std::str::from_utf8(value).unwrap_or_default();
                found.tags_code = i64::from(java_hash(tags));
            }
            names::UNIQ_KEY => found.unique_key = std::str::from_utf8(value).ok(),
            names::WAIT => found.no_wait = value.eq_ignore_ascii_case(b"false"),
            names::DELAY => found.delay = Some(value),
            names::TRAN_MSG => found.transaction = value.eq_ignore_ascii_case(b"true"),
            names::TIMER_DELAY_SEC
            | names::TIMER_DELAY_MS
            | names::TIMER_DELIVER_MS
            | names::TIMER_DEL_UNIQKEY => found.timer = true,
            names::SHARDING_KEY => found.sharded = true,
            _ if INTERNAL.contains(&name) => found.internal = true,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pass_finds_everything_the_broker_needs() {
        let found = scan(b"TAGS\x01TagA\x02UNIQ_KEY\x01id\x02WAIT\x01false\x02DELAY\x013");
        assert_eq!(found.tags_code, 2_598_919);
        assert_eq!(found.unique_key, Some("id"));
        assert!(found.no_wait && !found.internal && !found.timer);
        assert_eq!(found.delay, Some(&b"3"[..]));
    }

    #[test]
    fn forged_internal_properties_are_noticed() {
        for name in INTERNAL {
            assert!(
                scan(format!("{name}\x01x\x02").as_bytes()).internal,
                "{name}"
            );
        }
    }

    #[test]
    fn hostile_property_texts_are_read_without_harm() {
        for text in [
            &b"\x01\x02"[..],
            b"\xFF\x01\xFE\x02",
            b"k",
            b"k\x01",
            b"\x02\x02\x02",
        ] {
            assert!(scan(text).unique_key.is_none());
        }
    }
}
