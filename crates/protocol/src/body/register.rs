//! The registration body of a broker, plain JSON or compressed.
//!
//! Compressed form (`RegisterBrokerBody.encode`), inside one zlib stream, integers big-endian:
//!
//! | Bytes | Meaning |
//! |---|---|
//! | 4 + n | length and JSON of the `DataVersion` |
//! | 4 | number of topics |
//! | 4 + n each | length and text `name readQueues writeQueues perm filterType [attributes JSON]` |
//! | 4 + n | length and JSON list of filter servers |
//! | 4 | number of static topics; only from brokers of V5_0_0 and later |
//! | 4 + n each | length and JSON of a `TopicQueueMappingInfo` |
//!
//! **Invariant:** the stream is inflated piece by piece, never as a whole, and no further than
//! `limits::INFLATED_BYTES_MAX`; lengths and counts are checked before anything is reserved. We
//! never write this form: the Java broker that does sets the header wrong.

use std::io::{ErrorKind, Read, Take};

use flate2::read::ZlibDecoder;
use rmq_types::{
    crc32_masked,
    limits::{INFLATED_BYTES_MAX, TOPIC_BYTES_HARD_MAX},
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{TopicConfig, TopicConfigWrapper, TopicQueueMappingInfo, json_body};
use crate::json::{self, JsonError};

/// Version ordinal of V5_0_0, from which the compressed form has a static-topic part.
const VERSION_5_0_0: i32 = 413;
/// Most topics of one registration.
const TOPICS_MAX: u32 = 262_144;
/// Longest piece of the compressed form that names one topic.
const TOPIC_TEXT_MAX: usize = 64 * 1024;
/// Longest other piece.
const PART_MAX: usize = 16 * 1024 * 1024;

/// `RegisterBrokerBody`, body of code 103.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RegisterBrokerBody {
    /// Filter servers, a leftover.
    pub filter_server_list: Vec<String>,
    /// The broker's topics.
    pub topic_config_serialize_wrapper: TopicConfigWrapper,
}

/// Why a registration body was refused. All are the broker's fault.
#[derive(Debug, Error)]
pub enum RegisterBodyError {
    /// The body is not the one the header's checksum was made of.
    #[error("crc32 not match: header {expected}, body {actual}")]
    Crc {
        /// From the header.
        expected: i32,
        /// Of the body.
        actual: i32,
    },
    /// A JSON part is bad.
    #[error("registration body: {0}")]
    Json(#[from] JsonError),
    /// The stream is no zlib stream, or ends early.
    #[error("compressed registration body: {0}")]
    Inflate(#[source] std::io::Error),
    /// The stream goes on after `INFLATED_BYTES_MAX` bytes.
    #[error("compressed registration body inflates to more than {max} bytes")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// A length or count is negative or absurd.
    #[error("compressed registration body: {what} {value} is not within 0..={max}")]
    Range {
        /// What was read.
        what: &'static str,
        /// Its value.
        value: i32,
        /// The limit.
        max: usize,
    },
    /// A topic's text has the wrong number of fields or a field that is no number.
    #[error("compressed registration body: bad topic text {text:?}")]
    Topic {
        /// The text, cut.
        text: String,
    },
}

impl RegisterBrokerBody {
    /// Checks and reads the body of a registration request; `crc32` 0 means unchecked.
    ///
    /// An empty body is an empty registration, as in Java.
    pub fn decode(
        body: &[u8],
        compressed: bool,
        crc32: i32,
        broker_version: i32,
    ) -> Result<Self, RegisterBodyError> {
        if crc32 != 0 {
            let actual = crc32_masked(crc32fast::hash(body));
            if actual != crc32 {
                return Err(RegisterBodyError::Crc {
                    expected: crc32,
                    actual,
                });
            }
        }
        if body.is_empty() {
            return Ok(Self::default());
        }
        if compressed {
            return Parts::new(body).read_all(broker_version);
        }
        Ok(Self::from_json(body)?)
    }
}

struct Parts<'a> {
    stream: Take<ZlibDecoder<&'a [u8]>>,
}

impl<'a> Parts<'a> {
    fn new(body: &'a [u8]) -> Self {
        Self {
            stream: ZlibDecoder::new(body).take(INFLATED_BYTES_MAX as u64),
        }
    }

