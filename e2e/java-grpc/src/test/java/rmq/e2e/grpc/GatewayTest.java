package rmq.e2e.grpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static rmq.e2e.grpc.Gateway.await;
import static rmq.e2e.grpc.Gateway.body;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Producers and consumers of the official client through the gateway. */
class GatewayTest {
    private static final int COUNT = 100;
    private static final Duration INVISIBLE = Duration.ofSeconds(30);

    private final Gateway gateway = new Gateway();

    @AfterEach
    void end() throws Exception {
        gateway.close();
    }

    private static MessageBuilder message(String topic, String body) {
        return Gateway.PROVIDER.newMessageBuilder().setTopic(topic).setBody(body.getBytes());
    }

    @Test
    void a_message_is_sent_and_has_an_id_and_an_offset() throws Exception {
        String topic = Gateway.topic("NORMAL");
        Producer producer = gateway.producer(topic);
        Set<String> ids = new HashSet<>();
        for (int i = 0; i < COUNT; i++) {
            SendReceipt receipt = producer.send(message(topic, "m" + i).build());
            ids.add(receipt.getMessageId().toString());
        }
        assertEquals(COUNT, ids.size());
    }

    @Test
    void a_fifo_message_goes_only_to_a_fifo_topic() throws Exception {
        String fifo = Gateway.topic("FIFO");
        Producer producer = gateway.producer(fifo);
        producer.send(message(fifo, "m").setMessageGroup("g").build());
        assertThrows(Exception.class, () -> producer.send(message(fifo, "m").build()));
        String normal = Gateway.topic("NORMAL");
        Producer other = gateway.producer(normal);
        assertThrows(Exception.class, () -> other.send(message(normal, "m").setMessageGroup("g").build()));
    }

    @Test
    void a_topic_that_is_not_there_is_told_at_once() {
        // The client's own start fails then; what the gateway said is the innermost cause.
        Throwable told = assertThrows(IllegalStateException.class, () -> gateway.producer(Gateway.unique("nowhere")));
        while (told.getCause() != null) {
            told = told.getCause();
        }
        assertTrue(told.getMessage().contains("response-code=40402"), told.getMessage());
    }

    @Test
    void a_simple_consumer_gets_a_message_with_all_its_parts() throws Exception {
        String topic = Gateway.topic("NORMAL");
        SimpleConsumer consumer = gateway.simple(Gateway.group(false, 16), topic, "*");
        assertTrue(consumer.receive(1, INVISIBLE).isEmpty());
        Producer producer = gateway.producer(topic);
        Message sent = message(topic, "body").setTag("tag").setKeys("k1", "k2").addProperty("colour", "blue").build();
        SendReceipt receipt = producer.send(sent);
        MessageView got = Gateway.receive(consumer, 1, INVISIBLE, m -> true).get(0);
        assertEquals(receipt.getMessageId(), got.getMessageId());
        assertEquals("body", body(got));
        assertEquals("tag", got.getTag().orElseThrow());
        assertEquals(Set.of("k1", "k2"), new HashSet<>(got.getKeys()));
        assertEquals(Map.of("colour", "blue"), got.getProperties());
        assertEquals(1, got.getDeliveryAttempt());
        assertTrue(consumer.receive(1, INVISIBLE).isEmpty());
    }

    @Test
    void a_tag_filter_lets_only_its_messages_through() throws Exception {
        String topic = Gateway.topic("NORMAL");
        SimpleConsumer consumer = gateway.simple(Gateway.group(false, 16), topic, "red || blue");
        assertTrue(consumer.receive(1, INVISIBLE).isEmpty());
        Producer producer = gateway.producer(topic);
        for (String tag : List.of("red", "green", "blue")) {
            producer.send(message(topic, tag).setTag(tag).build());
        }
        Set<String> bodies = new HashSet<>();
        Gateway.receive(consumer, 2, INVISIBLE, m -> bodies.add(body(m)));
        assertEquals(Set.of("red", "blue"), bodies);
    }

