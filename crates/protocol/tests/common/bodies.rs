//! The bodies of the fixtures as our structs: the values that e2e/golden sets in Java.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use rmq_protocol::{
    body::{
        BrokerData, BrokerMemberGroup, BrokerMemberGroupResponse, BrokerReplicasInfo,
        BrokerStatsData, BrokerStatsItem, CheckClientRequest, ClusterInfo, Connection,
        ConsumeFromWhere, ConsumeMessageDirectlyResult, ConsumeQueueData, ConsumeResult,
        ConsumeStats, ConsumeStatsList, ConsumeStatus, ConsumeTimeSpan, ConsumeType,
        ConsumerConnection, ConsumerData, ConsumerIdList, ConsumerOffsets, ConsumerRunningInfo,
        ConsumerStatusBody, CorrectionOffsets, CustomizedRetryPolicy, DataVersion,
        ElectMasterResponse, EpochEntry, EpochEntryCache, ExponentialRetryPolicy, GroupConfigList,
        GroupForbidden, GroupList, GroupRetryPolicy, GroupRetryPolicyType, HaClientInfo,
        HaConnectionInfo, HaRuntimeInfo, HeartbeatData, KvTable, LockBatchRequest,
        LockBatchResponse, LogicQueueMappingItem, MessageModel, MessageQueue,
        MessageQueueAssignment, MessageRequestMode, MessageRequestModes, OffsetWrapper,
        ProcessQueueInfo, ProducerConnection, ProducerData, ProducerInfo, ProducerTable,
        QueryAssignmentRequest, QueryAssignmentResponse, QueryConsumeQueueResponse,
        QuerySubscriptionResponse, QueueData, QueueTimeSpan, RegisterBrokerBody, ReplicaIdentity,
        ReplicasInfo, ResetOffsetBody, ResetOffsetBodyForC, SetMessageRequestMode,
        SimpleSubscription, SubscriptionData, SubscriptionGroupConfig, SubscriptionGroupWrapper,
        SyncStateSet, TopicConfig, TopicConfigAndQueueMapping, TopicConfigFile, TopicConfigList,
        TopicConfigWrapper, TopicList, TopicOffset, TopicQueueMappingDetail, TopicQueueMappingInfo,
        TopicRouteData, TopicStatsTable,
    },
    json::JsonError,
};

/// One body: our bytes, and a check that given bytes read as the same value.
pub struct Body {
    /// Name in the fixtures, after `body.`.
    pub name: &'static str,
    /// What we write.
    pub ours: Vec<u8>,
    /// Panics unless the bytes read as the value.
    pub check: Check,
}

/// A check of given bytes.
pub type Check = Box<dyn Fn(&[u8])>;

type Write<T> = fn(&T) -> Vec<u8>;
type Read<T> = fn(&[u8]) -> Result<T, JsonError>;

fn body<T: PartialEq + Debug + 'static>(
    name: &'static str,
    value: T,
    write: Write<T>,
    read: Read<T>,
) -> Body {
    let ours = write(&value);
    let check = Box::new(move |bytes: &[u8]| {
        assert_eq!(read(bytes).expect("the body is readable"), value, "{name}");
    });
    Body { name, ours, check }
}

macro_rules! body {
    ($type:ident, $value:expr) => {
        body(stringify!($type), $value, $type::to_json, $type::from_json)
    };
    ($name:literal, $type:ident, $value:expr) => {
        body($name, $value, $type::to_json, $type::from_json)
    };
}

/// Every body of the fixtures but the read-only and the compressed one.
pub fn all() -> Vec<Body> {
    let mut list = routes();
    list.extend(topics());
    list.extend(clients());
    list.extend(queues());
    list.extend(groups());
    list.extend(connections());
    list.extend(stats());
    list.extend(offsets());
    list.extend(inspection());
    list.extend(replicas());
    list
}

