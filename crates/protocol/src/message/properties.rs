//! The properties text of a message: `name \x01 value \x02`, repeated
//! (`MessageDecoder.string2messageProperties`).
//!
//! **Invariant:** reading drops what Java drops: entries without a separator, with an empty name or
//! an empty value; of equal names the last one holds. Reading allocates nothing. Values are bytes:
//! whether they are UTF-8 is the reader's question.

use crate::scan::find;

/// Between a name and its value.
pub const NAME_VALUE_SEPARATOR: u8 = 1;
/// After each entry; older clients leave the last one out.
pub const ENTRY_SEPARATOR: u8 = 2;

/// Names of properties with a meaning (`MessageConst`).
pub mod names {
    macro_rules! names {
        ($($(#[$doc:meta])* $id:ident = $text:literal;)*) => {
            $($(#[$doc])* pub const $id: &str = $text;)*
        };
    }
    names! {
        /// Keys for queries, separated by spaces.
        KEYS = "KEYS";
        /// Tag that subscriptions select by.
        TAGS = "TAGS";
        /// "false": do not wait for flush or replicas.
        WAIT = "WAIT";
        /// Delay level 1-18.
        DELAY = "DELAY";
        /// Original topic of a retried message.
        RETRY_TOPIC = "RETRY_TOPIC";
        /// Target topic of a delayed or half message.
        REAL_TOPIC = "REAL_TOPIC";
        /// Target queue of a delayed or half message.
        REAL_QID = "REAL_QID";
        /// Marks a half message.
        TRAN_MSG = "TRAN_MSG";
        /// Producer group.
        PGROUP = "PGROUP";
        /// Set by clients on pull.
        MIN_OFFSET = "MIN_OFFSET";
        /// Set by clients on pull.
        MAX_OFFSET = "MAX_OFFSET";
        /// Id of the first form of a retried message.
        ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID";
        /// Topic a dead letter came from.
        DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC";
        /// Id of a dead letter's origin.
        DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID";
        /// Attempts so far, as the client counts.
        RECONSUME_TIME = "RECONSUME_TIME";
        /// Most attempts, as the client wants.
        MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES";
        /// Region of the broker.
        MSG_REGION = "MSG_REGION";
        /// Whether traces are on.
        TRACE_ON = "TRACE_ON";
        /// The client's message id.
        UNIQ_KEY = "UNIQ_KEY";
        /// More of the client's id.
        EXTEND_UNIQ_INFO = "EXTEND_UNIQ_INFO";
        /// When consumption began.
        CONSUME_START_TIME = "CONSUME_START_TIME";
        /// Messages in an inner batch.
        INNER_NUM = "INNER_NUM";
        /// Base offset of an inner batch.
        INNER_BASE = "INNER_BASE";
        /// Duplicate detection.
        DUP_INFO = "DUP_INFO";
        /// Seconds in which a half message is not checked.
        CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS";
        /// Queue offset of the half message before.
        TRAN_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET";
        /// Checks so far.
        TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES";
        /// Id of the transaction.
        TRANSACTION_ID = "__transactionId__";
        /// Matches a reply with its request.
        CORRELATION_ID = "CORRELATION_ID";
        /// Client a reply goes to.
        REPLY_TO_CLIENT = "REPLY_TO_CLIENT";
        /// Life of a request, ms.
        TTL = "TTL";
        /// When a reply came in.
        ARRIVE_TIME = "ARRIVE_TIME";
        /// When a reply went out.
        PUSH_REPLY_TIME = "PUSH_REPLY_TIME";
        /// Cluster of the broker.
        CLUSTER = "CLUSTER";
        /// "reply" on replies.
        MSG_TYPE = "MSG_TYPE";
        /// Pop checkpoint of a popped message.
        POP_CK = "POP_CK";
        /// Offset of the pop checkpoint.
        POP_CK_OFFSET = "POP_CK_OFFSET";
        /// First time it was popped.
        FIRST_POP_TIME = "1ST_POP_TIME";
        /// Message group of ordered messages.
        SHARDING_KEY = "__SHARDINGKEY";
        /// Queue of a forwarded message.
        FORWARD_QUEUE_ID = "PROPERTY_FORWARD_QUEUE_ID";
        /// Redirected.
        REDIRECT = "REDIRECT";
        /// Light-weight queues to dispatch to.
        INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH";
        /// Their offsets.
        INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET";
        /// Trace context of OpenTelemetry.
        TRACE_CONTEXT = "TRACE_CONTEXT";
        /// Delay in seconds.
        TIMER_DELAY_SEC = "TIMER_DELAY_SEC";
        /// Delay in milliseconds.
        TIMER_DELAY_MS = "TIMER_DELAY_MS";
        /// Time of delivery.
        TIMER_DELIVER_MS = "TIMER_DELIVER_MS";
        /// Time of delivery as the broker set it.
        TIMER_OUT_MS = "TIMER_OUT_MS";
        /// When the timer took it.
        TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS";
        /// When the timer gave it.
        TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS";
        /// How often the timer rolled it.
        TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES";
        /// Key of the timer message to delete.
        TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY";
        /// Delay level of a timer message.
        TIMER_DELAY_LEVEL = "TIMER_DELAY_LEVEL";
        /// Born host of a gRPC message.
        BORN_HOST = "__BORNHOST";
        /// Born time of a gRPC message.
        BORN_TIMESTAMP = "BORN_TIMESTAMP";
        /// System flag of the topic, never stored.
        TRANSIENT_TOPIC_SYS_FLAG = "__RMQ.TRANSIENT.TOPIC_SYS_FLAG";
        /// System flag of the group, never stored.
        TRANSIENT_GROUP_SYS_FLAG = "__RMQ.TRANSIENT.GROUP_SYS_FLAG";
        /// CRC of the whole record.
        CRC32 = "__CRC32#";
        /// Legacy.
        TRANSFER_FLAG = "TRANSFER_FLAG";
        /// Legacy.
        CORRECTION_FLAG = "CORRECTION_FLAG";
        /// Legacy.
        MQ2_FLAG = "MQ2_FLAG";
        /// Legacy.
        BUYER_ID = "BUYER_ID";
        /// Legacy.
        INSTANCE_ID = "INSTANCE_ID";
    }
}

/// The entries of a text, in order, duplicates included.
#[must_use]
pub const fn iter(text: &[u8]) -> Entries<'_> {
    Entries { rest: text }
}

/// Iterator of [`iter`].
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let end = find(self.rest, ENTRY_SEPARATOR).unwrap_or(self.rest.len());
            let (entry, rest) = self.rest.split_at(end);
            self.rest = rest.get(1..).unwrap_or(&[]);
            if let Some(at) = find(entry, NAME_VALUE_SEPARATOR) {
                let (name, value) = (&entry[..at], &entry[at + 1..]);
                if !name.is_empty() && !value.is_empty() {
                    return Some((name, value));
                }
            }
        }
        None
    }
}

