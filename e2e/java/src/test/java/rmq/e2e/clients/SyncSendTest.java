package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageId;
import org.apache.rocketmq.common.message.MessageQueue;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

class SyncSendTest extends ClusterTest {
    private static final int COUNT = 64;

    @Test
    void every_message_sent_is_stored_once_with_an_id_and_arrives_as_it_was() throws Exception {
        topology.createTopic(topic, 4);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();

        DefaultMQProducer producer = clients.producer(unique("producer"));
        Map<String, SendResult> sent = new HashMap<>();
        for (int i = 0; i < COUNT; i++) {
            Message message = new Message(topic, "Tag" + i % 3, "key" + i, i, bytes("text " + i), true);
            message.putUserProperty("number", "" + i);
            SendResult result = producer.send(message);
            assertEquals(SendStatus.SEND_OK, result.getSendStatus());
            sent.put(result.getMsgId(), result);
        }
        assertEquals(COUNT, sent.size(), "message ids are unique");

        List<MessageExt> got = inbox.await(COUNT, LIMIT);
        assertEquals(COUNT, got.size(), "none comes twice");
        for (MessageExt message : got) {
            SendResult result = sent.get(message.getMsgId());
            String number = message.getUserProperty("number");
            assertEquals("text " + number, text(message));
            assertEquals("key" + number, message.getKeys());
            assertEquals("Tag" + Integer.parseInt(number) % 3, message.getTags());
            assertEquals(Integer.parseInt(number), message.getFlag());
            assertEquals(result.getQueueOffset(), message.getQueueOffset());
            assertEquals(result.getMessageQueue().getQueueId(), message.getQueueId());
            assertEquals(result.getOffsetMsgId(), ((MessageClientExt) message).getOffsetMsgId());
        }
    }

    @Test
    void queue_offsets_are_dense_and_start_at_zero() throws Exception {
        topology.createTopic(topic, 3);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        Map<Integer, Set<Long>> offsets = new HashMap<>();
        for (int i = 0; i < COUNT; i++) {
            SendResult result = producer.send(message("m" + i));
            offsets.computeIfAbsent(result.getMessageQueue().getQueueId(), q -> new HashSet<>()).add(result.getQueueOffset());
        }
        assertEquals(Set.of(0, 1, 2), offsets.keySet(), "the client goes round the queues");
        offsets.forEach((queue, of) -> {
            for (long offset = 0; offset < of.size(); offset++) {
                assertTrue(of.contains(offset), "offset " + offset + " of queue " + queue);
            }
        });
    }

    @Test
    void a_message_goes_to_the_chosen_queue_and_is_found_by_its_offset_id() throws Exception {
        topology.createTopic(topic, 4);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        MessageQueue third = new MessageQueue(topic, topology.brokerName(), 2);
        SendResult result = producer.send(message("to the third"), third);
        assertEquals(third, result.getMessageQueue());

        MessageId id = MessageDecoder.decodeMessageId(result.getOffsetMsgId());
        assertEquals(topology.brokerAddr(), id.getAddress().toString().replaceFirst("^.*/", ""), "the id names the broker");

        MessageExt found = producer.viewMessage(topic, result.getOffsetMsgId());
        assertArrayEquals(bytes("to the third"), found.getBody());
        assertEquals(2, found.getQueueId());
    }

    @Test
    void a_selector_spreads_messages_over_queues_by_its_argument() throws Exception {
        topology.createTopic(topic, 4);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < 8; i++) {
            SendResult result = producer.send(message("m" + i), (queues, message, arg) -> queues.get((Integer) arg % queues.size()), i);
            assertEquals(i % 4, result.getMessageQueue().getQueueId());
            assertEquals(i / 4, result.getQueueOffset());
        }
    }
}
