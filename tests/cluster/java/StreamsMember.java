import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.UUID;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatRequest;

/**
 * A member of a streams group (4.1 up), as far as its coordinator sees one: it joins and leaves by heartbeats, one each,
 * and processes nothing. Arguments are TOPIC, the coordinator's HOST:PORT, and the group.
 */
public class StreamsMember {
    public static void main(String[] arguments) throws Exception {
        int colon = arguments[1].lastIndexOf(':');
        String host = arguments[1].substring(0, colon);
        int port = Integer.parseInt(arguments[1].substring(colon + 1));
        String member = UUID.randomUUID().toString();
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Socket socket = new Socket(host, port)) {
            System.out.println("ready");
            if (orders.readLine() == null) {
                return;
            }
            StreamsGroupHeartbeatRequestData.Subtopology sub = new StreamsGroupHeartbeatRequestData.Subtopology()
                .setSubtopologyId("0").setSourceTopics(List.of(arguments[0]));
            StreamsGroupHeartbeatRequestData join = new StreamsGroupHeartbeatRequestData()
                .setMemberEpoch(0).setRebalanceTimeoutMs(60000).setProcessId(member)
                .setActiveTasks(List.of()).setStandbyTasks(List.of()).setWarmupTasks(List.of())
                .setTopology(new StreamsGroupHeartbeatRequestData.Topology().setEpoch(0).setSubtopologies(List.of(sub)));
            join.setGroupId(arguments[2]).setMemberId(member);
            // its coordinator may be loading; a topology is made up once the topic is known everywhere
            while (!heartbeat(socket, join)) {
                Thread.sleep(100);
            }
            orders.readLine();
            StreamsGroupHeartbeatRequestData leave = new StreamsGroupHeartbeatRequestData().setMemberEpoch(-1);
            heartbeat(socket, leave.setGroupId(arguments[2]).setMemberId(member));
        }
        System.out.println("left");
    }

    private static boolean heartbeat(Socket socket, StreamsGroupHeartbeatRequestData data) throws Exception {
        ApiKeys api = ApiKeys.STREAMS_GROUP_HEARTBEAT;
        short version = 0;
        RequestHeader header = new RequestHeader(api, version, "streams", 1);
        ByteBuffer body = new StreamsGroupHeartbeatRequest(data, version).serializeWithHeader(header);
        OutputStream out = socket.getOutputStream();
        out.write(ByteBuffer.allocate(4).putInt(body.remaining()).array());
        out.write(body.array(), body.arrayOffset() + body.position(), body.remaining());
        out.flush();
        DataInputStream in = new DataInputStream(socket.getInputStream());
        byte[] frame = new byte[in.readInt()];
        in.readFully(frame);
        ByteBufferAccessor answer = new ByteBufferAccessor(ByteBuffer.wrap(frame));
        new ResponseHeaderData(answer, api.responseHeaderVersion(version));
        StreamsGroupHeartbeatResponseData said = new StreamsGroupHeartbeatResponseData(answer, version);
        System.err.println(said);
        return said.errorCode() == 0;
    }
}
