package rmq.e2e.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.body.Connection;
import org.junit.jupiter.api.Test;
import rmq.e2e.Await;
import rmq.e2e.ClusterTest;
import rmq.e2e.Inbox;

class RebalanceTest extends ClusterTest {
    private static final int QUEUES = 8;

    @Test
    void two_consumers_share_the_queues_and_the_one_that_stays_takes_all() throws Exception {
        topology.createTopic(topic, QUEUES);
        Inbox firstInbox = new Inbox();
        Inbox secondInbox = new Inbox();
        DefaultMQPushConsumer first = consumer(firstInbox, true);
        awaitQueues(first, QUEUES);
        DefaultMQPushConsumer second = consumer(secondInbox, true);
        awaitQueues(first, QUEUES / 2);
        awaitQueues(second, QUEUES / 2);

        DefaultMQProducer producer = clients.producer(unique("producer"));
        sendToEachQueue(producer, "shared");
        firstInbox.await(QUEUES / 2, LIMIT);
        secondInbox.await(QUEUES / 2, LIMIT);
        Set<Integer> all = new TreeSet<>(queues(firstInbox));
        all.addAll(queues(secondInbox));
        assertEquals(QUEUES, all.size());
        assertEquals(QUEUES, firstInbox.all().size() + secondInbox.all().size(), "no message went to both");

        second.shutdown();
        awaitQueues(first, QUEUES);
        sendToEachQueue(producer, "alone");
        firstInbox.await(QUEUES / 2 + QUEUES, LIMIT);
    }

    @Test
    void the_broker_lists_the_members_of_a_group_with_what_they_subscribe() throws Exception {
        topology.createTopic(topic, QUEUES);
        DefaultMQPushConsumer first = consumer(new Inbox(), true);
        DefaultMQPushConsumer second = consumer(new Inbox(), true);
        Await.until(LIMIT, "two members", () -> clients.admin().examineConsumerConnectionInfo(group).getConnectionSet().size() == 2);
        var connection = clients.admin().examineConsumerConnectionInfo(group);
        Set<String> ids = connection.getConnectionSet().stream().map(Connection::getClientId).collect(Collectors.toSet());
        assertEquals(Set.of(first.buildMQClientId(), second.buildMQClientId()), ids);
        assertEquals(MessageModel.CLUSTERING, connection.getMessageModel());
        assertEquals("*", connection.getSubscriptionTable().get(topic).getSubString());
    }

    @Test
    void queues_are_assigned_by_the_broker_to_clients_that_ask_for_it() throws Exception {
        topology.createTopic(topic, QUEUES);
        Inbox firstInbox = new Inbox();
        Inbox secondInbox = new Inbox();
        DefaultMQPushConsumer first = consumer(firstInbox, false);
        DefaultMQPushConsumer second = consumer(secondInbox, false);
        awaitQueues(first, QUEUES / 2);
        awaitQueues(second, QUEUES / 2);
        sendToEachQueue(clients.producer(unique("producer")), "assigned");
        firstInbox.await(QUEUES / 2, LIMIT);
        secondInbox.await(QUEUES / 2, LIMIT);
        Set<Integer> all = new HashSet<>(queues(firstInbox));
        all.addAll(queues(secondInbox));
        assertEquals(QUEUES, all.size());
    }

    private void awaitQueues(DefaultMQPushConsumer consumer, int count) {
        Await.until(LIMIT, count + " queues of " + consumer.getInstanceName(), () -> {
            Set<MessageQueue> own = consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet();
            return own.stream().filter(queue -> queue.getTopic().equals(topic)).count() == count;
        });
    }

    private void sendToEachQueue(DefaultMQProducer producer, String text) throws Exception {
        for (int queue = 0; queue < QUEUES; queue++) {
            producer.send(message(text + queue), new MessageQueue(topic, topology.brokerName(), queue));
        }
    }

    private static Set<Integer> queues(Inbox inbox) {
        return inbox.all().stream().map(MessageExt::getQueueId).collect(Collectors.toSet());
    }

    private DefaultMQPushConsumer consumer(Inbox inbox, boolean clientRebalance) throws Exception {
        DefaultMQPushConsumer consumer = clients.newPushConsumer(group);
        consumer.setClientRebalance(clientRebalance);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox.concurrently());
        consumer.start();
        return consumer;
    }
}
