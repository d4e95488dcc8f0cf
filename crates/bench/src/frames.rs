//! Request frames written ahead, with the few bytes that differ between requests patched in.
//!
//! Invariant: an opaque always has ten digits, so that patching never moves a byte. Headers have
//! Java's key order and escapes.

use std::fmt::Write;

use rmq_protocol::message::batch::{self, BatchItem};

/// Smallest opaque of ten digits.
pub(crate) const OPAQUE_FIRST: i32 = 1_000_000_000;

const UNIQUE_DIGITS: usize = 12;

/// The head of a frame: both length words and the JSON header.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: Box<[u8]>,
    opaque_at: usize,
    unique_at: Option<usize>,
}

impl Template {
    /// A request with `fields` (values already escaped for JSON) and a body of `body_bytes`.
    pub(crate) fn new(code: i32, fields: &[(&str, &str)], body_bytes: usize) -> Self {
        let mut header = format!("{{\"code\":{code},\"extFields\":{{");
        for (index, (key, value)) in fields.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = write!(header, "{comma}\"{key}\":\"{value}\"");
        }
        header.push_str("},\"flag\":0,\"language\":\"JAVA\",\"opaque\":");
        let opaque_at = 8 + header.len();
        let _ = write!(header, "{OPAQUE_FIRST}");
        header.push_str(",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":479}");
        let mut bytes = Vec::with_capacity(8 + header.len());
        bytes.extend_from_slice(&((4 + header.len() + body_bytes) as u32).to_be_bytes());
        bytes.extend_from_slice(&(header.len() as u32).to_be_bytes());
        bytes.extend_from_slice(header.as_bytes());
        let unique_at = find_unique(&bytes);
        Self {
            bytes: bytes.into_boxed_slice(),
            opaque_at,
            unique_at,
        }
    }

    /// Appends the head for one request; `unique` makes its message id its own.
    pub(crate) fn write(&self, opaque: i32, unique: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        if let Some(room) = out.get_mut(start + self.opaque_at..start + self.opaque_at + 10) {
            let mut rest = opaque;
            for digit in room.iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
        let Some(at) = self.unique_at else { return };
        if let Some(room) = out.get_mut(start + at..start + at + UNIQUE_DIGITS) {
            let mut rest = unique;
            for digit in room.iter_mut().rev() {
                *digit = b"0123456789ABCDEF"[(rest & 15) as usize];
                rest >>= 4;
            }
        }
    }
}

/// Position of the digits of `UNIQ_KEY` that count up.
fn find_unique(bytes: &[u8]) -> Option<usize> {
    let key = b"UNIQ_KEY\\u0001";
    bytes
        .windows(key.len())
        .position(|window| window == key)
        .map(|at| at + key.len() + (32 - UNIQUE_DIGITS))
}

/// Text of a client message id: address, process, and `run` to tell one run from another.
fn unique_key(run: u64) -> String {
    format!("7F0000010001{:08X}{:012X}", run as u32, 0)
}

/// What send requests look like.
#[derive(Clone, Debug)]
pub(crate) struct SendShape {
    /// Messages in one request.
    pub(crate) batch: usize,
    /// Body of one message.
    pub(crate) size: usize,
    /// Milliseconds since the epoch.
    pub(crate) born_at: i64,
    /// Queues a topic would get if it were created by sending.
    pub(crate) queues: u32,
}

impl SendShape {
    /// The body of a request: of one message, or of a whole batch.
    pub(crate) fn body(&self) -> Vec<u8> {
        let body: Vec<u8> = (0..self.size).map(|at| b'a' + (at % 26) as u8).collect();
        if self.batch <= 1 {
            return body;
        }
        let mut out = Vec::new();
        for index in 0..self.batch {
            let key = unique_key(self.born_at as u64 + index as u64);
            let properties = format!("UNIQ_KEY\u{1}{key}\u{2}WAIT\u{1}true\u{2}TAGS\u{1}TagA\u{2}");
            let item = BatchItem {
                flag: 0,
                body: &body,
                properties: properties.as_bytes(),
            };
            batch::push(&mut out, &item);
        }
        out
    }

