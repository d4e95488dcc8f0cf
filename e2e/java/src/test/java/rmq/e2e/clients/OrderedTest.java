package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

class OrderedTest extends ClusterTest {
    private static final int QUEUES = 4;
    private static final int COUNT = 200;

    @Test
    void each_queue_is_consumed_in_order_by_one_thread_at_a_time() throws Exception {
        topology.createTopic(topic, QUEUES);
        sendByOrderKey(COUNT);

        Inbox inbox = new Inbox();
        Set<Integer> busy = ConcurrentHashMap.newKeySet();
        AtomicBoolean overlap = new AtomicBoolean();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            int queue = context.getMessageQueue().getQueueId();
            if (!busy.add(queue)) {
                overlap.set(true);
            }
            inbox.add(messages);
            busy.remove(queue);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();

        inbox.await(COUNT, LIMIT);
        assertInOrder(inbox.all());
        assertFalse(overlap.get(), "two threads in one queue");
    }

    @Test
    void a_failing_message_holds_its_queue_until_it_succeeds() throws Exception {
        topology.createTopic(topic, 1);
        sendByOrderKey(20);

        Inbox inbox = new Inbox();
        AtomicInteger attempts = new AtomicInteger();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.setSuspendCurrentQueueTimeMillis(100);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            if (text(messages.get(0)).equals("0/3") && attempts.incrementAndGet() <= 2) {
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            inbox.add(messages);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();

        inbox.await(20, LIMIT);
        assertEquals(3, attempts.get());
        assertInOrder(inbox.all());
        assertEquals(20, inbox.texts().size());
    }

    @Test
    void order_is_kept_when_a_second_consumer_takes_over_queues() throws Exception {
        topology.createTopic(topic, QUEUES);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer first = orderly(inbox);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        send(producer, 0, 100);
        inbox.await(100, LIMIT);

        Inbox others = new Inbox();
        DefaultMQPushConsumer second = clients.newPushConsumer(group);
        second.subscribe(topic, "*");
        second.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            others.add(messages);
            inbox.add(messages);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        second.start();
        int next = 100;
        while (others.all().isEmpty()) {
            assertTrue(next < 60_000, "the second consumer gets a queue");
            send(producer, next, next + 100);
            next += 100;
            inbox.await(next, LIMIT);
        }
        first.shutdown();
        send(producer, next, next + 100);
        long total = next + 100;
        inbox.await("all " + total, got -> got.stream().map(ClusterTest::text).distinct().count() == total, LIMIT);
        assertInOrder(inbox.all());
    }

    private DefaultMQPushConsumer orderly(Inbox inbox) throws Exception {
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.orderly());
        consumer.start();
        return consumer;
    }

    private void sendByOrderKey(int count) throws Exception {
        send(clients.producer(unique("producer")), 0, count);
    }

    /** Message "k/n" is the n-th of key k, and a key always goes to the same queue. */
    private void send(DefaultMQProducer producer, int from, int to) throws Exception {
        for (int i = from; i < to; i++) {
            int key = i % QUEUES;
            producer.send(message(key + "/" + i / QUEUES), (queues, message, arg) -> queues.get((Integer) arg % queues.size()), key);
        }
    }

    /** A repeated message (a queue taken over before its progress was saved) may start an earlier part again, without gaps. */
    private static void assertInOrder(List<MessageExt> messages) {
        Map<Integer, Long> last = new HashMap<>();
        for (MessageExt message : messages) {
            long wanted = last.getOrDefault(message.getQueueId(), -1L) + 1;
            assertTrue(message.getQueueOffset() <= wanted,
                "queue " + message.getQueueId() + ": " + message.getQueueOffset() + " came before " + wanted);
            last.put(message.getQueueId(), message.getQueueOffset());
        }
    }
}
