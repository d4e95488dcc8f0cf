package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

@SuppressWarnings("deprecation")
class NamespaceTest extends ClusterTest {
    @Test
    void a_client_in_a_namespace_uses_prefixed_names_and_does_not_see_them() throws Exception {
        String namespace = "ns" + topic.hashCode();
        String real = namespace + "%" + topic;
        topology.createTopic(real, 2);

        Inbox inside = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.setNamespace(namespace);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inside.concurrently());
        consumer.start();
        Inbox outside = new Inbox();
        DefaultMQPushConsumer plain = clients.newPushConsumer(unique("plain"));
        plain.subscribe(real, "*");
        plain.registerMessageListener(outside.concurrently());
        plain.start();

        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setNamespace(namespace);
        producer.start();
        SendResult result = producer.send(message("in the namespace"));
        assertEquals(topic, result.getMessageQueue().getTopic());
        MessageExt got = inside.await(1, LIMIT).get(0);
        assertEquals(topic, got.getTopic());
        assertEquals(real, outside.await(1, LIMIT).get(0).getTopic());
        assertEquals(List.of("in the namespace"), inside.texts());
    }

    @Test
    void a_second_generation_namespace_travels_in_the_header() throws Exception {
        topology.createTopic(topic, 2);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.setNamespaceV2("instance-1");
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setNamespaceV2("instance-1");
        producer.start();
        producer.send(message("with a header"));
        assertEquals("with a header", text(inbox.await(1, LIMIT).get(0)));
    }
}
