package rmq.e2e;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/** The runner's commands that end the broker and start it again on the same data and address. */
public final class RestartHook {
    private final String command;

    private RestartHook(String command) {
        this.command = command;
    }

    /** An orderly stop and a new start; skips the test where the runner gave no command. */
    public static RestartHook orderly() {
        return of("RESTART_BROKER_CMD");
    }

    /** The same by kill −9. */
    public static RestartHook kill() {
        return of("KILL_BROKER_CMD");
    }

    private static RestartHook of(String variable) {
        String command = System.getenv(variable);
        Assumptions.assumeTrue(command != null && !command.isBlank(), "set " + variable + " to a command that restarts the broker");
        return new RestartHook(command);
    }

    /** Returns when the broker is up again. */
    public void run() throws Exception {
        Process process = new ProcessBuilder("sh", "-c", command).inheritIO().start();
        if (!process.waitFor(120, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new AssertionError("the restart did not end: " + command);
        }
        if (process.exitValue() != 0) {
            throw new AssertionError("the restart failed with " + process.exitValue() + ": " + command);
        }
    }
}
