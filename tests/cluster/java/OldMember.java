import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.ConsumerIterator;
import kafka.consumer.ConsumerTimeoutException;
import kafka.consumer.KafkaStream;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.message.MessageAndMetadata;

/**
 * A member of a group by the old Scala consumer (to 1.1), with any properties of it. Arguments are TOPIC, STREAMS, a
 * file, the name that ends each line there, and KEY=VALUE properties. Appends a line to the file for each record, at
 * once, before it takes the next: "Partition:P Offset:O VALUE NAME", separated by tabs.
 *
 * It says "ready", joins when told "join", leaves when told "leave" or when its input ends, and says "left". It leaves
 * as a careful application does: its threads stop between two records, then the connector commits what they have taken.
 */
public class OldMember {
    private static volatile boolean leaving;

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[0];
        int streams = Integer.parseInt(arguments[1]);
        FileOutputStream journal = new FileOutputStream(arguments[2], true);
        Properties properties = new Properties();
        // so that a thread without records sees that it is time to leave
        properties.put("consumer.timeout.ms", "100");
        for (int i = 4; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("ready");
        if (orders.readLine() == null) {
            return;
        }
        ConsumerConnector connector = Consumer.createJavaConsumerConnector(new ConsumerConfig(properties));
        List<Thread> threads = new ArrayList<>();
        for (KafkaStream<byte[], byte[]> stream
            : connector.createMessageStreams(Collections.singletonMap(topic, streams)).get(topic)) {
            threads.add(new Thread(() -> consume(stream, journal, arguments[3])));
        }
        threads.forEach(Thread::start);
        orders.readLine();
        leaving = true;
        for (Thread thread : threads) {
            thread.join();
        }
        connector.shutdown();
        System.out.println("left");
    }

    private static void consume(KafkaStream<byte[], byte[]> stream, FileOutputStream journal, String name) {
        ConsumerIterator<byte[], byte[]> records = stream.iterator();
        while (!leaving) {
            try {
                if (!records.hasNext()) {
                    return;
                }
            } catch (ConsumerTimeoutException e) {
                continue;
            }
            if (leaving) {
                return;
            }
            MessageAndMetadata<byte[], byte[]> record = records.next();
            String line = "Partition:" + record.partition() + "\tOffset:" + record.offset() + "\t"
                + new String(record.message(), StandardCharsets.UTF_8) + "\t" + name + "\n";
            try {
                journal.write(line.getBytes(StandardCharsets.UTF_8));
            } catch (java.io.IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        }
    }
}
