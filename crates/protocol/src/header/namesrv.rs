//! NameServer requests.

use std::borrow::Cow;

use super::field::headers;

headers! {
    /// `GET_ROUTEINFO_BY_TOPIC` (105).
    pub struct GetRoute<'a> {
        topic: Cow<'a, str> = "topic",
        accept_standard_json_only: Option<bool> = "acceptStandardJsonOnly",
    }

    /// `REGISTER_BROKER` (103).
    pub struct RegisterBroker<'a> {
        broker_name: Cow<'a, str> = "brokerName",
        broker_addr: Cow<'a, str> = "brokerAddr",
        cluster_name: Cow<'a, str> = "clusterName",
        ha_server_addr: Cow<'a, str> = "haServerAddr",
        broker_id: i64 = "brokerId",
        heartbeat_timeout_millis: Option<i64> = "heartbeatTimeoutMillis",
        enable_acting_master: Option<bool> = "enableActingMaster",
        compressed: bool = "compressed",
        body_crc32: i32 = "bodyCrc32" or 0,
        zone_name: Option<Cow<'a, str>> = "__ZONE_NAME",
    }

    /// Answer to [`RegisterBroker`].
    pub struct RegisterBrokerResponse<'a> {
        ha_server_addr: Option<Cow<'a, str>> = "haServerAddr",
        master_addr: Option<Cow<'a, str>> = "masterAddr",
    }

    /// `UNREGISTER_BROKER` (104) and `QUERY_DATA_VERSION` (322).
    pub struct BrokerHeader<'a> {
        broker_name: Cow<'a, str> = "brokerName",
        broker_addr: Cow<'a, str> = "brokerAddr",
        cluster_name: Cow<'a, str> = "clusterName",
        broker_id: i64 = "brokerId",
    }

    /// Answer to `QUERY_DATA_VERSION`.
    pub struct QueryDataVersionResponse {
        changed: bool = "changed",
    }

    /// `BROKER_HEARTBEAT` (904).
    pub struct BrokerHeartbeat<'a> {
        cluster_name: Cow<'a, str> = "clusterName",
        broker_addr: Cow<'a, str> = "brokerAddr",
        broker_name: Cow<'a, str> = "brokerName",
        broker_id: Option<i64> = "brokerId",
        epoch: Option<i32> = "epoch",
        max_offset: Option<i64> = "maxOffset",
        confirm_offset: Option<i64> = "confirmOffset",
        heartbeat_timeout_mills: Option<i64> = "heartbeatTimeoutMills",
        election_priority: Option<i32> = "electionPriority",
    }

    /// `GET_BROKER_MEMBER_GROUP` (901).
    pub struct GetBrokerMemberGroup<'a> {
        cluster_name: Cow<'a, str> = "clusterName",
        broker_name: Cow<'a, str> = "brokerName",
    }

    /// `DELETE_TOPIC_IN_NAMESRV` (216).
    pub struct DeleteTopicFromNameServer<'a> {
        topic: Cow<'a, str> = "topic",
        cluster_name: Option<Cow<'a, str>> = "clusterName",
    }

    /// `GET_TOPICS_BY_CLUSTER` (224).
    pub struct GetTopicsByCluster<'a> {
        cluster: Cow<'a, str> = "cluster",
    }

    /// `WIPE_WRITE_PERM_OF_BROKER` (205) and `ADD_WRITE_PERM_OF_BROKER` (327).
    pub struct BrokerNameHeader<'a> {
        broker_name: Cow<'a, str> = "brokerName",
    }

    /// Answer to 205.
    pub struct WipeWritePermResponse {
        wipe_topic_count: i32 = "wipeTopicCount",
    }

    /// Answer to 327.
    pub struct AddWritePermResponse {
        add_topic_count: i32 = "addTopicCount",
    }

    /// `PUT_KV_CONFIG` (100).
    pub struct PutKv<'a> {
        namespace: Cow<'a, str> = "namespace",
        key: Cow<'a, str> = "key",
        value: Cow<'a, str> = "value",
    }

    /// `GET_KV_CONFIG` (101) and `DELETE_KV_CONFIG` (102).
    pub struct KvKey<'a> {
        namespace: Cow<'a, str> = "namespace",
        key: Cow<'a, str> = "key",
    }

    /// Answer to `GET_KV_CONFIG`.
    pub struct GetKvResponse<'a> {
        value: Option<Cow<'a, str>> = "value",
    }

    /// `GET_KVLIST_BY_NAMESPACE` (219).
    pub struct KvNamespace<'a> {
        namespace: Cow<'a, str> = "namespace",
    }

    /// `NOTIFY_MIN_BROKER_ID_CHANGE` (905), NameServer to broker.
    pub struct NotifyMinBrokerIdChange<'a> {
        min_broker_id: Option<i64> = "minBrokerId",
        broker_name: Option<Cow<'a, str>> = "brokerName",
        min_broker_addr: Option<Cow<'a, str>> = "minBrokerAddr",
        offline_broker_addr: Option<Cow<'a, str>> = "offlineBrokerAddr",
        ha_broker_addr: Option<Cow<'a, str>> = "haBrokerAddr",
    }
}
