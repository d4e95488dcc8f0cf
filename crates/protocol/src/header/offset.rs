//! Offsets: a group's progress and the bounds of a queue.

use std::borrow::Cow;

use super::field::headers;

headers! {
    /// `QUERY_CONSUMER_OFFSET` (14).
    pub struct QueryConsumerOffset<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
        set_zero_if_not_found: Option<bool> = "setZeroIfNotFound",
    }

    /// `UPDATE_CONSUMER_OFFSET` (15).
    pub struct UpdateConsumerOffset<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
        commit_offset: i64 = "commitOffset",
    }

    /// `SEARCH_OFFSET_BY_TIMESTAMP` (29).
    pub struct SearchOffset<'a> {
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
        timestamp: i64 = "timestamp",
        boundary_type: Option<Cow<'a, str>> = "boundaryType",
    }

    /// `GET_MAX_OFFSET` (30).
    pub struct GetMaxOffset<'a> {
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
        committed: bool = "committed" or true,
    }

    /// `GET_MIN_OFFSET` (31) and `GET_EARLIEST_MSG_STORETIME` (32).
    pub struct QueueHeader<'a> {
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
    }

    /// Answer that holds one offset.
    pub struct OffsetResponse {
        offset: i64 = "offset",
    }

    /// Answer that holds one point in time.
    pub struct TimestampResponse {
        timestamp: i64 = "timestamp",
    }

    /// `INVOKE_BROKER_TO_RESET_OFFSET` (222) and `RESET_CONSUMER_CLIENT_OFFSET` (220).
    pub struct ResetOffset<'a> {
        group: Cow<'a, str> = "group",
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId" or -1,
        offset: Option<i64> = "offset",
        timestamp: i64 = "timestamp" or 0,
        is_force: bool = "isForce",
    }

    /// `CLONE_GROUP_OFFSET` (314).
    pub struct CloneGroupOffset<'a> {
        src_group: Cow<'a, str> = "srcGroup",
        dest_group: Cow<'a, str> = "destGroup",
        topic: Option<Cow<'a, str>> = "topic",
        offline: bool = "offline",
    }

    /// `QUERY_CORRECTION_OFFSET` (308).
    pub struct QueryCorrectionOffset<'a> {
        filter_groups: Option<Cow<'a, str>> = "filterGroups",
        compare_group: Cow<'a, str> = "compareGroup",
        topic: Cow<'a, str> = "topic",
    }
}
