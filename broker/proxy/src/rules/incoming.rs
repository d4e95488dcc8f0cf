//! A broker's record as a client takes it.
//!
//! **Invariant:** what comes from a record is copied once and bounded by the record's own size; a
//! body is inflated only up to a limit. Properties of the protocol never show as a user's.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read as _;

use bytes::Bytes;
use md5::{Digest as _, Md5};
use rmq_protocol::message::properties::{self, names};
use rmq_protocol::message::{OffsetId, Record, sys_flag};
use rmq_types::limits;

use crate::proto::v2::{
    DeadLetterQueue, Digest, DigestType, Encoding, Message, Resource, SystemProperties,
};
use crate::rules::kind;
use crate::rules::reserved::is_reserved;

/// What a pop adds to a record.
#[derive(Debug)]
pub(crate) struct Popped<'a> {
    /// The topic it was popped from.
    pub(crate) topic: &'a Resource,
    /// Its handle.
    pub(crate) handle: String,
    /// How often it was consumed before.
    pub(crate) consumed: i32,
    /// How long it is invisible.
    pub(crate) invisible: std::time::Duration,
}

/// The client's id of a record, or the broker's if it has none.
pub(crate) fn message_id(record: &Record<'_>) -> String {
    match properties::get_str(record.properties, names::UNIQ_KEY) {
        Some(id) => id.to_owned(),
        None => OffsetId {
            host: record.store_host,
            offset: record.physical_offset,
        }
        .to_string(),
    }
}

/// The message of a record.
pub(crate) fn message(record: &Record<'_>, popped: Popped<'_>) -> Message {
    let (body, encoding) = body(record);
    let text = |name| properties::get_str(record.properties, name);
    let owned = |name| text(name).map(str::to_owned);
    let number = |name| text(name).and_then(|value| value.parse::<i64>().ok());
    let dead = owned(names::DLQ_ORIGIN_TOPIC).map(|topic| DeadLetterQueue {
        topic,
        message_id: owned(names::DLQ_ORIGIN_MESSAGE_ID).unwrap_or_default(),
    });
    let keys = text(names::KEYS).unwrap_or_default().split(' ');
    let system = SystemProperties {
        tag: owned(names::TAGS),
        keys: keys
            .filter(|key| !key.is_empty())
            .map(str::to_owned)
            .collect(),
        message_id: message_id(record),
        body_digest: Some(Digest {
            r#type: DigestType::Md5.into(),
            checksum: md5_upper(&body),
        }),
        body_encoding: encoding.into(),
        message_type: kind::of_properties(record.properties).into(),
        born_timestamp: Some(timestamp(
            number(names::BORN_TIMESTAMP).unwrap_or(record.born_at),
        )),
        born_host: owned(names::BORN_HOST).unwrap_or_else(|| record.born_host.ip().to_string()),
        store_timestamp: Some(timestamp(record.stored_at)),
        store_host: record.store_host.to_string(),
        delivery_timestamp: number(names::TIMER_DELIVER_MS).map(timestamp),
        receipt_handle: Some(popped.handle),
        queue_id: record.queue_id,
        queue_offset: Some(record.queue_offset),
        invisible_duration: prost_types::Duration::try_from(popped.invisible).ok(),
        delivery_attempt: Some(popped.consumed.saturating_add(1)),
        message_group: owned(names::SHARDING_KEY),
        trace_context: owned(names::TRACE_CONTEXT),
        orphaned_transaction_recovery_duration: None,
        dead_letter_queue: dead,
        lite_topic: None,
        priority: None,
    };
    Message {
        topic: Some(popped.topic.clone()),
        user_properties: users(record.properties),
        system_properties: Some(system),
        body,
    }
}

fn users(text: &[u8]) -> HashMap<String, String> {
    let entries = properties::iter(text);
    entries
        .map(|(name, value)| (String::from_utf8_lossy(name), value))
        .filter(|(name, _)| !is_reserved(name))
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value).into_owned();
            (name.into_owned(), value)
        })
        .collect()
}

/// The body as 5.x clients can read it: they know gzip only, 4.x producers compress with zlib.
fn body(record: &Record<'_>) -> (Bytes, Encoding) {
    let stored = record.body;
    if record.sys_flag & sys_flag::COMPRESSED == 0 {
        return (Bytes::copy_from_slice(stored), Encoding::Identity);
    }
    match stored {
        [0x1f, 0x8b, ..] => (Bytes::copy_from_slice(stored), Encoding::Gzip),
        _ => match inflated(stored) {
            Some(plain) => (plain, Encoding::Identity),
            // Of another kind: as it is stored, as the Java proxy does.
            None => (Bytes::copy_from_slice(stored), Encoding::Gzip),
        },
    }
}

