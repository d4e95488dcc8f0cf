package rmq.e2e;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;

/** What a consumer got, in the order in which it got it; tests wait here instead of sleeping. */
public final class Inbox {
    private final List<MessageExt> messages = new ArrayList<>();

    public synchronized void add(List<MessageExt> more) {
        messages.addAll(more);
        notifyAll();
    }

    public MessageListenerConcurrently concurrently() {
        return (more, context) -> {
            add(more);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
    }

    public MessageListenerOrderly orderly() {
        return (more, context) -> {
            add(more);
            return ConsumeOrderlyStatus.SUCCESS;
        };
    }

    public synchronized List<MessageExt> all() {
        return new ArrayList<>(messages);
    }

    public List<String> texts() {
        return all().stream().map(ClusterTest::text).collect(Collectors.toList());
    }

    public Set<String> distinctTexts() {
        return new LinkedHashSet<>(texts());
    }

    public List<MessageExt> await(int count, Duration limit) {
        return await(count + " messages", got -> got.size() >= count, limit);
    }

    public synchronized List<MessageExt> await(String what, Predicate<List<MessageExt>> condition, Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.test(messages)) {
            long left = (deadline - System.nanoTime()) / 1_000_000;
            if (left <= 0) {
                throw new AssertionError("not within " + limit.toSeconds() + " s: " + what + "; got " + messages.size() + " messages: "
                    + messages.stream().limit(10).map(ClusterTest::text).map(Inbox::shortened).toList());
            }
            try {
                wait(left);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new AssertionError("interrupted while waiting for " + what, e);
            }
        }
        return new ArrayList<>(messages);
    }

    private static String shortened(String text) {
        return text.length() <= 40 ? text : text.substring(0, 40) + "…";
    }
}
