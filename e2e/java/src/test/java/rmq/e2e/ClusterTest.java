package rmq.e2e;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** A test against a running cluster (NAMESRV_ADDR), with clients, a topic name and a group name of its own. */
public abstract class ClusterTest {
    /** Long enough for a busy computer: nothing here waits for it unless something is broken. */
    protected static final Duration LIMIT = Duration.ofSeconds(60);

    private static final String RUN = Long.toString(System.currentTimeMillis() % 1_000_000_000L, 36);
    private static final AtomicInteger NUMBER = new AtomicInteger();

    protected Clients clients;
    protected Topology topology;
    protected String topic;
    protected String group;

    @BeforeEach
    void open() {
        clients = new Clients(namesrv());
        topology = new Topology(clients);
        topic = unique("topic");
        group = unique("group");
    }

    @AfterEach
    void close() {
        clients.close();
    }

    public static String namesrv() {
        String address = System.getProperty("NAMESRV_ADDR", System.getenv("NAMESRV_ADDR"));
        if (address == null || address.isBlank()) {
            throw new IllegalStateException("set NAMESRV_ADDR to the name server of a running cluster, as 127.0.0.1:9876");
        }
        return address;
    }

    /** A name that no other test and no other run uses. */
    protected String unique(String what) {
        return "e2e-" + getClass().getSimpleName() + "-" + what + "-" + RUN + "-" + NUMBER.incrementAndGet();
    }

    /** Waits until the broker has the group's progress at the end of every queue of the topic. */
    protected void awaitAllConsumed(long count) {
        Await.until(LIMIT, "progress of the group at the end of the topic", () -> {
            var offsets = clients.admin().examineConsumeStats(group, topic).getOffsetTable().values();
            return offsets.stream().allMatch(offset -> offset.getConsumerOffset() == offset.getBrokerOffset())
                && offsets.stream().mapToLong(OffsetWrapper::getConsumerOffset).sum() == count;
        });
    }

    protected Message message(String text) {
        return new Message(topic, bytes(text));
    }

    protected static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    protected static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }
}
