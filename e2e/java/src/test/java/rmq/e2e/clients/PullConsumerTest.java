package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Refusal;

/** The bare pull request: one answer for one offset. */
@SuppressWarnings("deprecation")
class PullConsumerTest extends ClusterTest {
    private static final int COUNT = 10;

    @Test
    void each_place_in_a_queue_has_its_answer() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < COUNT; i++) {
            producer.send(new Message(topic, "tag", bytes("m" + i)));
        }
        DefaultMQPullConsumer consumer = clients.pullConsumer(group);
        MessageQueue queue = consumer.fetchSubscribeMessageQueues(topic).iterator().next();
        assertEquals(0, consumer.minOffset(queue));
        assertEquals(COUNT, consumer.maxOffset(queue));

        PullResult some = consumer.pull(queue, "*", 3, 4);
        assertEquals(PullStatus.FOUND, some.getPullStatus());
        assertEquals(4, some.getMsgFoundList().size());
        assertEquals("m3", text(some.getMsgFoundList().get(0)));
        assertEquals(7, some.getNextBeginOffset());
        assertEquals(0, some.getMinOffset());
        assertEquals(COUNT, some.getMaxOffset());

        PullResult end = consumer.pull(queue, "*", COUNT, 4);
        assertEquals(PullStatus.NO_NEW_MSG, end.getPullStatus());
        assertEquals(COUNT, end.getNextBeginOffset());

        PullResult beyond = consumer.pull(queue, "*", COUNT + 100, 4);
        assertEquals(PullStatus.OFFSET_ILLEGAL, beyond.getPullStatus());
        assertEquals(COUNT, beyond.getNextBeginOffset());

        PullResult filtered = consumer.pull(queue, "other", 0, 4);
        assertEquals(PullStatus.NO_MATCHED_MSG, filtered.getPullStatus());
        assertEquals(COUNT, filtered.getNextBeginOffset());
    }

    @Test
    void an_empty_queue_answers_nothing_new() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQPullConsumer consumer = clients.pullConsumer(group);
        MessageQueue queue = consumer.fetchSubscribeMessageQueues(topic).iterator().next();
        assertEquals(PullStatus.NO_NEW_MSG, consumer.pull(queue, "*", 0, 4).getPullStatus());
        PullResult beyond = consumer.pull(queue, "*", 7, 4);
        assertEquals(PullStatus.OFFSET_ILLEGAL, beyond.getPullStatus());
        assertEquals(0, beyond.getNextBeginOffset());
    }

    @Test
    void a_queue_that_the_topic_does_not_have_is_refused() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQPullConsumer consumer = clients.pullConsumer(group);
        consumer.fetchSubscribeMessageQueues(topic);
        MessageQueue none = new MessageQueue(topic, topology.brokerName(), 5);
        assertEquals(ResponseCode.INVALID_PARAMETER, Refusal.codeOf(() -> consumer.pull(none, "*", 0, 4)));
    }

    @Test
    void progress_is_kept_where_it_was_put() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < COUNT; i++) {
            producer.send(message("m" + i));
        }
        DefaultMQPullConsumer consumer = clients.pullConsumer(group);
        MessageQueue queue = consumer.fetchSubscribeMessageQueues(topic).iterator().next();
        consumer.pull(queue, "*", 0, 4);
        clients.admin().updateConsumeOffset(topology.brokerAddr(), group, queue, 6);
        assertEquals(6, consumer.fetchConsumeOffset(queue, true));
    }
}
