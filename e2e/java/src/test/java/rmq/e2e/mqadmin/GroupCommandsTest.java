package rmq.e2e.mqadmin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.junit.jupiter.api.Test;
import rmq.e2e.Await;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

class GroupCommandsTest extends ClusterTest {
    @Test
    void updateSubGroup_creates_and_changes_a_group_and_deleteSubGroup_removes_it() throws Exception {
        MqAdmin created = MqAdmin.succeed("updateSubGroup", "-b", topology.brokerAddr(), "-g", group, "-r", "5", "-q", "2");
        created.assertContains("create subscription group to " + topology.brokerAddr() + " success.");
        created.assertContains("groupName=" + group + ", consumeEnable=true");
        created.assertContains("retryQueueNums=2, retryMaxTimes=5");
        SubscriptionGroupConfig config = clients.admin().examineSubscriptionGroupConfig(topology.brokerAddr(), group);
        assertEquals(5, config.getRetryMaxTimes());
        assertEquals(2, config.getRetryQueueNums());

        MqAdmin.succeed("updateSubGroup", "-c", topology.cluster(), "-g", group, "-r", "9", "-s", "false");
        config = clients.admin().examineSubscriptionGroupConfig(topology.brokerAddr(), group);
        assertEquals(9, config.getRetryMaxTimes());
        assertTrue(!config.isConsumeEnable());

        MqAdmin deleted = MqAdmin.succeed("deleteSubGroup", "-b", topology.brokerAddr(), "-g", group);
        deleted.assertContains("delete subscription group [" + group + "] from broker [" + topology.brokerAddr() + "] success.");
    }

    @Test
    void consumerProgress_shows_how_far_a_group_is_in_every_queue() throws Exception {
        topology.createTopic(topic, 2);
        DefaultMQProducer producer = clients.producer(unique("producer"));
        for (int i = 0; i < 10; i++) {
            producer.send(message("m" + i), new MessageQueue(topic, topology.brokerName(), i % 2));
        }
        DefaultMQPushConsumer consumer = consumer();
        awaitAllConsumed(10);
        MqAdmin progress = MqAdmin.succeed("consumerProgress", "-g", group);
        assertEquals(List.of("Topic", "Broker Name", "QID", "Broker Offset", "Consumer Offset", "Diff", "Inflight", "LastTime"), progress.columns());
        List<List<String>> rows = progress.rows().stream().filter(row -> row.get(0).equals(topic)).toList();
        assertEquals(2, rows.size());
        for (int queue = 0; queue < 2; queue++) {
            assertEquals(List.of(topic, topology.brokerName(), "" + queue, "5", "5", "0"), rows.get(queue).subList(0, 6));
        }
        progress.assertMatches("Consume Diff Total: 0");
        MqAdmin all = MqAdmin.succeed("consumerProgress");
        List<String> row = all.row(group);
        assertEquals("1", row.get(1));
        assertTrue(row.get(2).matches("V\\d+_\\d+_\\d+.*"), row.toString());
        assertEquals("PUSH", row.get(3));
        assertEquals("CLUSTERING", row.get(4));
        consumer.shutdown();
    }

    @Test
    void consumerProgress_of_a_group_that_never_was_says_that_its_retry_topic_has_no_route() throws Exception {
        MqAdmin.refused(ResponseCode.TOPIC_NOT_EXIST, "consumerProgress", "-g", group);
    }

    @Test
    void consumerConnection_and_producerConnection_show_who_is_there() throws Exception {
        topology.createTopic(topic, 2);
        String producerGroup = unique("producer");
        DefaultMQProducer producer = clients.producer(producerGroup);
        producer.send(message("one"));
        DefaultMQPushConsumer consumer = consumer();
        awaitAllConsumed(1);
        MqAdmin consumers = MqAdmin.succeed("consumerConnection", "-g", group);
        consumers.assertContains(consumer.buildMQClientId());
        consumers.assertMatches("(?m)^" + topic + "\\s+\\*\\s*$");
        consumers.assertContains("ConsumeType: CONSUME_PASSIVELY");
        consumers.assertContains("MessageModel: CLUSTERING");

        Await.until(LIMIT, "the producer's heartbeat", () ->
            !clients.admin().examineProducerConnectionInfo(producerGroup, topic).getConnectionSet().isEmpty());
        MqAdmin producers = MqAdmin.succeed("producerConnection", "-g", producerGroup, "-t", topic);
        producers.assertContains(producer.buildMQClientId());
        producers.assertContains("JAVA");
    }

    private DefaultMQPushConsumer consumer() throws Exception {
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(new Inbox().concurrently());
        consumer.start();
        return consumer;
    }
}
