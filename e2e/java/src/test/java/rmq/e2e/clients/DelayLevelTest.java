package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

/** Delay levels carry the retry ladder; a client may also use them for its own messages. */
class DelayLevelTest extends ClusterTest {
    @Test
    void a_message_of_level_two_is_delivered_after_five_seconds_in_its_own_topic() throws Exception {
        topology.createTopic(topic, 2);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "tag");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        Message message = new Message(topic, "tag", "key", bytes("later"));
        message.setDelayTimeLevel(2);
        clients.producer(unique("producer")).send(message);
        MessageExt got = inbox.await(1, LIMIT).get(0);
        assertEquals("later", text(got));
        assertEquals("key", got.getKeys());
        assertTrue(got.getStoreTimestamp() - got.getBornTimestamp() >= 4_900, "delivered too early");
    }
}
