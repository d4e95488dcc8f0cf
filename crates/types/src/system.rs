//! Names that RocketMQ reserves: prefixes, system topics, system groups (`TopicValidator`, `MixAll`).

/// Prefix of a group's retry topic.
pub const RETRY_PREFIX: &str = "%RETRY%";
/// Prefix of a group's dead-letter topic.
pub const DLQ_PREFIX: &str = "%DLQ%";
/// Prefix of light-weight queues.
pub const LMQ_PREFIX: &str = "%LMQ%";
/// Prefix that only system topics carry.
pub const SYSTEM_TOPIC_PREFIX: &str = "rmq_sys_";
/// Prefix that only system groups carry.
pub const SYSTEM_GROUP_PREFIX: &str = "CID_RMQ_SYS_";

/// The topic whose settings an auto-created topic inherits.
pub const AUTO_CREATE_TOPIC: &str = "TBW102";
/// Topic of the delay levels.
pub const SCHEDULE_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";
/// Topic of half messages.
pub const TRANS_HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
/// Topic of the decisions on half messages.
pub const TRANS_OP_HALF_TOPIC: &str = "RMQ_SYS_TRANS_OP_HALF_TOPIC";
/// Where half messages go that were checked too often.
pub const TRANS_CHECK_MAX_TIME_TOPIC: &str = "TRANS_CHECK_MAX_TIME_TOPIC";
/// Message traces.
pub const TRACE_TOPIC: &str = "RMQ_SYS_TRACE_TOPIC";
/// A broker's own test topic.
pub const SELF_TEST_TOPIC: &str = "SELF_TEST_TOPIC";
/// Topic of the Java benchmark.
pub const BENCHMARK_TOPIC: &str = "BenchmarkTest";
/// Events of moved offsets.
pub const OFFSET_MOVED_TOPIC: &str = "OFFSET_MOVED_EVENT";
/// Timer wheel topic.
pub const TIMER_TOPIC: &str = "rmq_sys_wheel_timer";
/// Prefix of the pop revive topic; the cluster's name follows.
pub const REVIVE_TOPIC_PREFIX: &str = "rmq_sys_REVIVE_LOG_";
/// Prefix of the topic that synchronises group members; the broker's name follows.
pub const SYNC_MEMBER_TOPIC_PREFIX: &str = "rmq_sys_SYNC_BROKER_MEMBER_";
/// Suffix of the reply topic; the cluster's name stands before it.
pub const REPLY_TOPIC_SUFFIX: &str = "_REPLY_TOPIC";

const FIXED_TOPICS: [&str; 9] = [
    AUTO_CREATE_TOPIC,
    SCHEDULE_TOPIC,
    BENCHMARK_TOPIC,
    TRANS_HALF_TOPIC,
    TRACE_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    SELF_TEST_TOPIC,
    OFFSET_MOVED_TOPIC,
];

const NO_SEND_TOPICS: [&str; 6] = [
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    SELF_TEST_TOPIC,
    OFFSET_MOVED_TOPIC,
];

const FIXED_GROUPS: [&str; 14] = [
    "DEFAULT_CONSUMER",
    "DEFAULT_PRODUCER",
    "TOOLS_CONSUMER",
    "SCHEDULE_CONSUMER",
    "FILTERSRV_CONSUMER",
    "__MONITOR_CONSUMER",
    "CLIENT_INNER_PRODUCER",
    "SELF_TEST_P_GROUP",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_ONSAPI_PULL",
    "CID_RMQ_SYS_TRANS",
];

/// Whether a topic is one of the fixed system topics or carries the system prefix.
#[must_use]
pub fn is_system_topic(topic: &str) -> bool {
    topic.starts_with(SYSTEM_TOPIC_PREFIX) || FIXED_TOPICS.contains(&topic)
}

/// Whether clients may never send to a topic, whatever its permission.
#[must_use]
pub fn is_send_denied(topic: &str) -> bool {
    NO_SEND_TOPICS.contains(&topic)
}

/// Whether a group is reserved.
#[must_use]
pub fn is_system_group(group: &str) -> bool {
    group.starts_with(SYSTEM_GROUP_PREFIX) || FIXED_GROUPS.contains(&group)
}

/// The retry topic of a group.
#[must_use]
pub fn retry_topic(group: &str) -> String {
    format!("{RETRY_PREFIX}{group}")
}

/// The dead-letter topic of a group.
#[must_use]
pub fn dlq_topic(group: &str) -> String {
    format!("{DLQ_PREFIX}{group}")
}
