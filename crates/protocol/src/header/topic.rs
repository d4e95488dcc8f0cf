//! Topics on a broker.

use std::borrow::Cow;

use super::field::headers;

headers! {
    /// `UPDATE_AND_CREATE_TOPIC` (17).
    pub struct CreateTopic<'a> {
        topic: Cow<'a, str> = "topic",
        default_topic: Cow<'a, str> = "defaultTopic",
        read_queue_nums: i32 = "readQueueNums",
        write_queue_nums: i32 = "writeQueueNums",
        perm: i32 = "perm",
        topic_filter_type: Cow<'a, str> = "topicFilterType",
        topic_sys_flag: Option<i32> = "topicSysFlag",
        order: bool = "order",
        attributes: Option<Cow<'a, str>> = "attributes",
        force: Option<bool> = "force",
    }

    /// Requests that name one topic: 105 (with the next), 202, 215, 217, 300, 351.
    pub struct TopicHeader<'a> {
        topic: Cow<'a, str> = "topic",
    }

    /// `GET_ALL_TOPIC_CONFIG` (21).
    pub struct GetAllTopics<'a> {
        topic_seq: i32 = "topicSeq" or 0,
        data_version: Option<Cow<'a, str>> = "dataVersion",
        max_topic_num: Option<i32> = "maxTopicNum",
    }
}
