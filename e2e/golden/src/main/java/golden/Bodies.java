package golden;

import com.alibaba.fastjson2.JSONWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageQueueAssignment;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.protocol.body.BrokerMemberGroup;
import org.apache.rocketmq.remoting.protocol.body.CheckClientRequestBody;
import org.apache.rocketmq.remoting.protocol.body.ClusterInfo;
import org.apache.rocketmq.remoting.protocol.body.GetBrokerMemberGroupResponseBody;
import org.apache.rocketmq.remoting.protocol.body.LockBatchRequestBody;
import org.apache.rocketmq.remoting.protocol.body.LockBatchResponseBody;
import org.apache.rocketmq.remoting.protocol.body.MessageRequestModeSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.body.QueryAssignmentRequestBody;
import org.apache.rocketmq.remoting.protocol.body.QueryAssignmentResponseBody;
import org.apache.rocketmq.remoting.protocol.body.RegisterBrokerBody;
import org.apache.rocketmq.remoting.protocol.body.SetMessageRequestModeRequestBody;
import org.apache.rocketmq.remoting.protocol.body.TopicConfigAndMappingSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.body.TopicConfigSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.body.UnlockBatchRequestBody;
import org.apache.rocketmq.remoting.protocol.header.GetConsumerListByGroupResponseBody;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumeType;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumerData;
import org.apache.rocketmq.remoting.protocol.heartbeat.HeartbeatData;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.heartbeat.ProducerData;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;
import org.apache.rocketmq.remoting.protocol.statictopic.LogicQueueMappingItem;
import org.apache.rocketmq.remoting.protocol.statictopic.TopicConfigAndQueueMapping;
import org.apache.rocketmq.remoting.protocol.statictopic.TopicQueueMappingDetail;
import org.apache.rocketmq.remoting.protocol.statictopic.TopicQueueMappingInfo;

/** Bodies of clients, routes and registration. */
final class Bodies {
    private final List<Case> cases = new ArrayList<>();

    private Bodies() {
    }

    static List<Case> cases() {
        Bodies bodies = new Bodies();
        bodies.routes();
        bodies.topics();
        bodies.registration();
        bodies.clients();
        bodies.queues();
        return bodies.cases;
    }

    private static BrokerData broker() {
        HashMap<Long, String> addresses = new HashMap<>();
        addresses.put(0L, "10.0.0.1:10911");
        addresses.put(2L, "10.0.0.2:10911");
        BrokerData broker = new BrokerData("DefaultCluster", "broker-a", addresses);
        broker.setZoneName("zone-1");
        return broker;
    }

    private void routes() {
        QueueData queues = new QueueData();
        queues.setBrokerName("broker-a");
        queues.setReadQueueNums(8);
        queues.setWriteQueueNums(4);
        queues.setPerm(6);
        queues.setTopicSysFlag(1);
        TopicRouteData route = new TopicRouteData();
        route.setQueueDatas(new ArrayList<>(List.of(queues)));
        route.setBrokerDatas(new ArrayList<>(List.of(broker())));
        route.setFilterServerTable(new HashMap<>());
        route.setOrderTopicConf("broker-a:4");
        Body.both(cases, "TopicRouteData", route);
        cases.add(Body.of("TopicRouteData.standard", route, route.encode(
            JSONWriter.Feature.BrowserCompatible, JSONWriter.Feature.MapSortField)));
        route.setTopicQueueMappingByBroker(new HashMap<>(Map.of("broker-a", mappingInfo())));
        Body.both(cases, "TopicRouteData.mapping", route);

        ClusterInfo cluster = new ClusterInfo();
        cluster.setBrokerAddrTable(new HashMap<>(Map.of("broker-a", broker())));
        cluster.setClusterAddrTable(
            new HashMap<>(Map.of("DefaultCluster", new HashSet<>(Set.of("broker-a")))));
        Body.both(cases, "ClusterInfo", cluster);

        BrokerMemberGroup members = new BrokerMemberGroup("DefaultCluster", "broker-a");
        members.setBrokerAddrs(new HashMap<>(Map.of(1L, "10.0.0.1:10911")));
        GetBrokerMemberGroupResponseBody answer = new GetBrokerMemberGroupResponseBody();
        answer.setBrokerMemberGroup(members);
        Body.both(cases, "BrokerMemberGroupResponse", answer);
    }

    private static TopicQueueMappingInfo mappingInfo() {
        TopicQueueMappingInfo info = new TopicQueueMappingInfo("TopicTest", 4, "broker-a", 5);
        info.setCurrIdMap(Body.map(0, 1));
        return info;
    }

    private static TopicQueueMappingDetail mappingDetail() {
        TopicQueueMappingDetail detail = new TopicQueueMappingDetail("TopicTest", 4, "broker-a", 5);
        LogicQueueMappingItem item =
            new LogicQueueMappingItem(1, 3, "broker-a", 100, 0, -1, -1, -1);
        detail.setHostedQueues(Body.map(0, new ArrayList<>(List.of(item))));
        return detail;
    }

    private static TopicConfig topic(String name) {
        TopicConfig topic = new TopicConfig(name, 8, 4, 6, 1);
        topic.setOrder(true);
        topic.setAttributes(new HashMap<>(Map.of("message.type", "NORMAL")));
        return topic;
    }