    /// `SEND_MESSAGE_V2` (310), or `SEND_BATCH_MESSAGE` (320), to one queue.
    pub(crate) fn template(&self, topic: &str, queue: u32, body_bytes: usize) -> Template {
        let (code, is_batch) = if self.batch > 1 {
            (320, "true")
        } else {
            (310, "false")
        };
        let properties = format!(
            "UNIQ_KEY\\u0001{}\\u0002WAIT\\u0001true\\u0002TAGS\\u0001TagA\\u0002",
            unique_key(self.born_at as u64)
        );
        let fields = [
            ("a", "bench-producer"),
            ("b", topic),
            ("c", "TBW102"),
            ("d", &self.queues.to_string()),
            ("e", &queue.to_string()),
            ("f", "0"),
            ("g", &self.born_at.to_string()),
            ("h", "0"),
            ("i", &properties),
            ("j", "0"),
            ("k", "false"),
            ("m", is_batch),
        ];
        Template::new(code, &fields, body_bytes)
    }
}

/// Names of the topics of a run: `name` alone, or `name-0` to `name-<count - 1>`.
pub(crate) fn topic_names(name: &str, count: usize) -> Vec<String> {
    if count <= 1 {
        return vec![name.to_owned()];
    }
    (0..count).map(|index| format!("{name}-{index}")).collect()
}

#[cfg(test)]
mod tests {
    use rmq_protocol::remoting::{Command, Split, split_frame};

    use super::*;

    fn sent(shape: &SendShape, opaque: i32, unique: u64) -> Command {
        let body = shape.body();
        let mut out = Vec::new();
        shape
            .template("T", 3, body.len())
            .write(opaque, unique, &mut out);
        out.extend_from_slice(&body);
        match split_frame(&out, 1 << 24).unwrap() {
            Split::Frame { frame, consumed } => {
                assert_eq!(consumed, out.len());
                Command::decode(frame).unwrap()
            }
            Split::Incomplete { .. } => panic!("incomplete"),
        }
    }

    #[test]
    fn a_patched_frame_is_the_send_request_of_a_java_client() {
        let shape = SendShape {
            batch: 1,
            size: 10,
            born_at: 1_700_000_000_000,
            queues: 8,
        };
        let cmd = sent(&shape, 1_234_567_890, 0xABC);
        assert_eq!(
            (cmd.code, cmd.opaque, &cmd.body[..]),
            (310, 1_234_567_890, &b"abcdefghij"[..])
        );
        assert_eq!(cmd.ext.get("b"), Some("T"));
        assert_eq!(cmd.ext.get("e"), Some("3"));
        let properties = cmd.ext.get("i").unwrap();
        assert!(
            properties.starts_with("UNIQ_KEY\u{1}7F0000010001"),
            "{properties}"
        );
        assert!(
            properties.contains("000000000ABC\u{2}WAIT\u{1}true\u{2}"),
            "{properties}"
        );
    }

    #[test]
    fn a_batch_holds_its_messages() {
        let shape = SendShape {
            batch: 5,
            size: 10,
            born_at: 1,
            queues: 8,
        };
        let cmd = sent(&shape, OPAQUE_FIRST, 1);
        assert_eq!((cmd.code, cmd.ext.get("m")), (320, Some("true")));
        let items: Vec<_> = batch::iter(&cmd.body).map(Result::unwrap).collect();
        assert_eq!((items.len(), items[4].body), (5, &b"abcdefghij"[..]));
    }

    #[test]
    fn one_topic_keeps_its_name_and_many_are_numbered() {
        assert_eq!(topic_names("t", 1), ["t"]);
        assert_eq!(topic_names("t", 2), ["t-0", "t-1"]);
    }
}
