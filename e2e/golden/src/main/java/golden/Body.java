package golden;

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.DataVersion;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData;

/** JSON bodies: what {@code RemotingSerializable} writes, and what it reads back. */
final class Body {
    private Body() {
    }

    static Case of(String name, Object body) {
        return of(name, body, RemotingSerializable.encode(body));
    }

    static Case of(String name, Object body, byte[] bytes) {
        Class<?> type = body.getClass();
        return new Case("body." + name, bytes, text -> describe(RemotingSerializable.decode(text, type)));
    }

    /** The same body as fastjson 1, in clients and servers before 5.4, writes it. */
    static Case old(String name, Object body) {
        byte[] bytes = com.alibaba.fastjson.JSON.toJSONBytes(body);
        Class<?> type = body.getClass();
        return new Case("body." + name + ".fastjson1", bytes,
            text -> describe(com.alibaba.fastjson.JSON.parseObject(text, type)));
    }

    static void both(List<Case> cases, String name, Object body) {
        cases.add(of(name, body));
        cases.add(old(name, body));
    }

    private static String describe(Object body) {
        if (body == null) {
            throw new IllegalArgumentException("null");
        }
        return JSON.toJSONString(body, JSONWriter.Feature.MapSortField);
    }

    static DataVersion version() {
        DataVersion version = new DataVersion();
        version.setStateVersion(2);
        version.setTimestamp(1700000000000L);
        version.getCounter().set(3000000000L);
        return version;
    }

    static MessageQueue queue(int id) {
        return new MessageQueue("TopicTest", "broker-a", id);
    }

    static SubscriptionData subscription() {
        SubscriptionData data = new SubscriptionData("TopicTest", "TagA || TagB");
        data.setSubVersion(1700000000001L);
        data.getTagsSet().add("TagA");
        data.getTagsSet().add("TagB");
        data.getCodeSet().add("TagA".hashCode());
        data.getCodeSet().add("TagB".hashCode());
        return data;
    }

    static <K, V> ConcurrentHashMap<K, V> map(K key, V value) {
        ConcurrentHashMap<K, V> map = new ConcurrentHashMap<>();
        map.put(key, value);
        return map;
    }
}
