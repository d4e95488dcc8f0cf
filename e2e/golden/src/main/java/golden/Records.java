package golden;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageId;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;

/** Stored records, batch bodies, message ids, message properties and configuration text. */
final class Records {
    private final List<Case> cases = new ArrayList<>();

    private Records() {
    }

    static List<Case> cases() throws Exception {
        Records records = new Records();
        records.records();
        records.batch();
        records.ids();
        records.properties();
        return records.cases;
    }

    private void records() throws Exception {
        record("record.v1", message("TopicTest", "10.0.0.9", "10.0.0.1"), false);
        record("record.v1_ipv6", message("TopicTest", "fe80::1", "2001:db8::2"), false);
        String topic = "t".repeat(100);
        byte[] v1 = MessageDecoder.encode(message(topic, "10.0.0.9", "10.0.0.1"), false);
        cases.add(new Case("record.v2", version2(v1, topic.length()), Records::describeRecord));
        MessageExt half = message("RMQ_SYS_TRANS_HALF_TOPIC", "10.0.0.9", "10.0.0.1");
        half.setSysFlag(MessageSysFlag.TRANSACTION_PREPARED_TYPE);
        half.setPreparedTransactionOffset(77);
        record("record.half", half, false);
        MessageExt empty = message("TopicTest", "10.0.0.9", "10.0.0.1");
        empty.setBody(new byte[0]);
        empty.setBodyCRC(0);
        empty.getProperties().clear();
        record("record.empty_body", empty, false);
    }

    /** The encoder writes version 1 only; version 2 has two bytes for the topic's length. */
    private static byte[] version2(byte[] v1, int topicLength) {
        int at = 84 + 4 + ByteBuffer.wrap(v1).getInt(84);
        ByteBuffer v2 = ByteBuffer.allocate(v1.length + 1);
        v2.putInt(v1.length + 1).putInt(MessageDecoder.MESSAGE_MAGIC_CODE_V2);
        v2.put(v1, 8, at - 8).putShort((short) topicLength).put(v1, at + 1, v1.length - at - 1);
        return v2.array();
    }

    private static MessageExt message(String topic, String born, String store) throws Exception {
        MessageExt message = new MessageExt();
        message.setTopic(topic);
        message.setBody("hello".getBytes(StandardCharsets.UTF_8));
        message.setBodyCRC(UtilAll.crc32(message.getBody()));
        message.setQueueId(3);
        message.setFlag(5);
        message.setQueueOffset(9);
        message.setCommitLogOffset(4096);
        message.setSysFlag(0);
        message.setBornTimestamp(1700000000123L);
        message.setBornHost(new InetSocketAddress(InetAddress.getByName(born), 40000));
        message.setStoreTimestamp(1700000000456L);
        message.setStoreHost(new InetSocketAddress(InetAddress.getByName(store), 10911));
        if (born.contains(":")) {
            message.setBornHostV6Flag();
            message.setStoreHostAddressV6Flag();
        }
        message.setReconsumeTimes(2);
        message.setKeys("k1");
        message.setTags("TagA");
        return message;
    }

    private void record(String name, MessageExt message, boolean compress) throws Exception {
        byte[] bytes = MessageDecoder.encode(message, compress);
        cases.add(new Case(name, bytes, Records::describeRecord));
    }

    private static String describeRecord(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        MessageExt read = MessageDecoder.decode(buffer, true, false, false, false, true);
        if (read == null) {
            throw new IllegalArgumentException("not decoded");
        }
        Map<String, String> properties =
            read.getProperties() == null ? Map.of() : new TreeMap<>(read.getProperties());
        return read.getTopic() + " " + read.getQueueId() + " " + read.getFlag() + " "
            + read.getQueueOffset() + " " + read.getCommitLogOffset() + " " + read.getSysFlag() + " "
            + read.getBornTimestamp() + " " + read.getBornHost() + " " + read.getStoreTimestamp()
            + " " + read.getStoreHost() + " " + read.getReconsumeTimes() + " "
            + read.getPreparedTransactionOffset() + " " + read.getBodyCRC() + " "
            + read.getStoreSize() + " " + properties + " "
            + read.getMsgId() + " "
            + HexFormat.of().formatHex(read.getBody() == null ? new byte[0] : read.getBody())
            + " left " + buffer.remaining();
    }

    private void batch() {
        List<Message> messages = new ArrayList<>();
        Message first = new Message("TopicTest", "TagA", "k1", "hello".getBytes(StandardCharsets.UTF_8));
        first.setFlag(5);
        messages.add(first);
        messages.add(new Message("TopicTest", "world!".getBytes(StandardCharsets.UTF_8)));
        cases.add(new Case("batch.two", MessageDecoder.encodeMessages(messages), bytes -> {
            StringBuilder text = new StringBuilder();
            for (Message one : MessageDecoder.decodeMessages(ByteBuffer.wrap(bytes))) {
                text.append(one.getFlag()).append(' ').append(new TreeMap<>(one.getProperties()))
                    .append(' ').append(HexFormat.of().formatHex(one.getBody())).append('\n');
            }
            return text.toString();
        }));
    }

    private void ids() throws Exception {
        id("offset_id.v4", "10.0.0.1", 10911, 1234567890123L);
        id("offset_id.v6", "2001:db8::2", 10911, 4096);
    }

    private void id(String name, String address, int port, long offset) throws Exception {
        String text = MessageDecoder.createMessageId(
            new InetSocketAddress(InetAddress.getByName(address), port), offset);
        cases.add(new Case(name, utf8(text), bytes -> {
            MessageId id = MessageDecoder.decodeMessageId(text(bytes));
            return id.getAddress() + " " + id.getOffset();
        }));
    }

    private void properties() {
        Map<String, String> message = new TreeMap<>();
        message.put("KEYS", "k1 k2");
        message.put("TAGS", "TagA");
        message.put("WAIT", "false");
        message.put("\u4e3b", "\u9898");
        cases.add(new Case("message_properties", utf8(MessageDecoder.messageProperties2String(message)),
            bytes -> new TreeMap<>(MessageDecoder.string2messageProperties(text(bytes))).toString()));

        Properties config = new Properties();
        config.put("brokerName", "broker-a");
        config.put("brokerId", "0");
        config.put("namesrvAddr", "10.0.0.1:9876;10.0.0.2:9876");
        config.put("storePathRootDir", "/data/store");
        config.put("empty", "");
        cases.add(new Case("config_text", utf8(MixAll.properties2String(config, true)),
            bytes -> new TreeMap<>(MixAll.string2Properties(text(bytes))).toString()));
        String odd = "# note\n! note\nkey\\ 1 : va\\\n   lue\npath=C:\\\\store\\t\\u0041\nblank\nx = \\ y \n";
        cases.add(new Case("config_text_odd", utf8(odd),
            bytes -> new TreeMap<>(MixAll.string2Properties(text(bytes))).toString()));
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
