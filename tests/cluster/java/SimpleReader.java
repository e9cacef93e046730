import java.io.BufferedOutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HexFormat;
import kafka.api.FetchRequestBuilder;
import kafka.javaapi.FetchResponse;
import kafka.javaapi.PartitionMetadata;
import kafka.javaapi.TopicMetadataRequest;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.message.MessageAndOffset;

/** As Consumer, by the simple consumer of 0.8.2, for brokers of 0.8 and 0.9. Arguments are the topic, host and port. */
public class SimpleReader {
    private static final HexFormat HEX = HexFormat.of();
    private static final int FETCH_SIZE = 8 << 20;

    public static void main(String[] arguments) {
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, StandardCharsets.UTF_8);
        String topic = arguments[0];
        SimpleConsumer any = consumer(arguments[1], Integer.parseInt(arguments[2]));
        TopicMetadataRequest request = new TopicMetadataRequest(Collections.singletonList(topic));
        for (PartitionMetadata partition : any.send(request).topicsMetadata().get(0).partitionsMetadata()) {
            SimpleConsumer leader = consumer(partition.leader().host(), partition.leader().port());
            read(leader, topic, partition.partitionId(), out);
            leader.close();
        }
        any.close();
        out.flush();
    }

    private static SimpleConsumer consumer(String host, int port) {
        return new SimpleConsumer(host, port, 30_000, 1 << 20, "troupe-cluster");
    }

    private static void read(SimpleConsumer leader, String topic, int partition, PrintStream out) {
        long next = 0;
        while (true) {
            FetchResponse response = leader.fetch(new FetchRequestBuilder().clientId("troupe-cluster")
                .addFetch(topic, partition, next, FETCH_SIZE).build());
            if (response.hasError()) {
                throw new IllegalStateException(topic + "-" + partition + ": error code "
                    + response.errorCode(topic, partition) + " at offset " + next);
            }
            long begun = next;
            for (MessageAndOffset entry : response.messageSet(topic, partition)) {
                // a compressed set begins before the offset that was asked for
                if (entry.offset() >= next) {
                    out.println(topic + "\t" + partition + "\t" + entry.offset() + "\t-1\tNoTimestampType\t"
                        + hex(entry.message().key()) + "\t" + hex(entry.message().payload()) + "\t");
                    next = entry.nextOffset();
                }
            }
            if (next == begun) {
                return;
            }
        }
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "-";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HEX.formatHex(bytes);
    }
}
