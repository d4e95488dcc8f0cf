//! Sessions of clients: members, connections, what a broker asks its clients.

use std::borrow::Cow;

use super::field::headers;

headers! {
    /// `UNREGISTER_CLIENT` (35).
    pub struct UnregisterClient<'a> {
        client_id: Cow<'a, str> = "clientID",
        producer_group: Option<Cow<'a, str>> = "producerGroup",
        consumer_group: Option<Cow<'a, str>> = "consumerGroup",
    }

    /// Requests that name one consumer group: 38, 40, 203.
    pub struct ConsumerGroupHeader<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
    }

    /// `GET_PRODUCER_CONNECTION_LIST` (204).
    pub struct ProducerGroupHeader<'a> {
        producer_group: Cow<'a, str> = "producerGroup",
    }

    /// `GET_CONSUMER_RUNNING_INFO` (307).
    pub struct GetConsumerRunningInfo<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
        client_id: Cow<'a, str> = "clientId",
        jstack_enable: bool = "jstackEnable",
    }

    /// `CONSUME_MESSAGE_DIRECTLY` (309).
    pub struct ConsumeDirectly<'a> {
        consumer_group: Cow<'a, str> = "consumerGroup",
        client_id: Option<Cow<'a, str>> = "clientId",
        msg_id: Option<Cow<'a, str>> = "msgId",
        broker_name: Option<Cow<'a, str>> = "brokerName",
        topic: Option<Cow<'a, str>> = "topic",
        topic_sys_flag: Option<i32> = "topicSysFlag",
        group_sys_flag: Option<i32> = "groupSysFlag",
    }

    /// `INVOKE_BROKER_TO_GET_CONSUMER_STATUS` (223) and `GET_CONSUMER_STATUS_FROM_CLIENT` (221).
    pub struct GetConsumerStatus<'a> {
        topic: Cow<'a, str> = "topic",
        group: Cow<'a, str> = "group",
        client_addr: Option<Cow<'a, str>> = "clientAddr",
    }
}
