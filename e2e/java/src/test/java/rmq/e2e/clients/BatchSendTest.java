package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;
import rmq.e2e.Refusal;

class BatchSendTest extends ClusterTest {
    private static final int COUNT = 32;

    @Test
    void a_batch_lands_in_one_queue_in_order_and_each_message_keeps_its_own_properties() throws Exception {
        topology.createTopic(topic, 4);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "Even");
        consumer.registerMessageListener(inbox.orderly());
        consumer.start();

        DefaultMQProducer producer = clients.producer(unique("producer"));
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < COUNT; i++) {
            Message message = new Message(topic, i % 2 == 0 ? "Even" : "Odd", "key" + i, bytes("m" + i));
            message.putUserProperty("number", "" + i);
            batch.add(message);
        }
        SendResult result = producer.send(batch);
        assertEquals(SendStatus.SEND_OK, result.getSendStatus());
        assertEquals(COUNT, result.getMsgId().split(",").length);
        assertEquals(COUNT, result.getOffsetMsgId().split(",").length);

        List<MessageExt> got = inbox.await(COUNT / 2, LIMIT);
        List<String> wanted = IntStream.range(0, COUNT / 2).mapToObj(i -> "m" + 2 * i).toList();
        assertEquals(wanted, inbox.texts());
        for (MessageExt message : got) {
            int number = Integer.parseInt(message.getUserProperty("number"));
            assertEquals("key" + number, message.getKeys());
            assertEquals(result.getMessageQueue().getQueueId(), message.getQueueId());
            assertEquals(result.getQueueOffset() + number, message.getQueueOffset(), "offsets inside the batch are dense");
        }
    }

    @Test
    void messages_gathered_by_the_client_into_batches_all_arrive() throws Exception {
        topology.createTopic(topic, 2);
        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setAutoBatch(true);
        producer.start();
        for (int i = 0; i < COUNT; i++) {
            assertEquals(SendStatus.SEND_OK, producer.send(message("m" + i)).getSendStatus());
        }
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        inbox.await(COUNT, LIMIT);
        assertEquals(COUNT, inbox.distinctTexts().size());
    }

    @Test
    void a_batch_over_the_size_limit_of_the_broker_is_refused_whole() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setMaxMessageSize(16 * 1024 * 1024);
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            batch.add(new Message(topic, new byte[1024 * 1024]));
        }
        // Java 5.5.0 answers 1 with the text of an exception; 13 is the answer that says whose fault it is.
        int code = Refusal.codeOf(() -> producer.send(batch));
        assertTrue(Set.of(ResponseCode.MESSAGE_ILLEGAL, ResponseCode.SYSTEM_ERROR).contains(code), "code " + code);
        SendResult next = producer.send(message("after the refusal"));
        assertEquals(0, next.getQueueOffset(), "nothing of the batch was stored");
    }
}
