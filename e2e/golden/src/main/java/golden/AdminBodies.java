package golden;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageQueueForC;
import org.apache.rocketmq.remoting.protocol.EpochEntry;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.admin.ConsumeStats;
import org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper;
import org.apache.rocketmq.remoting.protocol.admin.TopicOffset;
import org.apache.rocketmq.remoting.protocol.admin.TopicStatsTable;
import org.apache.rocketmq.remoting.protocol.body.BrokerMemberGroup;
import org.apache.rocketmq.remoting.protocol.body.BrokerReplicasInfo;
import org.apache.rocketmq.remoting.protocol.body.BrokerStatsData;
import org.apache.rocketmq.remoting.protocol.body.BrokerStatsItem;
import org.apache.rocketmq.remoting.protocol.body.CMResult;
import org.apache.rocketmq.remoting.protocol.body.Connection;
import org.apache.rocketmq.remoting.protocol.body.ConsumeMessageDirectlyResult;
import org.apache.rocketmq.remoting.protocol.body.ConsumeQueueData;
import org.apache.rocketmq.remoting.protocol.body.ConsumeStatsList;
import org.apache.rocketmq.remoting.protocol.body.ConsumeStatus;
import org.apache.rocketmq.remoting.protocol.body.ConsumerConnection;
import org.apache.rocketmq.remoting.protocol.body.ConsumerOffsetSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.body.ConsumerRunningInfo;
import org.apache.rocketmq.remoting.protocol.body.CreateTopicListRequestBody;
import org.apache.rocketmq.remoting.protocol.body.ElectMasterResponseBody;
import org.apache.rocketmq.remoting.protocol.body.EpochEntryCache;
import org.apache.rocketmq.remoting.protocol.body.GetConsumerStatusBody;
import org.apache.rocketmq.remoting.protocol.body.GroupList;
import org.apache.rocketmq.remoting.protocol.body.HARuntimeInfo;
import org.apache.rocketmq.remoting.protocol.body.KVTable;
import org.apache.rocketmq.remoting.protocol.body.ProcessQueueInfo;
import org.apache.rocketmq.remoting.protocol.body.ProducerConnection;
import org.apache.rocketmq.remoting.protocol.body.ProducerInfo;
import org.apache.rocketmq.remoting.protocol.body.ProducerTableInfo;
import org.apache.rocketmq.remoting.protocol.body.QueryConsumeQueueResponseBody;
import org.apache.rocketmq.remoting.protocol.body.QueryConsumeTimeSpanBody;
import org.apache.rocketmq.remoting.protocol.body.QueryCorrectionOffsetBody;
import org.apache.rocketmq.remoting.protocol.body.QuerySubscriptionResponseBody;
import org.apache.rocketmq.remoting.protocol.body.QueueTimeSpan;
import org.apache.rocketmq.remoting.protocol.body.ResetOffsetBody;
import org.apache.rocketmq.remoting.protocol.body.ResetOffsetBodyForC;
import org.apache.rocketmq.remoting.protocol.body.SubscriptionGroupList;
import org.apache.rocketmq.remoting.protocol.body.SubscriptionGroupWrapper;
import org.apache.rocketmq.remoting.protocol.body.SyncStateSet;
import org.apache.rocketmq.remoting.protocol.body.TopicList;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumeType;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.subscription.CustomizedRetryPolicy;
import org.apache.rocketmq.remoting.protocol.subscription.ExponentialRetryPolicy;
import org.apache.rocketmq.remoting.protocol.subscription.GroupForbidden;
import org.apache.rocketmq.remoting.protocol.subscription.GroupRetryPolicy;
import org.apache.rocketmq.remoting.protocol.subscription.GroupRetryPolicyType;
import org.apache.rocketmq.remoting.protocol.subscription.SimpleSubscriptionData;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** Bodies of the admin tools and of replication. */
final class AdminBodies {
    private final List<Case> cases = new ArrayList<>();

    private AdminBodies() {
    }

    static List<Case> cases() {
        AdminBodies bodies = new AdminBodies();
        bodies.groups();
        bodies.lists();
        bodies.connections();
        bodies.stats();
        bodies.offsets();
        bodies.inspection();
        bodies.replicas();
        return bodies.cases;
    }

