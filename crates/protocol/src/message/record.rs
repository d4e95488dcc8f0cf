//! The record of one message, as it stands in the commit log and in pull answers
//! (`CommitLog`, `MessageDecoder`).
//!
//! | field | bytes | at (v4 hosts) |
//! |---|---|---|
//! | total size | 4 | 0 |
//! | magic | 4 | 4 |
//! | body CRC | 4 | 8 |
//! | queue id | 4 | 12 |
//! | flag | 4 | 16 |
//! | queue offset | 8 | 20 |
//! | physical offset | 8 | 28 |
//! | system flag | 4 | 36 |
//! | born at | 8 | 40 |
//! | born host: ip, port | 4 or 16, 4 | 48 |
//! | stored at | 8 | 56 |
//! | store host: ip, port | 4 or 16, 4 | 64 |
//! | reconsume times | 4 | 72 |
//! | prepared transaction offset | 8 | 76 |
//! | body length, body | 4, n | 84 |
//! | topic length, topic | 1 (V1) or 2 (V2), n | |
//! | properties length, properties | 2, n | |
//!
//! **Invariant:** `decode(encode(r)) == r`, and a decoded record's parts fill exactly its stated
//! size. Encoding allocates nothing. Does not know files or queues.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rmq_types::limits;

use super::sys_flag;

/// Magic of records whose topic length is one byte.
pub const MAGIC_V1: i32 = -626_843_481;
/// Magic of records whose topic length is two bytes.
pub const MAGIC_V2: i32 = -626_843_477;
/// Magic of the filler that ends a log file.
pub const MAGIC_FILLER: i32 = -875_286_124;
/// Longest topic a V1 record may carry.
pub const V1_TOPIC_BYTES_MAX: usize = 127;
/// Smallest record there is: v4 hosts, no body, topic or properties.
pub const RECORD_BYTES_MIN: usize = 91;
/// Where the queue offset stands in a record.
pub const QUEUE_OFFSET_AT: usize = 20;
/// Where the physical offset stands in a record.
pub const PHYSICAL_OFFSET_AT: usize = 28;

/// One message with everything a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Masked CRC-32 of the body: [`super::body_crc`].
    pub body_crc: i32,
    /// Queue of the topic.
    pub queue_id: i32,
    /// The user's flag.
    pub flag: i32,
    /// Index in the queue.
    pub queue_offset: i64,
    /// Byte position in the commit log.
    pub physical_offset: i64,
    /// [`sys_flag`] bits; the encoder sets the host bits itself.
    pub sys_flag: i32,
    /// When the producer made it, ms.
    pub born_at: i64,
    /// Who made it.
    pub born_host: SocketAddr,
    /// When the broker stored it, ms.
    pub stored_at: i64,
    /// Who stored it.
    pub store_host: SocketAddr,
    /// How often it was handed back.
    pub reconsume_times: i32,
    /// Offset of the half message.
    pub prepared_transaction_offset: i64,
    /// The body.
    pub body: &'a [u8],
    /// The topic.
    pub topic: &'a str,
    /// Properties text: [`super::properties`].
    pub properties: &'a [u8],
}

/// Why a record cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The topic has more bytes than any record can hold.
    #[error("topic of {bytes} bytes does not fit a record")]
    TopicTooLong {
        /// Its length.
        bytes: usize,
    },
    /// Properties of more than 32,767 bytes.
    #[error("properties of {bytes} bytes do not fit a record")]
    PropertiesTooLong {
        /// Their length.
        bytes: usize,
    },
    /// The whole record would pass the 31 bits of its size.
    #[error("body of {bytes} bytes does not fit a record")]
    BodyTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The given buffer is too small.
    #[error("buffer of {have} bytes for a record of {needed}")]
    Buffer {
        /// Bytes the record takes.
        needed: usize,
        /// Bytes there are.
        have: usize,
    },
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Fewer bytes than the record needs.
    #[error("record of {needed} bytes, only {have} are there")]
    Truncated {
        /// Bytes needed.
        needed: usize,
        /// Bytes there are.
        have: usize,
    },
    /// An unknown magic.
    #[error("magic {0:#010x} is none of a record")]
    Magic(i32),
    /// A length that cannot be.
    #[error("{field} length {value} is out of range")]
    Length {
        /// Which length.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// The parts do not fill the stated size.
    #[error("record states {stated} bytes, its parts have {counted}")]
    SizeMismatch {
        /// Stated total.
        stated: usize,
        /// Counted total.
        counted: usize,
    },
    /// The topic is no UTF-8.
    #[error("topic is not UTF-8")]
    Topic,
    /// The body does not have its stated CRC.
    #[error("body has CRC {computed}, the record states {stated}")]
    Crc {
        /// Stated value.
        stated: i32,
        /// Value of the bytes there are.
        computed: i32,
    },
}

