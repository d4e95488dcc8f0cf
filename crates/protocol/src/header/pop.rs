//! Popping: messages out, acknowledged one by one, their invisible time changed.
//!
//! **Invariant:** fields are taken as they stand; whether a number makes sense (an offset inside
//! its queue, an invisible time above zero) is the broker's question. Batch acks have no header:
//! `pop::BatchAckRequest` is their body.

use std::borrow::Cow;

use super::field::headers;

/// `initMode` of a pop: a new group begins at the queue's first message.
pub const POP_INIT_MIN: i32 = 0;
/// `initMode` of a pop: a new group begins at the queue's last message.
pub const POP_INIT_MAX: i32 = 1;

headers! {
    /// `POP_MESSAGE` (200050). Queue −1 means every queue; a `bornTime` of 0 means now.
    pub struct PopMessage<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
        max_msg_nums: i32 = "maxMsgNums",
        invisible_time: i64 = "invisibleTime",
        poll_time: i64 = "pollTime",
        born_time: i64 = "bornTime" or 0,
        init_mode: i32 = "initMode",
        exp_type: Option<Cow<'a, str>> = "expType",
        exp: Option<Cow<'a, str>> = "exp",
        order: bool = "order",
        attempt_id: Option<Cow<'a, str>> = "attemptId",
    }

    /// Answer to [`PopMessage`] and [`PeekMessage`]; the texts are of `pop`.
    pub struct PopMessageResponse<'a> {
        pop_time: i64 = "popTime",
        invisible_time: i64 = "invisibleTime",
        revive_qid: i32 = "reviveQid",
        rest_num: i64 = "restNum",
        start_offset_info: Option<Cow<'a, str>> = "startOffsetInfo",
        msg_offset_info: Option<Cow<'a, str>> = "msgOffsetInfo",
        order_count_info: Option<Cow<'a, str>> = "orderCountInfo",
    }

    /// `PEEK_MESSAGE` (200052).
    pub struct PeekMessage<'a> {
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
        max_msg_nums: i32 = "maxMsgNums",
        consumer_group: Cow<'a, str> = "consumerGroup",
    }

    /// `ACK_MESSAGE` (200051). `extraInfo` is the handle.
    pub struct AckMessage<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
        extra_info: Cow<'a, str> = "extraInfo",
        offset: i64 = "offset",
    }

    /// `CHANGE_MESSAGE_INVISIBLETIME` (200053).
    pub struct ChangeInvisibleTime<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
        extra_info: Cow<'a, str> = "extraInfo",
        offset: i64 = "offset",
        invisible_time: i64 = "invisibleTime",
    }

    /// Answer to [`ChangeInvisibleTime`]: what the new handle is made of.
    pub struct ChangeInvisibleTimeResponse {
        pop_time: i64 = "popTime",
        invisible_time: i64 = "invisibleTime",
        revive_qid: i32 = "reviveQid",
    }

    /// `NOTIFICATION` (200054): is there something to pop?
    pub struct Notification<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
        poll_time: i64 = "pollTime",
        born_time: i64 = "bornTime" or 0,
        order: bool = "order",
        attempt_id: Option<Cow<'a, str>> = "attemptId",
    }

    /// Answer to [`Notification`].
    pub struct NotificationResponse {
        has_msg: bool = "hasMsg",
        polling_full: bool = "pollingFull",
    }

    /// `POLLING_INFO` (200055).
    pub struct PollingInfo<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
        topic: Cow<'a, str> = "topic",
        queue_id: i32 = "queueId",
    }

    /// Answer to [`PollingInfo`]: pops that wait for this group, topic and queue.
    pub struct PollingInfoResponse {
        polling_num: i32 = "pollingNum",
    }
}
