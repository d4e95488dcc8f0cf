package rmq.e2e;

import java.util.HashMap;
import java.util.Map;

/**
 * The official Java server and clients as one small command line, so that the Rust runner can start them,
 * have messages written and have them checked, each in its own JVM.
 *
 * <pre>
 * Driver namesrv --conf FILE                     runs until it is ended; prints one JSON line when ready
 * Driver broker  --conf FILE                     likewise; the file is a broker.conf
 * Driver produce --namesrv A --ledger F --seed S writes topics, messages and group progress, notes them in F
 * Driver verify  --namesrv A --ledger F          checks that everything noted in F is there; exit 1 if not
 * </pre>
 */
public final class Driver {
    private Driver() {
    }

    public static void main(String[] args) throws Exception {
        if (args.length == 0) {
            System.err.println("usage: Driver namesrv|broker|produce|verify --option value ...");
            System.exit(2);
        }
        Map<String, String> options = options(args);
        switch (args[0]) {
            case "namesrv" -> Server.namesrv(required(options, "conf"));
            case "broker" -> Server.broker(required(options, "conf"));
            case "produce" -> {
                new LedgerWriter(required(options, "namesrv"), required(options, "seed")).write(required(options, "ledger"));
                System.exit(0);
            }
            case "verify" -> System.exit(new LedgerChecker(required(options, "namesrv")).check(required(options, "ledger")));
            default -> {
                System.err.println("unknown command " + args[0]);
                System.exit(2);
            }
        }
    }

    private static Map<String, String> options(String[] args) {
        Map<String, String> options = new HashMap<>();
        for (int i = 1; i + 1 < args.length; i += 2) {
            options.put(args[i].replaceFirst("^--", ""), args[i + 1]);
        }
        return options;
    }

    private static String required(Map<String, String> options, String name) {
        String value = options.get(name);
        if (value == null) {
            System.err.println("missing --" + name);
            System.exit(2);
        }
        return value;
    }
}
