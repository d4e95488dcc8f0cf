//! Pulling messages and looking them up.

use std::borrow::Cow;

use super::field::headers;

/// Flag of a pull: store `commitOffset` as the group's progress.
pub const PULL_COMMIT_OFFSET: i32 = 1;
/// Flag of a pull: wait for a message when there is none.
pub const PULL_SUSPEND: i32 = 2;
/// Flag of a pull: the filter expression stands in this header.
pub const PULL_SUBSCRIPTION: i32 = 4;
/// Flag of a pull: class filter, not supported.
pub const PULL_CLASS_FILTER: i32 = 8;
/// Flag of a pull: sent by a lite pull consumer.
pub const PULL_LITE: i32 = 16;

headers! {
    /// `PULL_MESSAGE` (11) and `LITE_PULL_MESSAGE` (361).
    pub struct PullMessage<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
        queue_offset: i64 = "queueOffset",
        max_msg_nums: i32 = "maxMsgNums",
        sys_flag: i32 = "sysFlag",
        commit_offset: i64 = "commitOffset",
        suspend_timeout_millis: i64 = "suspendTimeoutMillis",
        subscription: Option<Cow<'a, str>> = "subscription",
        sub_version: i64 = "subVersion",
        expression_type: Option<Cow<'a, str>> = "expressionType",
        max_msg_bytes: Option<i32> = "maxMsgBytes",
        request_source: Option<i32> = "requestSource",
        proxy_forward_client_id: Option<Cow<'a, str>> = "proxyFrowardClientId",
    }

    /// Answer to a pull.
    pub struct PullMessageResponse {
        suggest_which_broker_id: i64 = "suggestWhichBrokerId",
        next_begin_offset: i64 = "nextBeginOffset",
        min_offset: i64 = "minOffset",
        max_offset: i64 = "maxOffset",
        offset_delta: Option<i64> = "offsetDelta",
        topic_sys_flag: Option<i32> = "topicSysFlag",
        group_sys_flag: Option<i32> = "groupSysFlag",
        forbidden_type: Option<i32> = "forbiddenType",
    }

    /// `VIEW_MESSAGE_BY_ID` (33).
    pub struct ViewMessage<'a> {
        topic: Option<Cow<'a, str>> = "topic",
        offset: i64 = "offset",
    }

    /// `QUERY_MESSAGE` (12).
    pub struct QueryMessage<'a> {
        topic: Cow<'a, str> = "topic",
        key: Cow<'a, str> = "key",
        max_num: i32 = "maxNum",
        begin_timestamp: i64 = "beginTimestamp",
        end_timestamp: i64 = "endTimestamp",
    }

    /// Answer to [`QueryMessage`].
    pub struct QueryMessageResponse {
        index_last_update_timestamp: i64 = "indexLastUpdateTimestamp",
        index_last_update_phyoffset: i64 = "indexLastUpdatePhyoffset",
    }

    /// `QUERY_CONSUME_QUEUE` (321).
    pub struct QueryConsumeQueue<'a> {
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
        index: i64 = "index" or 0,
        count: i32 = "count" or 0,
        consumer_group: Option<Cow<'a, str>> = "consumerGroup",
    }
}

impl<'a> PullMessage<'a> {
    /// A pull of up to `max` messages of every tag that waits for nothing and commits nothing.
    #[must_use]
    pub fn of_all(group: &'a str, topic: &'a str, queue_id: i32, offset: i64, max: i32) -> Self {
        Self {
            consumer_group: group.into(),
            topic: topic.into(),
            queue_id,
            queue_offset: offset,
            max_msg_nums: max,
            sys_flag: PULL_SUBSCRIPTION,
            commit_offset: 0,
            suspend_timeout_millis: 0,
            subscription: Some("*".into()),
            sub_version: 0,
            expression_type: Some("TAG".into()),
            max_msg_bytes: None,
            request_source: None,
            proxy_forward_client_id: None,
        }
    }
}
