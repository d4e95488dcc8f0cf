package rmq.e2e;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Everything a client can see of some topics and groups, as sorted lines of text: two snapshots of the same
 * data are equal, whichever server gives them.
 */
final class Snapshot {
    private static final String READER_GROUP = "swap-reader";
    private static final int BATCH = 32;

    private final Clients clients;
    private final String brokerAddr;

    Snapshot(Clients clients, String brokerAddr) {
        this.clients = clients;
        this.brokerAddr = brokerAddr;
    }

    List<String> take(List<String> topics, List<String> groups) throws Exception {
        List<String> lines = new ArrayList<>();
        DefaultMQPullConsumer reader = clients.pullConsumer(READER_GROUP);
        for (String topic : topics) {
            lines.add(topicLine(topic));
            List<MessageQueue> queues = new ArrayList<>(reader.fetchSubscribeMessageQueues(topic));
            queues.sort(Comparator.comparingInt(MessageQueue::getQueueId));
            for (MessageQueue queue : queues) {
                lines.addAll(queueLines(reader, queue));
            }
        }
        for (String group : groups) {
            lines.addAll(groupLines(group));
        }
        return lines;
    }

    private String topicLine(String topic) throws Exception {
        TopicConfig config = clients.admin().examineTopicConfig(brokerAddr, topic);
        return String.join("\t", "T", topic, "read=" + config.getReadQueueNums(), "write=" + config.getWriteQueueNums(),
            "perm=" + config.getPerm());
    }

    private List<String> queueLines(DefaultMQPullConsumer reader, MessageQueue queue) throws Exception {
        List<String> lines = new ArrayList<>();
        long min = reader.minOffset(queue);
        long max = reader.maxOffset(queue);
        lines.add(String.join("\t", "Q", queue.getTopic(), "" + queue.getQueueId(), "min=" + min, "max=" + max));
        long next = min;
        while (next < max) {
            PullResult result = reader.pull(queue, "*", next, BATCH);
            if (result.getPullStatus() != PullStatus.FOUND) {
                lines.add("! pull of " + queue + " at " + next + " answered " + result.getPullStatus());
                break;
            }
            for (MessageExt message : result.getMsgFoundList()) {
                if (message.getQueueOffset() != next) {
                    lines.add("! hole in " + queue + ": wanted " + next + ", got " + message.getQueueOffset());
                }
                next = message.getQueueOffset() + 1;
                lines.add(messageLine(message));
            }
        }
        return lines;
    }

    static String messageLine(MessageExt message) {
        return String.join("\t", "M", message.getTopic(), "" + message.getQueueId(), "" + message.getQueueOffset(),
            "at=" + message.getCommitLogOffset(), "size=" + message.getStoreSize(), "id=" + message.getMsgId(),
            "offsetId=" + ((MessageClientExt) message).getOffsetMsgId(), "flag=" + message.getFlag(),
            "sysFlag=" + message.getSysFlag(), "born=" + message.getBornTimestamp() + "@" + message.getBornHost(),
            "stored=" + message.getStoreTimestamp() + "@" + message.getStoreHost(), "reconsume=" + message.getReconsumeTimes(),
            "body=" + message.getBody().length + "/" + UtilAll.crc32(message.getBody()),
            "properties=" + storedProperties(message));
    }

    /** What the store holds: without the offsets that the client adds while it reads. */
    private static TreeMap<String, String> storedProperties(MessageExt message) {
        TreeMap<String, String> properties = new TreeMap<>(message.getProperties());
        properties.remove("MIN_OFFSET");
        properties.remove("MAX_OFFSET");
        return properties;
    }

    private List<String> groupLines(String group) throws Exception {
        List<String> lines = new ArrayList<>();
        DefaultMQAdminExt admin = clients.admin();
        SubscriptionGroupConfig config = admin.examineSubscriptionGroupConfig(brokerAddr, group);
        lines.add(String.join("\t", "G", group, "retryMax=" + config.getRetryMaxTimes(),
            "retryQueues=" + config.getRetryQueueNums(), "broadcast=" + config.isConsumeBroadcastEnable()));
        TreeMap<String, String> offsets = new TreeMap<>();
        for (var entry : admin.examineConsumeStats(brokerAddr, group, null, 10_000).getOffsetTable().entrySet()) {
            MessageQueue queue = entry.getKey();
            OffsetWrapper offset = entry.getValue();
            offsets.put(queue.getTopic() + "\t" + queue.getQueueId(),
                "committed=" + offset.getConsumerOffset() + "\tmax=" + offset.getBrokerOffset());
        }
        offsets.forEach((queue, offset) -> lines.add("O\t" + group + "\t" + queue + "\t" + offset));
        return lines;
    }
}
