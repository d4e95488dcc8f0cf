//! The table: every key that means something here, its type, default and how it may change.

use super::value::{BrokerRole, FlushDiskType, Int, RequestMode, Value, ValueError};

/// When a change of a key counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// At once, also over the wire.
    Live,
    /// With the next start, from the file only.
    Restart,
}

/// One key of the table.
#[derive(Clone, Copy, Debug)]
pub struct KeyInfo {
    /// Java's name.
    pub name: &'static str,
    /// When a change counts.
    pub change: Change,
    /// What it does.
    pub doc: &'static str,
}

macro_rules! settings {
    ($( $change:ident $field:ident: $type:ty = $default:expr, $key:literal, $doc:literal; )*) => {
        /// All keys with their values.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $( #[doc = $doc] pub $field: $type, )*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl Settings {
            /// Every key, in the order of this file.
            pub const KEYS: &'static [KeyInfo] = &[
                $( KeyInfo { name: $key, change: Change::$change, doc: $doc }, )*
            ];

            /// Sets a key of the table from its text. `None`: no such key.
            pub(super) fn set(&mut self, key: &str, text: &str) -> Option<Result<(), ValueError>> {
                match key {
                    $( $key => Some(parse($key, text).map(|value| self.$field = value)), )*
                    _ => None,
                }
            }

            /// All keys with their values as text.
            #[must_use]
            pub fn entries(&self) -> Vec<(&'static str, String)> {
                vec![ $( ($key, self.$field.render()), )* ]
            }
        }
    };
}

fn parse<T: Value>(key: &'static str, text: &str) -> Result<T, ValueError> {
    T::parse(text.trim()).ok_or_else(|| ValueError {
        key,
        expected: T::expected(),
        found: text.chars().take(64).collect(),
    })
}

const fn int<const MIN: i64, const MAX: i64>(value: i64) -> Int<MIN, MAX> {
    Int::literal(value)
}

type Port = Int<0, 65_535>;
type Percent = Int<1, 100>;
type Millis = Int<1, 86_400_000>;
type Bytes32 = Int<1, 2_147_483_647>;

