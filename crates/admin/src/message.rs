//! A message as readers get it: the record's parts, properties as text, the body readable if it can
//! be made so.
//!
//! **Invariant:** reading never fails because of a body: one that cannot be inflated stays as it was
//! stored and says why. Inflating stops at a limit.

use std::{io::Read, net::SocketAddr};

use bytes::Bytes;
use flate2::read::{GzDecoder, ZlibDecoder};
use rmq_protocol::message::{
    OffsetId, Record, RecordError,
    properties::{self, names},
    sys_flag,
};
use rmq_types::{QueueOffset, Timestamp};

use crate::offset::offset;

/// What the body's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// What the producer sent.
    Plain,
    /// The producer compressed it; these bytes are inflated.
    Inflated,
    /// The producer compressed it, and it still is.
    Compressed(Unreadable),
}

/// Why a compressed body was left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// LZ4, which is not supported here.
    Lz4,
    /// Zstandard, which is not supported here.
    Zstd,
    /// The compressed bytes are broken.
    Broken,
    /// It would inflate to more than this many bytes.
    TooLarge(usize),
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lz4 => f.write_str("compressed with LZ4, which this tool cannot read"),
            Self::Zstd => f.write_str("compressed with Zstandard, which this tool cannot read"),
            Self::Broken => f.write_str("marked as compressed, but its bytes are not"),
            Self::TooLarge(max) => write!(f, "compressed, and longer than {max} bytes inflated"),
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The topic.
    pub topic: String,
    /// The queue.
    pub queue: u32,
    /// Its offset there.
    pub queue_offset: QueueOffset,
    /// Its offset in the commit log.
    pub commit_log_offset: i64,
    /// The broker that stored it.
    pub store_host: SocketAddr,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// Who sent it.
    pub born_host: SocketAddr,
    /// When it was made.
    pub born_at: Timestamp,
    /// How often it was handed back.
    pub reconsume_times: i32,
    /// System flag bits.
    pub sys_flag: i32,
    /// The user's flag.
    pub flag: i32,
    /// Names and values in stored order; text that is no UTF-8 has replacement characters.
    pub properties: Vec<(String, String)>,
    /// The body, see [`Self::form`].
    pub body: Bytes,
    /// What the body's bytes are.
    pub form: BodyForm,
}

