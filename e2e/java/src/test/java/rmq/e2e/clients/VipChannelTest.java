package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

class VipChannelTest extends ClusterTest {
    @Test
    void clients_send_and_consume_through_the_port_two_below() throws Exception {
        topology.createTopic(topic, 2);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.setVipChannelEnabled(true);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setVipChannelEnabled(true);
        producer.start();
        for (int i = 0; i < 10; i++) {
            assertEquals(SendStatus.SEND_OK, producer.send(message("m" + i)).getSendStatus());
        }
        inbox.await(10, LIMIT);
        assertEquals(10, inbox.distinctTexts().size());
    }
}
