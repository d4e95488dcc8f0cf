//! Every hard limit of the protocol in one place.

/// Longest frame, its length word not counted (`com.rocketmq.remoting.frameMaxLength`).
pub const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest header inside a frame; Java has no such limit, 24 bits are the format's own bound.
pub const HEADER_BYTES_MAX: usize = 1024 * 1024;
/// Default `maxMessageSize`: longest message body.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Room a whole record may take beyond its body (`MessageStoreConfig`, record head and properties).
pub const RECORD_OVERHEAD_MAX: usize = 64 * 1024;
/// Longest properties text: its length is a signed 16-bit number on disk.
pub const PROPERTIES_BYTES_MAX: usize = 32_767;
/// Longest topic name a client may create.
pub const TOPIC_BYTES_MAX: usize = 127;
/// Longest topic name at all: `%RETRY%`, `%DLQ%` and other system-made names.
pub const TOPIC_BYTES_HARD_MAX: usize = 255;
/// Longest group name.
pub const GROUP_BYTES_MAX: usize = 120;
/// Longest name of a broker or cluster.
pub const BROKER_NAME_BYTES_MAX: usize = 127;
/// Most queues of a topic on one broker; `BenchmarkTest` has 1024.
pub const QUEUES_MAX: u32 = 65_536;
/// Deepest JSON nesting taken from a peer.
pub const JSON_DEPTH_MAX: usize = 64;
/// Most bytes a compressed registration body may inflate to.
pub const INFLATED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most messages one key query gives back (`maxMsgsNumBatch`).
pub const QUERY_MESSAGES_MAX: usize = 64;
