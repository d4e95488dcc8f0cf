package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

/** The push consumer of the remoting client in POP mode: messages are acknowledged one by one, queues belong to nobody. */
class PopConsumerTest extends ClusterTest {
    private static final int COUNT = 60;
    private static final long ADMIN_MS = 10_000;

    @Test
    void popped_messages_are_consumed_once_and_acknowledged() throws Exception {
        popMode(4);
        send(COUNT);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = newConsumer();
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        inbox.await(COUNT, LIMIT);
        awaitAllConsumed(COUNT);
        assertEquals(COUNT, inbox.all().size());
        assertEquals(COUNT, inbox.distinctTexts().size());
        for (MessageExt message : inbox.all()) {
            assertEquals(topic, message.getTopic());
        }
    }

    @Test
    void a_waiting_pop_is_woken_by_a_new_message() throws Exception {
        popMode(1);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = newConsumer();
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 1; i <= 6; i++) {
            producer.send(message("m" + i));
            inbox.await(i, LIMIT);
        }
        awaitAllConsumed(6);
    }

    @Test
    void a_message_that_failed_comes_again_and_counts() throws Exception {
        popMode(2);
        send(10);
        Inbox inbox = new Inbox();
        AtomicBoolean failed = new AtomicBoolean();
        DefaultMQPushConsumer consumer = newConsumer();
        consumer.registerMessageListener((MessageListenerConcurrently) (more, context) -> {
            if (more.stream().anyMatch(message -> text(message).equals("m3")) && failed.compareAndSet(false, true)) {
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            inbox.add(more);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        inbox.await(10, LIMIT);
        MessageExt again = inbox.all().stream().filter(message -> text(message).equals("m3")).findFirst().orElseThrow();
        assertEquals(1, again.getReconsumeTimes());
        assertEquals(topic, again.getTopic());
        awaitAllConsumed(10);
    }

    @Test
    void a_consumer_that_hangs_blocks_nobody_and_its_messages_go_to_others() throws Exception {
        popMode(4);
        CountDownLatch release = new CountDownLatch(1);
        CountDownLatch hanging = new CountDownLatch(1);
        DefaultMQPushConsumer first = newConsumer();
        first.setPopInvisibleTime(10_000);
        first.setConsumeThreadMin(1);
        first.setConsumeThreadMax(1);
        first.registerMessageListener((MessageListenerConcurrently) (more, context) -> {
            hanging.countDown();
            try {
                release.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        first.start();
        send(COUNT);
        hanging.await();
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer second = newConsumer();
        second.registerMessageListener(inbox.concurrently());
        second.start();
        Set<String> wanted = Set.copyOf(IntStream.range(0, COUNT).mapToObj(i -> "m" + i).toList());
        inbox.await("every message at the consumer that works",
            got -> got.stream().map(message -> text(message)).distinct().count() == COUNT, LIMIT);
        assertEquals(wanted, Set.copyOf(inbox.distinctTexts()));
        release.countDown();
    }

    @Test
    void ordered_pops_keep_the_order_of_a_queue() throws Exception {
        popMode(1);
        send(20);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = newConsumer();
        consumer.registerMessageListener(inbox.orderly());
        consumer.start();
        inbox.await(20, LIMIT);
        assertEquals(IntStream.range(0, 20).mapToObj(i -> "m" + i).toList(), inbox.texts());
        awaitAllConsumed(20);
    }

    @Test
    void pull_and_pop_groups_share_a_topic() throws Exception {
        popMode(2);
        send(COUNT);
        Inbox popped = new Inbox();
        DefaultMQPushConsumer consumer = newConsumer();
        consumer.registerMessageListener(popped.concurrently());
        consumer.start();
        Inbox pulled = new Inbox();
        DefaultMQPushConsumer puller = clients.newPushConsumer(unique("puller"));
        puller.subscribe(topic, "*");
        puller.registerMessageListener(pulled.concurrently());
        puller.start();
        popped.await(COUNT, LIMIT);
        pulled.await(COUNT, LIMIT);
        awaitAllConsumed(COUNT);
        assertEquals(COUNT, popped.distinctTexts().size());
        assertEquals(COUNT, pulled.distinctTexts().size());
    }

    private void popMode(int queues) throws Exception {
        topology.createTopic(topic, queues);
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(group);
        clients.admin().createAndUpdateSubscriptionGroupConfig(topology.brokerAddr(), config);
        clients.admin().setMessageRequestMode(topology.brokerAddr(), topic, group, MessageRequestMode.POP, 8, ADMIN_MS);
    }

    private DefaultMQPushConsumer newConsumer() throws Exception {
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.setClientRebalance(false);
        consumer.subscribe(topic, "*");
        return consumer;
    }

    private void send(int count) throws Exception {
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < count; i++) {
            producer.send(message("m" + i));
        }
    }
}
