package rmq.e2e.mqadmin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;

class MessageCommandsTest extends ClusterTest {
    @Test
    void sendMessage_sends_to_any_queue_or_to_one_and_consumeMessage_prints_them() throws Exception {
        topology.createTopic(topic, 4);
        MqAdmin any = MqAdmin.succeed("sendMessage", "-t", topic, "-p", "first body", "-k", "key1", "-c", "tagA");
        assertEquals(List.of("Broker Name", "QID", "Send Result", "MsgId"), any.columns());
        List<String> sent = any.row(topology.brokerName());
        assertEquals("SEND_OK", sent.get(2));
        assertTrue(sent.get(3).matches("[0-9A-F]{32,64}"), sent.toString());
        MqAdmin one = MqAdmin.succeed("sendMessage", "-t", topic, "-p", "second body", "-b", topology.brokerName(), "-i", "2");
        assertEquals(List.of("2", "SEND_OK"), one.row(topology.brokerName()).subList(1, 3));

        MqAdmin all = MqAdmin.succeed("consumeMessage", "-t", topic, "-g", group);
        all.assertContains("Consume ok");
        all.assertMatches("MSGID: " + sent.get(3) + " MessageExt \\[brokerName=" + topology.brokerName() + ", queueId=" + sent.get(1) + ",.* BODY: first body");
        all.assertMatches("queueId=2, .* BODY: second body");
        MqAdmin queue = MqAdmin.succeed("consumeMessage", "-t", topic, "-b", topology.brokerName(), "-i", "2", "-o", "0", "-c", "1");
        queue.assertMatches("MSGID: .* queueId=2, storeSize=\\d+, queueOffset=0, .*topic='" + topic + "'");
    }

    @Test
    void queryMsgByOffset_shows_everything_of_one_message() throws Exception {
        topology.createTopic(topic, 2);
        Message message = new Message(topic, "tagA", "key1", bytes("by offset"));
        MessageQueue queue = new MessageQueue(topic, topology.brokerName(), 1);
        SendResult sent = clients.producer(unique("producer")).send(message, queue);
        MqAdmin found = MqAdmin.succeed("queryMsgByOffset", "-t", topic, "-b", topology.brokerName(), "-i", "1", "-o", "0");
        assertField(found, "OffsetID", sent.getOffsetMsgId());
        assertField(found, "Topic", topic);
        assertField(found, "Tags", "[tagA]");
        assertField(found, "Keys", "[key1]");
        assertField(found, "Queue ID", "1");
        assertField(found, "Queue Offset", "0");
        assertField(found, "Reconsume Times", "0");
        assertField(found, "Store Host", topology.brokerAddr());
        assertField(found, "System Flag", "0");
        found.assertMatches("(?m)^Store Timestamp:\\s+\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2}:\\d{2},\\d{3}$");
        found.assertMatches("(?m)^Properties:\\s+\\{.*UNIQ_KEY=" + sent.getMsgId() + "\\b");
    }

    @Test
    void queryMsgById_finds_a_message_by_its_offset_id() throws Exception {
        topology.createTopic(topic, 1);
        SendResult sent = clients.producer(unique("producer")).send(message("by id"));
        MqAdmin found = MqAdmin.succeed("queryMsgById", "-t", topic, "-i", sent.getOffsetMsgId());
        assertField(found, "OffsetID", sent.getOffsetMsgId());
        assertField(found, "Topic", topic);
        assertField(found, "Queue ID", "0");
    }

    @Test
    void printMsg_prints_every_queue_with_its_bounds_and_messages() throws Exception {
        topology.createTopic(topic, 2);
        clients.producer(unique("producer")).send(message("printed"), new MessageQueue(topic, topology.brokerName(), 1));
        MqAdmin printed = MqAdmin.succeed("printMsg", "-t", topic);
        for (int queue = 0; queue < 2; queue++) {
            printed.assertContains("minOffset=0, maxOffset=" + queue + ", MessageQueue [topic=" + topic + ", brokerName="
                + topology.brokerName() + ", queueId=" + queue + "]");
        }
        printed.assertMatches("MSGID: .* BODY: printed");
    }

    @Test
    void statsAll_has_a_row_for_a_topic_without_consumers() throws Exception {
        topology.createTopic(topic, 1);
        MqAdmin stats = MqAdmin.succeed("statsAll", "-t", topic);
        assertEquals(List.of("Topic", "Consumer Group", "Accumulation", "InTPS", "OutTPS", "InMsg24Hour", "OutMsg24Hour"), stats.columns());
        assertEquals("NO_CONSUMER", stats.row(topic).get(stats.row(topic).size() - 1));
    }

    @Test
    void commands_on_a_topic_that_does_not_exist_say_so() throws Exception {
        MqAdmin run = MqAdmin.run("printMsg", "-t", topic);
        assertTrue(run.err.contains("Can not find Message Queue for this topic"), run.toString());
        MqAdmin.refused(ResponseCode.TOPIC_NOT_EXIST, "allocateMQ", "-t", topic, "-i", "10.0.0.1");
    }

    private static void assertField(MqAdmin found, String name, String value) {
        found.assertMatches("(?m)^" + name + ":\\s+" + java.util.regex.Pattern.quote(value) + "\\s*$");
    }
}
