package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Random;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;
import rmq.e2e.Refusal;

/** Bodies from one byte to the limit, plain and compressed. */
class BodyTest extends ClusterTest {
    private static final int MAX = 4 * 1024 * 1024;

    @ParameterizedTest
    @EnumSource(CompressionType.class)
    void a_compressed_body_is_stored_small_and_read_whole(CompressionType type) throws Exception {
        byte[] body = new byte[100_000];
        Arrays.fill(body, (byte) 'x');
        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setCompressType(type);
        MessageExt got = roundTrip(producer, body);
        assertArrayEquals(body, got.getBody());
        assertTrue(got.getStoreSize() < 10_000, "stored in " + got.getStoreSize() + " bytes");
        assertEquals(type, CompressionType.findByValue((got.getSysFlag() >> 8) & 7));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4095, 4096, 65_536, 1_000_003, MAX})
    void a_plain_body_of_any_size_is_read_as_it_was(int size) throws Exception {
        byte[] body = new byte[size];
        new Random(size).nextBytes(body);
        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        assertArrayEquals(body, roundTrip(producer, body).getBody());
    }

    @Test
    void a_body_over_the_limit_of_the_broker_is_refused_as_illegal() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        producer.setMaxMessageSize(2 * MAX);
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        assertEquals(ResponseCode.MESSAGE_ILLEGAL, Refusal.codeOf(() -> producer.send(new Message(topic, new byte[MAX + 1]))));
        assertEquals(0, producer.send(message("small")).getQueueOffset());
    }

    private MessageExt roundTrip(DefaultMQProducer producer, byte[] body) throws Exception {
        topology.createTopic(topic, 1);
        producer.setSendMsgTimeout(30_000);
        producer.start();
        SendResult sent = producer.send(new Message(topic, body));
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        MessageExt got = inbox.await(1, LIMIT).get(0);
        assertEquals(sent.getMsgId(), got.getMsgId());
        return got;
    }
}
