//! Sending: plain, short-named, reply, send-back, recall.

use std::borrow::Cow;

use super::field::headers;

headers! {
    /// `SEND_MESSAGE` (10) and `SEND_REPLY_MESSAGE` (324).
    pub struct SendMessageV1<'a> {
        producer_group: Cow<'a, str> = "producerGroup",
        topic: Cow<'a, str> = "topic",
        default_topic: Cow<'a, str> = "defaultTopic",
        default_topic_queue_nums: i32 = "defaultTopicQueueNums",
        queue_id: i32 = "queueId",
        sys_flag: i32 = "sysFlag",
        born_timestamp: i64 = "bornTimestamp",
        flag: i32 = "flag",
        properties: Option<Cow<'a, str>> = "properties",
        reconsume_times: Option<i32> = "reconsumeTimes",
        unit_mode: bool = "unitMode",
        max_reconsume_times: Option<i32> = "maxReconsumeTimes",
        batch: bool = "batch",
        broker_name: Option<Cow<'a, str>> = "bname",
    }

    /// `SEND_MESSAGE_V2` (310), `SEND_BATCH_MESSAGE` (320), `SEND_REPLY_MESSAGE_V2` (325).
    pub struct SendMessageV2<'a> {
        producer_group: Cow<'a, str> = "a",
        topic: Cow<'a, str> = "b",
        default_topic: Cow<'a, str> = "c",
        default_topic_queue_nums: i32 = "d",
        queue_id: i32 = "e",
        sys_flag: i32 = "f",
        born_timestamp: i64 = "g",
        flag: i32 = "h",
        properties: Option<Cow<'a, str>> = "i",
        reconsume_times: Option<i32> = "j",
        unit_mode: bool = "k",
        max_reconsume_times: Option<i32> = "l",
        batch: bool = "m",
        broker_name: Option<Cow<'a, str>> = "n",
    }

    /// Answer to every kind of send.
    pub struct SendMessageResponse<'a> {
        msg_id: Cow<'a, str> = "msgId",
        queue_id: i32 = "queueId",
        queue_offset: i64 = "queueOffset",
        transaction_id: Option<Cow<'a, str>> = "transactionId",
        batch_uniq_id: Option<Cow<'a, str>> = "batchUniqId",
        recall_handle: Option<Cow<'a, str>> = "recallHandle",
    }

    /// `PUSH_REPLY_MESSAGE_TO_CLIENT` (326), broker to requesting producer.
    pub struct PushReplyMessage<'a> {
        producer_group: Cow<'a, str> = "producerGroup",
        topic: Cow<'a, str> = "topic",
        default_topic: Cow<'a, str> = "defaultTopic",
        default_topic_queue_nums: i32 = "defaultTopicQueueNums",
        queue_id: i32 = "queueId",
        sys_flag: i32 = "sysFlag",
        born_timestamp: i64 = "bornTimestamp",
        flag: i32 = "flag",
        properties: Option<Cow<'a, str>> = "properties",
        reconsume_times: Option<i32> = "reconsumeTimes",
        unit_mode: bool = "unitMode",
        born_host: Cow<'a, str> = "bornHost",
        store_host: Cow<'a, str> = "storeHost",
        store_timestamp: i64 = "storeTimestamp",
    }

    /// `CONSUMER_SEND_MSG_BACK` (36).
    pub struct SendBack<'a> {
        offset: i64 = "offset",
        group: Cow<'a, str> = "group",
        delay_level: i32 = "delayLevel",
        origin_msg_id: Option<Cow<'a, str>> = "originMsgId",
        origin_topic: Option<Cow<'a, str>> = "originTopic",
        unit_mode: bool = "unitMode",
        max_reconsume_times: Option<i32> = "maxReconsumeTimes",
    }

    /// `END_TRANSACTION` (37).
    pub struct EndTransaction<'a> {
        topic: Option<Cow<'a, str>> = "topic",
        producer_group: Cow<'a, str> = "producerGroup",
        tran_state_table_offset: i64 = "tranStateTableOffset",
        commit_log_offset: i64 = "commitLogOffset",
        commit_or_rollback: i32 = "commitOrRollback",
        from_transaction_check: bool = "fromTransactionCheck",
        msg_id: Cow<'a, str> = "msgId",
        transaction_id: Option<Cow<'a, str>> = "transactionId",
    }

    /// `RECALL_MESSAGE` (370).
    pub struct RecallMessage<'a> {
        producer_group: Option<Cow<'a, str>> = "producerGroup",
        topic: Cow<'a, str> = "topic",
        recall_handle: Cow<'a, str> = "recallHandle",
    }
}

impl<'a> From<SendMessageV1<'a>> for SendMessageV2<'a> {
    fn from(v1: SendMessageV1<'a>) -> Self {
        Self {
            producer_group: v1.producer_group,
            topic: v1.topic,
            default_topic: v1.default_topic,
            default_topic_queue_nums: v1.default_topic_queue_nums,
            queue_id: v1.queue_id,
            sys_flag: v1.sys_flag,
            born_timestamp: v1.born_timestamp,
            flag: v1.flag,
            properties: v1.properties,
            reconsume_times: v1.reconsume_times,
            unit_mode: v1.unit_mode,
            max_reconsume_times: v1.max_reconsume_times,
            batch: v1.batch,
            broker_name: v1.broker_name,
        }
    }
}
