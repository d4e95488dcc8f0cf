package rmq.e2e.grpc;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/** The gateway of a running cluster: topics and groups by `rocketmq admin`, clients by the official library. */
final class Gateway implements AutoCloseable {
    /** Long enough for a busy computer: nothing waits for it unless something is broken. */
    static final Duration LIMIT = Duration.ofSeconds(90);
    static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static final long RUN = System.nanoTime() % 1_000_000_000;

    private final List<AutoCloseable> open = Collections.synchronizedList(new ArrayList<>());

    static String unique(String what) {
        return "e2e-grpc-" + what + "-" + RUN + "-" + NUMBER.incrementAndGet();
    }

    static String environment(String name) {
        String value = System.getenv(name);
        if (value == null || value.isEmpty()) {
            throw new AssertionError("set " + name + ": it comes from the output of the cluster under test");
        }
        return value;
    }

    private static void admin(String... arguments) throws Exception {
        List<String> line = new ArrayList<>(List.of(environment("ROCKETMQ_BIN"), "admin"));
        line.addAll(List.of(arguments));
        Process process = new ProcessBuilder(line).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), said);
    }

    /** A topic of this kind: NORMAL, FIFO, DELAY or TRANSACTION. */
    static String topic(String kind) throws Exception {
        String topic = unique("topic");
        admin("topic", "create", topic, "-q", "4", "-a", "message.type=" + kind);
        return topic;
    }

    /** A consumer group, ordered or not. */
    static String group(boolean ordered, int retries) throws Exception {
        String group = unique("group");
        admin("group", "create", group, "--ordered", String.valueOf(ordered), "--retries", String.valueOf(retries));
        return group;
    }

    static ClientConfiguration configuration() {
        return ClientConfiguration.newBuilder()
            .setEndpoints(environment("GRPC_ADDR"))
            .enableSsl(false)
            .setRequestTimeout(Duration.ofSeconds(10))
            .build();
    }

    Producer producer(String... topics) throws Exception {
        Producer producer = PROVIDER.newProducerBuilder()
            .setClientConfiguration(configuration())
            .setTopics(topics)
            .build();
        open.add(producer);
        return producer;
    }

    /** A simple consumer whose group has begun: what is sent from now on is received. */
    SimpleConsumer simple(String group, String topic, String expression) throws Exception {
        SimpleConsumer consumer = PROVIDER.newSimpleConsumerBuilder()
            .setClientConfiguration(configuration())
            .setConsumerGroup(group)
            .setAwaitDuration(Duration.ofSeconds(5))
            .setSubscriptionExpressions(Collections.singletonMap(topic, new FilterExpression(expression)))
            .build();
        open.add(consumer);
        return consumer;
    }

    PushConsumer push(String group, String topic, Listener listener) throws Exception {
        PushConsumer consumer = PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(configuration())
            .setConsumerGroup(group)
            .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL))
            .setMessageListener(message -> listener.take(message) ? ConsumeResult.SUCCESS : ConsumeResult.FAILURE)
            .build();
        open.add(consumer);
        return consumer;
    }

    /** Receives until there are so many messages; each is given to the listener and acknowledged if it says so. */
    static List<MessageView> receive(SimpleConsumer consumer, int count, Duration invisible, Listener listener)
        throws Exception {
        List<MessageView> all = new ArrayList<>();
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (all.size() < count) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError(all.size() + " of " + count + " messages came");
            }
            for (MessageView message : consumer.receive(32, invisible)) {
                all.add(message);
                if (listener.take(message)) {
                    consumer.ack(message);
                }
            }
        }
        return all;
    }

    static String body(MessageView message) {
        byte[] bytes = new byte[message.getBody().remaining()];
        message.getBody().duplicate().get(bytes);
        return new String(bytes);
    }

    static void await(String what, java.util.function.BooleanSupplier condition) {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("not within " + LIMIT.toSeconds() + " s: " + what);
            }
            java.util.concurrent.locks.LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50));
        }
    }

    @Override
    public void close() throws Exception {
        for (AutoCloseable one : open) {
            one.close();
        }
    }

    /** What becomes of a message: true if it was consumed. */
    interface Listener {
        boolean take(MessageView message);
    }
}
