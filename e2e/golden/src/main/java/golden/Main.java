package golden;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * {@code write DIR}: writes the fixture files. {@code check}: reads lines {@code name hex} from
 * standard input and tells for each whether the official classes read from those bytes what they
 * read from their own.
 */
public final class Main {
    private Main() {
    }

    public static void main(String[] args) throws Exception {
        String mode = args.length == 0 ? "" : args[0];
        if (mode.equals("write") && args.length == 2) {
            write(Path.of(args[1]));
        } else if (mode.equals("check")) {
            System.exit(check());
        } else {
            System.err.println("usage: write DIR | check");
            System.exit(2);
        }
    }

    private static Map<String, List<Case>> files() throws Exception {
        Map<String, List<Case>> files = new LinkedHashMap<>();
        files.put("frames", Frames.cases());
        files.put("bodies", Bodies.cases());
        files.put("admin_bodies", AdminBodies.cases());
        files.put("records", Records.cases());
        files.put("pop", Pop.cases());
        return files;
    }

    private static void write(Path folder) throws Exception {
        for (Map.Entry<String, List<Case>> file : files().entrySet()) {
            StringBuilder text = new StringBuilder();
            text.append("# Written by e2e/golden (official classes 5.5.0): name, bytes in hex.\n");
            for (Case one : file.getValue()) {
                one.expected();
                text.append(one.name()).append(' ')
                    .append(HexFormat.of().formatHex(one.bytes())).append('\n');
            }
            Files.writeString(folder.resolve(file.getKey() + ".golden"), text);
        }
    }

    private static int check() throws Exception {
        Map<String, Case> known = new LinkedHashMap<>();
        for (List<Case> cases : files().values()) {
            cases.forEach(one -> known.put(one.name(), one));
        }
        int passed = 0;
        int failed = 0;
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            String[] parts = line.trim().split(" ", 2);
            String fault = compare(known.get(parts[0]), parts.length < 2 ? "" : parts[1].trim());
            if (fault == null) {
                passed++;
                System.out.println("ok " + parts[0]);
            } else {
                failed++;
                System.out.println("FAILED " + parts[0] + ": " + fault);
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        return failed == 0 && passed > 0 ? 0 : 1;
    }

    private static String compare(Case one, String hex) {
        if (one == null) {
            return "no such fixture";
        }
        try {
            String wanted = one.expected();
            String got = one.read().describe(HexFormat.of().parseHex(hex));
            return wanted.equals(got) ? null : "wanted " + wanted + " got " + got;
        } catch (Exception fault) {
            return fault.toString();
        }
    }
}
