import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/**
 * As OldMember, by Kafka's own consumer (0.9 up), whose group is coordinated by brokers. Arguments are TOPIC, a file,
 * the name that ends each line there, and KEY=VALUE properties. What it has handled is committed when it leaves, by its
 * automatic commit.
 */
public class GroupMember {
    private static volatile boolean leaving;

    public static void main(String[] arguments) throws Exception {
        FileOutputStream journal = new FileOutputStream(arguments[1], true);
        Properties properties = new Properties();
        properties.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        properties.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        for (int i = 3; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties)) {
            System.out.println("ready");
            if (orders.readLine() == null) {
                return;
            }
            Thread listener = new Thread(() -> waitForOrder(orders));
            listener.setDaemon(true);
            listener.start();
            consumer.subscribe(Collections.singletonList(arguments[0]));
            while (!leaving) {
                for (ConsumerRecord<byte[], byte[]> record : poll(consumer)) {
                    String line = "Partition:" + record.partition() + "\tOffset:" + record.offset() + "\t"
                        + new String(record.value(), StandardCharsets.UTF_8) + "\t" + arguments[2] + "\n";
                    journal.write(line.getBytes(StandardCharsets.UTF_8));
                }
            }
        }
        System.out.println("left");
    }

    /** In milliseconds to 1.1, a Duration since. */
    private static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
        try {
            return call(consumer, java.time.Duration.class, java.time.Duration.ofMillis(100));
        } catch (NoSuchMethodException e) {
            return call(consumer, long.class, 100L);
        }
    }

    @SuppressWarnings("unchecked")
    private static ConsumerRecords<byte[], byte[]> call(KafkaConsumer<byte[], byte[]> consumer, Class<?> type, Object wait)
        throws Exception {
        return (ConsumerRecords<byte[], byte[]>) KafkaConsumer.class.getMethod("poll", type).invoke(consumer, wait);
    }

    private static void waitForOrder(BufferedReader orders) {
        try {
            orders.readLine();
        } catch (java.io.IOException e) {
            // as its end
        }
        leaving = true;
    }
}
