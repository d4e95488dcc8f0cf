//! Statistics and what they answer with.

use std::borrow::Cow;

use super::field::headers;

headers! {
    /// `GET_CONSUME_STATS` (208).
    pub struct GetConsumeStats<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
        topic: Option<Cow<'a, str>> = "topic",
        topic_list: Option<Cow<'a, str>> = "topicList",
    }

    /// `GET_BROKER_CONSUME_STATS` (317).
    pub struct GetBrokerConsumeStats {
        is_order: bool = "isOrder",
    }

    /// `VIEW_BROKER_STATS_DATA` (315).
    pub struct ViewBrokerStats<'a> {
        stats_name: Cow<'a, str> = "statsName",
        stats_key: Cow<'a, str> = "statsKey",
    }

    /// `QUERY_CONSUME_TIME_SPAN` (303).
    pub struct QueryConsumeTimeSpan<'a> {
        topic: Cow<'a, str> = "topic",
        group: Cow<'a, str> = "group",
    }

    /// `QUERY_SUBSCRIPTION_BY_CONSUMER` (345).
    pub struct QuerySubscription<'a> {
        group: Cow<'a, str> = "group",
        topic: Option<Cow<'a, str>> = "topic",
    }
}
