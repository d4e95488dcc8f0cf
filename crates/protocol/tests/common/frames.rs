//! The frames of the fixtures as our commands, typed headers included.

use std::{borrow::Cow, fmt::Debug};

use bytes::BytesMut;
use rmq_protocol::{
    header::{
        CreateTopic, DecodeHeader, FieldError, GetRoute, OffsetResponse, PullMessage,
        PullMessageResponse, QueryConsumerOffset, RegisterBroker, RegisterBrokerResponse,
        SearchOffset, SendBack, SendMessageResponse, SendMessageV1, SendMessageV2,
        UnregisterClient, UpdateConsumerOffset,
    },
    remoting::{
        Command, ExtFields, FLAG_ONEWAY, Language, Serializer, Split, request_code, response_code,
        split_frame,
    },
};

/// One frame of the fixtures.
pub struct Frame {
    /// Name after `frame.json.` or `frame.rocketmq.`.
    pub name: &'static str,
    /// The command it holds.
    pub command: Command,
    /// Panics unless the fields read as the typed header of the fixtures.
    pub check: Check,
}

/// A check of given fields.
pub type Check = Box<dyn Fn(&ExtFields<'_>)>;

/// The two serializers and the part of a fixture's name that stands for each.
pub const SERIALIZERS: [(Serializer, &str); 2] =
    [(Serializer::Json, "json"), (Serializer::Binary, "rocketmq")];

/// The bytes of a frame.
pub fn encode(command: &Command, serializer: Serializer) -> Vec<u8> {
    let mut out = BytesMut::new();
    command.encode(serializer, &mut out);
    out.to_vec()
}

/// The one frame that `bytes` hold.
pub fn decode(bytes: &[u8]) -> (Serializer, Command) {
    let split = split_frame(bytes, 1 << 20).expect("a frame");
    let whole = match split {
        Split::Frame { frame, consumed } if consumed == bytes.len() => Some(frame),
        _ => None,
    };
    let frame = whole.expect("one whole frame");
    (frame.serializer, Command::decode(frame).expect("a header"))
}

/// The pairs in the order of their names.
pub fn sorted(ext: &ExtFields<'_>) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = ext
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    pairs.sort();
    pairs
}

/// Adds the fields of a header, and a check that they are read back.
macro_rules! frame {
    ($name:literal, $command:expr, $header:expr) => {{
        let header = $header;
        Frame {
            name: $name,
            command: $command.with_header(&header),
            check: Box::new(move |ext| same($name, &DecodeHeader::decode(ext), &header)),
        }
    }};
}

fn same<T: PartialEq + Debug>(name: &str, read: &Result<T, FieldError>, wanted: &T) {
    assert_eq!(read.as_ref(), Ok(wanted), "{name}");
}

/// What `e2e/golden` sets in every frame, whatever version we tell.
const VERSION: i32 = 479;

fn request(code: i32) -> Command {
    Command {
        opaque: 7,
        version: VERSION,
        ..Command::request(code)
    }
}

fn success() -> Command {
    response(response_code::SUCCESS)
}

fn response(code: i32) -> Command {
    Command {
        version: VERSION,
        ..Command::response(7, code)
    }
}

fn text(text: &'static str) -> Cow<'static, str> {
    Cow::Borrowed(text)
}

/// Every frame of the fixtures.
pub fn all() -> Vec<Frame> {
    let mut list = producing();
    list.extend(consuming());
    list.extend(offsets());
    list.extend(name_server());
    list.extend(plain());
    list
}

fn producing() -> Vec<Frame> {
    let properties = Some(text("KEYS\u{1}k1\u{2}TAGS\u{1}TagA\u{2}"));
    vec![
        frame!(
            "send",
            request(request_code::SEND_MESSAGE).with_body(&b"hello"[..]),
            SendMessageV1 {
                producer_group: text("pg"),
                topic: text("TopicTest"),
                default_topic: text("TBW102"),
                default_topic_queue_nums: 4,
                queue_id: 3,
                sys_flag: 0,
                born_timestamp: 1_700_000_000_123,
                flag: 0,
                properties: properties.clone(),
                reconsume_times: Some(0),
                unit_mode: false,
                max_reconsume_times: Some(16),
                batch: false,
                broker_name: Some(text("broker-a")),
            }
        ),
        frame!(
            "send_v2",
            request(request_code::SEND_MESSAGE_V2).with_body(&b"hello"[..]),
            SendMessageV2 {
                producer_group: text("pg"),
                topic: text("TopicTest"),
                default_topic: text("TBW102"),
                default_topic_queue_nums: 4,
                queue_id: 3,
                sys_flag: 0,
                born_timestamp: 1_700_000_000_123,
                flag: 0,
                properties,
                reconsume_times: Some(0),
                unit_mode: false,
                max_reconsume_times: Some(16),
                batch: false,
                broker_name: Some(text("broker-a")),
            }
        ),
        frame!(
            "send_response",
            success()
                .with_ext("MSG_REGION", "DefaultRegion")
                .with_ext("TRACE_ON", "true"),
            SendMessageResponse {
                msg_id: text("7F00000100002A9F0000000000000064"),
                queue_id: 3,
                queue_offset: 5_000_000_000,
                transaction_id: None,
                batch_uniq_id: None,
                recall_handle: None,
            }
        ),
        frame!(
            "send_back",
            request(request_code::CONSUMER_SEND_MSG_BACK),
            SendBack {
                offset: 1000,
                group: text("cg"),
                delay_level: 3,
                origin_msg_id: Some(text("7F00000100002A9F0000000000000064")),
                origin_topic: Some(text("TopicTest")),
                unit_mode: false,
                max_reconsume_times: Some(16),
            }
        ),
    ]
}

fn consuming() -> Vec<Frame> {
    vec![
        frame!(
            "pull",
            request(request_code::PULL_MESSAGE).with_ext("bname", "broker-a"),
            PullMessage {
                consumer_group: text("cg"),
                topic: text("TopicTest"),
                queue_id: 2,
                queue_offset: 100,
                max_msg_nums: 32,
                sys_flag: 6,
                commit_offset: 90,
                suspend_timeout_millis: 15_000,
                subscription: Some(text("TagA || TagB")),
                sub_version: 1_700_000_000_000,
                expression_type: Some(text("TAG")),
                max_msg_bytes: Some(262_144),
                request_source: None,
                proxy_forward_client_id: None,
            }
        ),
        frame!(
            "pull_response",
            success().with_remark("FOUND").with_body(&b"records"[..]),
            PullMessageResponse {
                suggest_which_broker_id: 0,
                next_begin_offset: 101,
                min_offset: 0,
                max_offset: 200,
                offset_delta: None,
                topic_sys_flag: Some(0),
                group_sys_flag: Some(0),
                forbidden_type: None,
            }
        ),
        frame!(
            "unregister",
            request(request_code::UNREGISTER_CLIENT),
            UnregisterClient {
                client_id: text("10.0.0.9@1"),
                producer_group: None,
                consumer_group: Some(text("cg")),
            }
        ),
    ]
}

fn offsets() -> Vec<Frame> {
    vec![
        frame!(
            "commit_oneway",
            Command {
                flag: FLAG_ONEWAY,
                ..request(request_code::UPDATE_CONSUMER_OFFSET)
            },
            UpdateConsumerOffset {
                consumer_group: text("cg"),
                topic: text("TopicTest"),
                queue_id: 1,
                commit_offset: 42,
            }
        ),
        frame!(
            "query_offset",
            request(request_code::QUERY_CONSUMER_OFFSET),
            QueryConsumerOffset {
                consumer_group: text("cg"),
                topic: text("TopicTest"),
                queue_id: 1,
                set_zero_if_not_found: Some(false),
            }
        ),
        frame!(
            "query_offset_response",
            success(),
            OffsetResponse { offset: 42 }
        ),
        frame!(
            "search_offset",
            request(request_code::SEARCH_OFFSET_BY_TIMESTAMP),
            SearchOffset {
                topic: text("TopicTest"),
                queue_id: 1,
                timestamp: 1_700_000_000_000,
                boundary_type: None,
            }
        ),
    ]
}

fn name_server() -> Vec<Frame> {
    vec![
        frame!(
            "route",
            request(request_code::GET_ROUTEINFO_BY_TOPIC),
            GetRoute {
                topic: text("TopicTest"),
                accept_standard_json_only: Some(true)
            }
        ),
        frame!(
            "register",
            request(request_code::REGISTER_BROKER).with_body(&b"hello"[..]),
            RegisterBroker {
                broker_name: text("broker-a"),
                broker_addr: text("10.0.0.1:10911"),
                cluster_name: text("DefaultCluster"),
                ha_server_addr: text("10.0.0.1:10912"),
                broker_id: 0,
                heartbeat_timeout_millis: Some(10_000),
                enable_acting_master: Some(false),
                compressed: false,
                body_crc32: 907_060_870,
                zone_name: None,
            }
        ),
        frame!(
            "register_response",
            success(),
            RegisterBrokerResponse {
                ha_server_addr: Some(text("10.0.0.1:10912")),
                master_addr: Some(text("10.0.0.1:10911")),
            }
        ),
        frame!(
            "create_topic",
            request(request_code::UPDATE_AND_CREATE_TOPIC),
            CreateTopic {
                topic: text("TopicTest"),
                default_topic: text("TBW102"),
                read_queue_nums: 8,
                write_queue_nums: 8,
                perm: 6,
                topic_filter_type: text("SINGLE_TAG"),
                topic_sys_flag: Some(0),
                order: false,
                attributes: Some(text("+message.type=NORMAL")),
                force: Some(false),
            }
        ),
    ]
}

fn plain() -> Vec<Frame> {
    let remark = "[TIMEOUT_CLEAN_QUEUE]broker busy, \"period\": 1\té主😀/\\";
    let other = Command {
        language: Language::Go,
        version: 317,
        ..request(request_code::GET_BROKER_RUNTIME_INFO)
    };
    let unchecked = |name, command| Frame {
        name,
        command,
        check: Box::new(|_| ()),
    };
    vec![
        unchecked(
            "heartbeat",
            request(request_code::HEART_BEAT).with_body(&b"{}"[..]),
        ),
        unchecked("no_fields", request(request_code::GET_BROKER_CLUSTER_INFO)),
        unchecked(
            "busy_response",
            response(response_code::SYSTEM_BUSY).with_remark(remark),
        ),
        unchecked(
            "other_language",
            other
                .with_ext("k", "")
                .with_ext("__ZONE_NAME", "z\u{1}\u{2}\n"),
        ),
    ]
}
