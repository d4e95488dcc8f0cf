package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;

class RequestReplyTest extends ClusterTest {
    private static final long TIMEOUT_MS = 30_000;

    @Test
    void a_request_gets_the_reply_of_the_consumer() throws Exception {
        topology.createTopic(topic, 2);
        DefaultMQProducer asking = clients.producer(unique("asking"));
        answerEverything();
        for (int i = 0; i < 10; i++) {
            Message reply = asking.request(message("question " + i), TIMEOUT_MS);
            assertEquals("answer to question " + i, text(reply));
        }
    }

    @Test
    void a_reply_also_reaches_a_callback() throws Exception {
        topology.createTopic(topic, 2);
        DefaultMQProducer asking = clients.producer(unique("asking"));
        answerEverything();
        CompletableFuture<Message> reply = new CompletableFuture<>();
        asking.request(message("question"), new RequestCallback() {
            @Override
            public void onSuccess(Message message) {
                // The client calls this once more, without a message, when only the send has succeeded.
                if (message != null) {
                    reply.complete(message);
                }
            }

            @Override
            public void onException(Throwable e) {
                reply.completeExceptionally(e);
            }
        }, TIMEOUT_MS);
        assertEquals("answer to question", text(reply.get(LIMIT.toSeconds(), TimeUnit.SECONDS)));
    }

    @Test
    void a_request_that_nobody_answers_ends_with_a_timeout() throws Exception {
        topology.createTopic(topic, 1);
        DefaultMQProducer asking = clients.producer(unique("asking"));
        assertThrows(RequestTimeoutException.class, () -> asking.request(message("anybody?"), 1_000));
    }

    private void answerEverything() throws Exception {
        DefaultMQProducer answering = clients.producer(unique("answering"));
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            try {
                for (Message question : messages) {
                    answering.send(MessageUtil.createReplyMessage(question, bytes("answer to " + text(question))));
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            } catch (Exception e) {
                e.printStackTrace();
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
        });
        consumer.start();
    }
}