    private void groups() {
        SubscriptionGroupConfig plain = new SubscriptionGroupConfig();
        plain.setGroupName("cg");
        Body.both(cases, "SubscriptionGroupConfig", plain);
        SubscriptionGroupConfig full = new SubscriptionGroupConfig();
        full.setGroupName("cg2");
        full.setConsumeEnable(false);
        full.setRetryMaxTimes(3);
        full.setConsumeMessageOrderly(true);
        GroupRetryPolicy policy = new GroupRetryPolicy();
        policy.setType(GroupRetryPolicyType.EXPONENTIAL);
        policy.setExponentialRetryPolicy(new ExponentialRetryPolicy(1000, 60000, 3));
        policy.setCustomizedRetryPolicy(new CustomizedRetryPolicy(new long[] {1000, 2000}));
        full.setGroupRetryPolicy(policy);
        SimpleSubscriptionData simple = new SimpleSubscriptionData("TopicTest", "TAG", "*", 7);
        full.setSubscriptionDataSet(new HashSet<>(Set.of(simple)));
        full.setAttributes(new HashMap<>(Map.of("k", "v")));
        Body.both(cases, "SubscriptionGroupConfig.full", full);

        SubscriptionGroupWrapper table = new SubscriptionGroupWrapper();
        table.setDataVersion(Body.version());
        table.setSubscriptionGroupTable(Body.map("cg", plain));
        table.setForbiddenTable(Body.map("cg", Body.map("TopicTest", 2)));
        Body.both(cases, "SubscriptionGroupWrapper", table);
        cases.add(Body.of("GroupConfigList", new SubscriptionGroupList(new ArrayList<>(List.of(plain)))));
        cases.add(Body.of("TopicConfigList",
            new CreateTopicListRequestBody(new ArrayList<>(List.of(new TopicConfig("TopicTest", 8, 8))))));
        GroupForbidden forbidden = new GroupForbidden();
        forbidden.setGroup("cg");
        forbidden.setTopic("TopicTest");
        forbidden.setReadable(false);
        Body.both(cases, "GroupForbidden", forbidden);
    }

    private void lists() {
        KVTable table = new KVTable();
        table.setTable(new HashMap<>(Map.of("TopicTest", "broker-a:4")));
        Body.both(cases, "KvTable", table);
        TopicList topics = new TopicList();
        topics.setTopicList(new HashSet<>(Set.of("TopicTest")));
        Body.both(cases, "TopicList", topics);
        TopicList system = new TopicList();
        system.setTopicList(new HashSet<>(Set.of("DefaultCluster")));
        system.setBrokerAddr("10.0.0.1:10911");
        Body.both(cases, "TopicList.broker", system);
        GroupList groups = new GroupList();
        groups.setGroupList(new HashSet<>(Set.of("cg")));
        Body.both(cases, "GroupList", groups);
    }

    private static Connection connection() {
        Connection one = new Connection();
        one.setClientId("10.0.0.9@1#2");
        one.setClientAddr("10.0.0.9:40000");
        one.setLanguage(LanguageCode.JAVA);
        one.setVersion(479);
        return one;
    }