/// Total size and magic at the start of `bytes`; `None` below 8 bytes.
#[must_use]
pub fn peek(bytes: &[u8]) -> Option<(i32, i32)> {
    let size = bytes.get(..4)?.try_into().ok()?;
    let magic = bytes.get(4..8)?.try_into().ok()?;
    Some((i32::from_be_bytes(size), i32::from_be_bytes(magic)))
}

/// The record that starts `bytes`: its magic, and all its bytes.
fn frame(bytes: &[u8]) -> Result<(i32, &[u8]), RecordError> {
    let truncated = |needed| RecordError::Truncated {
        needed,
        have: bytes.len(),
    };
    let (stated, magic) = peek(bytes).ok_or_else(|| truncated(8))?;
    if magic != MAGIC_V1 && magic != MAGIC_V2 {
        return Err(RecordError::Magic(magic));
    }
    let total = usize::try_from(stated)
        .ok()
        .filter(|total| *total >= RECORD_BYTES_MIN)
        .ok_or(RecordError::Length {
            field: "record",
            value: i64::from(stated),
        })?;
    let whole = bytes.get(..total).ok_or_else(|| truncated(total))?;
    Ok((magic, whole))
}

impl<'a> Record<'a> {
    /// Bytes this record takes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let hosts = [self.born_host, self.store_host]
            .iter()
            .map(|host| if host.is_ipv6() { 12 } else { 0 })
            .sum::<usize>();
        let wide = usize::from(self.topic.len() > V1_TOPIC_BYTES_MAX);
        RECORD_BYTES_MIN + hosts + wide + self.body.len() + self.topic.len() + self.properties.len()
    }

    /// Whether the record can be written at all.
    pub fn check(&self) -> Result<(), EncodeError> {
        if self.topic.len() > i16::MAX as usize {
            return Err(EncodeError::TopicTooLong {
                bytes: self.topic.len(),
            });
        }
        if self.properties.len() > limits::PROPERTIES_BYTES_MAX {
            return Err(EncodeError::PropertiesTooLong {
                bytes: self.properties.len(),
            });
        }
        if self.encoded_len() > i32::MAX as usize {
            return Err(EncodeError::BodyTooLong {
                bytes: self.body.len(),
            });
        }
        Ok(())
    }

    /// Writes the record at the start of `out` and returns its length.
    pub fn encode_into(&self, out: &mut [u8]) -> Result<usize, EncodeError> {
        self.check()?;
        let total = self.encoded_len();
        let have = out.len();
        let Some(out) = out.get_mut(..total) else {
            return Err(EncodeError::Buffer {
                needed: total,
                have,
            });
        };
        let wide = self.topic.len() > V1_TOPIC_BYTES_MAX;
        let mut put = Writer { out, at: 0 };
        put.i32(total as i32);
        put.i32(if wide { MAGIC_V2 } else { MAGIC_V1 });
        put.i32(self.body_crc);
        put.i32(self.queue_id);
        put.i32(self.flag);
        put.i64(self.queue_offset);
        put.i64(self.physical_offset);
        put.i32(self.layout_flag());
        put.i64(self.born_at);
        put.host(self.born_host);
        put.i64(self.stored_at);
        put.host(self.store_host);
        put.i32(self.reconsume_times);
        put.i64(self.prepared_transaction_offset);
        put.i32(self.body.len() as i32);
        put.bytes(self.body);
        if wide {
            put.bytes(&(self.topic.len() as i16).to_be_bytes());
        } else {
            put.bytes(&[self.topic.len() as u8]);
        }
        put.bytes(self.topic.as_bytes());
        put.bytes(&(self.properties.len() as i16).to_be_bytes());
        put.bytes(self.properties);
        debug_assert_eq!(put.at, total);
        Ok(total)
    }

    /// The system flag with its host bits as the hosts demand.
    fn layout_flag(&self) -> i32 {
        let mut flag = self.sys_flag & !(sys_flag::BORN_HOST_V6 | sys_flag::STORE_HOST_V6);
        if self.born_host.is_ipv6() {
            flag |= sys_flag::BORN_HOST_V6;
        }
        if self.store_host.is_ipv6() {
            flag |= sys_flag::STORE_HOST_V6;
        }
        flag
    }

    /// Reads the record at the start of `bytes`; the second value is its length. The body's CRC is
    /// not looked at: [`Record::verify_body`].
    pub fn decode(bytes: &'a [u8]) -> Result<(Self, usize), RecordError> {
        let (magic, whole) = frame(bytes)?;
        let total = whole.len();
        let mut read = Reader {
            bytes: whole,
            at: 8,
        };
        let body_crc = read.i32()?;
        let queue_id = read.i32()?;
        let flag = read.i32()?;
        let queue_offset = read.i64()?;
        let physical_offset = read.i64()?;
        let sys_flag = read.i32()?;
        let born_at = read.i64()?;
        let born_host = read.host(sys_flag & sys_flag::BORN_HOST_V6 != 0)?;
        let stored_at = read.i64()?;
        let store_host = read.host(sys_flag & sys_flag::STORE_HOST_V6 != 0)?;
        let reconsume_times = read.i32()?;
        let prepared_transaction_offset = read.i64()?;
        let body_len = i64::from(read.i32()?);
        let body = read.part("body", body_len)?;
        let topic_len = if magic == MAGIC_V2 {
            i64::from(read.i16()?)
        } else {
            i64::from(read.take(1)?.first().copied().unwrap_or(0) as i8)
        };
        let topic = read.part("topic", topic_len)?;
        let properties_len = i64::from(read.i16()?);
        let properties = read.part("properties", properties_len)?;
        if read.at != total {
            return Err(RecordError::SizeMismatch {
                stated: total,
                counted: read.at,
            });
        }
        let topic = std::str::from_utf8(topic).map_err(|_| RecordError::Topic)?;
        let record = Self {
            body_crc,
            queue_id,
            flag,
            queue_offset,
            physical_offset,
            sys_flag,
            born_at,
            born_host,
            stored_at,
            store_host,
            reconsume_times,
            prepared_transaction_offset,
            body,
            topic,
            properties,
        };
        Ok((record, total))
    }

    /// Compares the body with its CRC; an empty body has none to compare, as in Java.
    pub fn verify_body(&self) -> Result<(), RecordError> {
        if self.body.is_empty() {
            return Ok(());
        }
        let computed = super::body_crc(self.body);
        if computed == self.body_crc {
            Ok(())
        } else {
            Err(RecordError::Crc {
                stated: self.body_crc,
                computed,
            })
        }
    }
}

