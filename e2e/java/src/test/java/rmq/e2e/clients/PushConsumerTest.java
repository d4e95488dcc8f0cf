package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.protocol.admin.ConsumeStats;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

class PushConsumerTest extends ClusterTest {
    private static final int COUNT = 60;

    @Test
    void a_waiting_consumer_is_woken_by_a_new_message() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = consumer(inbox);
        producer.send(message("first"));
        inbox.await(1, LIMIT);
        // From here the consumer's pull waits at the broker for up to 15 s; five arrivals must not take five waits.
        for (int i = 2; i <= 6; i++) {
            producer.send(message("m" + i));
            inbox.await(i, Duration.ofSeconds(10));
        }
        consumer.shutdown();
    }

    @Test
    void a_group_goes_on_where_it_stopped() throws Exception {
        topology.createTopic(topic, 4);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < COUNT; i++) {
            producer.send(message("before " + i));
        }
        Inbox first = new Inbox();
        DefaultMQPushConsumer consumer = consumer(first);
        first.await(COUNT, LIMIT);
        awaitAllConsumed(COUNT);
        consumer.shutdown();

        for (int i = 0; i < COUNT; i++) {
            producer.send(message("after " + i));
        }
        Inbox second = new Inbox();
        consumer(second);
        second.await(COUNT, LIMIT);
        assertEquals(List.of(), second.texts().stream().filter(text -> text.startsWith("before")).toList());
        assertEquals(COUNT, second.distinctTexts().size());
    }

    @Test
    void the_broker_knows_the_progress_of_a_group() throws Exception {
        topology.createTopic(topic, 2);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < COUNT; i++) {
            producer.send(message("m" + i));
        }
        Inbox inbox = new Inbox();
        consumer(inbox);
        inbox.await(COUNT, LIMIT);
        awaitAllConsumed(COUNT);
        ConsumeStats stats = clients.admin().examineConsumeStats(group, topic);
        assertEquals(0, stats.computeTotalDiff());
        assertEquals(2, stats.getOffsetTable().size());
    }

    @Test
    void large_backlogs_are_consumed_by_many_pulls() throws Exception {
        topology.createTopic(topic, 8);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        int count = 2_000;
        for (int i = 0; i < count; i += 100) {
            List<Message> batch = IntStream.range(i, i + 100).mapToObj(n -> message("m" + n)).toList();
            producer.send(batch);
        }
        Inbox inbox = new Inbox();
        consumer(inbox);
        inbox.await(count, LIMIT);
        assertEquals(count, inbox.distinctTexts().size());
    }

    private DefaultMQPushConsumer consumer(Inbox inbox) throws Exception {
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        return consumer;
    }
}
