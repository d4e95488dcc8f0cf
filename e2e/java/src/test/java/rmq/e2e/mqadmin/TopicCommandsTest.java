package rmq.e2e.mqadmin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.junit.jupiter.api.Test;
import rmq.e2e.Await;
import rmq.e2e.ClusterTest;

class TopicCommandsTest extends ClusterTest {
    @Test
    void updateTopic_creates_a_topic_on_one_broker_and_topicRoute_shows_it() throws Exception {
        MqAdmin created = MqAdmin.succeed("updateTopic", "-b", topology.brokerAddr(), "-t", topic, "-r", "4", "-w", "3", "-p", "6");
        created.assertContains("create topic to " + topology.brokerAddr() + " success.");
        created.assertContains("topicName=" + topic + ", readQueueNums=4, writeQueueNums=3, perm=RW-");
        topology.awaitRoute(topic, 3);
        MqAdmin route = MqAdmin.succeed("topicRoute", "-t", topic);
        String compact = route.out.replaceAll("\\s+", "");
        assertTrue(compact.matches(".*\"brokerAddrs\":\\{\"?0\"?:\"" + topology.brokerAddr() + "\".*"), route.toString());
        for (String part : List.of("\"brokerName\":\"" + topology.brokerName() + "\"", "\"cluster\":\"" + topology.cluster() + "\"",
            "\"filterServerTable\":{}", "\"perm\":6", "\"readQueueNums\":4", "\"writeQueueNums\":3", "\"topicSysFlag\":0")) {
            assertTrue(compact.contains(part), "no " + part + " in " + route);
        }
    }

    @Test
    void updateTopic_creates_a_topic_in_a_whole_cluster_and_changes_its_permission() throws Exception {
        MqAdmin created = MqAdmin.succeed("updateTopic", "-c", topology.cluster(), "-t", topic);
        created.assertContains("create topic to " + topology.brokerAddr() + " success.");
        topology.awaitRoute(topic, 8);
        MqAdmin.succeed("updateTopic", "-c", topology.cluster(), "-t", topic, "-p", "4");
        Await.until(LIMIT, "read permission alone", () ->
            clients.admin().examineTopicRouteInfo(topic).getQueueDatas().get(0).getPerm() == 4);
    }

    @Test
    void updateTopic_refuses_a_name_that_is_no_topic() throws Exception {
        MqAdmin run = MqAdmin.run("updateTopic", "-b", topology.brokerAddr(), "-t", "bad/../name");
        assertTrue(run.err.contains("SubCommandException"), run.toString());
        assertTrue(run.err.matches("(?s).*CODE: (1|29)\\b.*"), run.toString());
    }

    @Test
    void topicList_names_every_topic_and_with_c_its_cluster_and_groups() throws Exception {
        topology.createTopic(topic, 1);
        MqAdmin list = MqAdmin.succeed("topicList");
        assertTrue(list.lines().contains(topic), "the new topic is listed");
        assertTrue(list.lines().contains(topology.cluster()), "so is the topic of the cluster's name");

        subscribe();
        MqAdmin clusters = MqAdmin.succeed("topicList", "-c");
        assertEquals(List.of("Cluster Name", "Topic", "Consumer Group"), clusters.columns());
        assertTrue(clusters.rows().contains(List.of(topology.cluster(), topic, group)), clusters.toString());
    }

    @Test
    void topicStatus_shows_the_offsets_of_every_queue_and_when_they_were_last_written() throws Exception {
        topology.createTopic(topic, 2);
        clients.producer(unique("producer")).send(message("one"), new MessageQueue(topic, topology.brokerName(), 1));
        MqAdmin status = MqAdmin.succeed("topicStatus", "-t", topic);
        assertEquals(List.of("Broker Name", "QID", "Min Offset", "Max Offset", "Last Updated"), status.columns());
        List<List<String>> rows = status.rows().stream().filter(row -> row.get(0).equals(topology.brokerName())).toList();
        assertEquals(List.of(topology.brokerName(), "0", "0", "0"), rows.get(0));
        assertEquals(List.of(topology.brokerName(), "1", "0", "1"), rows.get(1).subList(0, 4));
        assertTrue(rows.get(1).get(4).matches("\\d{4}-\\d{2}-\\d{2}"), rows.toString());
    }

    @Test
    void topicStatus_and_topicRoute_of_an_unknown_topic_say_that_there_is_no_route() throws Exception {
        MqAdmin.refused(ResponseCode.TOPIC_NOT_EXIST, "topicRoute", "-t", topic);
        MqAdmin.refused(ResponseCode.TOPIC_NOT_EXIST, "topicStatus", "-t", topic);
    }

    @Test
    void deleteTopic_takes_a_topic_off_the_brokers_and_the_name_server() throws Exception {
        topology.createTopic(topic, 2);
        MqAdmin deleted = MqAdmin.succeed("deleteTopic", "-c", topology.cluster(), "-t", topic);
        deleted.assertContains("delete topic [" + topic + "] from cluster [" + topology.cluster() + "] success.");
        deleted.assertContains("delete topic [" + topic + "] from NameServer success.");
        MqAdmin.refused(ResponseCode.TOPIC_NOT_EXIST, "topicRoute", "-t", topic);
        Set<String> topics = MqAdmin.succeed("topicList").lines().stream().collect(Collectors.toSet());
        assertTrue(!topics.contains(topic), "the topic is still listed");
    }

    @Test
    void allocateMQ_shares_the_queues_among_addresses() throws Exception {
        topology.createTopic(topic, 4);
        MqAdmin shares = MqAdmin.succeed("allocateMQ", "-t", topic, "-i", "10.0.0.1,10.0.0.2");
        Matcher queue = Pattern.compile("\"queueId\":(\\d),\"topic\":\"" + topic + "\"").matcher(shares.out);
        Set<String> queues = queue.results().map(found -> found.group(1)).collect(Collectors.toSet());
        assertEquals(Set.of("0", "1", "2", "3"), queues);
        String one = "\\{[^}]*\"brokerName\":\"" + topology.brokerName() + "\"[^}]*\\}";
        for (String address : List.of("10.0.0.1", "10.0.0.2")) {
            shares.assertMatches("\"" + address + "\":\\[" + one + "," + one + "\\]");
        }
    }

    private void subscribe() throws Exception {
        clients.producer(unique("producer")).send(message("one"));
        var consumer = clients.newPushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(new rmq.e2e.Inbox().concurrently());
        consumer.start();
        awaitAllConsumed(1);
    }
}