    @Test
    void a_message_that_is_not_acknowledged_comes_again() throws Exception {
        String topic = Gateway.topic("NORMAL");
        SimpleConsumer consumer = gateway.simple(Gateway.group(false, 16), topic, "*");
        assertTrue(consumer.receive(1, INVISIBLE).isEmpty());
        gateway.producer(topic).send(message(topic, "again").build());
        Duration brief = Duration.ofSeconds(10);
        List<MessageView> all = Gateway.receive(consumer, 2, brief, m -> m.getDeliveryAttempt() > 1);
        assertEquals("again", body(all.get(1)));
        assertEquals(2, all.get(1).getDeliveryAttempt());
    }

    @Test
    void a_shorter_invisible_time_brings_the_message_back_sooner() throws Exception {
        String topic = Gateway.topic("NORMAL");
        SimpleConsumer consumer = gateway.simple(Gateway.group(false, 16), topic, "*");
        assertTrue(consumer.receive(1, INVISIBLE).isEmpty());
        gateway.producer(topic).send(message(topic, "soon").build());
        MessageView first = Gateway.receive(consumer, 1, Duration.ofHours(1), m -> false).get(0);
        consumer.changeInvisibleDuration(first, Duration.ofSeconds(2));
        MessageView second = Gateway.receive(consumer, 1, INVISIBLE, m -> true).get(0);
        assertEquals(first.getMessageId(), second.getMessageId());
    }

    @Test
    void a_push_consumer_gets_every_message() throws Exception {
        String topic = Gateway.topic("NORMAL");
        Set<String> bodies = ConcurrentHashMap.newKeySet();
        AtomicInteger taken = new AtomicInteger();
        String group = Gateway.group(false, 16);
        assertTrue(gateway.simple(group, topic, "*").receive(1, INVISIBLE).isEmpty());
        gateway.push(group, topic, m -> {
            taken.incrementAndGet();
            return bodies.add(body(m)) || true;
        });
        Producer producer = gateway.producer(topic);
        Set<String> sent = new HashSet<>();
        for (int i = 0; i < COUNT; i++) {
            producer.send(message(topic, "m" + i).build());
            sent.add("m" + i);
        }
        await("every message", () -> bodies.equals(sent));
        assertEquals(COUNT, taken.get());
    }

    @Test
    void a_push_consumer_that_fails_gets_the_message_again() throws Exception {
        String topic = Gateway.topic("NORMAL");
        String group = Gateway.group(false, 16);
        assertTrue(gateway.simple(group, topic, "*").receive(1, INVISIBLE).isEmpty());
        List<Integer> attempts = Collections.synchronizedList(new ArrayList<>());
        gateway.push(group, topic, m -> {
            attempts.add(m.getDeliveryAttempt());
            return attempts.size() > 1;
        });
        gateway.producer(topic).send(message(topic, "m").build());
        await("the second attempt", () -> attempts.size() == 2);
        assertEquals(List.of(1, 2), attempts);
    }

    @Test
    void messages_of_a_group_come_in_order_to_an_ordered_consumer() throws Exception {
        String topic = Gateway.topic("FIFO");
        String group = Gateway.group(true, 16);
        assertTrue(gateway.simple(group, topic, "*").receive(1, INVISIBLE).isEmpty());
        Map<String, List<Integer>> got = new ConcurrentHashMap<>();
        gateway.push(group, topic, m -> {
            String name = m.getMessageGroup().orElseThrow();
            got.computeIfAbsent(name, n -> Collections.synchronizedList(new ArrayList<>())).add(Integer.valueOf(body(m)));
            return true;
        });
        Producer producer = gateway.producer(topic);
        List<Integer> numbers = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            numbers.add(i);
            for (String name : List.of("a", "b", "c")) {
                producer.send(message(topic, String.valueOf(i)).setMessageGroup(name).build());
            }
        }
        await("every message", () -> got.values().stream().mapToInt(List::size).sum() >= 90);
        for (String name : List.of("a", "b", "c")) {
            assertEquals(numbers, got.get(name), name);
        }
    }
}
