import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;

/**
 * A member of a share group (4.1 up). Arguments are TOPIC and KEY=VALUE properties; it joins and leaves as it is told,
 * and handles what it gets.
 */
public class ShareMember {
    private static volatile boolean leaving;

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        properties.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        for (int i = 1; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(properties)) {
            System.out.println("ready");
            if (orders.readLine() == null) {
                return;
            }
            Thread listener = new Thread(() -> waitForOrder(orders));
            listener.setDaemon(true);
            listener.start();
            consumer.subscribe(Collections.singletonList(arguments[0]));
            while (!leaving) {
                consumer.poll(Duration.ofMillis(100));
            }
        }
        System.out.println("left");
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
