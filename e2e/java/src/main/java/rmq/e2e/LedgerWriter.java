package rmq.e2e;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/**
 * Fills a broker with one of everything that its folder must carry over: several queues, tags, keys, batches,
 * compressed and large bodies, dead letters, group settings and progress. Running it again adds to the same
 * topics. The ledger is what clients saw at the end; it is written only if every acknowledged message is in it.
 */
final class LedgerWriter {
    private static final int PLAIN = 240;
    private static final int BATCHES = 12;
    private static final int BATCH = 10;
    private static final int LARGE = 24;

    private final String namesrv;
    private final String seed;
    private final Random random;
    private final Set<String> acknowledged = new LinkedHashSet<>();

    LedgerWriter(String namesrv, String seed) {
        this.namesrv = namesrv;
        this.seed = seed;
        this.random = new Random(seed.hashCode() * 31L + System.nanoTime());
    }

    void write(String ledger) throws Exception {
        try (Clients clients = new Clients(namesrv)) {
            Topology topology = new Topology(clients);
            String plain = "swap-plain-" + seed;
            String batch = "swap-batch-" + seed;
            String large = "swap-large-" + seed;
            String group = "swap-group-" + seed;
            topology.createTopic(plain, 4);
            topology.createTopic(batch, 8);
            topology.createTopic(large, 1);
            SubscriptionGroupConfig settings = new SubscriptionGroupConfig();
            settings.setGroupName(group);
            settings.setRetryMaxTimes(7);
            settings.setRetryQueueNums(2);
            clients.admin().createAndUpdateSubscriptionGroupConfig(topology.brokerAddr(), settings);

            DefaultMQProducer producer = clients.producer("swap-producer-" + seed);
            sendPlain(producer, plain);
            sendBatches(producer, batch);
            sendLarge(producer, large);
            List<String> topics = new ArrayList<>(List.of(plain, batch, large));
            DefaultMQPullConsumer consumer = clients.pullConsumer(group);
            topics.add(sendToDeadLetters(topology, consumer, plain, group));
            commitProgress(clients, topology, consumer, plain, group);
            commitProgress(clients, topology, consumer, batch, group);

            List<String> lines = new Snapshot(clients, topology.brokerAddr()).take(topics, List.of(group));
            checkAcknowledged(lines);
            lines.add(0, "topics\t" + String.join(",", topics));
            lines.add(1, "groups\t" + group);
            Files.write(Path.of(ledger), lines, StandardCharsets.UTF_8);
            System.out.println("wrote " + acknowledged.size() + " messages, ledger of " + lines.size() + " lines");
        }
    }

    private void sendPlain(DefaultMQProducer producer, String topic) throws Exception {
        for (int i = 0; i < PLAIN; i++) {
            Message message = new Message(topic, i % 5 == 0 ? "" : "Tag" + i % 3, "key-" + i + " shared", i, body(1 + random.nextInt(3000)), true);
            message.putUserProperty("n", "" + i);
            message.putUserProperty("name", "Grüße 世界");
            acknowledge(producer.send(message));
        }
    }

    private void sendBatches(DefaultMQProducer producer, String topic) throws Exception {
        for (int b = 0; b < BATCHES; b++) {
            List<Message> batch = new ArrayList<>();
            for (int i = 0; i < BATCH; i++) {
                batch.add(new Message(topic, "Batch" + b, "batch-" + b + "-" + i, body(1 + random.nextInt(200))));
            }
            acknowledge(producer.send(batch));
        }
    }

    private void sendLarge(DefaultMQProducer producer, String topic) throws Exception {
        for (int i = 0; i < LARGE; i++) {
            byte[] body = i % 2 == 0 ? body(60_000 + random.nextInt(100_000)) : new byte[50_000 + i];
            acknowledge(producer.send(new Message(topic, "Large", "large-" + i, body)));
        }
    }

    /** Sends a few messages back as failed for good; answers the name of the dead-letter topic. */
    private String sendToDeadLetters(Topology topology, DefaultMQPullConsumer consumer, String topic, String group) throws Exception {
        MessageQueue queue = consumer.fetchSubscribeMessageQueues(topic).iterator().next();
        for (MessageExt message : consumer.pull(queue, "*", 0, 3).getMsgFoundList()) {
            consumer.sendMessageBack(message, -1, queue.getBrokerName());
        }
        String dead = "%DLQ%" + group;
        topology.awaitRoute(dead);
        MessageQueue deadQueue = new MessageQueue(dead, queue.getBrokerName(), 0);
        Await.until(Duration.ofSeconds(20), "dead letters", () -> consumer.maxOffset(deadQueue) >= 3);
        return dead;
    }

    private void commitProgress(Clients clients, Topology topology, DefaultMQPullConsumer consumer, String topic, String group) throws Exception {
        for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(topic)) {
            long committed = consumer.maxOffset(queue) / 2 + queue.getQueueId() % 2;
            clients.admin().updateConsumeOffset(topology.brokerAddr(), group, queue, committed);
        }
    }

    private void acknowledge(SendResult result) {
        if (result.getSendStatus() != SendStatus.SEND_OK) {
            throw new AssertionError("send answered " + result);
        }
        for (String id : result.getMsgId().split(",")) {
            acknowledged.add(id);
        }
    }

    private void checkAcknowledged(List<String> lines) {
        Set<String> seen = new LinkedHashSet<>();
        for (String line : lines) {
            if (line.startsWith("!")) {
                throw new AssertionError(line);
            }
            int at = line.indexOf("\tid=");
            if (line.startsWith("M\t") && at > 0) {
                seen.add(line.substring(at + 4, line.indexOf('\t', at + 4)));
            }
        }
        Set<String> missing = new LinkedHashSet<>(acknowledged);
        missing.removeAll(seen);
        if (!missing.isEmpty()) {
            throw new AssertionError(missing.size() + " acknowledged messages cannot be read: " + missing);
        }
    }

    private byte[] body(int length) {
        byte[] body = new byte[length];
        random.nextBytes(body);
        return body;
    }
}