    private void connections() {
        ConsumerConnection consumers = new ConsumerConnection();
        consumers.setConnectionSet(new HashSet<>(Set.of(connection())));
        consumers.setConsumeType(ConsumeType.CONSUME_ACTIVELY);
        consumers.setMessageModel(MessageModel.BROADCASTING);
        consumers.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP);
        consumers.setSubscriptionTable(Body.map("TopicTest", Body.subscription()));
        Body.both(cases, "ConsumerConnection", consumers);
        ProducerConnection producers = new ProducerConnection();
        producers.setConnectionSet(new HashSet<>(Set.of(connection())));
        Body.both(cases, "ProducerConnection", producers);
        ProducerInfo info =
            new ProducerInfo("10.0.0.9@1#2", "10.0.0.9:40000", LanguageCode.GO, 317, 1700000000000L);
        ProducerTableInfo table =
            new ProducerTableInfo(new HashMap<>(Map.of("pg", new ArrayList<>(List.of(info)))));
        Body.both(cases, "ProducerTable", table);
    }

    private static ConsumeStats consumeStats() {
        OffsetWrapper offset = new OffsetWrapper();
        offset.setBrokerOffset(20);
        offset.setConsumerOffset(10);
        offset.setPullOffset(12);
        offset.setLastTimestamp(1700000000000L);
        ConsumeStats stats = new ConsumeStats();
        stats.setConsumeTps(1.5);
        stats.setOffsetTable(Body.map(Body.queue(1), offset));
        return stats;
    }

    private void stats() {
        Body.both(cases, "ConsumeStats", consumeStats());
        ConsumeStatsList list = new ConsumeStatsList();
        list.setBrokerAddr("10.0.0.1:10911");
        list.setTotalDiff(10);
        list.setTotalInflightDiff(2);
        Map<String, List<ConsumeStats>> groups =
            new HashMap<>(Map.of("cg", new ArrayList<>(List.of(consumeStats()))));
        list.setConsumeStatsList(new ArrayList<>(List.of(groups)));
        Body.both(cases, "ConsumeStatsList", list);

        TopicOffset bounds = new TopicOffset();
        bounds.setMinOffset(1);
        bounds.setMaxOffset(5000000000L);
        bounds.setLastUpdateTimestamp(1700000000000L);
        TopicStatsTable topic = new TopicStatsTable();
        topic.setOffsetTable(Body.map(Body.queue(1), bounds));
        topic.setTopicPutTps(0.25);
        Body.both(cases, "TopicStatsTable", topic);

        BrokerStatsItem item = new BrokerStatsItem();
        item.setSum(60);
        item.setTps(1.0);
        item.setAvgpt(0.5);
        BrokerStatsData data = new BrokerStatsData();
        data.setStatsMinute(item);
        data.setStatsHour(new BrokerStatsItem());
        data.setStatsDay(new BrokerStatsItem());
        Body.both(cases, "BrokerStatsData", data);

        QueueTimeSpan span = new QueueTimeSpan();
        span.setMessageQueue(Body.queue(1));
        span.setMinTimeStamp(1);
        span.setMaxTimeStamp(9);
        span.setConsumeTimeStamp(5);
        span.setDelayTime(4);
        QueryConsumeTimeSpanBody spans = new QueryConsumeTimeSpanBody();
        spans.setConsumeTimeSpanSet(new ArrayList<>(List.of(span)));
        Body.both(cases, "ConsumeTimeSpan", spans);
    }

    private void offsets() {
        ConsumerOffsetSerializeWrapper offsets = new ConsumerOffsetSerializeWrapper();
        offsets.setDataVersion(Body.version());
        offsets.setOffsetTable(Body.map("TopicTest@cg", Body.map(1, 42L)));
        Body.both(cases, "ConsumerOffsets", offsets);
        QueryCorrectionOffsetBody correction = new QueryCorrectionOffsetBody();
        correction.setCorrectionOffsets(new HashMap<>(Map.of(1, 42L)));
        Body.both(cases, "CorrectionOffsets", correction);
        ResetOffsetBody reset = new ResetOffsetBody();
        reset.setOffsetTable(new HashMap<>(Map.of(Body.queue(1), 42L)));
        Body.both(cases, "ResetOffsetBody", reset);
        ResetOffsetBodyForC forC = new ResetOffsetBodyForC();
        forC.setOffsetTable(new ArrayList<>(List.of(new MessageQueueForC("TopicTest", "broker-a", 1, 42L))));
        cases.add(Body.of("ResetOffsetBodyForC", forC));
        GetConsumerStatusBody status = new GetConsumerStatusBody();
        status.setMessageQueueTable(new HashMap<>(Map.of(Body.queue(1), 42L)));
        status.setConsumerTable(
            new HashMap<>(Map.of("10.0.0.9@1#2", new HashMap<>(Map.of(Body.queue(2), 43L)))));
        Body.both(cases, "ConsumerStatusBody", status);
    }

    private void inspection() {
        ConsumerRunningInfo info = new ConsumerRunningInfo();
        info.getProperties().put("PROP_CLIENT_VERSION", "V5_5_0");
        info.getSubscriptionSet().add(Body.subscription());
        ProcessQueueInfo queue = new ProcessQueueInfo();
        queue.setCommitOffset(42);
        queue.setCachedMsgSizeInMiB(3);
        queue.setLocked(true);
        info.getMqTable().put(Body.queue(1), queue);
        ConsumeStatus status = new ConsumeStatus();
        status.setPullRT(1.5);
        status.setConsumeOKTPS(2.5);
        status.setConsumeFailedMsgs(7);
        info.setStatusTable(new TreeMap<>(Map.of("TopicTest", status)));
        info.setJstack("at a.b");
        Body.both(cases, "ConsumerRunningInfo", info);

        ConsumeMessageDirectlyResult result = new ConsumeMessageDirectlyResult();
        result.setOrder(true);
        result.setAutoCommit(false);
        result.setConsumeResult(CMResult.CR_LATER);
        result.setRemark("later");
        result.setSpentTimeMills(12);
        Body.both(cases, "ConsumeMessageDirectlyResult", result);

        ConsumeQueueData entry = new ConsumeQueueData();
        entry.setPhysicOffset(4096);
        entry.setPhysicSize(100);
        entry.setTagsCode("TagA".hashCode());
        entry.setEval(true);
        entry.setMsg("m");
        QueryConsumeQueueResponseBody entries = new QueryConsumeQueueResponseBody();
        entries.setSubscriptionData(Body.subscription());
        entries.setFilterData("f");
        entries.setQueueData(new ArrayList<>(List.of(entry)));
        entries.setMinQueueIndex(1);
        entries.setMaxQueueIndex(2);
        Body.both(cases, "QueryConsumeQueueResponse", entries);

        QuerySubscriptionResponseBody subscription = new QuerySubscriptionResponseBody();
        subscription.setGroup("cg");
        subscription.setTopic("TopicTest");
        subscription.setSubscriptionData(Body.subscription());
        Body.both(cases, "QuerySubscriptionResponse", subscription);
    }

    private void replicas() {
        SyncStateSet set = new SyncStateSet(new HashSet<>(Set.of(1L, 2L)), 3);
        Body.both(cases, "SyncStateSet", set);
        BrokerMemberGroup group = new BrokerMemberGroup("DefaultCluster", "broker-a");
        group.setBrokerAddrs(new HashMap<>(Map.of(1L, "10.0.0.1:10911")));
        cases.add(Body.of("ElectMasterResponse",
            new ElectMasterResponseBody(group, new HashSet<>(Set.of(1L)))));

        BrokerReplicasInfo.ReplicaIdentity replica =
            new BrokerReplicasInfo.ReplicaIdentity("broker-a", 1L, "10.0.0.1:10911");
        replica.setAlive(true);
        BrokerReplicasInfo.ReplicasInfo replicas = new BrokerReplicasInfo.ReplicasInfo(
            1L, "10.0.0.1:10911", 4, 5, new ArrayList<>(List.of(replica)), new ArrayList<>());
        BrokerReplicasInfo table = new BrokerReplicasInfo();
        table.addReplicaInfo("broker-a", replicas);
        Body.both(cases, "BrokerReplicasInfo", table);

        EpochEntryCache epochs = new EpochEntryCache("DefaultCluster", "broker-a", 1,
            new ArrayList<>(List.of(new EpochEntry(1, 0, 100), new EpochEntry(2, 100))), 250);
        Body.both(cases, "EpochEntryCache", epochs);

        HARuntimeInfo ha = new HARuntimeInfo();
        ha.setMaster(true);
        ha.setMasterCommitLogMaxOffset(1000);
        ha.setInSyncSlaveNums(1);
        HARuntimeInfo.HAConnectionRuntimeInfo link = new HARuntimeInfo.HAConnectionRuntimeInfo();
        link.setAddr("10.0.0.2:1");
        link.setSlaveAckOffset(900);
        link.setDiff(100);
        link.setInSync(true);
        link.setTransferFromWhere(890);
        link.setTransferredByteInSecond(5);
        ha.setHaConnectionInfo(new ArrayList<>(List.of(link)));
        HARuntimeInfo.HAClientRuntimeInfo client = new HARuntimeInfo.HAClientRuntimeInfo();
        client.setMasterAddr("10.0.0.1:10912");
        client.setMaxOffset(7);
        ha.setHaClientRuntimeInfo(client);
        Body.both(cases, "HaRuntimeInfo", ha);
    }
}
