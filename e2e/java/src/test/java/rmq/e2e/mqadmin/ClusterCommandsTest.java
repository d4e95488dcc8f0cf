package rmq.e2e.mqadmin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import rmq.e2e.ClusterTest;

class ClusterCommandsTest extends ClusterTest {
    @Test
    void clusterList_shows_each_broker_with_version_load_and_space() throws Exception {
        MqAdmin list = MqAdmin.succeed("clusterList");
        assertEquals(List.of("Cluster Name", "Broker Name", "BID", "Addr", "Version", "InTPS(LOAD)", "OutTPS(LOAD)",
            "Timer(Progress)", "PCWait(ms)", "Hour", "SPACE", "ACTIVATED"), list.columns());
        List<String> row = list.row(topology.cluster());
        assertEquals(topology.brokerName(), row.get(1));
        assertEquals("0", row.get(2));
        assertEquals(topology.brokerAddr(), row.get(3));
        assertTrue(row.get(4).matches("V\\d+_\\d+_\\d+.*"), row.get(4));
        assertTrue(row.get(5).matches("\\d+\\.\\d+\\(\\d+,\\d+ms\\)"), row.get(5));
        assertTrue(row.get(6).matches("\\d+\\.\\d+\\(\\d+,\\d+ms\\|\\d+,\\d+ms\\)"), row.get(6));
        assertTrue(Double.parseDouble(row.get(row.size() - 2)) > 0, "used space: " + row);
        assertEquals("true", row.get(row.size() - 1));
    }

    @Test
    void clusterList_with_totals_counts_what_was_put_and_got_today() throws Exception {
        topology.createTopic(topic, 1);
        clients.producer(unique("producer")).send(message("counted"));
        MqAdmin list = MqAdmin.succeed("clusterList", "-m");
        assertEquals(List.of("Cluster Name", "Broker Name", "InTotalYest", "OutTotalYest", "InTotalToday", "OutTotalToday"), list.columns());
        List<String> row = list.row(topology.cluster());
        assertEquals(topology.brokerName(), row.get(1));
        for (String number : row.subList(2, 6)) {
            assertTrue(number.matches("\\d+"), row.toString());
        }
    }

    @Test
    void brokerStatus_gives_the_runtime_values_of_a_broker_and_of_a_cluster() throws Exception {
        MqAdmin one = MqAdmin.succeed("brokerStatus", "-b", topology.brokerAddr());
        for (String key : List.of("bootTimestamp", "brokerVersionDesc", "commitLogMaxOffset", "commitLogMinOffset", "commitLogDiskRatio",
            "consumeQueueDiskRatio", "dispatchBehindBytes", "getTotalTps", "msgPutTotalTodayNow", "msgGetTotalTodayNow", "putTps",
            "pullThreadPoolQueueSize", "sendThreadPoolQueueCapacity", "sendThreadPoolQueueSize", "runtime", "earliestMessageTimeStamp",
            "pageCacheLockTimeMills", "putMessageTimesTotal", "putMessageEntireTimeMax")) {
            one.assertMatches("(?m)^" + key + "\\s*: \\S");
        }
        // Three numbers, of 10 s, 1 min and 10 min; a broker that has just started may leave the later ones out.
        one.assertMatches("(?m)^putTps\\s*: \\d");
        MqAdmin all = MqAdmin.succeed("brokerStatus", "-c", topology.cluster());
        all.assertMatches("(?m)^" + topology.brokerAddr() + "\\s.*bootTimestamp");
    }

    @Test
    void clusterList_run_as_a_program_exits_with_zero() throws Exception {
        MqAdmin run = MqAdmin.process("clusterList");
        assertEquals(0, run.exit, run.toString());
        assertEquals("", run.err.strip(), run.toString());
        assertEquals(topology.brokerName(), run.row(topology.cluster()).get(1));
    }

    @Test
    void brokerStatus_without_a_broker_says_what_is_missing() throws Exception {
        MqAdmin run = MqAdmin.process("brokerStatus");
        assertEquals(1, run.exit);
        assertTrue(run.err.contains("Missing required option"), run.toString());
    }

    @Test
    void getBrokerConfig_lists_the_settings_in_force() throws Exception {
        MqAdmin config = MqAdmin.succeed("getBrokerConfig", "-b", topology.brokerAddr());
        config.assertContains("============" + topology.brokerAddr() + "============");
        config.assertMatches("(?m)^brokerName\\s+=  " + topology.brokerName() + "\\s*$");
        config.assertMatches("(?m)^brokerClusterName\\s+=  " + topology.cluster() + "\\s*$");
        config.assertMatches("(?m)^listenPort\\s+=  " + topology.brokerAddr().replaceFirst("^.*:", "") + "\\s*$");
        config.assertMatches("(?m)^brokerId\\s+=  0\\s*$");
        for (String key : List.of("autoCreateTopicEnable", "autoCreateSubscriptionGroup", "flushDiskType", "mappedFileSizeCommitLog",
            "maxMessageSize", "fileReservedTime", "deleteWhen", "brokerPermission", "defaultTopicQueueNums", "messageDelayLevel",
            "storePathRootDir", "brokerRole")) {
            config.assertMatches("(?m)^" + key + "\\s+=  \\S");
        }
    }
}
