package rmq.e2e;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.common.message.MessageExt;

/** Compares what a broker shows with the ledger written from another one, line by line, and looks messages up by id. */
final class LedgerChecker {
    private static final int SHOWN = 20;
    private static final int LOOK_UPS = 25;

    private final String namesrv;

    LedgerChecker(String namesrv) {
        this.namesrv = namesrv;
    }

    /** 0 if the broker shows exactly what the ledger says, else 1 with the differences on standard output. */
    int check(String ledger) throws Exception {
        List<String> wanted = Files.readAllLines(Path.of(ledger), StandardCharsets.UTF_8);
        List<String> topics = names(wanted.get(0));
        List<String> groups = names(wanted.get(1));
        wanted = wanted.subList(2, wanted.size());
        try (Clients clients = new Clients(namesrv)) {
            Topology topology = new Topology(clients);
            for (String topic : topics) {
                topology.awaitRoute(topic);
            }
            List<String> found = new Snapshot(clients, topology.brokerAddr()).take(topics, groups);
            int differences = differences("missing", wanted, found) + differences("not expected", found, wanted);
            differences += lookUpById(clients, wanted);
            System.out.println("verified " + wanted.size() + " lines, " + differences + " differences");
            return differences == 0 ? 0 : 1;
        }
    }

    private static List<String> names(String line) {
        return List.of(line.substring(line.indexOf('\t') + 1).split(","));
    }

    private static int differences(String what, List<String> of, List<String> from) {
        Set<String> left = new LinkedHashSet<>(of);
        left.removeAll(new LinkedHashSet<>(from));
        left.stream().limit(SHOWN).forEach(line -> System.out.println(what + ": " + line));
        return left.size();
    }

    /** Offset ids that were handed out before must still lead to the same message. */
    private static int lookUpById(Clients clients, List<String> wanted) throws Exception {
        int failures = 0;
        List<String> messages = wanted.stream().filter(line -> line.startsWith("M\t")).toList();
        int step = Math.max(1, messages.size() / LOOK_UPS);
        for (int i = 0; i < messages.size(); i += step) {
            String line = messages.get(i);
            String topic = line.split("\t")[1];
            int at = line.indexOf("offsetId=") + "offsetId=".length();
            String offsetId = line.substring(at, line.indexOf('\t', at));
            MessageExt message = clients.admin().viewMessage(topic, offsetId);
            String got = message.getTopic() + "\t" + message.getQueueId() + "\t" + message.getQueueOffset();
            if (!line.startsWith("M\t" + got + "\t")) {
                System.out.println("look-up of " + offsetId + " gave " + got + " for " + line);
                failures++;
            }
        }
        return failures;
    }
}
