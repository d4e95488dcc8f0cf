package rmq.e2e;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Official clients of one cluster, each with its own instance name (so none shares a connection with another),
 * all shut down in reverse order by {@link #close}.
 */
public final class Clients implements AutoCloseable {
    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static final int SEND_TIMEOUT_MS = 10_000;
    private static final int POLL_MS = 1_000;

    private final String namesrv;
    private final Deque<Runnable> shutdowns = new ArrayDeque<>();
    private DefaultMQAdminExt admin;

    public Clients(String namesrv) {
        this.namesrv = namesrv;
    }

    public String namesrv() {
        return namesrv;
    }

    /** A producer that is not started yet. */
    public DefaultMQProducer newProducer(String group) {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        configure(producer);
        producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
        onClose(producer::shutdown);
        return producer;
    }

    public DefaultMQProducer producer(String group) throws MQClientException {
        DefaultMQProducer producer = newProducer(group);
        producer.start();
        return producer;
    }

    /**
     * A push consumer that is not started yet. It starts at the first message: with the client's default, the last,
     * what is sent while it looks for its place is skipped.
     */
    public DefaultMQPushConsumer newPushConsumer(String group) {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        configure(consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(4);
        consumer.setConsumeThreadMax(4);
        consumer.setPersistConsumerOffsetInterval(POLL_MS);
        onClose(consumer::shutdown);
        return consumer;
    }

    /** A lite pull consumer that is not started yet; it starts at the first message, too. */
    public DefaultLitePullConsumer newLitePullConsumer(String group) {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
        configure(consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullThreadNums(2);
        onClose(consumer::shutdown);
        return consumer;
    }

    /** The older pull consumer, started. */
    @SuppressWarnings("deprecation")
    public DefaultMQPullConsumer pullConsumer(String group) throws MQClientException {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(group);
        configure(consumer);
        onClose(consumer::shutdown);
        consumer.start();
        return consumer;
    }

    public synchronized DefaultMQAdminExt admin() throws MQClientException {
        if (admin == null) {
            DefaultMQAdminExt created = new DefaultMQAdminExt(SEND_TIMEOUT_MS);
            configure(created);
            created.start();
            onClose(created::shutdown);
            admin = created;
        }
        return admin;
    }

    private void configure(ClientConfig client) {
        client.setNamesrvAddr(namesrv);
        client.setInstanceName("e2e-" + ProcessHandle.current().pid() + "-" + NUMBER.incrementAndGet());
        client.setPollNameServerInterval(POLL_MS);
        client.setMqClientApiTimeout(SEND_TIMEOUT_MS);
    }

    private synchronized void onClose(Runnable shutdown) {
        shutdowns.push(shutdown);
    }

    @Override
    public synchronized void close() {
        while (!shutdowns.isEmpty()) {
            try {
                shutdowns.pop().run();
            } catch (RuntimeException e) {
                System.err.println("shutdown of a client: " + e);
            }
        }
    }
}
