package rmq.e2e;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Waiting for a condition with a deadline; the last failure is the cause of the timeout. */
public final class Await {
    private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private Await() {
    }

    /** A question that may also fail: a failure counts as "not yet". */
    @FunctionalInterface
    public interface Condition {
        boolean holds() throws Exception;
    }

    public static void until(Duration limit, String what, Condition condition) {
        long deadline = System.nanoTime() + limit.toNanos();
        Exception last = null;
        do {
            try {
                if (condition.holds()) {
                    return;
                }
                last = null;
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new AssertionError("interrupted while waiting for " + what, e);
            } catch (Exception e) {
                last = e;
            }
            LockSupport.parkNanos(POLL_NANOS);
        } while (System.nanoTime() < deadline);
        throw new AssertionError("not within " + limit.toSeconds() + " s: " + what, last);
    }
}
