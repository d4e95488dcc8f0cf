package rmq.e2e.mqadmin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import rmq.e2e.ClusterTest;

/** Takes the whole broker out of writing for a moment, so nothing else may run beside it. */
@Isolated
class WritePermissionTest extends ClusterTest {
    @Test
    void wipeWritePerm_takes_a_broker_out_of_writing_and_addWritePerm_brings_it_back() throws Exception {
        topology.createTopic(topic, 2);
        try {
            MqAdmin wiped = MqAdmin.succeed("wipeWritePerm", "-b", topology.brokerName());
            wiped.assertMatches("wipe write perm of broker\\[" + topology.brokerName() + "\\] in name server\\["
                + namesrv() + "\\] OK, [1-9]\\d*");
            assertEquals(4, perm());
            DefaultMQProducer producer = clients.producer(unique("producer"));
            assertThrows(MQClientException.class, () -> producer.send(message("nowhere to go")));
        } finally {
            MqAdmin added = MqAdmin.succeed("addWritePerm", "-b", topology.brokerName());
            added.assertMatches("add write perm of broker\\[" + topology.brokerName() + "\\] in name server\\["
                + namesrv() + "\\] OK, [1-9]\\d*");
        }
        assertEquals(6, perm());
        assertEquals(0, clients.producer(unique("producer")).send(message("again")).getQueueOffset());
    }

    private int perm() throws Exception {
        return clients.admin().examineTopicRouteInfo(topic).getQueueDatas().get(0).getPerm();
    }
}
