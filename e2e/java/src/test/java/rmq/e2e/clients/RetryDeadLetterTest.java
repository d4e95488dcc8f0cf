package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.junit.jupiter.api.Test;
import rmq.e2e.Await;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

class RetryDeadLetterTest extends ClusterTest {
    private static final int ONE_SECOND = 1;

    @Test
    void a_failed_message_comes_again_and_then_succeeds() throws Exception {
        topology.createTopic(topic, 1);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = consumer(16, ONE_SECOND, inbox, 1);
        SendResult sent = send("fails once");
        List<MessageExt> got = inbox.await(2, LIMIT);
        assertEquals(0, got.get(0).getReconsumeTimes());
        MessageExt again = got.get(1);
        assertEquals(1, again.getReconsumeTimes());
        assertEquals("fails once", text(again));
        assertEquals(topic, again.getTopic(), "the client shows the topic that it was sent to");
        assertEquals(sent.getMsgId(), again.getMsgId());
        assertEquals("key", again.getKeys());
        consumer.shutdown();
    }

    @Test
    void a_message_that_never_succeeds_becomes_a_dead_letter() throws Exception {
        topology.createTopic(topic, 1);
        Inbox inbox = new Inbox();
        consumer(2, ONE_SECOND, inbox, Integer.MAX_VALUE);
        SendResult sent = send("hopeless");
        List<MessageExt> got = inbox.await(3, LIMIT);
        assertEquals(List.of(0, 1, 2), got.stream().map(MessageExt::getReconsumeTimes).toList());

        MessageExt dead = deadLetters(1).get(0);
        assertEquals("hopeless", text(dead));
        assertEquals(3, dead.getReconsumeTimes());
        assertEquals("key", dead.getKeys());
        assertEquals("tag", dead.getTags());
        assertEquals(sent.getMsgId(), dead.getMsgId());
        assertEquals(topic, dead.getProperty(MessageConst.PROPERTY_RETRY_TOPIC));
        assertEquals(sent.getOffsetMsgId(), dead.getProperty(MessageConst.PROPERTY_ORIGIN_MESSAGE_ID));
        assertEquals(3, inbox.all().size(), "a dead letter is not delivered again");
    }

    @Test
    void a_negative_delay_level_sends_a_message_to_the_dead_letters_at_once() throws Exception {
        topology.createTopic(topic, 1);
        Inbox inbox = new Inbox();
        consumer(16, -1, inbox, Integer.MAX_VALUE);
        send("given up");
        MessageExt dead = deadLetters(1).get(0);
        assertEquals("given up", text(dead));
        assertEquals(1, inbox.all().size());
    }

    @Test
    void an_ordered_message_beyond_its_attempts_becomes_a_dead_letter_and_frees_the_queue() throws Exception {
        topology.createTopic(topic, 1);
        List<String> attempts = new CopyOnWriteArrayList<>();
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.setMaxReconsumeTimes(1);
        consumer.setSuspendCurrentQueueTimeMillis(100);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            if (text(messages.get(0)).equals("bad")) {
                attempts.add("bad");
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            inbox.add(messages);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        send("bad");
        send("good");
        inbox.await(1, LIMIT);
        assertEquals(List.of("good"), inbox.texts());
        assertEquals(2, attempts.size());
        assertEquals("bad", text(deadLetters(1).get(0)));
    }

    @Test
    void a_message_sent_back_by_hand_is_delivered_again() throws Exception {
        topology.createTopic(topic, 1);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = consumer(16, ONE_SECOND, inbox, 0);
        send("again please");
        MessageExt first = inbox.await(1, LIMIT).get(0);
        consumer.sendMessageBack(first, ONE_SECOND);
        MessageExt second = inbox.await(2, LIMIT).get(1);
        assertEquals(1, second.getReconsumeTimes());
        assertEquals("again please", text(second));
    }

    /** A consumer whose first {@code failures} deliveries fail. */
    private DefaultMQPushConsumer consumer(int maxReconsumeTimes, int delayLevel, Inbox inbox, int failures) throws Exception {
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.setMaxReconsumeTimes(maxReconsumeTimes);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            context.setDelayLevelWhenNextConsume(delayLevel);
            inbox.add(messages);
            return inbox.all().size() <= failures ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    private SendResult send(String text) throws Exception {
        DefaultMQProducer producer = clients.producer(unique("producer"));
        return producer.send(new Message(topic, "tag", "key", bytes(text)));
    }

    @SuppressWarnings("deprecation")
    private List<MessageExt> deadLetters(int count) throws Exception {
        String dead = MixAll.getDLQTopic(group);
        topology.awaitRoute(dead);
        DefaultMQPullConsumer reader = clients.pullConsumer(unique("reader"));
        MessageQueue queue = new MessageQueue(dead, topology.brokerName(), 0);
        Await.until(LIMIT, count + " dead letters", () -> reader.maxOffset(queue) >= count);
        PullResult result = reader.pull(queue, "*", 0, count);
        assertEquals(PullStatus.FOUND, result.getPullStatus());
        assertNotNull(result.getMsgFoundList());
        assertTrue(result.getMsgFoundList().size() >= count);
        return result.getMsgFoundList();
    }
}