    private void topics() {
        Body.both(cases, "DataVersion", Body.version());
        Body.both(cases, "TopicConfig", topic("TopicTest"));
        TopicConfigSerializeWrapper file = new TopicConfigSerializeWrapper();
        file.setDataVersion(Body.version());
        file.setTopicConfigTable(Body.map("TopicTest", topic("TopicTest")));
        Body.both(cases, "TopicConfigFile", file);
        TopicConfigAndQueueMapping both = new TopicConfigAndQueueMapping(topic("TopicTest"), mappingDetail());
        Body.both(cases, "TopicConfigAndQueueMapping", both);
    }

    private void registration() {
        TopicConfigAndMappingSerializeWrapper wrapper = new TopicConfigAndMappingSerializeWrapper();
        wrapper.setDataVersion(Body.version());
        wrapper.setMappingDataVersion(Body.version());
        wrapper.setTopicConfigTable(Body.map("TopicTest", topic("TopicTest")));
        wrapper.getTopicConfigTable().put("A", topic("A"));
        wrapper.getTopicConfigTable().get("A").setAttributes(new HashMap<>());
        wrapper.setTopicQueueMappingInfoMap(Body.map("TopicTest", mappingInfo()));
        wrapper.setTopicQueueMappingDetailMap(Body.map("TopicTest", mappingDetail()));
        Body.both(cases, "TopicConfigWrapper", wrapper);
        RegisterBrokerBody body = new RegisterBrokerBody();
        body.setTopicConfigSerializeWrapper(wrapper);
        body.setFilterServerList(new ArrayList<>(List.of("10.0.0.1:1234")));
        Body.both(cases, "RegisterBrokerBody", body);
        // The plain form is only a name for what the compressed one must read as.
        cases.add(new Case("body.RegisterBrokerBody.compressed", body.encode(true), bytes ->
            com.alibaba.fastjson2.JSON.toJSONString(
                RegisterBrokerBody.decode(bytes, true, MQVersion.Version.V5_0_0),
                JSONWriter.Feature.MapSortField)));
    }

    private void clients() {
        HeartbeatData heartbeat = new HeartbeatData();
        heartbeat.setClientID("10.0.0.9@1#2");
        ProducerData producer = new ProducerData();
        producer.setGroupName("pg");
        heartbeat.setProducerDataSet(new HashSet<>(Set.of(producer)));
        ConsumerData consumer = new ConsumerData();
        consumer.setGroupName("cg");
        consumer.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
        consumer.setMessageModel(MessageModel.CLUSTERING);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setSubscriptionDataSet(new HashSet<>(Set.of(Body.subscription())));
        heartbeat.setConsumerDataSet(new HashSet<>(Set.of(consumer)));
        heartbeat.setHeartbeatFingerprint(-5);
        Body.both(cases, "HeartbeatData", heartbeat);

        CheckClientRequestBody check = new CheckClientRequestBody();
        check.setClientId("10.0.0.9@1#2");
        check.setGroup("cg");
        check.setNamespace("ns");
        check.setSubscriptionData(Body.subscription());
        Body.both(cases, "CheckClientRequest", check);

        GetConsumerListByGroupResponseBody ids = new GetConsumerListByGroupResponseBody();
        ids.setConsumerIdList(new ArrayList<>(List.of("10.0.0.9@1#2", "10.0.0.9@1#3")));
        Body.both(cases, "ConsumerIdList", ids);
    }

    private void queues() {
        LockBatchRequestBody lock = new LockBatchRequestBody();
        lock.setClientId("10.0.0.9@1#2");
        lock.setConsumerGroup("cg");
        lock.setMqSet(new HashSet<>(Set.of(Body.queue(1))));
        lock.setOnlyThisBroker(true);
        Body.both(cases, "LockBatchRequest", lock);
        UnlockBatchRequestBody unlock = new UnlockBatchRequestBody();
        unlock.setClientId("10.0.0.9@1#2");
        unlock.setConsumerGroup("cg");
        unlock.setMqSet(new HashSet<>(Set.of(Body.queue(1))));
        Body.both(cases, "UnlockBatchRequest", unlock);
        LockBatchResponseBody locked = new LockBatchResponseBody();
        locked.setLockOKMQSet(new HashSet<>(Set.of(Body.queue(1))));
        Body.both(cases, "LockBatchResponse", locked);

        QueryAssignmentRequestBody ask = new QueryAssignmentRequestBody();
        ask.setTopic("TopicTest");
        ask.setConsumerGroup("cg");
        ask.setClientId("10.0.0.9@1#2");
        ask.setStrategyName("AVG");
        ask.setMessageModel(MessageModel.CLUSTERING);
        Body.both(cases, "QueryAssignmentRequest", ask);
        MessageQueueAssignment share = new MessageQueueAssignment();
        share.setMessageQueue(Body.queue(-1));
        share.setMode(MessageRequestMode.POP);
        QueryAssignmentResponseBody shares = new QueryAssignmentResponseBody();
        shares.setMessageQueueAssignments(new HashSet<>(Set.of(share)));
        Body.both(cases, "QueryAssignmentResponse", shares);
        Body.both(cases, "QueryAssignmentResponse.none", new QueryAssignmentResponseBody());

        SetMessageRequestModeRequestBody mode = new SetMessageRequestModeRequestBody();
        mode.setTopic("TopicTest");
        mode.setConsumerGroup("cg");
        mode.setMode(MessageRequestMode.POP);
        mode.setPopShareQueueNum(2);
        Body.both(cases, "SetMessageRequestMode", mode);
        MessageRequestModeSerializeWrapper modes = new MessageRequestModeSerializeWrapper();
        modes.setMessageRequestModeMap(Body.map("TopicTest", Body.map("cg", mode)));
        Body.both(cases, "MessageRequestModes", modes);
    }
}
