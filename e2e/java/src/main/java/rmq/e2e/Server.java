package rmq.e2e;

import java.time.Duration;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.namesrv.NamesrvStartup;

/** Starts one official server role in this JVM. The shutdown hook of the role does the clean stop on SIGTERM. */
final class Server {
    private Server() {
    }

    static void namesrv(String conf) {
        NamesrvController controller = NamesrvStartup.main0(new String[] {"-c", conf});
        if (controller == null) {
            System.err.println("the name server did not start");
            System.exit(1);
        }
        ready("namesrv", "127.0.0.1:" + controller.getNettyServerConfig().getListenPort());
    }

    static void broker(String conf) {
        BrokerController controller = BrokerStartup.start(BrokerStartup.createBrokerController(new String[] {"-c", conf}));
        if (controller == null) {
            System.err.println("the broker did not start");
            System.exit(1);
        }
        String name = controller.getBrokerConfig().getBrokerName();
        try (Clients clients = new Clients(controller.getBrokerConfig().getNamesrvAddr())) {
            Await.until(Duration.ofSeconds(60), "registration of broker " + name,
                () -> clients.admin().examineBrokerClusterInfo().getBrokerAddrTable().containsKey(name));
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
        ready("broker", controller.getBrokerAddr());
    }

    /** One line with a mark, because the servers print lines of their own to the same stream. */
    private static void ready(String role, String address) {
        System.out.printf("READY {\"role\":\"%s\",\"address\":\"%s\",\"pid\":%d}%n", role, address, ProcessHandle.current().pid());
        System.out.flush();
    }
}
