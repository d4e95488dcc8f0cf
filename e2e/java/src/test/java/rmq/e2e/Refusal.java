package rmq.e2e;

import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.function.Executable;

/** The response code behind a failed call: the client wraps the broker's answer once it gave up retrying. */
public final class Refusal {
    private Refusal() {
    }

    public static int codeOf(Executable call) {
        Exception failure = Assertions.assertThrows(Exception.class, call);
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof MQBrokerException refused) {
                return refused.getResponseCode();
            }
        }
        if (failure instanceof MQClientException refused) {
            return refused.getResponseCode();
        }
        throw new AssertionError("the call failed without an answer of the server", failure);
    }
}
