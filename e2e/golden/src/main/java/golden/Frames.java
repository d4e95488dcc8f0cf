package golden;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.SerializeType;
import org.apache.rocketmq.remoting.protocol.header.ConsumerSendMsgBackRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.CreateTopicRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.HeartbeatRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PullMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PullMessageResponseHeader;
import org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetResponseHeader;
import org.apache.rocketmq.remoting.protocol.header.SearchOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.SendMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.SendMessageRequestHeaderV2;
import org.apache.rocketmq.remoting.protocol.header.SendMessageResponseHeader;
import org.apache.rocketmq.remoting.protocol.header.UnregisterClientRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.UpdateConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.namesrv.GetRouteInfoRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.namesrv.RegisterBrokerRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.namesrv.RegisterBrokerResponseHeader;

/** Whole frames, length word included, with JSON and with binary headers. */
final class Frames {
    private final List<Case> cases = new ArrayList<>();

    private Frames() {
    }

    static List<Case> cases() {
        Frames frames = new Frames();
        frames.producing();
        frames.consuming();
        frames.nameServer();
        frames.plain();
        return frames.cases;
    }

    private void producing() {
        SendMessageRequestHeader send = new SendMessageRequestHeader();
        send.setProducerGroup("pg");
        send.setTopic("TopicTest");
        send.setDefaultTopic("TBW102");
        send.setDefaultTopicQueueNums(4);
        send.setQueueId(3);
        send.setSysFlag(0);
        send.setBornTimestamp(1700000000123L);
        send.setFlag(0);
        send.setProperties("KEYS\u0001k1\u0002TAGS\u0001TagA\u0002");
        send.setReconsumeTimes(0);
        send.setUnitMode(false);
        send.setBatch(false);
        send.setMaxReconsumeTimes(16);
        send.setBrokerName("broker-a");
        SendMessageRequestHeaderV2 v2 =
            SendMessageRequestHeaderV2.createSendMessageRequestHeaderV2(send);
        add("send", request(RequestCode.SEND_MESSAGE, send, "hello"), SendMessageRequestHeader.class);
        add("send_v2", request(RequestCode.SEND_MESSAGE_V2, v2, "hello"),
            SendMessageRequestHeaderV2.class);

        SendMessageResponseHeader sent = new SendMessageResponseHeader();
        sent.setMsgId("7F00000100002A9F0000000000000064");
        sent.setQueueId(3);
        sent.setQueueOffset(5000000000L);
        RemotingCommand response = response(ResponseCode.SUCCESS, sent, null);
        response.addExtField("MSG_REGION", "DefaultRegion");
        response.addExtField("TRACE_ON", "true");
        add("send_response", response, SendMessageResponseHeader.class);
    }

