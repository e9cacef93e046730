import java.io.BufferedOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Prints all of some topics, partition by partition in the order in which Kafka's own consumer (2.0 up) reads it.
 * Arguments are TOPIC,... and KEY=VALUE properties of the consumer. A line is: topic, partition, offset, timestamp, its
 * type, key, value, headers NAME:VALUE,...; separated by tabs, bytes in hex, null as "-".
 */
public class Consumer {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) {
        Map<String, Object> properties = new HashMap<>();
        properties.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        properties.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        for (int i = 1; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, StandardCharsets.UTF_8);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties)) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String topic : arguments[0].split(",")) {
                for (PartitionInfo partition : consumer.partitionsFor(topic)) {
                    partitions.add(new TopicPartition(topic, partition.partition()));
                }
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    out.println(line(record));
                }
            }
        }
        out.flush();
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) {
        String headers = StreamSupport.stream(record.headers().spliterator(), false)
            .map(header -> hex(header.key().getBytes(StandardCharsets.UTF_8)) + ":" + hex(header.value()))
            .collect(Collectors.joining(","));
        return record.topic() + "\t" + record.partition() + "\t" + record.offset() + "\t" + record.timestamp() + "\t"
            + record.timestampType() + "\t" + hex(record.key()) + "\t" + hex(record.value()) + "\t" + headers;
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "-" : HEX.formatHex(bytes);
    }
}
