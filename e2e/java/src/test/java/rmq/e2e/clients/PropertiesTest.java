package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;
import rmq.e2e.Refusal;

class PropertiesTest extends ClusterTest {
    @Test
    void user_properties_of_any_text_come_back_as_they_were() throws Exception {
        Map<String, String> properties = new TreeMap<>(Map.of(
            "plain", "value", "пример", "значение", "emoji", "🚀 ok", "json", "{\"a\":[1,2,\"\\\\\"]}",
            "spaces", "  a b  ", "equals", "a=b&c=d", "zeros", "000", "long", "x".repeat(20_000)));
        MessageExt got = roundTrip(properties);
        properties.forEach((name, value) -> assertEquals(value, got.getUserProperty(name), name));
    }

    @Test
    void several_keys_and_the_flag_are_kept() throws Exception {
        topology.createTopic(topic, 1);
        Message message = new Message(topic, "tag", "order-1 order-2", 42, bytes("keys"), false);
        MessageExt got = send(message);
        assertEquals("order-1 order-2", got.getKeys());
        assertEquals(42, got.getFlag());
        assertEquals("false", got.getProperty(MessageConst.PROPERTY_WAIT_STORE_MSG_OK));
    }

    @Test
    void the_broker_adds_its_cluster_and_region() throws Exception {
        MessageExt got = roundTrip(Map.of("a", "b"));
        assertEquals(topology.cluster(), got.getProperty(MessageConst.PROPERTY_CLUSTER));
        assertEquals("DefaultRegion", got.getProperty(MessageConst.PROPERTY_MSG_REGION));
        assertEquals("true", got.getProperty(MessageConst.PROPERTY_TRACE_SWITCH));
        assertTrue(got.getStoreTimestamp() >= got.getBornTimestamp() - 1000);
    }

    @Test
    void properties_over_the_limit_are_refused_as_illegal() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        Message message = message("too much");
        message.putUserProperty("long", "x".repeat(33_000));
        assertEquals(ResponseCode.MESSAGE_ILLEGAL, Refusal.codeOf(() -> producer.send(message)));
        assertEquals(0, producer.send(message("small")).getQueueOffset());
    }

    private MessageExt roundTrip(Map<String, String> properties) throws Exception {
        topology.createTopic(topic, 1);
        Message message = message("properties");
        properties.forEach(message::putUserProperty);
        return send(message);
    }

    private MessageExt send(Message message) throws Exception {
        clients.producer(unique("producer")).send(message);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        return inbox.await(1, LIMIT).get(0);
    }
}