    fn read_all(mut self, broker_version: i32) -> Result<RegisterBrokerBody, RegisterBodyError> {
        let mut body = RegisterBrokerBody::default();
        let wrapper = &mut body.topic_config_serialize_wrapper;
        let version = self.part("length of data version", PART_MAX)?;
        wrapper.data_version = json::from_slice(&version)?;
        for _ in 0..self.count("number of topics")? {
            let text = self.part("length of topic", TOPIC_TEXT_MAX)?;
            let topic = topic_from_text(&text)?;
            wrapper
                .topic_config_table
                .insert(topic.topic_name.clone(), topic);
        }
        let servers = self.part("length of filter servers", PART_MAX)?;
        if !servers.is_empty() {
            body.filter_server_list = json::from_slice(&servers)?;
        }
        if broker_version >= VERSION_5_0_0 {
            for _ in 0..self.count("number of static topics")? {
                let text = self.part("length of static topic", PART_MAX)?;
                let info: TopicQueueMappingInfo = json::from_slice(&text)?;
                let topic = info.topic.clone().unwrap_or_default();
                wrapper.topic_queue_mapping_info_map.insert(topic, info);
            }
        }
        Ok(body)
    }

    fn int(&mut self) -> Result<i32, RegisterBodyError> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(i32::from_be_bytes(bytes))
    }

    fn count(&mut self, what: &'static str) -> Result<u32, RegisterBodyError> {
        let value = self.int()?;
        u32::try_from(value)
            .ok()
            .filter(|&count| count <= TOPICS_MAX)
            .ok_or(RegisterBodyError::Range {
                what,
                value,
                max: TOPICS_MAX as usize,
            })
    }

    fn part(&mut self, what: &'static str, max: usize) -> Result<Vec<u8>, RegisterBodyError> {
        let value = self.int()?;
        let len = usize::try_from(value)
            .ok()
            .filter(|&len| len <= max)
            .ok_or(RegisterBodyError::Range { what, value, max })?;
        let mut bytes = Vec::new();
        let read = (&mut self.stream).take(len as u64).read_to_end(&mut bytes);
        let read = read.map_err(RegisterBodyError::Inflate)?;
        if read < len {
            return Err(self.early_end());
        }
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), RegisterBodyError> {
        self.stream
            .read_exact(bytes)
            .map_err(|fault| match fault.kind() {
                ErrorKind::UnexpectedEof => self.early_end(),
                _ => RegisterBodyError::Inflate(fault),
            })
    }

    fn early_end(&self) -> RegisterBodyError {
        if self.stream.limit() == 0 {
            return RegisterBodyError::TooLong {
                max: INFLATED_BYTES_MAX,
            };
        }
        RegisterBodyError::Inflate(ErrorKind::UnexpectedEof.into())
    }
}

/// `TopicConfig.decode`: order and system flag are not in the text.
fn topic_from_text(text: &[u8]) -> Result<TopicConfig, RegisterBodyError> {
    let bad = || RegisterBodyError::Topic {
        text: String::from_utf8_lossy(text).chars().take(120).collect(),
    };
    let text = std::str::from_utf8(text).map_err(|_| bad())?;
    let mut fields = text.splitn(6, ' ');
    let mut field = || fields.next().ok_or_else(bad);
    let name = field()?;
    if name.is_empty() || name.len() > TOPIC_BYTES_HARD_MAX {
        return Err(bad());
    }
    let mut topic = TopicConfig::named(name);
    topic.read_queue_nums = field()?.parse().map_err(|_| bad())?;
    topic.write_queue_nums = field()?.parse().map_err(|_| bad())?;
    topic.perm = field()?.parse().map_err(|_| bad())?;
    topic.topic_filter_type = super::TopicFilterType::from_text(field()?).ok_or_else(bad)?;
    if let Some(attributes) = fields.next().filter(|text| !text.is_empty()) {
        topic.attributes = json::from_slice(attributes.as_bytes())?;
    }
    Ok(topic)
}

json_body!(RegisterBrokerBody);