fn one<K: Ord, V>(key: K, value: V) -> BTreeMap<K, V> {
    BTreeMap::from([(key, value)])
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn broker() -> BrokerData {
    BrokerData {
        broker_addrs: BTreeMap::from([(0, text("10.0.0.1:10911")), (2, text("10.0.0.2:10911"))]),
        broker_name: text("broker-a"),
        cluster: text("DefaultCluster"),
        enable_acting_master: false,
        zone_name: Some(text("zone-1")),
    }
}

/// The route of the fixtures.
pub fn route() -> TopicRouteData {
    TopicRouteData {
        broker_datas: vec![broker()],
        filter_server_table: BTreeMap::new(),
        order_topic_conf: Some(text("broker-a:4")),
        queue_datas: vec![QueueData {
            broker_name: text("broker-a"),
            perm: 6,
            read_queue_nums: 8,
            topic_sys_flag: 1,
            write_queue_nums: 4,
        }],
        topic_queue_mapping_by_broker: None,
    }
}

fn members() -> BrokerMemberGroup {
    BrokerMemberGroup {
        broker_addrs: one(1, text("10.0.0.1:10911")),
        broker_name: text("broker-a"),
        cluster: text("DefaultCluster"),
    }
}

/// The route of the fixtures, with static topics.
pub fn mapped_route() -> TopicRouteData {
    TopicRouteData {
        topic_queue_mapping_by_broker: Some(one(text("broker-a"), mapping_info())),
        ..route()
    }
}

fn routes() -> Vec<Body> {
    vec![
        body!(TopicRouteData, route()),
        body!("TopicRouteData.standard", TopicRouteData, route()),
        body!("TopicRouteData.mapping", TopicRouteData, mapped_route()),
        body!(
            ClusterInfo,
            ClusterInfo {
                broker_addr_table: one(text("broker-a"), broker()),
                cluster_addr_table: one(text("DefaultCluster"), BTreeSet::from([text("broker-a")])),
            }
        ),
        body!(
            BrokerMemberGroupResponse,
            BrokerMemberGroupResponse {
                broker_member_group: Some(members()),
            }
        ),
    ]
}

fn mapping_info() -> TopicQueueMappingInfo {
    TopicQueueMappingInfo {
        bname: Some(text("broker-a")),
        curr_id_map: one(0, 1),
        epoch: 5,
        topic: Some(text("TopicTest")),
        total_queues: 4,
        ..TopicQueueMappingInfo::default()
    }
}

fn mapping_detail() -> TopicQueueMappingDetail {
    TopicQueueMappingDetail {
        bname: Some(text("broker-a")),
        epoch: 5,
        hosted_queues: one(
            0,
            vec![LogicQueueMappingItem {
                bname: Some(text("broker-a")),
                generation: 1,
                logic_offset: 100,
                queue_id: 3,
                ..LogicQueueMappingItem::default()
            }],
        ),
        topic: Some(text("TopicTest")),
        total_queues: 4,
        ..TopicQueueMappingDetail::default()
    }
}

fn version() -> DataVersion {
    DataVersion {
        counter: 3_000_000_000,
        state_version: 2,
        timestamp: 1_700_000_000_000,
    }
}

fn topic(name: &str) -> TopicConfig {
    TopicConfig {
        attributes: one(text("message.type"), text("NORMAL")),
        order: true,
        read_queue_nums: 8,
        topic_sys_flag: 1,
        write_queue_nums: 4,
        ..TopicConfig::named(name)
    }
}

/// The registration of the fixtures.
pub fn registration() -> RegisterBrokerBody {
    RegisterBrokerBody {
        filter_server_list: vec![text("10.0.0.1:1234")],
        topic_config_serialize_wrapper: wrapper(),
    }
}

fn wrapper() -> TopicConfigWrapper {
    let plain = TopicConfig {
        attributes: BTreeMap::new(),
        ..topic("A")
    };
    TopicConfigWrapper {
        data_version: version(),
        mapping_data_version: version(),
        topic_config_table: BTreeMap::from([
            (text("A"), plain),
            (text("TopicTest"), topic("TopicTest")),
        ]),
        topic_queue_mapping_detail_map: one(text("TopicTest"), mapping_detail()),
        topic_queue_mapping_info_map: one(text("TopicTest"), mapping_info()),
    }
}

fn topics() -> Vec<Body> {
    vec![
        body!(DataVersion, version()),
        body!(TopicConfig, topic("TopicTest")),
        body!(
            TopicConfigFile,
            TopicConfigFile {
                data_version: version(),
                topic_config_table: one(text("TopicTest"), topic("TopicTest")),
            }
        ),
        body!(
            TopicConfigAndQueueMapping,
            TopicConfigAndQueueMapping {
                mapping_detail: Some(mapping_detail()),
                ..TopicConfigAndQueueMapping::from(topic("TopicTest"))
            }
        ),
        body!(TopicConfigWrapper, wrapper()),
        body!(RegisterBrokerBody, registration()),
        body!(
            TopicConfigList,
            TopicConfigList {
                topic_config_list: vec![TopicConfig {
                    read_queue_nums: 8,
                    write_queue_nums: 8,
                    ..TopicConfig::named("TopicTest")
                }],
            }
        ),
    ]
}

const CLIENT: &str = "10.0.0.9@1#2";

fn subscription() -> SubscriptionData {
    SubscriptionData {
        code_set: BTreeSet::from([2_598_919, 2_598_920]),
        sub_string: text("TagA || TagB"),
        sub_version: 1_700_000_000_001,
        tags_set: BTreeSet::from([text("TagA"), text("TagB")]),
        topic: text("TopicTest"),
        ..SubscriptionData::default()
    }
}

fn clients() -> Vec<Body> {
    vec![
        body!(
            HeartbeatData,
            HeartbeatData {
                client_id: text(CLIENT),
                consumer_data_set: vec![ConsumerData {
                    consume_from_where: ConsumeFromWhere::FirstOffset,
                    consume_type: ConsumeType::ConsumePassively,
                    group_name: text("cg"),
                    message_model: MessageModel::Clustering,
                    subscription_data_set: vec![subscription()],
                    unit_mode: false,
                }],
                heartbeat_fingerprint: -5,
                producer_data_set: vec![ProducerData {
                    group_name: text("pg")
                }],
                without_sub: false,
            }
        ),
        body!(
            CheckClientRequest,
            CheckClientRequest {
                client_id: text(CLIENT),
                group: text("cg"),
                namespace: Some(text("ns")),
                subscription_data: Some(subscription()),
            }
        ),
        body!(
            ConsumerIdList,
            ConsumerIdList {
                consumer_id_list: vec![text(CLIENT), text("10.0.0.9@1#3")],
            }
        ),
    ]
}

fn queue(id: i32) -> MessageQueue {
    MessageQueue {
        broker_name: text("broker-a"),
        queue_id: id,
        topic: text("TopicTest"),
    }
}

fn lock(only_this_broker: bool) -> LockBatchRequest {
    LockBatchRequest {
        client_id: text(CLIENT),
        consumer_group: text("cg"),
        mq_set: vec![queue(1)],
        only_this_broker,
    }
}

fn queues() -> Vec<Body> {
    let mode = SetMessageRequestMode {
        consumer_group: text("cg"),
        mode: MessageRequestMode::Pop,
        pop_share_queue_num: 2,
        topic: text("TopicTest"),
    };
    let share = MessageQueueAssignment {
        attachments: None,
        message_queue: queue(-1),
        mode: MessageRequestMode::Pop,
    };
    vec![
        body!(LockBatchRequest, lock(true)),
        body!("UnlockBatchRequest", LockBatchRequest, lock(false)),
        body!(
            LockBatchResponse,
            LockBatchResponse {
                lock_ok_mq_set: vec![queue(1)]
            }
        ),
        body!(
            QueryAssignmentRequest,
            QueryAssignmentRequest {
                client_id: text(CLIENT),
                consumer_group: text("cg"),
                message_model: MessageModel::Clustering,
                strategy_name: text("AVG"),
                topic: text("TopicTest"),
            }
        ),
        body!(
            QueryAssignmentResponse,
            QueryAssignmentResponse {
                message_queue_assignments: Some(vec![share]),
            }
        ),
        body!(
            "QueryAssignmentResponse.none",
            QueryAssignmentResponse,
            QueryAssignmentResponse {
                message_queue_assignments: None
            }
        ),
        body!(SetMessageRequestMode, mode.clone()),
        body!(
            MessageRequestModes,
            MessageRequestModes {
                message_request_mode_map: one(text("TopicTest"), one(text("cg"), mode)),
            }
        ),
    ]
}

fn groups() -> Vec<Body> {
    let plain = SubscriptionGroupConfig::named("cg");
    let full = SubscriptionGroupConfig {
        attributes: one(text("k"), text("v")),
        consume_enable: false,
        consume_message_orderly: true,
        group_retry_policy: GroupRetryPolicy {
            customized_retry_policy: Some(CustomizedRetryPolicy {
                next: vec![1000, 2000],
            }),
            exponential_retry_policy: Some(ExponentialRetryPolicy {
                initial: 1000,
                max: 60_000,
                multiplier: 3,
            }),
            kind: GroupRetryPolicyType::Exponential,
        },
        retry_max_times: 3,
        subscription_data_set: Some(vec![SimpleSubscription {
            expression: text("*"),
            expression_type: text("TAG"),
            topic: text("TopicTest"),
            version: 7,
        }]),
        ..SubscriptionGroupConfig::named("cg2")
    };
    vec![
        body!(SubscriptionGroupConfig, plain.clone()),
        body!(
            "SubscriptionGroupConfig.full",
            SubscriptionGroupConfig,
            full
        ),
        body!(
            SubscriptionGroupWrapper,
            SubscriptionGroupWrapper {
                data_version: version(),
                forbidden_table: one(text("cg"), one(text("TopicTest"), 2)),
                subscription_group_table: one(text("cg"), plain.clone()),
            }
        ),
        body!(
            GroupConfigList,
            GroupConfigList {
                group_config_list: vec![plain]
            }
        ),
        body!(
            GroupForbidden,
            GroupForbidden {
                group: text("cg"),
                readable: Some(false),
                topic: text("TopicTest"),
            }
        ),
        body!(
            KvTable,
            KvTable {
                table: one(text("TopicTest"), text("broker-a:4"))
            }
        ),
        body!(
            TopicList,
            TopicList {
                broker_addr: None,
                topic_list: BTreeSet::from([text("TopicTest")]),
            }
        ),
        body!(
            "TopicList.broker",
            TopicList,
            TopicList {
                broker_addr: Some(text("10.0.0.1:10911")),
                topic_list: BTreeSet::from([text("DefaultCluster")]),
            }
        ),
        body!(
            GroupList,
            GroupList {
                group_list: BTreeSet::from([text("cg")])
            }
        ),
    ]
}

fn connections() -> Vec<Body> {
    let connection = Connection {
        client_addr: text("10.0.0.9:40000"),
        client_id: text(CLIENT),
        language: text("JAVA"),
        version: 479,
    };
    vec![
        body!(
            ConsumerConnection,
            ConsumerConnection {
                connection_set: vec![connection.clone()],
                consume_from_where: ConsumeFromWhere::Timestamp,
                consume_type: ConsumeType::ConsumeActively,
                message_model: MessageModel::Broadcasting,
                subscription_table: one(text("TopicTest"), subscription()),
            }
        ),
        body!(
            ProducerConnection,
            ProducerConnection {
                connection_set: vec![connection]
            }
        ),
        body!(
            ProducerTable,
            ProducerTable {
                data: one(
                    text("pg"),
                    vec![ProducerInfo {
                        client_id: text(CLIENT),
                        language: text("GO"),
                        last_update_timestamp: 1_700_000_000_000,
                        remote_ip: text("10.0.0.9:40000"),
                        version: 317,
                    }]
                ),
            }
        ),
    ]
}

fn stats() -> Vec<Body> {
    let consume = ConsumeStats {
        consume_tps: 1.5,
        offset_table: one(
            queue(1),
            OffsetWrapper {
                broker_offset: 20,
                consumer_offset: 10,
                last_timestamp: 1_700_000_000_000,
                pull_offset: 12,
            },
        ),
    };
    vec![
        body!(ConsumeStats, consume.clone()),
        body!(
            ConsumeStatsList,
            ConsumeStatsList {
                broker_addr: text("10.0.0.1:10911"),
                consume_stats_list: vec![one(text("cg"), vec![consume])],
                total_diff: 10,
                total_inflight_diff: 2,
            }
        ),
        body!(
            TopicStatsTable,
            TopicStatsTable {
                offset_table: one(
                    queue(1),
                    TopicOffset {
                        last_update_timestamp: 1_700_000_000_000,
                        max_offset: 5_000_000_000,
                        min_offset: 1,
                    }
                ),
                topic_put_tps: 0.25,
            }
        ),
        body!(
            BrokerStatsData,
            BrokerStatsData {
                stats_minute: BrokerStatsItem {
                    avgpt: 0.5,
                    sum: 60,
                    tps: 1.0
                },
                ..BrokerStatsData::default()
            }
        ),
        body!(
            ConsumeTimeSpan,
            ConsumeTimeSpan {
                consume_time_span_set: vec![QueueTimeSpan {
                    consume_time_stamp: 5,
                    delay_time: 4,
                    max_time_stamp: 9,
                    message_queue: queue(1),
                    min_time_stamp: 1,
                }],
            }
        ),
    ]
}

fn offsets() -> Vec<Body> {
    let reset = ResetOffsetBody {
        offset_table: one(queue(1), 42),
    };
    vec![
        body!(
            ConsumerOffsets,
            ConsumerOffsets {
                data_version: version(),
                offset_table: one(text("TopicTest@cg"), one(1, 42)),
                ..ConsumerOffsets::default()
            }
        ),
        body!(
            CorrectionOffsets,
            CorrectionOffsets {
                correction_offsets: one(1, 42)
            }
        ),
        body!(ResetOffsetBodyForC, ResetOffsetBodyForC::from(&reset)),
        body!(ResetOffsetBody, reset),
        body!(
            ConsumerStatusBody,
            ConsumerStatusBody {
                consumer_table: one(text(CLIENT), one(queue(2), 43)),
                message_queue_table: one(queue(1), 42),
            }
        ),
    ]
}

fn inspection() -> Vec<Body> {
    vec![
        body!(
            ConsumeMessageDirectlyResult,
            ConsumeMessageDirectlyResult {
                auto_commit: false,
                consume_result: Some(ConsumeResult::Later),
                order: true,
                remark: Some(text("later")),
                spent_time_mills: 12,
            }
        ),
        body!(
            QueryConsumeQueueResponse,
            QueryConsumeQueueResponse {
                filter_data: Some(text("f")),
                max_queue_index: 2,
                min_queue_index: 1,
                queue_data: Some(vec![ConsumeQueueData {
                    eval: true,
                    msg: Some(text("m")),
                    physic_offset: 4096,
                    physic_size: 100,
                    tags_code: 2_598_919,
                    ..ConsumeQueueData::default()
                }]),
                subscription_data: Some(subscription()),
            }
        ),
        body!(
            QuerySubscriptionResponse,
            QuerySubscriptionResponse {
                group: text("cg"),
                subscription_data: Some(subscription()),
                topic: text("TopicTest"),
            }
        ),
    ]
}

/// What the client of the fixtures says of itself; we only read it.
pub fn running_info() -> ConsumerRunningInfo {
    ConsumerRunningInfo {
        jstack: Some(text("at a.b")),
        mq_table: one(
            queue(1),
            ProcessQueueInfo {
                cached_msg_size_in_mib: 3,
                commit_offset: 42,
                locked: true,
                ..ProcessQueueInfo::default()
            },
        ),
        properties: one(text("PROP_CLIENT_VERSION"), text("V5_5_0")),
        status_table: one(
            text("TopicTest"),
            ConsumeStatus {
                consume_failed_msgs: 7,
                consume_ok_tps: 2.5,
                pull_rt: 1.5,
                ..ConsumeStatus::default()
            },
        ),
        subscription_set: vec![subscription()],
        ..ConsumerRunningInfo::default()
    }
}

fn replicas() -> Vec<Body> {
    vec![
        body!(
            SyncStateSet,
            SyncStateSet {
                sync_state_set: BTreeSet::from([1, 2]),
                sync_state_set_epoch: 3,
            }
        ),
        body!(
            ElectMasterResponse,
            ElectMasterResponse {
                broker_member_group: Some(members()),
                sync_state_set: BTreeSet::from([1]),
            }
        ),
        body!(
            BrokerReplicasInfo,
            BrokerReplicasInfo {
                replicas_info_table: one(
                    text("broker-a"),
                    ReplicasInfo {
                        in_sync_replicas: vec![ReplicaIdentity {
                            alive: true,
                            broker_address: text("10.0.0.1:10911"),
                            broker_id: 1,
                            broker_name: text("broker-a"),
                        }],
                        master_address: Some(text("10.0.0.1:10911")),
                        master_broker_id: Some(1),
                        master_epoch: 4,
                        not_in_sync_replicas: Vec::new(),
                        sync_state_set_epoch: 5,
                    }
                ),
            }
        ),
        body!(
            EpochEntryCache,
            EpochEntryCache {
                broker_id: 1,
                broker_name: text("broker-a"),
                cluster_name: text("DefaultCluster"),
                epoch_list: vec![
                    EpochEntry {
                        end_offset: 100,
                        epoch: 1,
                        start_offset: 0
                    },
                    EpochEntry {
                        end_offset: i64::MAX,
                        epoch: 2,
                        start_offset: 100
                    },
                ],
                max_offset: 250,
            }
        ),
        body!(
            HaRuntimeInfo,
            HaRuntimeInfo {
                ha_client_runtime_info: Some(HaClientInfo {
                    master_addr: text("10.0.0.1:10912"),
                    max_offset: 7,
                    ..HaClientInfo::default()
                }),
                ha_connection_info: vec![HaConnectionInfo {
                    addr: text("10.0.0.2:1"),
                    diff: 100,
                    in_sync: true,
                    slave_ack_offset: 900,
                    transfer_from_where: 890,
                    transferred_byte_in_second: 5,
                }],
                in_sync_slave_nums: 1,
                master: true,
                master_commit_log_max_offset: 1000,
            }
        ),
    ]
}
