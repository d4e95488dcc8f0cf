//! Keys of the Java broker that have no counterpart here (thread pools, warm-up, RocksDB, …), and
//! the search for the nearest known key.
//!
//! **Invariant:** to pass over one of these loses no data, opens no access and breaks no promise
//! about what survives a failure; keys that could are in `refused`. `storePathConsumeQueue` and its
//! like are here because Java passes over them too: the folders have fixed names below the root.

use super::{Settings, refused};

/// A key that neither we nor Java know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown key {key:?}{}", .nearest.as_ref().map_or_else(String::new, |near| format!(": did you mean {near:?}?")))]
pub struct UnknownKey {
    /// The key.
    pub key: String,
    /// The known key that looks most like it.
    pub nearest: Option<String>,
}

/// Whether Java 5.5 knows `key` although nothing here depends on it.
pub(super) fn check(key: &str) -> Result<(), UnknownKey> {
    if KEYS.contains(&key) || refused::keys().any(|known| known == key) {
        return Ok(());
    }
    Err(UnknownKey {
        key: key.to_owned(),
        nearest: nearest(key),
    })
}

/// The known key that needs the fewest edits, if they are few enough to look like a slip.
fn nearest(key: &str) -> Option<String> {
    Settings::KEYS
        .iter()
        .map(|info| info.name)
        .chain(refused::keys())
        .chain(KEYS.iter().copied())
        .map(|known| (distance(&key.to_lowercase(), &known.to_lowercase()), known))
        .min()
        .filter(|(edits, known)| *edits <= known.len() / 3 + 1)
        .map(|(_, known)| known.to_owned())
}