    private void consuming() {
        PullMessageRequestHeader pull = new PullMessageRequestHeader();
        pull.setConsumerGroup("cg");
        pull.setTopic("TopicTest");
        pull.setQueueId(2);
        pull.setQueueOffset(100L);
        pull.setMaxMsgNums(32);
        pull.setSysFlag(6);
        pull.setCommitOffset(90L);
        pull.setSuspendTimeoutMillis(15000L);
        pull.setSubscription("TagA || TagB");
        pull.setSubVersion(1700000000000L);
        pull.setExpressionType("TAG");
        pull.setMaxMsgBytes(262144);
        pull.setBrokerName("broker-a");
        add("pull", request(RequestCode.PULL_MESSAGE, pull, null), PullMessageRequestHeader.class);

        PullMessageResponseHeader pulled = new PullMessageResponseHeader();
        pulled.setSuggestWhichBrokerId(0L);
        pulled.setNextBeginOffset(101L);
        pulled.setMinOffset(0L);
        pulled.setMaxOffset(200L);
        pulled.setTopicSysFlag(0);
        pulled.setGroupSysFlag(0);
        RemotingCommand response = response(ResponseCode.SUCCESS, pulled, "FOUND");
        response.setBody("records".getBytes(StandardCharsets.UTF_8));
        add("pull_response", response, PullMessageResponseHeader.class);

        add("heartbeat", request(RequestCode.HEART_BEAT, new HeartbeatRequestHeader(), "{}"),
            HeartbeatRequestHeader.class);
        UnregisterClientRequestHeader leave = new UnregisterClientRequestHeader();
        leave.setClientID("10.0.0.9@1");
        leave.setConsumerGroup("cg");
        add("unregister", request(RequestCode.UNREGISTER_CLIENT, leave, null),
            UnregisterClientRequestHeader.class);

        UpdateConsumerOffsetRequestHeader commit = new UpdateConsumerOffsetRequestHeader();
        commit.setConsumerGroup("cg");
        commit.setTopic("TopicTest");
        commit.setQueueId(1);
        commit.setCommitOffset(42L);
        RemotingCommand oneway = request(RequestCode.UPDATE_CONSUMER_OFFSET, commit, null);
        oneway.markOnewayRPC();
        add("commit_oneway", oneway, UpdateConsumerOffsetRequestHeader.class);
        QueryConsumerOffsetRequestHeader query = new QueryConsumerOffsetRequestHeader();
        query.setConsumerGroup("cg");
        query.setTopic("TopicTest");
        query.setQueueId(1);
        query.setSetZeroIfNotFound(false);
        add("query_offset", request(RequestCode.QUERY_CONSUMER_OFFSET, query, null),
            QueryConsumerOffsetRequestHeader.class);
        QueryConsumerOffsetResponseHeader found = new QueryConsumerOffsetResponseHeader();
        found.setOffset(42L);
        add("query_offset_response", response(ResponseCode.SUCCESS, found, null),
            QueryConsumerOffsetResponseHeader.class);
        SearchOffsetRequestHeader search = new SearchOffsetRequestHeader();
        search.setTopic("TopicTest");
        search.setQueueId(1);
        search.setTimestamp(1700000000000L);
        add("search_offset", request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, search, null),
            SearchOffsetRequestHeader.class);
        ConsumerSendMsgBackRequestHeader back = new ConsumerSendMsgBackRequestHeader();
        back.setOffset(1000L);
        back.setGroup("cg");
        back.setDelayLevel(3);
        back.setOriginMsgId("7F00000100002A9F0000000000000064");
        back.setOriginTopic("TopicTest");
        back.setMaxReconsumeTimes(16);
        add("send_back", request(RequestCode.CONSUMER_SEND_MSG_BACK, back, null),
            ConsumerSendMsgBackRequestHeader.class);
    }

    private void nameServer() {
        GetRouteInfoRequestHeader route = new GetRouteInfoRequestHeader();
        route.setTopic("TopicTest");
        route.setAcceptStandardJsonOnly(true);
        add("route", request(RequestCode.GET_ROUTEINFO_BY_TOPIC, route, null),
            GetRouteInfoRequestHeader.class);
        RegisterBrokerRequestHeader register = new RegisterBrokerRequestHeader();
        register.setBrokerName("broker-a");
        register.setBrokerAddr("10.0.0.1:10911");
        register.setClusterName("DefaultCluster");
        register.setHaServerAddr("10.0.0.1:10912");
        register.setBrokerId(0L);
        register.setHeartbeatTimeoutMillis(10000L);
        register.setEnableActingMaster(false);
        register.setCompressed(false);
        register.setBodyCrc32(907060870);
        add("register", request(RequestCode.REGISTER_BROKER, register, "hello"),
            RegisterBrokerRequestHeader.class);
        RegisterBrokerResponseHeader registered = new RegisterBrokerResponseHeader();
        registered.setHaServerAddr("10.0.0.1:10912");
        registered.setMasterAddr("10.0.0.1:10911");
        add("register_response", response(ResponseCode.SUCCESS, registered, null),
            RegisterBrokerResponseHeader.class);
        CreateTopicRequestHeader create = new CreateTopicRequestHeader();
        create.setTopic("TopicTest");
        create.setDefaultTopic("TBW102");
        create.setReadQueueNums(8);
        create.setWriteQueueNums(8);
        create.setPerm(6);
        create.setTopicFilterType("SINGLE_TAG");
        create.setTopicSysFlag(0);
        create.setOrder(false);
        create.setAttributes("+message.type=NORMAL");
        add("create_topic", request(RequestCode.UPDATE_AND_CREATE_TOPIC, create, null),
            CreateTopicRequestHeader.class);
    }

    private void plain() {
        RemotingCommand bare = request(RequestCode.GET_BROKER_CLUSTER_INFO, null, null);
        add("no_fields", bare, null);
        RemotingCommand busy = response(ResponseCode.SYSTEM_BUSY, null,
            "[TIMEOUT_CLEAN_QUEUE]broker busy, \"period\": 1\t\u00e9\u4e3b\ud83d\ude00/\\");
        add("busy_response", busy, null);
        RemotingCommand go = request(RequestCode.GET_BROKER_RUNTIME_INFO, null, null);
        go.setLanguage(LanguageCode.GO);
        go.setVersion(317);
        go.addExtField("k", "");
        go.addExtField("__ZONE_NAME", "z\u0001\u0002\n");
        add("other_language", go, null);
    }

    private static RemotingCommand request(int code, CommandCustomHeader header, String body) {
        RemotingCommand command = RemotingCommand.createRequestCommand(code, header);
        command.setOpaque(7);
        command.setVersion(479);
        if (body != null) {
            command.setBody(body.getBytes(StandardCharsets.UTF_8));
        }
        return command;
    }

    private static RemotingCommand response(int code, CommandCustomHeader header, String remark) {
        RemotingCommand command = RemotingCommand.createResponseCommandWithHeader(code, header);
        command.setOpaque(7);
        command.setVersion(479);
        command.setRemark(remark);
        return command;
    }

    private void add(
        String name, RemotingCommand command, Class<? extends CommandCustomHeader> header) {
        for (SerializeType type : SerializeType.values()) {
            // The header object is folded into the fields by the first encoding already.
            command.setSerializeTypeCurrentRPC(type);
            byte[] bytes = bytes(command.encode());
            cases.add(new Case(
                "frame." + type.name().toLowerCase() + "." + name, bytes,
                frame -> describe(frame, header)));
        }
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private static String describe(byte[] frame, Class<? extends CommandCustomHeader> header)
        throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(frame);
        int length = buffer.getInt();
        if (length != buffer.remaining()) {
            throw new IllegalArgumentException("length word " + length);
        }
        RemotingCommand command = RemotingCommand.decode(buffer.slice());
        TreeMap<String, String> fields = new TreeMap<>();
        if (command.getExtFields() != null) {
            fields.putAll(command.getExtFields());
        }
        if (header != null) {
            command.decodeCommandCustomHeader(header);
        }
        byte[] body = command.getBody() == null ? new byte[0] : command.getBody();
        return command.getSerializeTypeCurrentRPC() + " " + command.getCode() + " "
            + command.getFlag() + " " + command.getOpaque() + " " + command.getLanguage() + " "
            + command.getVersion() + " " + command.getRemark() + " " + fields + " "
            + java.util.HexFormat.of().formatHex(body);
    }
}
