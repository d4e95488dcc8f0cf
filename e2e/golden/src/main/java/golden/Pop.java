package golden;

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.broker.pop.orderly.QueueLevelConsumerManager;
import org.apache.rocketmq.broker.processor.PopMessageProcessor;
import org.apache.rocketmq.common.KeyBuilder;
import org.apache.rocketmq.common.PopAckConstants;
import org.apache.rocketmq.common.consumer.ReceiptHandle;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.body.BatchAck;
import org.apache.rocketmq.remoting.protocol.body.BatchAckMessageRequestBody;
import org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil;
import org.apache.rocketmq.store.pop.AckMsg;
import org.apache.rocketmq.store.pop.BatchAckMsg;
import org.apache.rocketmq.store.pop.PopCheckPoint;

/** Pop: handles, offset texts, names, records of the revive topic, batch acks, order state. */
final class Pop {
    private static final long POP_TIME = 1700000000123L;
    private final List<Case> cases = new ArrayList<>();

    private Pop() {
    }

    static List<Case> cases() {
        Pop pop = new Pop();
        pop.handles();
        pop.offsets();
        pop.names();
        pop.records();
        pop.acks();
        pop.order();
        return pop.cases;
    }

    private void handles() {
        text("extra_info.7", ExtraInfoUtil.buildExtraInfo(100, POP_TIME, 60000, 3, "TopicTest", "broker-a", 150),
            Pop::describeExtra);
        text("extra_info.8", ExtraInfoUtil.buildExtraInfo(
            5000000000L, POP_TIME, 60000, 999, "%RETRY%cg_TopicTest", "broker-a", 0, 5000000003L),
            Pop::describeExtra);
        text("extra_info.8.v2", ExtraInfoUtil.buildExtraInfo(
            1, POP_TIME, 1000, 0, "%RETRY%cg+TopicTest", "broker-a", 0, 2), Pop::describeExtra);
        text("receipt_handle", ReceiptHandle.builder().startOffset(100).retrieveTime(POP_TIME)
            .invisibleTime(60000).reviveQueueId(3).topicType(ReceiptHandle.RETRY_TOPIC).brokerName("broker-a")
            .queueId(150).offset(103).commitLogOffset(123456789L).build().encode(), Pop::describeHandle);
    }

    private static String describeExtra(String text) {
        String[] parts = ExtraInfoUtil.split(text);
        return ExtraInfoUtil.getCkQueueOffset(parts) + " " + ExtraInfoUtil.getPopTime(parts) + " "
            + ExtraInfoUtil.getInvisibleTime(parts) + " " + ExtraInfoUtil.getReviveQid(parts) + " "
            + ExtraInfoUtil.getRealTopic(parts, "TopicTest", "cg") + " " + ExtraInfoUtil.getBrokerName(parts)
            + " " + ExtraInfoUtil.getQueueId(parts) + " " + ExtraInfoUtil.isOrder(parts)
            + (parts.length > 7 ? " " + ExtraInfoUtil.getQueueOffset(parts) : "");
    }

    private static String describeHandle(String text) {
        ReceiptHandle handle = ReceiptHandle.decode(text);
        return handle.getStartOffset() + " " + handle.getRetrieveTime() + " " + handle.getInvisibleTime() + " "
            + handle.getReviveQueueId() + " " + handle.getTopicType() + " " + handle.getBrokerName() + " "
            + handle.getQueueId() + " " + handle.getOffset() + " " + handle.getCommitLogOffset() + " "
            + handle.getNextVisibleTime() + " " + handle.getRealTopic("TopicTest", "cg");
    }

    private void offsets() {
        StringBuilder start = new StringBuilder();
        ExtraInfoUtil.buildStartOffsetInfo(start, "TopicTest", 2, 100);
        ExtraInfoUtil.buildStartOffsetInfo(start, "%RETRY%cg_TopicTest", 0, 0);
        ExtraInfoUtil.buildStartOffsetInfo(start, "%RETRY%cg+TopicTest", 0, 5000000000L);
        text("start_offset_info", start.toString(),
            text -> new TreeMap<>(ExtraInfoUtil.parseStartOffsetInfo(text)).toString());
        StringBuilder offsets = new StringBuilder();
        ExtraInfoUtil.buildMsgOffsetInfo(offsets, "TopicTest", 2, List.of(100L, 101L, 104L));
        ExtraInfoUtil.buildMsgOffsetInfo(offsets, "%RETRY%cg_TopicTest", 0, List.of(0L));
        text("msg_offset_info", offsets.toString(),
            text -> new TreeMap<>(ExtraInfoUtil.parseMsgOffsetInfo(text)).toString());
        StringBuilder counts = new StringBuilder();
        ExtraInfoUtil.buildQueueOffsetOrderCountInfo(counts, "TopicTest", 2, 100, 3);
        ExtraInfoUtil.buildQueueOffsetOrderCountInfo(counts, "TopicTest", 2, 101, 1);
        ExtraInfoUtil.buildQueueIdOrderCountInfo(counts, "TopicTest", 2, 1);
        text("order_count_info", counts.toString(),
            text -> new TreeMap<>(ExtraInfoUtil.parseOrderCountInfo(text)).toString());
    }

