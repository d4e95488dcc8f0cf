package rmq.e2e;

import java.time.Duration;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.remoting.protocol.body.ClusterInfo;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;

/** The brokers of a cluster as the name server knows them, and topics made on its first master. */
public final class Topology {
    private static final Duration ROUTE = Duration.ofSeconds(60);
    private static final Duration JAVA_ROUTE = Duration.ofSeconds(8);
    private static final boolean AGAINST_JAVA = "java".equals(System.getenv("E2E_AGAINST"));

    private final Clients clients;
    private String brokerName;
    private String brokerAddr;
    private String cluster;

    public Topology(Clients clients) {
        this.clients = clients;
        Await.until(ROUTE, "a broker at the name server", this::findBroker);
    }

    private boolean findBroker() throws Exception {
        ClusterInfo info = clients.admin().examineBrokerClusterInfo();
        for (var entry : new java.util.TreeMap<>(info.getBrokerAddrTable()).entrySet()) {
            String master = entry.getValue().getBrokerAddrs().get(0L);
            if (master != null) {
                brokerName = entry.getKey();
                brokerAddr = master;
                cluster = entry.getValue().getCluster();
                return true;
            }
        }
        return false;
    }

    public String brokerName() {
        return brokerName;
    }

    public String brokerAddr() {
        return brokerAddr;
    }

    public String cluster() {
        return cluster;
    }

    /** Creates (or changes) a topic and waits until clients can see it. */
    public void createTopic(String topic, int queues) throws Exception {
        TopicConfig config = new TopicConfig(topic);
        config.setReadQueueNums(queues);
        config.setWriteQueueNums(queues);
        clients.admin().createAndUpdateTopicConfig(brokerAddr, config);
        if (AGAINST_JAVA) {
            updateAgainUntilRouted(config);
        }
        awaitRoute(topic, queues);
    }

    /** The Java broker at times registers two changes in the wrong order; the older one then stays at the name server. */
    private void updateAgainUntilRouted(TopicConfig config) throws Exception {
        for (int attempt = 0; attempt < 3; attempt++) {
            try {
                Await.until(JAVA_ROUTE, "route", () -> queuesOf(config.getTopicName()) == config.getWriteQueueNums());
                return;
            } catch (AssertionError e) {
                System.err.println("topic " + config.getTopicName() + " is not routed as it was set: set again");
                clients.admin().createAndUpdateTopicConfig(brokerAddr, config);
            }
        }
    }

    public void awaitRoute(String topic, int queues) {
        Await.until(ROUTE, "route of " + topic + " with " + queues + " queues", () -> queuesOf(topic) == queues);
    }

    public void awaitRoute(String topic) {
        Await.until(ROUTE, "route of " + topic, () -> queuesOf(topic) > 0);
    }

    /** Write queues of the topic over all brokers; 0 if it has no route. */
    public int queuesOf(String topic) throws Exception {
        TopicRouteData route = clients.admin().examineTopicRouteInfo(topic);
        return route.getQueueDatas().stream().mapToInt(QueueData::getWriteQueueNums).sum();
    }
}
