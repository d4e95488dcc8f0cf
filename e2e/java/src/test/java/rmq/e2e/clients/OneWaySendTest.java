package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

class OneWaySendTest extends ClusterTest {
    private static final int COUNT = 50;

    @Test
    void messages_sent_without_waiting_for_an_answer_arrive() throws Exception {
        topology.createTopic(topic, 2);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();

        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < COUNT; i++) {
            producer.sendOneway(message("m" + i));
            // Nobody hears of a one-way message that a busy broker refuses, so few are on their way at a time.
            inbox.await(i - 4, LIMIT);
        }
        inbox.await(COUNT, LIMIT);
        assertEquals(COUNT, inbox.distinctTexts().size());
    }
}