    private void names() {
        text("retry_topic.v1", KeyBuilder.buildPopRetryTopicV1("TopicTest", "cg"),
            text -> KeyBuilder.parseNormalTopic(text, "cg"));
        text("retry_topic.v2", KeyBuilder.buildPopRetryTopicV2("TopicTest", "cg"),
            text -> KeyBuilder.parseNormalTopic(text) + " " + KeyBuilder.parseGroup(text));
        text("revive_topic", PopAckConstants.buildClusterReviveTopic("DefaultCluster"),
            text -> text + PopAckConstants.isStartWithRevivePrefix(text));
        text("polling_key", KeyBuilder.buildPollingKey("TopicTest", "cg", -1), text -> text);
        text("ck_key", PopMessageProcessor.genCkUniqueId(checkpoint()), text -> text);
        text("ack_key", PopMessageProcessor.genAckUniqueId(ack(new AckMsg())), text -> text);
        text("batch_ack_key", PopMessageProcessor.genBatchAckUniqueId(batchAck()), text -> text);
    }

    private static PopCheckPoint checkpoint() {
        PopCheckPoint point = new PopCheckPoint();
        point.setStartOffset(100);
        point.setPopTime(POP_TIME);
        point.setInvisibleTime(60000);
        point.setBitMap(5);
        point.setNum((byte) 3);
        point.setQueueId(150);
        point.setTopic("TopicTest");
        point.setCId("cg");
        point.setBrokerName("broker-a");
        point.addDiff(0);
        point.addDiff(1);
        point.addDiff(4);
        return point;
    }

    private static <T extends AckMsg> T ack(T ack) {
        ack.setAckOffset(101);
        ack.setStartOffset(100);
        ack.setConsumerGroup("cg");
        ack.setTopic("TopicTest");
        ack.setQueueId(150);
        ack.setPopTime(POP_TIME);
        ack.setBrokerName("broker-a");
        return ack;
    }

    private static BatchAckMsg batchAck() {
        BatchAckMsg batch = ack(new BatchAckMsg());
        batch.setAckOffset(-1);
        batch.setAckOffsetList(List.of(101L, 104L));
        return batch;
    }

    private void records() {
        PopCheckPoint again = checkpoint();
        again.setQueueOffsetDiff(null);
        again.setNum((byte) 1);
        again.setBitMap(0);
        again.setReviveOffset(77);
        again.setRePutTimes("2");
        json("pop.CheckPoint", checkpoint());
        json("pop.CheckPoint.again", again);
        json("pop.Ack", ack(new AckMsg()));
        json("pop.BatchAck", batchAck());
    }

    private void json(String name, Object record) {
        String written = JSON.toJSONString(record);
        text(name, written, text -> JSON.toJSONString(JSON.parseObject(text, record.getClass()),
            JSONWriter.Feature.MapSortField));
    }

    private void acks() {
        BitSet bits = new BitSet();
        bits.set(0);
        bits.set(4);
        bits.set(33);
        BatchAck one = new BatchAck();
        one.setConsumerGroup("cg");
        one.setTopic("TopicTest");
        one.setRetry("1");
        one.setStartOffset(100);
        one.setQueueId(150);
        one.setReviveQueueId(3);
        one.setPopTime(POP_TIME);
        one.setInvisibleTime(60000);
        one.setBitSet(bits);
        BatchAckMessageRequestBody body = new BatchAckMessageRequestBody();
        body.setBrokerName("broker-a");
        body.setAcks(new ArrayList<>(List.of(one)));
        byte[] bytes = RemotingSerializable.encode(body);
        cases.add(new Case("pop.BatchAckRequest", bytes, read -> {
            BatchAckMessageRequestBody got =
                RemotingSerializable.decode(read, BatchAckMessageRequestBody.class);
            return got.getBrokerName() + " " + got.getAcks();
        }));
    }

    private void order() {
        QueueLevelConsumerManager.OrderInfo info = new QueueLevelConsumerManager.OrderInfo(
            "attempt-1", POP_TIME, 60000L, new ArrayList<>(List.of(100L, 101L, 104L)), POP_TIME, 2);
        info.setOffsetConsumedCount(Body.map(100L, 1));
        info.setOffsetNextVisibleTime(Body.map(101L, POP_TIME + 9));
        QueueLevelConsumerManager manager = new QueueLevelConsumerManager();
        manager.setTable(Body.map("TopicTest@cg", Body.map(2, info)));
        text("pop.OrderInfo", manager.encode(false), text -> {
            QueueLevelConsumerManager read =
                RemotingSerializable.fromJson(text, QueueLevelConsumerManager.class);
            ConcurrentHashMap<Integer, QueueLevelConsumerManager.OrderInfo> queues =
                read.getTable().get("TopicTest@cg");
            return queues.toString();
        });
    }

    private interface Describe {
        String of(String text);
    }

    private void text(String name, String written, Describe describe) {
        cases.add(new Case(name, written.getBytes(StandardCharsets.UTF_8),
            bytes -> describe.of(new String(bytes, StandardCharsets.UTF_8))));
    }
}
