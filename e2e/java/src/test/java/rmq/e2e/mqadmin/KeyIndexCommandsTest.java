package rmq.e2e.mqadmin;

import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import rmq.e2e.Await;
import rmq.e2e.ClusterTest;

/** Look-ups that need the key index of the store. */
@Tag("key-index")
class KeyIndexCommandsTest extends ClusterTest {
    @Test
    void queryMsgByKey_finds_the_messages_of_a_key() throws Exception {
        topology.createTopic(topic, 1);
        SendResult sent = clients.producer(unique("producer")).send(new Message(topic, "tag", "key-1 key-2", bytes("by key")));
        Await.until(LIMIT, "the key in the index", () ->
            MqAdmin.succeed("queryMsgByKey", "-t", topic, "-k", "key-2").out.contains(sent.getMsgId()));
    }

    @Test
    void queryMsgByUniqueKey_finds_a_message_by_the_id_its_producer_gave() throws Exception {
        topology.createTopic(topic, 1);
        SendResult sent = clients.producer(unique("producer")).send(message("by unique key"));
        Await.until(LIMIT, "the id in the index", () ->
            MqAdmin.succeed("queryMsgByUniqueKey", "-t", topic, "-i", sent.getMsgId()).out.contains("Topic:               " + topic));
    }
}
