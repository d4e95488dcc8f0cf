package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

class AsyncSendTest extends ClusterTest {
    private static final int COUNT = 300;

    @Test
    void every_callback_is_called_with_success_and_every_message_arrives() throws Exception {
        topology.createTopic(topic, 4);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        Map<String, SendResult> results = new ConcurrentHashMap<>();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        CountDownLatch answered = new CountDownLatch(COUNT);
        for (int i = 0; i < COUNT; i++) {
            producer.send(message("m" + i), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    results.put(result.getMsgId(), result);
                    answered.countDown();
                }

                @Override
                public void onException(Throwable e) {
                    failure.set(e);
                    answered.countDown();
                }
            });
        }
        assertTrue(answered.await(LIMIT.toSeconds(), TimeUnit.SECONDS), "every send is answered");
        if (failure.get() != null) {
            throw new AssertionError("an asynchronous send failed", failure.get());
        }
        assertEquals(COUNT, results.size());

        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        inbox.await(COUNT, LIMIT);
        assertEquals(COUNT, inbox.distinctTexts().size());
    }
}