/// The value of `name`: the last one, as a Java map would hold.
#[must_use]
pub fn get<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    iter(text)
        .filter(|(key, _)| *key == name.as_bytes())
        .last()
        .map(|(_, value)| value)
}

/// As [`get`], only if the value is UTF-8.
#[must_use]
pub fn get_str<'a>(text: &'a [u8], name: &str) -> Option<&'a str> {
    get(text, name).and_then(|value| std::str::from_utf8(value).ok())
}

/// Appends one entry, its closing separator included; text without one gets it first.
pub fn push(text: &mut Vec<u8>, name: &str, value: &[u8]) {
    if text.last().is_some_and(|last| *last != ENTRY_SEPARATOR) {
        text.push(ENTRY_SEPARATOR);
    }
    text.reserve(name.len() + value.len() + 2);
    text.extend_from_slice(name.as_bytes());
    text.push(NAME_VALUE_SEPARATOR);
    text.extend_from_slice(value);
    text.push(ENTRY_SEPARATOR);
}

/// Copies the entries of `text` whose name is not in `dropped` to `out`.
pub fn copy_without(text: &[u8], dropped: &[&str], out: &mut Vec<u8>) {
    out.reserve(text.len() + 1);
    for (name, value) in iter(text) {
        if !dropped.iter().any(|drop| drop.as_bytes() == name) {
            out.extend_from_slice(name);
            out.push(NAME_VALUE_SEPARATOR);
            out.extend_from_slice(value);
            out.push(ENTRY_SEPARATOR);
        }
    }
}

