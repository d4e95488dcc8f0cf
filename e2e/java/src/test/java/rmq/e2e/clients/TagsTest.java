package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

/** One queue and an orderly consumer: what the filter lets through comes in order, so nothing has to be waited out. */
class TagsTest extends ClusterTest {
    private static final List<String> TAGS = List.of("red", "green", "blue", "");

    @Test
    void a_subscription_of_two_tags_gets_exactly_their_messages() throws Exception {
        assertEquals(List.of("red 0", "blue 2", "red 4", "blue 6", "red 8", "blue 10", "red 12", "blue 14"),
            consumed("red || blue", 8));
    }

    @Test
    void a_star_gets_messages_of_every_tag_and_of_none() throws Exception {
        assertEquals(16, consumed("*", 16).size());
    }

    @Test
    void a_tag_with_the_same_hash_as_another_does_not_get_its_messages() throws Exception {
        topology.createTopic(topic, 1);
        assertEquals("Aa".hashCode(), "BB".hashCode());
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (String tag : List.of("BB", "Aa", "BB", "Aa")) {
            producer.send(new Message(topic, tag, bytes(tag)));
        }
        assertEquals(List.of("Aa", "Aa"), consumer("Aa", 2));
    }

    @Test
    void tags_outside_of_ascii_are_filtered_like_any_other() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (String tag : List.of("订单", "заказ", "订单", "last")) {
            producer.send(new Message(topic, tag, bytes(tag)));
        }
        assertEquals(List.of("订单", "订单", "last"), consumer("订单||last", 3));
    }

    private List<String> consumed(String expression, int count) throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < 16; i++) {
            String tag = TAGS.get(i % TAGS.size());
            producer.send(new Message(topic, tag, bytes(tag + " " + i)));
        }
        return consumer(expression, count);
    }

    private List<String> consumer(String expression, int count) throws Exception {
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, expression);
        consumer.registerMessageListener(inbox.orderly());
        consumer.start();
        inbox.await(count, LIMIT);
        return inbox.texts();
    }
}
