package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.junit.jupiter.api.Test;
import rmq.e2e.Await;
import rmq.e2e.ClusterTest;

class LitePullConsumerTest extends ClusterTest {
    private static final int COUNT = 100;

    @Test
    void a_subscribed_consumer_polls_every_message_and_commits() throws Exception {
        topology.createTopic(topic, 4);
        send(COUNT);
        DefaultLitePullConsumer consumer = subscribed("*");
        assertEquals(COUNT, poll(consumer, COUNT).size());
        consumer.commitSync();
        Await.until(LIMIT, "committed progress", () -> {
            long committed = 0;
            for (MessageQueue queue : consumer.assignment()) {
                committed += consumer.committed(queue);
            }
            return committed == COUNT;
        });
        consumer.shutdown();

        send(1);
        DefaultLitePullConsumer next = subscribed("*");
        assertEquals(Set.of("m0"), poll(next, 1), "only what came after the commit");
    }

    @Test
    void a_subscription_by_tag_polls_only_that_tag() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < 20; i++) {
            producer.send(new Message(topic, i % 2 == 0 ? "even" : "odd", bytes("m" + i)));
        }
        Set<String> got = poll(subscribed("odd"), 10);
        assertTrue(got.stream().allMatch(text -> Integer.parseInt(text.substring(1)) % 2 == 1), got.toString());
    }

    @Test
    void an_assigned_consumer_seeks_to_any_place() throws Exception {
        topology.createTopic(topic, 1);
        send(COUNT);
        DefaultLitePullConsumer consumer = assigned();
        MessageQueue queue = consumer.fetchMessageQueues(topic).iterator().next();
        consumer.assign(List.of(queue));
        for (long offset : new long[] {90, 0, 50}) {
            awaitPolledFrom(consumer, offset, () -> consumer.seek(queue, offset));
        }
        awaitPolledFrom(consumer, 0, () -> consumer.seekToBegin(queue));
        consumer.seekToEnd(queue);
        send(1);
        awaitPolledFrom(consumer, COUNT, () -> { });
    }

    @Test
    void the_offset_of_a_time_is_that_of_the_first_message_stored_since() throws Exception {
        topology.createTopic(topic, 1);
        send(10);
        DefaultLitePullConsumer consumer = assigned();
        MessageQueue queue = consumer.fetchMessageQueues(topic).iterator().next();
        consumer.assign(List.of(queue));
        long last = awaitPolledFrom(consumer, 9, () -> consumer.seek(queue, 9)).getStoreTimestamp();
        Await.until(LIMIT, "a later millisecond", () -> System.currentTimeMillis() > last + 1);
        SendResult later = clients.producer(unique("producer")).send(message("later"));
        assertEquals(10, later.getQueueOffset());
        Await.until(LIMIT, "the later message in its queue", () -> consumer.offsetForTimestamp(queue, last + 1) == 10);
        assertEquals(0, consumer.offsetForTimestamp(queue, 0L));
        assertEquals(11, consumer.offsetForTimestamp(queue, System.currentTimeMillis() + 3_600_000), "the end, for a time to come");
    }

    @Test
    void a_paused_queue_gives_nothing_until_it_is_resumed() throws Exception {
        topology.createTopic(topic, 2);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        List<MessageQueue> queues = new ArrayList<>(producer.fetchPublishMessageQueues(topic));
        queues.sort(MessageQueue::compareTo);
        DefaultLitePullConsumer consumer = clients.newLitePullConsumer(group);
        consumer.setAutoCommit(false);
        consumer.assign(queues);
        // Before the start: a pull that is under way when a queue is paused still brings what comes.
        consumer.pause(List.of(queues.get(0)));
        consumer.start();
        for (MessageQueue queue : queues) {
            producer.send(message("queue " + queue.getQueueId()), queue);
        }
        assertEquals(Set.of("queue 1"), poll(consumer, 1));
        consumer.resume(List.of(queues.get(0)));
        assertEquals(Set.of("queue 0"), poll(consumer, 1));
    }

    private void send(int count) throws Exception {
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < count; i++) {
            producer.send(message("m" + i));
        }
    }

    private DefaultLitePullConsumer subscribed(String expression) throws Exception {
        DefaultLitePullConsumer consumer = clients.newLitePullConsumer(group);
        consumer.setAutoCommit(false);
        consumer.subscribe(topic, expression);
        consumer.start();
        return consumer;
    }

    private DefaultLitePullConsumer assigned() throws Exception {
        DefaultLitePullConsumer consumer = clients.newLitePullConsumer(group);
        consumer.setAutoCommit(false);
        consumer.start();
        return consumer;
    }

    private Set<String> poll(DefaultLitePullConsumer consumer, int count) {
        Set<String> got = new LinkedHashSet<>();
        // Which queue gave how many, and when: what a failure needs to be understood.
        StringBuilder polls = new StringBuilder();
        long start = System.nanoTime();
        try {
            Await.until(LIMIT, count + " polled messages", () -> {
                for (MessageExt message : consumer.poll(1_000)) {
                    got.add(text(message));
                    polls.append(' ').append(message.getQueueId()).append(':').append(message.getQueueOffset())
                        .append('@').append((System.nanoTime() - start) / 1_000_000).append("ms");
                }
                return got.size() >= count;
            });
        } catch (AssertionError e) {
            String held = "?";
            try {
                held = consumer.assignment().toString();
            } catch (Exception unknown) {
                e.addSuppressed(unknown);
            }
            throw new AssertionError(e.getMessage() + "; got " + got.size() + ":" + polls + "; assigned " + held, e);
        }
        return got;
    }

    /** What puts a consumer somewhere. */
    @FunctionalInterface
    private interface Seek {
        void run() throws Exception;
    }

    /**
     * A pull that was under way during a seek may still be polled first; then comes the place asked for. The client
     * may also lose a seek to such a pull, which then moves its place on: so it is asked for again.
     */
    private MessageExt awaitPolledFrom(DefaultLitePullConsumer consumer, long offset, Seek seek) {
        List<MessageExt> got = new ArrayList<>();
        Await.until(LIMIT, "a poll that starts at " + offset, () -> {
            seek.run();
            for (int polls = 0; polls < 3; polls++) {
                List<MessageExt> polled = consumer.poll(1_000);
                got.addAll(polled);
                if (!polled.isEmpty() && polled.get(0).getQueueOffset() == offset) {
                    return true;
                }
            }
            return false;
        });
        return got.stream().filter(message -> message.getQueueOffset() == offset).findFirst().orElseThrow();
    }
}