/// Writes at a position that the caller made room for.
struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        let end = self.at + bytes.len();
        if let Some(room) = self.out.get_mut(self.at..end) {
            room.copy_from_slice(bytes);
        }
        self.at = end;
    }

    fn i32(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.bytes(&value.to_be_bytes());
    }

    fn host(&mut self, host: SocketAddr) {
        match host.ip() {
            IpAddr::V4(ip) => self.bytes(&ip.octets()),
            IpAddr::V6(ip) => self.bytes(&ip.octets()),
        }
        self.i32(i32::from(host.port()));
    }
}

/// Reads forward, never past the end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], RecordError> {
        let end = self.at.saturating_add(count);
        let part = self.bytes.get(self.at..end).ok_or(RecordError::Truncated {
            needed: end,
            have: self.bytes.len(),
        })?;
        self.at = end;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let part = self.take(N)?;
        part.try_into().map_err(|_| RecordError::Truncated {
            needed: N,
            have: part.len(),
        })
    }

    fn i16(&mut self) -> Result<i16, RecordError> {
        self.array().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Result<i32, RecordError> {
        self.array().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, RecordError> {
        self.array().map(i64::from_be_bytes)
    }

    fn part(&mut self, field: &'static str, length: i64) -> Result<&'a [u8], RecordError> {
        let count = usize::try_from(length).map_err(|_| RecordError::Length {
            field,
            value: length,
        })?;
        self.take(count)
    }

    /// A port beyond 16 bits keeps its low bits: the record is still whole.
    fn host(&mut self, v6: bool) -> Result<SocketAddr, RecordError> {
        let ip = if v6 {
            IpAddr::V6(Ipv6Addr::from(self.array::<16>()?))
        } else {
            IpAddr::V4(Ipv4Addr::from(self.array::<4>()?))
        };
        Ok(SocketAddr::new(ip, self.i32()? as u16))
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