fn inflated(stored: &[u8]) -> Option<Bytes> {
    let mut plain = Vec::new();
    let max = limits::BODY_BYTES_MAX as u64;
    let read = flate2::read::ZlibDecoder::new(stored)
        .take(max + 1)
        .read_to_end(&mut plain)
        .ok()?;
    (read as u64 <= max).then(|| plain.into())
}

fn md5_upper(body: &[u8]) -> String {
    let mut text = String::with_capacity(32);
    for byte in Md5::digest(body) {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02X}");
    }
    text
}

/// A timestamp of the wire.
pub(crate) fn timestamp(millis: i64) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: millis.div_euclid(1_000),
        nanos: (millis.rem_euclid(1_000) * 1_000_000) as i32,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::proto::v2::MessageType;

    fn record<'a>(body: &'a [u8], sys_flag: i32, properties: &'a [u8]) -> Record<'a> {
        Record {
            body_crc: 0,
            queue_id: 3,
            flag: 0,
            queue_offset: 41,
            physical_offset: 7_041,
            sys_flag,
            born_at: 1_500,
            born_host: ([10, 0, 0, 1], 1).into(),
            stored_at: 2_500,
            store_host: ([10, 0, 0, 2], 10911).into(),
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body,
            topic: "%RETRY%g_t",
            properties,
        }
    }

    fn taken(record: &Record<'_>) -> Message {
        let topic = Resource {
            resource_namespace: String::new(),
            name: "t".into(),
        };
        let popped = Popped {
            topic: &topic,
            handle: "h".into(),
            consumed: 2,
            invisible: std::time::Duration::from_secs(30),
        };
        message(record, popped)
    }

    #[test]
    fn a_message_shows_its_places_and_hides_the_protocols_properties() {
        let text = b"UNIQ_KEY\x01id\x02TAGS\x01a\x02KEYS\x01k1 k2\x02POP_CK\x01x\x02\
            colour\x01blue\x02__SHARDINGKEY\x01grp\x02BORN_TIMESTAMP\x011234\x02";
        let message = taken(&record(b"hello", 0, text));
        assert_eq!(message.topic.unwrap().name, "t");
        assert_eq!(message.user_properties.len(), 1);
        assert_eq!(message.user_properties["colour"], "blue");
        let system = message.system_properties.unwrap();
        assert_eq!(system.message_id, "id");
        assert_eq!(system.keys, ["k1", "k2"]);
        assert_eq!(system.delivery_attempt, Some(3));
        assert_eq!(system.message_type(), MessageType::Fifo);
        assert_eq!(system.born_timestamp, Some(timestamp(1_234)));
        assert_eq!(system.born_host, "10.0.0.1");
        assert_eq!(
            system.body_digest.unwrap().checksum,
            "5D41402ABC4B2A76B9719D911017C592"
        );
        assert_eq!(system.queue_offset, Some(41));
    }

    #[test]
    fn a_message_without_the_clients_id_has_the_brokers() {
        let id = message_id(&record(b"b", 0, b""));
        assert_eq!(id, "0A00000200002A9F0000000000001B81");
    }

    #[test]
    fn zlib_is_inflated_and_gzip_left_to_the_client() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(b"plain").unwrap();
        let packed = zlib.finish().unwrap();
        let message = taken(&record(&packed, sys_flag::COMPRESSED, b""));
        assert_eq!(&message.body[..], b"plain");
        let encoding = |m: &Message| m.system_properties.as_ref().unwrap().body_encoding();
        assert_eq!(encoding(&message), Encoding::Identity);
        let gzip = taken(&record(b"\x1f\x8bxx", sys_flag::COMPRESSED, b""));
        assert_eq!(encoding(&gzip), Encoding::Gzip);
        assert_eq!(&gzip.body[..], b"\x1f\x8bxx");
    }

    #[test]
    fn a_body_that_inflates_without_end_stays_packed() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&vec![0; limits::BODY_BYTES_MAX + 1])
            .unwrap();
        let packed = zlib.finish().unwrap();
        let message = taken(&record(&packed, sys_flag::COMPRESSED, b""));
        assert_eq!(message.body.len(), packed.len());
    }

    #[test]
    fn times_before_the_epoch_have_positive_nanoseconds() {
        let at = timestamp(-1);
        assert_eq!((at.seconds, at.nanos), (-1, 999_000_000));
    }
}
