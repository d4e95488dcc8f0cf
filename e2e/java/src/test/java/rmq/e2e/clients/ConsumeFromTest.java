package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import rmq.e2e.Await;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;
import org.junit.jupiter.api.Test;

/** Where a group starts that has no progress yet, with a backlog of 20 messages. */
class ConsumeFromTest extends ClusterTest {
    private static final int BACKLOG = 20;

    /**
     * The broker answers "0" for a new group while message 0 of the queue is still in memory, so every policy
     * starts a young topic at its beginning.
     */
    @ParameterizedTest
    @EnumSource(names = {"CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_TIMESTAMP"})
    void a_new_group_starts_a_young_topic_at_its_beginning(ConsumeFromWhere policy) throws Exception {
        DefaultMQProducer producer = backlog();
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = consumer(policy, MessageModel.CLUSTERING, inbox);
        producer.send(message("new"));
        inbox.await("the new message", got -> inbox.texts().contains("new"), LIMIT);
        assertEquals(BACKLOG + 1, inbox.distinctTexts().size());
        consumer.shutdown();
    }

    /** A broadcast group keeps its progress itself, so the policy is carried out by the client alone. */
    @Test
    void a_broadcast_group_starts_at_the_end() throws Exception {
        DefaultMQProducer producer = backlog();
        Inbox inbox = new Inbox();
        consumer(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, MessageModel.BROADCASTING, inbox);
        assertOnlyNewArrive(producer, inbox);
    }

    @Test
    void a_broadcast_group_starts_at_the_first_message() throws Exception {
        backlog();
        Inbox inbox = new Inbox();
        consumer(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, MessageModel.BROADCASTING, inbox);
        inbox.await(BACKLOG, LIMIT);
        assertEquals("old 0", inbox.texts().get(0));
    }

    @Test
    void a_broadcast_group_starts_at_a_time() throws Exception {
        DefaultMQProducer producer = backlog();
        Inbox early = new Inbox();
        DefaultMQPushConsumer consumer = consumer(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, MessageModel.BROADCASTING, early);
        early.await(BACKLOG, LIMIT);
        consumer.shutdown();

        group = unique("group");
        Inbox late = new Inbox();
        DefaultMQPushConsumer tomorrow = clients.newPushConsumer(group);
        tomorrow.setConsumeTimestamp(UtilAll.timeMillisToHumanString3(System.currentTimeMillis() + 86_400_000));
        start(tomorrow, ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, MessageModel.BROADCASTING, late);
        assertOnlyNewArrive(producer, late);
    }

    private DefaultMQProducer backlog() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < BACKLOG; i++) {
            producer.send(message("old " + i));
        }
        return producer;
    }

    /** The consumer may find its place only after some of these were sent; from then on it gets all. */
    private void assertOnlyNewArrive(DefaultMQProducer producer, Inbox inbox) throws Exception {
        for (int i = 0; inbox.all().isEmpty(); i++) {
            assertTrue(i < 600, "the consumer never found a new message");
            producer.send(message("new " + i));
            Await.until(LIMIT, "a moment", new Moment());
        }
        assertTrue(inbox.texts().stream().allMatch(text -> text.startsWith("new")), inbox.texts().toString());
    }

    /** Holds when asked for the second time. */
    private static final class Moment implements Await.Condition {
        private boolean asked;

        @Override
        public boolean holds() {
            boolean second = asked;
            asked = true;
            return second;
        }
    }

    private DefaultMQPushConsumer consumer(ConsumeFromWhere policy, MessageModel model, Inbox inbox) throws Exception {
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        start(consumer, policy, model, inbox);
        return consumer;
    }

    private void start(DefaultMQPushConsumer consumer, ConsumeFromWhere policy, MessageModel model, Inbox inbox) throws Exception {
        consumer.setConsumeFromWhere(policy);
        consumer.setMessageModel(model);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.orderly());
        consumer.start();
    }
}
