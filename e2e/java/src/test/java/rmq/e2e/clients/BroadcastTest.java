package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

class BroadcastTest extends ClusterTest {
    private static final int COUNT = 40;

    @Test
    void every_member_of_a_broadcast_group_gets_every_message() throws Exception {
        topology.createTopic(topic, 4);
        Inbox first = broadcastConsumer();
        Inbox second = broadcastConsumer();

        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < COUNT; i++) {
            producer.send(message("m" + i));
        }
        first.await(COUNT, LIMIT);
        second.await(COUNT, LIMIT);
        assertEquals(COUNT, first.distinctTexts().size());
        assertEquals(first.distinctTexts().size(), second.distinctTexts().size());
    }

    private Inbox broadcastConsumer() throws Exception {
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.setMessageModel(MessageModel.BROADCASTING);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        return inbox;
    }
}
