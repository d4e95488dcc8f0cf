package rmq.e2e.mqadmin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import rmq.e2e.ClusterTest;

/**
 * One run of the official mqadmin. Most run inside this JVM, one after the other (a JVM of its own takes seconds);
 * where the exit code matters, {@link #process} starts the program that a person would start.
 */
final class MqAdmin {
    private static final long LIMIT_SECONDS = 120;

    private final List<String> command;
    final int exit;
    final String out;
    final String err;

    private MqAdmin(List<String> command, int exit, String out, String err) {
        this.command = command;
        this.exit = exit;
        this.out = out;
        this.err = err;
    }

    /** Gives each run commands of its own: they keep state between two runs in one JVM. */
    private static final class Startup extends MQAdminStartup {
        static void run(String[] arguments) {
            SUB_COMMANDS.clear();
            main0(arguments, null);
        }
    }

    /** Runs a command with {@code -n} of the cluster added. */
    static synchronized MqAdmin run(String... arguments) {
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream capturedOut = new ByteArrayOutputStream();
        ByteArrayOutputStream capturedErr = new ByteArrayOutputStream();
        System.setOut(new PrintStream(capturedOut, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(capturedErr, true, StandardCharsets.UTF_8));
        try {
            Startup.run(withNameServer(arguments).toArray(new String[0]));
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        return new MqAdmin(Arrays.asList(arguments), 0,
            capturedOut.toString(StandardCharsets.UTF_8), capturedErr.toString(StandardCharsets.UTF_8));
    }

    /** The same as a process of its own. */
    static MqAdmin process(String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Duser.home=" + System.getProperty("user.home"), "-Drmq.log.name=mqadmin",
            "-cp", System.getProperty("java.class.path"), MQAdminStartup.class.getName()));
        command.addAll(withNameServer(arguments));
        Path out = Files.createTempFile("mqadmin", ".out");
        Path err = Files.createTempFile("mqadmin", ".err");
        try {
            Process process = new ProcessBuilder(command).redirectOutput(out.toFile()).redirectError(err.toFile()).start();
            if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new AssertionError("mqadmin " + String.join(" ", arguments) + " did not end; so far: " + Files.readString(out));
            }
            return new MqAdmin(Arrays.asList(arguments), process.exitValue(),
                Files.readString(out, StandardCharsets.UTF_8), Files.readString(err, StandardCharsets.UTF_8));
        } finally {
            Files.deleteIfExists(out);
            Files.deleteIfExists(err);
        }
    }

    private static List<String> withNameServer(String... arguments) {
        List<String> all = new ArrayList<>(Arrays.asList(arguments));
        all.addAll(List.of("-n", ClusterTest.namesrv()));
        return all;
    }

    /** Not a word on the error stream: mqadmin prints the stack trace of a failure there, and exits 0 all the same. */
    static MqAdmin succeed(String... arguments) {
        MqAdmin run = run(arguments);
        assertEquals(0, run.exit, run.toString());
        assertEquals("", run.err.strip(), run.toString());
        return run;
    }

    /** A command that the server refuses: the stack trace names the response code. */
    static MqAdmin refused(int code, String... arguments) {
        MqAdmin run = run(arguments);
        if (!Pattern.compile("CODE: " + code + "\\b").matcher(run.err).find()) {
            throw new AssertionError("wanted a refusal with code " + code + ": " + run);
        }
        return run;
    }

    List<String> lines() {
        return out.lines().filter(line -> !line.isBlank()).toList();
    }

    /** The cells of the line that starts with the first cell, split at white space. */
    List<String> row(String first) {
        return rows().stream().filter(row -> row.get(0).equals(first)).findFirst()
            .orElseThrow(() -> new AssertionError("no row " + first + ": " + this));
    }

    List<List<String>> rows() {
        return lines().stream().map(line -> List.of(line.strip().split("\\s+"))).toList();
    }

    /** The column names of a table: each starts with "#". */
    List<String> columns() {
        return Arrays.stream(lines().get(0).split("#")).map(String::strip).filter(name -> !name.isEmpty()).toList();
    }

    void assertContains(String text) {
        if (!out.contains(text)) {
            throw new AssertionError("no \"" + text + "\" in " + this);
        }
    }

    void assertMatches(String regex) {
        if (!Pattern.compile(regex).matcher(out).find()) {
            throw new AssertionError("nothing matches " + regex + " in " + this);
        }
    }

    @Override
    public String toString() {
        return "mqadmin " + String.join(" ", command) + " -> exit " + exit + "\n--- out\n" + out + "\n--- err\n" + err;
    }
}