settings! {
    Restart broker_cluster_name: String = "DefaultCluster".to_owned(), "brokerClusterName", "Cluster this broker belongs to.";
    Restart broker_name: String = String::new(), "brokerName", "Name of the broker group; the host's name when empty.";
    Restart config_black_list: String = "configBlackList;brokerConfigPath".to_owned(), "configBlackList", "Keys that cannot be changed over the wire, separated by semicolons.";
    Restart broker_id: Int<0, { i64::MAX }> = int(0), "brokerId", "0 is the master.";
    Restart broker_role: BrokerRole = BrokerRole::AsyncMaster, "brokerRole", "Role in the group.";
    Live namesrv_addr: String = String::new(), "namesrvAddr", "NameServers, separated by semicolons.";
    Restart broker_ip1: String = String::new(), "brokerIP1", "Address that clients are told.";
    Restart broker_ip2: String = String::new(), "brokerIP2", "Address that replicas are told.";
    Restart bind_address: String = "0.0.0.0".to_owned(), "bindAddress", "Address to listen on.";
    Restart listen_port: Port = int(10_911), "listenPort", "Port for clients; the fast channel is two below.";
    Restart ha_listen_port: Port = int(0), "haListenPort", "Port for replicas; 0 is listenPort + 1.";
    Restart metrics_label: String = String::new(), "metricsLabel", "Labels of every series of the metrics page, as name:value,name:value.";
    Restart metrics_prom_exporter_host: String = "0.0.0.0".to_owned(), "metricsPromExporterHost", "Address of the metrics and health page.";
    Restart metrics_prom_exporter_port: Port = int(5557), "metricsPromExporterPort", "Port of the metrics and health page.";
    Restart store_path_root_dir: String = String::new(), "storePathRootDir", "Folder of the store.";
    Restart mapped_file_size_commit_log: Int<4096, 2_147_483_647> = int(1 << 30), "mappedFileSizeCommitLog", "Bytes of a commit log segment.";
    Restart mapped_file_size_consume_queue: Int<20, 600_000_000> = int(6_000_000), "mappedFileSizeConsumeQueue", "Bytes of a consume queue file.";
    Restart flush_disk_type: FlushDiskType = FlushDiskType::Async, "flushDiskType", "When a send is answered.";
    Live flush_interval_commit_log: Millis = int(500), "flushIntervalCommitLog", "Milliseconds between flushes of ASYNC_FLUSH.";
    Live sync_flush_timeout: Millis = int(5000), "syncFlushTimeout", "Milliseconds a send waits for its flush.";
    Live delete_when: String = "04".to_owned(), "deleteWhen", "Hours of the day for expired files.";
    Live file_reserved_time: Int<1, 876_000> = int(72), "fileReservedTime", "Hours that files are kept.";
    Live disk_max_used_space_ratio: Percent = int(75), "diskMaxUsedSpaceRatio", "Disk use in percent from which expired files go at any hour.";
    Live disk_space_clean_forcibly_ratio: Percent = int(85), "diskSpaceCleanForciblyRatio", "Disk use in percent from which files go before their time.";
    Live disk_space_warning_level_ratio: Percent = int(90), "diskSpaceWarningLevelRatio", "Disk use in percent from which writes are refused.";
    Live max_message_size: Int<1, 15_728_640> = int(4_194_304), "maxMessageSize", "Longest message body in bytes.";
    Restart message_index_enable: bool = true, "messageIndexEnable", "Whether keys are indexed.";
    Restart max_hash_slot_num: Int<1, 100_000_000> = int(5_000_000), "maxHashSlotNum", "Slots of a key index file.";
    Restart max_index_num: Int<2, 400_000_000> = int(20_000_000), "maxIndexNum", "Entries of a key index file.";
    Restart check_crc_on_recover: bool = true, "checkCRCOnRecover", "Whether recovery checks bodies.";
    Restart access_message_in_memory_max_ratio: Percent = int(40), "accessMessageInMemoryMaxRatio", "Share of memory within which a reader does not lag.";
    Live max_transfer_bytes_in_memory: Bytes32 = int(262_144), "maxTransferBytesOnMessageInMemory", "Most bytes of a pull near the end of the log.";
    Live max_transfer_count_in_memory: Int<1, 4096> = int(32), "maxTransferCountOnMessageInMemory", "Most messages of a pull near the end of the log.";
    Live max_transfer_bytes_on_disk: Bytes32 = int(65_536), "maxTransferBytesOnMessageInDisk", "Most bytes of a pull that lags.";
    Live max_transfer_count_on_disk: Int<1, 4096> = int(8), "maxTransferCountOnMessageInDisk", "Most messages of a pull that lags.";
    Live broker_permission: Int<0, 7> = int(6), "brokerPermission", "4 reads, 2 writes.";
    Live default_topic_queue_nums: Int<1, 1024> = int(8), "defaultTopicQueueNums", "Most queues of an auto-created topic.";
    Live auto_create_topic_enable: bool = true, "autoCreateTopicEnable", "Whether a send may create its topic.";
    Live auto_create_subscription_group: bool = true, "autoCreateSubscriptionGroup", "Whether a consumer may create its group.";
    Restart cluster_topic_enable: bool = true, "clusterTopicEnable", "Whether the topic named like the cluster can be used.";
    Restart broker_topic_enable: bool = true, "brokerTopicEnable", "Whether the topic named like the broker can be used.";
    Restart trace_topic_enable: bool = false, "traceTopicEnable", "Whether the trace topic exists.";
    Restart msg_trace_topic_name: String = "RMQ_SYS_TRACE_TOPIC".to_owned(), "msgTraceTopicName", "Name of the trace topic.";
    Live trace_on: bool = true, "traceOn", "Whether clients are told to trace.";
    Restart region_id: String = "DefaultRegion".to_owned(), "regionId", "Region that clients are told.";
    Live long_polling_enable: bool = true, "longPollingEnable", "Whether pulls wait as long as they ask.";
    Live short_polling_time_mills: Millis = int(1000), "shortPollingTimeMills", "Longest wait when long polling is off.";
    Live lite_pull_message_enable: bool = true, "litePullMessageEnable", "Whether code 361 is served.";
    Live enable_property_filter: bool = false, "enablePropertyFilter", "Whether SQL92 subscriptions are served.";
    Live validate_system_topic: bool = true, "validateSystemTopicWhenUpdateTopic", "Whether system topics are protected.";
    Live enable_mixed_message_type: bool = false, "enableMixedMessageType", "Whether message.type may be MIXED.";
    Live clear_retry_topic_on_delete: bool = true, "clearRetryTopicWhenDeleteTopic", "Whether pop retry topics go with their topic.";
    Live use_server_side_reset_offset: bool = true, "useServerSideResetOffset", "Whether a reset happens here and not in the clients.";
    Live server_load_balancer_enable: bool = true, "serverLoadBalancerEnable", "Whether code 400 shares queues out.";
    Live default_message_request_mode: RequestMode = RequestMode::Pull, "defaultMessageRequestMode", "Mode of groups without one.";
    Live default_pop_share_queue_num: Int<-1, 65_536> = int(-1), "defaultPopShareQueueNum", "Queues shared in POP mode.";
    Live enable_retry_topic_v2: bool = false, "enableRetryTopicV2", "Whether popped messages come again in %RETRY%group+topic instead of %RETRY%group_topic.";
    Live pop_from_retry_probability: Int<0, 100> = int(20), "popFromRetryProbability", "How many pops of a hundred look for redelivered messages first.";
    Live init_pop_offset_by_check_msg_in_mem: bool = true, "initPopOffsetByCheckMsgInMem", "Whether a new group pops a topic from its first message while that is in memory.";
    Restart pop_polling_size: Int<1, 1_000_000> = int(1024), "popPollingSize", "Most waiting pops of one group, topic and queue.";
    Restart max_pop_polling_size: Int<1, 10_000_000> = int(100_000), "maxPopPollingSize", "Most waiting pops.";
    Restart pop_ck_stay_buffer_time: Int<10, 600_000> = int(10_000), "popCkStayBufferTime", "Milliseconds that a checkpoint stays in memory only.";
    Restart pop_ck_max_buffer_size: Int<1, 10_000_000> = int(20_000), "popCkMaxBufferSize", "Checkpoints of a queue in memory only; more are written at once.";
    Live store_reply_message_enable: bool = true, "storeReplyMessageEnable", "Whether replies are also stored.";
    Live register_name_server_period: Int<10_000, 60_000> = int(30_000), "registerNameServerPeriod", "Milliseconds between registrations.";
    Live register_broker_timeout_mills: Millis = int(24_000), "registerBrokerTimeoutMills", "Milliseconds a registration may take.";
    Live channel_expired_timeout: Millis = int(120_000), "channelExpiredTimeout", "Milliseconds without heartbeat until a client is gone.";
    Live subscription_expired_timeout: Millis = int(600_000), "subscriptionExpiredTimeout", "Milliseconds until an old subscription is gone.";
    Live flush_consumer_offset_interval: Millis = int(5000), "flushConsumerOffsetInterval", "Milliseconds between writes of consumer offsets.";
    Restart message_delay_level: String = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h".to_owned(), "messageDelayLevel", "The delay levels.";
    Restart server_channel_max_idle_time_seconds: Int<1, 86_400> = int(120), "serverChannelMaxIdleTimeSeconds", "Seconds until a silent connection is closed.";
    Restart server_selector_threads: Int<0, 64> = int(0), "serverSelectorThreads", "IO threads; 0 is half the cores.";
    Restart server_connections_max: Int<1, 1_000_000> = int(50_000), "serverConnectionsMax", "Most open connections.";
    Live default_query_max_num: Int<1, 64> = int(32), "defaultQueryMaxNum", "Messages of a key query that does not say.";
    Live start_accept_send_request_time_stamp: Int<0, { i64::MAX }> = int(0), "startAcceptSendRequestTimeStamp", "Sends are refused before this time.";
    Live admin_queue_capacity: Int<1, 1_000_000> = int(10_000), "adminBrokerThreadPoolQueueCapacity", "Most waiting admin requests.";
    Live wait_time_mills_in_admin_queue: Millis = int(5000), "waitTimeMillsInAdminBrokerQueue", "Longest wait of an admin request.";
    Live held_pulls_max: Int<1, 10_000_000> = int(100_000), "pullThreadPoolQueueCapacity", "Most pulls that wait for a message.";
    Live parked_sends_max: Int<1, 10_000_000> = int(10_000), "sendThreadPoolQueueCapacity", "Most sends that wait for their flush.";
}