/// `text` with `name` set to `value`: an old value goes.
#[must_use]
pub fn with(text: &[u8], name: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + name.len() + value.len() + 3);
    copy_without(text, &[name], &mut out);
    push(&mut out, name, value);
    out
}

/// The tags code of a consume queue entry: Java's hash of TAGS, sign-extended; 0 without a tag.
#[must_use]
pub fn tags_code(text: &[u8]) -> i64 {
    get_str(text, names::TAGS).map_or(0, |tags| i64::from(rmq_types::java_hash(tags)))
}

/// The keys a message is found by: UNIQ_KEY, then each word of KEYS; repeated words repeat.
pub fn keys(text: &[u8]) -> impl Iterator<Item = &str> + Clone {
    // One pass for both: the index asks this of every message.
    let (mut unique, mut words) = (None, None);
    for (name, value) in iter(text) {
        if name == names::UNIQ_KEY.as_bytes() {
            unique = Some(value);
        } else if name == names::KEYS.as_bytes() {
            words = Some(value);
        }
    }
    let words = words.and_then(|value| std::str::from_utf8(value).ok());
    let words = words.unwrap_or("");
    unique
        .and_then(|value| std::str::from_utf8(value).ok())
        .into_iter()
        .chain(words.split(' ').filter(|word| !word.is_empty()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entries_without_name_value_or_separator_are_dropped() {
        let text = b"a\x011\x02\x01x\x02b\x01\x02plain\x02\x02c\x012";
        let found: Vec<_> = iter(text).collect();
        assert_eq!(found, vec![(&b"a"[..], &b"1"[..]), (b"c", b"2")]);
    }

    #[test]
    fn of_equal_names_the_last_holds() {
        assert_eq!(get(b"a\x011\x02a\x012\x02", "a"), Some(&b"2"[..]));
        assert_eq!(get(b"a\x011\x02", "b"), None);
    }

    #[test]
    fn a_value_may_hold_the_name_separator() {
        assert_eq!(get(b"a\x01b\x01c\x02", "a"), Some(&b"b\x01c"[..]));
    }

    #[test]
    fn pushing_closes_an_open_last_entry() {
        let mut text = b"a\x011".to_vec();
        push(&mut text, "b", b"2");
        assert_eq!(text, b"a\x011\x02b\x012\x02");
    }

    #[test]
    fn setting_replaces_the_old_value() {
        assert_eq!(
            with(b"a\x011\x02b\x012\x02", "a", b"3"),
            b"b\x012\x02a\x013\x02"
        );
    }

    #[test]
    fn tags_code_is_the_java_hash_of_the_tag() {
        assert_eq!(tags_code(b"TAGS\x01TagA\x02"), 2_598_919);
        assert_eq!(tags_code(b"KEYS\x01TagA\x02"), 0);
    }

    #[test]
    fn keys_are_the_unique_key_then_each_word() {
        let text = b"KEYS\x01k  k j\x02UNIQ_KEY\x01u\x02";
        assert_eq!(keys(text).collect::<Vec<_>>(), ["u", "k", "k", "j"]);
    }

    proptest! {
        #[test]
        fn what_is_pushed_is_read(entries in proptest::collection::vec(("[a-zA-Z_]{1,8}", "[^\u{1}\u{2}]{1,12}"), 0..8)) {
            let mut text = Vec::new();
            for (name, value) in &entries {
                push(&mut text, name, value.as_bytes());
            }
            let read: Vec<_> = iter(&text)
                .map(|(n, v)| (String::from_utf8_lossy(n).into_owned(), String::from_utf8_lossy(v).into_owned()))
                .collect();
            prop_assert_eq!(read, entries);
        }

        #[test]
        fn no_text_panics(text in proptest::collection::vec(0u8..6, 0..64)) {
            let mut copy = Vec::new();
            copy_without(&text, &[], &mut copy);
            prop_assert!(iter(&text).eq(iter(&copy)));
        }
    }
}