impl Message {
    /// Reads every record of `bytes`.
    pub(crate) fn decode_all(
        bytes: &Bytes,
        inflated_bytes_max: usize,
    ) -> Result<Vec<Self>, RecordError> {
        let mut messages = Vec::new();
        let mut rest: &[u8] = bytes;
        while !rest.is_empty() {
            let (record, length) = Record::decode(rest)?;
            record.verify_body()?;
            messages.push(Self::new(&record, bytes, inflated_bytes_max));
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(messages)
    }

    fn new(record: &Record<'_>, bytes: &Bytes, inflated_bytes_max: usize) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (body, form) = readable(record, bytes, inflated_bytes_max);
        Self {
            topic: record.topic.to_owned(),
            queue: u32::try_from(record.queue_id).unwrap_or(0),
            queue_offset: offset(record.queue_offset).unwrap_or_default(),
            commit_log_offset: record.physical_offset,
            store_host: record.store_host,
            stored_at: Timestamp::from_millis(record.stored_at),
            born_host: record.born_host,
            born_at: Timestamp::from_millis(record.born_at),
            reconsume_times: record.reconsume_times,
            sys_flag: record.sys_flag,
            flag: record.flag,
            properties: properties::iter(record.properties)
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            body,
            form,
        }
    }

    /// One property; of equal names the last one.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&str> {
        let found = self.properties.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Its tag.
    #[must_use]
    pub fn tags(&self) -> Option<&str> {
        self.property(names::TAGS)
    }

    /// Its keys, separated by spaces.
    #[must_use]
    pub fn keys(&self) -> Option<&str> {
        self.property(names::KEYS)
    }

    /// The producer's id of it.
    #[must_use]
    pub fn unique_id(&self) -> Option<&str> {
        self.property(names::UNIQ_KEY)
    }

    /// The broker's id of it: where it lies.
    #[must_use]
    pub fn offset_id(&self) -> String {
        OffsetId {
            host: self.store_host,
            offset: self.commit_log_offset,
        }
        .to_string()
    }
}

fn readable(record: &Record<'_>, bytes: &Bytes, max: usize) -> (Bytes, BodyForm) {
    // An empty slice may stand outside the buffer, which `slice_ref` does not take.
    let stored = if record.body.is_empty() {
        Bytes::new()
    } else {
        bytes.slice_ref(record.body)
    };
    if record.sys_flag & sys_flag::COMPRESSED == 0 || stored.is_empty() {
        return (stored, BodyForm::Plain);
    }
    let outcome = match record.sys_flag & sys_flag::COMPRESSION_MASK {
        sys_flag::COMPRESSION_LZ4 => Err(Unreadable::Lz4),
        sys_flag::COMPRESSION_ZSTD => Err(Unreadable::Zstd),
        _ => inflate(&stored, max),
    };
    match outcome {
        Ok(inflated) => (inflated.into(), BodyForm::Inflated),
        Err(why) => (stored, BodyForm::Compressed(why)),
    }
}

/// Zlib, or gzip as gRPC clients write it without saying so in the flag.
fn inflate(stored: &[u8], max: usize) -> Result<Vec<u8>, Unreadable> {
    let limit = max as u64 + 1;
    let mut inflated = Vec::new();
    let read = if stored.starts_with(&[0x1f, 0x8b]) {
        GzDecoder::new(stored)
            .take(limit)
            .read_to_end(&mut inflated)
    } else {
        ZlibDecoder::new(stored)
            .take(limit)
            .read_to_end(&mut inflated)
    };
    match read {
        Err(_) => Err(Unreadable::Broken),
        Ok(length) if length > max => Err(Unreadable::TooLarge(max)),
        Ok(_) => Ok(inflated),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder, write::ZlibEncoder};
    use rmq_protocol::message::body_crc;

    use super::*;

    fn record(body: &[u8], flag: i32) -> Bytes {
        let record = Record {
            body_crc: body_crc(body),
            queue_id: 3,
            flag: 0,
            queue_offset: 7,
            physical_offset: 0x1234,
            sys_flag: flag,
            born_at: 1,
            born_host: "10.0.0.9:5".parse().unwrap(),
            stored_at: 2,
            store_host: "127.0.0.1:10911".parse().unwrap(),
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body,
            topic: "T",
            properties: b"TAGS\x01red\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01id\x02",
        };
        let mut out = vec![0; record.encoded_len()];
        record.encode_into(&mut out).unwrap();
        out.into()
    }

    fn decode(bytes: &Bytes) -> Message {
        Message::decode_all(bytes, 1000).unwrap().remove(0)
    }

    #[test]
    fn a_plain_message_has_its_parts_and_ids() {
        let message = decode(&record(b"hello", 0));
        assert_eq!(
            (&message.body[..], message.form),
            (&b"hello"[..], BodyForm::Plain)
        );
        assert_eq!(
            (message.tags(), message.keys()),
            (Some("red"), Some("k1 k2"))
        );
        assert_eq!(message.unique_id(), Some("id"));
        assert_eq!(message.offset_id(), "7F00000100002A9F0000000000001234");
    }

    #[test]
    fn several_records_are_read_and_an_empty_body_is_fine() {
        let mut both = record(b"", sys_flag::COMPRESSED).to_vec();
        both.extend(record(b"b", 0));
        let messages = Message::decode_all(&both.into(), 1000).unwrap();
        let bodies: Vec<_> = messages.iter().map(|message| &message.body[..]).collect();
        assert_eq!(bodies, [&b""[..], b"b"]);
    }

    #[test]
    fn zlib_and_gzip_bodies_are_inflated() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(b"hello").unwrap();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(b"hello").unwrap();
        for (body, flag) in [
            (
                zlib.finish().unwrap(),
                sys_flag::COMPRESSED | sys_flag::COMPRESSION_ZLIB,
            ),
            (gzip.finish().unwrap(), sys_flag::COMPRESSED),
        ] {
            let message = decode(&record(&body, flag));
            assert_eq!(
                (&message.body[..], message.form),
                (&b"hello"[..], BodyForm::Inflated)
            );
        }
    }

    #[test]
    fn bodies_that_cannot_be_inflated_stay_as_they_are_and_say_why() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(&[b'x'; 1001]).unwrap();
        let large = zlib.finish().unwrap();
        for (body, flag, why) in [
            (&b"raw"[..], sys_flag::COMPRESSION_LZ4, Unreadable::Lz4),
            (b"raw", sys_flag::COMPRESSION_ZSTD, Unreadable::Zstd),
            (b"raw", 0, Unreadable::Broken),
            (&large, 0, Unreadable::TooLarge(1000)),
        ] {
            let message = decode(&record(body, flag | sys_flag::COMPRESSED));
            assert_eq!(
                (&message.body[..], message.form),
                (body, BodyForm::Compressed(why))
            );
        }
    }

    #[test]
    fn cut_or_changed_bytes_are_an_error_and_no_panic() {
        let whole = record(b"hello", 0);
        for cut in 1..whole.len() {
            assert!(
                Message::decode_all(&whole.slice(..cut), 1000).is_err(),
                "{cut}"
            );
        }
        let mut changed = whole.to_vec();
        changed[88] ^= 1;
        assert!(matches!(
            Message::decode_all(&changed.into(), 1000),
            Err(RecordError::Crc { .. })
        ));
    }

    proptest::proptest! {
        #[test]
        fn damaged_bytes_never_panic(at in 0usize..200, byte: u8, body: Vec<u8>, flag: i32) {
            let mut bytes = record(&body, flag).to_vec();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            let _ = Message::decode_all(&bytes.into(), 1000);
        }

        #[test]
        fn a_body_is_kept_or_inflated_whatever_its_flag_says(body: Vec<u8>, flag: i32) {
            let message = decode(&record(&body, flag));
            let kept = !matches!(message.form, BodyForm::Inflated);
            proptest::prop_assert!(!kept || message.body == body);
        }
    }
}