/// Edit distance of two short texts; long ones are cut, they are no slip of a key.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let change = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "abortFile", "accessMessageInMemoryHotRatio", "accountStatsEnable",
    "accountStatsPrintZeroValues", "ackMessageThreadPoolNums", "ackThreadPoolQueueCapacity",
    "aclCacheExpiredSecond", "aclCacheMaxNum", "aclCacheRefreshSecond", "adminBrokerThreadPoolNums",
    "allowRecallWhenBrokerNotWriteable", "appendAckAsync", "appendCkAsync",
    "appendTopicForTimerDeleteKey", "asyncLearner", "asyncSendEnable", "authConfigPath",
    "authenticationMetadataProvider", "authenticationProvider", "authenticationStrategy",
    "authenticationWhitelist", "authorizationMetadataProvider", "authorizationProvider",
    "authorizationStrategy", "authorizationWhitelist", "autoDeleteUnusedStats",
    "autoMessageVersionOnTopicLen", "batchDispatchRequestThreadPoolNums",
    "bitMapLengthConsumeQueueExt", "bottomMostCompressionTypeForConsumeQueueStore",
    "broadcastOffsetExpireMaxSecond", "broadcastOffsetExpireSecond", "brokerConfigPath",
    "brokerElectionPriority", "brokerFastFailureEnable", "brokerHeartbeatInterval",
    "brokerNotActiveTimeoutMillis", "cgColdReadThreshold", "channelNotActiveInterval",
    "checkCommitLogOffsetOnRecover", "checkSyncStateSetPeriod", "cleanOfflineBrokerInterval",
    "cleanResourceInterval", "cleanRocksDBDirtyCQIntervalMin", "cleanSwapedMapInterval",
    "clientAsyncSemaphoreValue", "clientCallbackExecutorThreads", "clientChannelMaxIdleTimeSeconds",
    "clientCloseSocketIfTimeout", "clientManageThreadPoolNums",
    "clientManagerThreadPoolQueueCapacity", "clientOnewaySemaphoreValue",
    "clientPooledByteBufAllocatorEnable", "clientSocketRcvBufSize", "clientSocketSndBufSize",
    "clientWorkerThreads", "coldCtrStrategyEnable", "coldDataFlowControlEnable",
    "coldDataScanEnable", "combineAssignOffsetCQType", "combineCQEnableCheckSelf",
    "combineCQLoadingCQTypes", "combineCQMaxExtraSearchCommitLogFiles", "combineCQPreferCQType",
    "combineCQUseRocksdbForLmq", "commercialBaseCount", "commercialSizePerMsg",
    "commitCommitLogLeastPages", "commitCommitLogThoroughInterval", "commitIntervalCommitLog",
    "commitLogForceSwapMapInterval", "commitLogRecoverMaxNum", "commitLogSwapMapInterval",
    "commitLogSwapMapReserveFileNum", "compactionCqMappedFileSize", "compactionMappedFileSize",
    "compactionScheduleInternal", "compactionThreadNum", "compatibleWithOldNameSrv",
    "compressedRegister", "connectTimeoutMillis", "consumerFallbehindThreshold",
    "consumerManageThreadPoolNums", "consumerManagerThreadPoolQueueCapacity",
    "consumerOffsetUpdateVersionStep", "controllerAddr", "controllerHeartBeatTimeoutMills",
    "correctLogicMinOffsetForceInterval", "correctLogicMinOffsetSleepInterval", "dLegerGroup",
    "dLegerPeers", "dLegerSelfId", "dataReadAheadEnable", "debugLockEnable",
    "delayOffsetUpdateVersionStep", "deleteCommitLogFilesInterval",
    "deleteConsumeQueueFilesInterval", "deleteFileBatchMax", "destroyMapedFileIntervalForcibly",
    "disableCallbackExecutor", "disableConsumeIfConsumerReadSlowly", "disableNettyWorkerGroup",
    "disappearTimeAfterStart", "diskFallRecorded", "dispatchCqCacheNum", "dispatchCqThreads",
    "dispatchFromSenderThread", "enableAcceleratedRecovery", "enableAsyncReput",
    "enableAutoInSyncReplicas", "enableBatchPush", "enableBroadcastOffsetStore",
    "enableBuildConsumeQueueConcurrently", "enableCalcFilterBitMap", "enableCleanExpiredOffset",
    "enableCompaction", "enableConnectionMetrics", "enableCreateSysGroup", "enableDetailStat",
    "enableFastChannelEventProcess", "enableLagAndDlqMetrics", "enableLiteEventMode",
    "enableLitePopLog", "enableLmqQuota", "enableLmqStats",
    "enableLogConsumeQueueRepeatedlyBuildWhenRecover", "enableMessageStoreMetrics",
    "enableNetWorkFlowControl", "enableNotifyAfterPopOrderLockRelease",
    "enableNotifyBeforePopCalculateLag", "enablePopBatchAck", "enablePopBufferMerge",
    "enablePopLog", "enablePopMessageThreshold", "enablePopMetrics", "enableReconnectForGoAway",
    "enableRegisterProducer", "enableRemoteEscape", "enableRemotingMetrics", "enableRequestMetrics",
    "enableRocksDBLog", "enableRunningFlagsInFlush",
    "enableScheduleAsyncDeliver", "enableScheduleMessageStats", "enableShutdownGracefully",
    "enableSingleTopicRegister", "enableSkipLongAwaitingAck", "enableSplitMetadata",
    "enableSplitRegistration", "enableStatsMetrics", "enableTransactionMetrics",
    "enabledAppendPropCRC", "endTransactionPoolQueueCapacity", "endTransactionThreadPoolNums",
    "estimateAccumulation", "expectConsumerNumUseFilter", "fastFailIfNoBufferInStorePool",
    "fetchControllerAddrByDnsLookup", "fetchNameSrvAddrByDnsLookup", "fetchNamesrvAddrInterval",
    "filterDataCleanTimeSpan", "filterDataStructure", "filterServerNums", "filterSupportRetry",
    "flushCommitLogLeastPages", "flushCommitLogThoroughInterval", "flushCommitLogTimed",
    "flushConsumeQueueLeastPages", "flushConsumeQueueThoroughInterval",
    "flushConsumerOffsetHistoryInterval", "flushDelayOffsetInterval", "flushIntervalConsumeQueue",
    "flushLeastPagesWhenWarmMapedFile", "forceRegister", "forceVerifyPropCRC", "forwardTimeout",
    "globalColdReadThreshold", "haFlowControlEnable", "haHousekeepingInterval", "haMasterAddress",
    "haMaxGapNotInSync", "haMaxTimeSlaveNotCatchup", "haSendHeartbeatInterval",
    "haTransferBatchSize", "heartbeatThreadPoolNums", "heartbeatThreadPoolQueueCapacity",
    "highSpeedMode", "indexFileReadEnable", "indexFileWriteEnable", "indexRocksDBEnable",
    "initAuthenticationUser", 
    "innerClientAuthenticationCredentials", "isScanAvailableNameSrv", "isolateLogEnable",
    "iteratorWhenUseRocksdbConsumeQueue", "liteEventCheckInterval",
    "liteEventFullDispatchDelayTime", "liteEventFullDispatchDelayTimeForWildcardGroup",
    "liteLagCountMetricsEnable", "liteLagLatencyCollectEnable", "liteLagLatencyMetricsEnable",
    "liteLagLatencyTopK", "litePullMessageThreadPoolNums", "litePullThreadPoolQueueCapacity",
    "liteSubscriptionCheckInterval", "liteSubscriptionCheckTimeoutMills", "liteTtlCheckInterval",
    "loadBalancePollNameServerInterval", "loadBalanceProcessorThreadPoolNums",
    "loadBalanceThreadPoolQueueCapacity", "lockInStrictMode", "logicQueueForceSwapMapInterval",
    "logicQueueSwapMapInterval", "logicQueueSwapMapReserveFileNum",
    "logicalDiskSpaceCleanForciblyThreshold", "mappedFileSizeConsumeQueueExt",
    "mappedFileSizeTimerLog", "mappedFileSwapEnable", "mapperFileSizeBatchConsumeQueue",
    "maxAsyncPutMessageRequests", "maxBatchDeleteFilesNum", "maxChecksumRange",
    "maxClientEventCount", "maxConsumeQueueScan", "maxErrorRateOfBloomFilter",
    "maxFilterMessageSize", "maxHaTransferByteInSecond", "maxLiteSubscriptionCount",
    "maxLmqConsumeQueueNum", "maxMessageFilterNumForNotification", "maxMsgsNumBatch",
    "maxOffsetMapSize", "maxReconnectIntervalTimeSeconds",
    "maxRecoveryCommitlogFiles", "maxRocksDBIndexQueryDays", "maxSlaveResendLength",
    "maxStatsIdleTimeInMinutes", "maxTopicLength", "memTableFlushIntervalMs", "messageIndexSafe",
    "metricGrpcExporterIntervalInMills", "metricGrpcExporterTimeOutInMills",
    "metricLoggingExporterIntervalInMills", "metricsExportBatchMaxDataPoints",
    "metricsExporterType", "metricsGrpcExporterHeader", "metricsGrpcExporterTarget",
    "metricsInDelta", "metricsOtelCardinalityLimit", "migrateAuthFromV1Enabled",
    "minLiteTTl", "namesrvDomain", "namesrvDomainSubgroup", "notifyConsumerIdsChangedEnable",
    "offsetCheckInSlave", "osPageCacheBusyTimeOutMills", "persistConsumerOffsetIncrementally",
    "popCkOffsetMaxQueueSize", 
    "popCkStayBufferTimeOut", "popConsumerFSServiceInit", "popConsumerKVServiceInit",
    "popConsumerKVServiceLog", "popFromRetryProbabilityForPriority",
    "popInflightMessageThreshold", "popLongPollingForceNotifyInterval",
    "popPollingMapExpireTimeSeconds", "popPollingMapSize", 
    "popResponseReturnActualRetryTopic", "popReviveConcurrency", "popReviveMaxAttemptTimes",
    "popReviveMaxReturnSizePerRead", "popReviveSkipIfGroupAbsent", "preferredLeaderId",
    "printChannelGroups", "printChannelGroupsMinNum", "priorityOrderAsc",
    "processReplyMessageThreadPoolNums", "pullBatchMaxMessageCount", "pullMessageThreadPoolNums",
    "putConsumeQueueDataByFileChannel", "putMessageFutureThreadPoolNums", "putMessageTimeout",
    "putMsgIndexHightWater", "putThreadPoolQueueCapacity", "queryMessageThreadPoolNums",
    "queryThreadPoolQueueCapacity", "readUnCommitted", "realTimeNotifyConsumerChange",
    "realTimePersistRocksDBConfig", "recallMessageEnable", "recheckReputOffsetFromCq",
    "recoverConcurrently", "recoverThreadPoolNums", "redeleteHangedFileInterval",
    "rejectPullConsumerEnable", "rejectTransactionMessage", "replicasPerDiskPartition",
    "replyThreadPoolQueueCapacity", "retrieveMessageFromPopRetryTopicV1", "reviveAckWaitMs",
    "reviveInterval", "reviveMaxSlow", "reviveQueueNum", "reviveScanTime", "rmqAddressServerDomain",
    "rmqAddressServerSubGroup", "rocketmqHome", "rocksdbCQDoubleWriteEnable",
    "rocksdbCompressionType", "rocksdbFlushWalFrequency", "rocksdbWalFileRollingThreshold",
    "sampleCountThreshold", "sampleSteps", "scheduleAsyncDeliverMaxPendingLimit",
    "scheduleAsyncDeliverMaxResendNum2Blocked", "searchBcqByCacheEnable",
    "sendHeartbeatTimeoutMillis", "sendMessageThreadPoolNums", "serverAsyncSemaphoreValue",
    "serverCallbackExecutorThreads", "serverNettyWorkerGroupEnable", "serverOnewaySemaphoreValue",
    "serverPooledByteBufAllocatorEnable", "serverSocketBacklog", "serverSocketRcvBufSize",
    "serverSocketSndBufSize", "serverWorkerThreads", "sharedByteBufferNum",
    "shutdownWaitTimeSeconds", "skipPreOnline", "skipWhenCKRePutReachMaxTimes", "slaveReadEnable",
    "slaveTimeout", "socksProxyConfig", "spinLockCollisionRetreatOptimalDegree",
    "splitMetadataSize", "splitRegistrationSize", "statRocksDBCQIntervalSec",
    "statefulAuthenticationCacheExpiredSecond", "statefulAuthenticationCacheMaxNum",
    "statefulAuthorizationCacheExpiredSecond", "statefulAuthorizationCacheMaxNum",
    "storeCheckpoint", "storePathBrokerIdentity", "storePathConsumeQueue",
    "storePathDLedgerCommitLog", "storePathEpochFile", "storePathIndex",
    "syncBrokerMemberGroupPeriod", "syncBrokerMetadataPeriod", "syncControllerMetadataPeriod",
    "syncFromLastFile", "syncMasterFlushOffsetWhenStartup", "timerCheckMetricsWhen",
    "timerColdDataCheckIntervalMs", "timerCongestNumEachSlot", "timerEnableCheckMetrics",
    "timerEnableDisruptor", "timerEnableRetryUntilSuccess", "timerFlushIntervalMs",
    "timerGetMessageThreadNum", "timerInterceptDelayLevel", "timerMaxDelaySec",
    "timerMetricSmallThreshold", "timerPrecisionMs", "timerProgressLogIntervalMs",
    "timerPutMessageThreadNum", "timerRecallToTimeWheelEnable", "timerRecallToTimelineEnable",
    "timerReputServiceCorePoolSize", "timerReputServiceMaxPoolSize",
    "timerReputServiceQueueCapacity", "timerRocksDBPrecisionMs", "timerRocksDBRollIntervalHours",
    "timerRocksDBRollMaxTps", "timerRocksDBRollRangeHours", "timerRocksDBStopScan",
    "timerRocksDBTimeExpiredMaxTps", "timerRollWindowSlot", "timerSkipUnknownError",
    "timerStopDequeue", "timerStopEnqueue", "timerWarmEnable", "timerWheelEnable",
    "timerWheelSnapshotFlush", "timerWheelSnapshotIntervalMs", "tls.client.authServer",
    "tls.client.certPath", "tls.client.keyPassword", "tls.client.keyPath",
    "tls.client.trustCertPath", "tls.config.file", "tls.server.authClient", "tls.server.certPath",
    "tls.server.keyPassword", "tls.server.keyPath", "tls.server.trustCertPath",
    "tls.test.mode.enable", "topicQueueLockNum", "totalReplicas", "transWriteOriginTransHalfEnable",
    "transactionCheckInterval", "transactionCheckMax", "transactionCheckRocksdbCoreThreads",
    "transactionCheckRocksdbMaxThreads", "transactionCheckRocksdbQueueCapacity",
    "transactionMetricFlushInterval", "transactionOpBatchInterval", "transactionOpMsgMaxSize",
    "transactionTimeOut", "transferMsgByHeap", "transientStorePoolEnable", "transientStorePoolSize",
    "travelCqFileNumWhenGetMessage", "updateNameServerAddrPeriod", "useABSLock",
    "useEpollNativeSelector", "useMessageFilterForNotification", "usePIDColdCtrStrategy",
    "useReentrantLockWhenPutMessage", "useSeparateRetryQueue", "useSeparateStorePathForRocksdbCQ",
    "useSingleRocksDBForAllConfigs", "useStaticSubscription", "userCacheExpiredSecond",
    "userCacheMaxNum", "userCacheRefreshSecond", "waitTimeMillsInAckQueue",
    "waitTimeMillsInHeartbeatQueue", "waitTimeMillsInLitePullQueue", "waitTimeMillsInPullQueue",
    "waitTimeMillsInSendQueue", "waitTimeMillsInTransactionQueue", "wakeCommitWhenPutMessage",
    "wakeFlushWhenPutMessage", "warmMapedFileEnable", "writeBufferHighWaterMark",
    "writeBufferLowWaterMark", "writeWithoutMmap",
];
