package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.MessageExt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import rmq.e2e.Await;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;
import rmq.e2e.RestartHook;

@Isolated
class BrokerRestartTest extends ClusterTest {
    private static final int COUNT = 100;

    @Test
    void an_orderly_restart_keeps_messages_and_progress() throws Exception {
        RestartHook restart = RestartHook.orderly();
        topology.createTopic(topic, 4);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < COUNT; i++) {
            producer.send(message("consumed " + i));
        }
        Inbox before = new Inbox();
        DefaultMQPushConsumer consumer = consumer(before);
        before.await(COUNT, LIMIT);
        awaitAllConsumed(COUNT);
        consumer.shutdown();
        for (int i = 0; i < COUNT; i++) {
            producer.send(message("waiting " + i));
        }

        restart.run();

        Inbox after = new Inbox();
        consumer(after);
        List<MessageExt> got = after.await(COUNT, LIMIT);
        assertTrue(got.stream().allMatch(message -> text(message).startsWith("waiting")), "nothing consumed before comes again");
        assertEquals(COUNT, after.distinctTexts().size());
    }

    @Test
    void clients_in_the_middle_of_their_work_ride_over_an_orderly_restart() throws Exception {
        sendAndConsumeAcross(RestartHook.orderly());
    }

    @Test
    void clients_in_the_middle_of_their_work_lose_nothing_acknowledged_when_the_broker_is_killed() throws Exception {
        sendAndConsumeAcross(RestartHook.kill());
    }

    private void sendAndConsumeAcross(RestartHook restart) throws Exception {
        topology.createTopic(topic, 4);
        Inbox inbox = new Inbox();
        consumer(inbox);
        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setSendMsgTimeout(2_000);
        producer.start();
        Set<String> acknowledged = ConcurrentHashMap.newKeySet();
        AtomicBoolean stop = new AtomicBoolean();
        Thread sending = new Thread(() -> send(producer, acknowledged, stop), "sending");
        sending.start();
        try {
            Await.until(LIMIT, "messages before the restart", () -> acknowledged.size() >= COUNT);
            restart.run();
            int then = acknowledged.size();
            Await.until(LIMIT, "messages after the restart", () -> acknowledged.size() >= then + COUNT);
        } finally {
            stop.set(true);
            sending.join(LIMIT.toMillis());
        }
        Set<String> wanted = new HashSet<>(acknowledged);
        inbox.await("every acknowledged message", got -> inbox.distinctTexts().containsAll(wanted), LIMIT);
        assertOneMessageAtEachOffset(inbox.all());
    }

    private void send(DefaultMQProducer producer, Set<String> acknowledged, AtomicBoolean stop) {
        for (int i = 0; !stop.get(); i++) {
            String text = "m" + i;
            try {
                if (producer.send(message(text)).getSendStatus() == SendStatus.SEND_OK) {
                    acknowledged.add(text);
                }
            } catch (Exception e) {
                // The broker is away: what was not acknowledged may be lost.
                Thread.yield();
            }
        }
    }

    private static void assertOneMessageAtEachOffset(List<MessageExt> messages) {
        ConcurrentHashMap<String, String> at = new ConcurrentHashMap<>();
        for (MessageExt message : messages) {
            String before = at.put(message.getQueueId() + "@" + message.getQueueOffset(), message.getMsgId());
            assertTrue(before == null || before.equals(message.getMsgId()), "two messages at one offset of queue " + message.getQueueId());
        }
    }

    private DefaultMQPushConsumer consumer(Inbox inbox) throws Exception {
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        return consumer;
    }
}
