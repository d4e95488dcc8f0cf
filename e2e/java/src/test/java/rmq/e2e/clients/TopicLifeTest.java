package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.junit.jupiter.api.Test;
import rmq.e2e.Await;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;
import rmq.e2e.Refusal;

/** Topics that are made by a send, changed, deleted and made again, and topics that do not exist. */
class TopicLifeTest extends ClusterTest {
    @Test
    void the_first_send_to_a_new_topic_creates_it_with_the_queues_the_client_asks_for() throws Exception {
        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setDefaultTopicQueueNums(3);
        producer.start();
        producer.send(message("first"));
        topology.awaitRoute(topic, 3);
        QueueData queues = clients.admin().examineTopicRouteInfo(topic).getQueueDatas().get(0);
        assertEquals(3, queues.getReadQueueNums());
        assertEquals(6, queues.getPerm());

        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = consumer(inbox);
        inbox.await(1, LIMIT);
        consumer.shutdown();
    }

    @Test
    void a_topic_that_does_not_exist_has_no_queues_to_send_to_or_read_from() throws Exception {
        DefaultMQProducer producer = clients.producer(unique("producer"));
        assertThrows(MQClientException.class, () -> producer.fetchPublishMessageQueues(topic));
        assertEquals(ResponseCode.TOPIC_NOT_EXIST, Refusal.codeOf(() -> clients.admin().examineTopicRouteInfo(topic)));
    }

    @Test
    void the_broker_does_not_create_a_topic_without_a_template() throws Exception {
        DefaultMQProducer producer = clients.newProducer(unique("producer"));
        producer.setCreateTopicKey(unique("no-such-template"));
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        assertEquals(ResponseCode.TOPIC_NOT_EXIST, Refusal.codeOf(() -> producer.send(message("nowhere"))));
    }

    @Test
    void a_topic_name_with_a_forbidden_character_is_refused_by_the_broker() throws Exception {
        TopicConfig config = new TopicConfig(topic + "/../x");
        int code = Refusal.codeOf(() -> clients.admin().createAndUpdateTopicConfig(topology.brokerAddr(), config));
        assertTrue(List.of(ResponseCode.INVALID_PARAMETER, ResponseCode.SYSTEM_ERROR).contains(code), "code " + code);
    }

    @Test
    void a_topic_can_get_more_queues_while_it_is_in_use() throws Exception {
        topology.createTopic(topic, 1);
        Inbox inbox = new Inbox();
        consumer(inbox);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        producer.send(message("one"));
        inbox.await(1, LIMIT);
        topology.createTopic(topic, 4);
        MessageQueue last = new MessageQueue(topic, topology.brokerName(), 3);
        producer.send(message("four"), last);
        inbox.await("a message of the new queue", got -> got.stream().anyMatch(message -> message.getQueueId() == 3), LIMIT);
    }

    @Test
    void a_deleted_topic_is_gone_and_one_of_the_same_name_starts_empty() throws Exception {
        topology.createTopic(topic, 4);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < 12; i++) {
            producer.send(message("old " + i));
        }
        clients.admin().deleteTopic(topic, topology.cluster());
        Await.until(LIMIT, "the end of the route", () -> routeIsGone());

        topology.createTopic(topic, 2);
        DefaultMQProducer later = clients.producer(unique("producer"));
        for (int queue = 0; queue < 2; queue++) {
            SendResult result = later.send(message("new " + queue), new MessageQueue(topic, topology.brokerName(), queue));
            assertEquals(0, result.getQueueOffset());
        }
        Inbox inbox = new Inbox();
        consumer(inbox);
        inbox.await(2, LIMIT);
        assertTrue(inbox.texts().stream().allMatch(text -> text.startsWith("new")), inbox.texts().toString());
    }

    private boolean routeIsGone() throws Exception {
        try {
            clients.admin().examineTopicRouteInfo(topic);
            return false;
        } catch (MQClientException e) {
            return e.getResponseCode() == ResponseCode.TOPIC_NOT_EXIST;
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
