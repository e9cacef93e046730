import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Kafka's own producer, told line by line what to do; fields are separated by tabs, bytes are hex, null is "-".
 * What releases have only since some time is called by reflection, so that this compiles against all from 0.8.2.
 *
 * producer KEY=VALUE...                                        closes the producer before and makes a new one
 * send TOPIC PARTITION|-1 TIMESTAMP|- KEY VALUE NAME:VALUE,...  without waiting
 * flush, begin, commit, abort, end (of input)
 *
 * Each but send is answered by "ok N", N being the records acknowledged since the last answer, or "error ...".
 */
public class Producer {
    private static KafkaProducer<byte[], byte[]> producer;
    private static final List<Future<?>> sent = new ArrayList<>();
    private static RuntimeException failed;
    private static final Constructor<?> timed =
        constructor(String.class, Integer.class, Long.class, Object.class, Object.class);
    private static final Constructor<?> headed =
        constructor(String.class, Integer.class, Long.class, Object.class, Object.class, Iterable.class);

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            try {
                if (fields[0].equals("send")) {
                    send(fields);
                    continue;
                }
                if (failed != null) {
                    throw failed;
                }
                System.out.println("ok " + obey(fields));
            } catch (Exception e) {
                if (fields[0].equals("send")) {
                    // told with the next answer
                    failed = new RuntimeException(e);
                    continue;
                }
                failed = null;
                sent.clear();
                System.out.println("error " + reason(e).replace('\n', ' '));
            }
        }
        close();
    }

    private static int obey(String[] fields) throws Exception {
        switch (fields[0]) {
            case "producer":
                int before = acknowledged();
                close();
                producer = new KafkaProducer<>(properties(fields));
                if (properties(fields).containsKey("transactional.id")) {
                    call("initTransactions");
                }
                return before;
            case "flush":
                return acknowledged();
            case "begin":
                call("beginTransaction");
                return 0;
            case "commit":
                int count = acknowledged();
                call("commitTransaction");
                return count;
            case "abort":
                call("abortTransaction");
                sent.clear();
                return 0;
            default:
                throw new IllegalArgumentException("unknown order " + fields[0]);
        }
    }

    private static Map<String, Object> properties(String[] fields) {
        Map<String, Object> properties = new HashMap<>();
        properties.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        properties.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        for (int i = 1; i < fields.length; i++) {
            String[] pair = fields[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        return properties;
    }

    @SuppressWarnings("unchecked")
    private static void send(String[] fields) throws Exception {
        String topic = fields[1];
        Integer partition = fields[2].equals("-1") ? null : Integer.valueOf(fields[2]);
        Long timestamp = fields[3].equals("-") ? null : Long.valueOf(fields[3]);
        byte[] key = bytes(fields[4]);
        byte[] value = bytes(fields[5]);
        Object record;
        if (!fields[6].isEmpty()) {
            record = headed.newInstance(topic, partition, timestamp, key, value, headers(fields[6]));
        } else if (timestamp != null) {
            record = timed.newInstance(topic, partition, timestamp, key, value);
        } else {
            record = new ProducerRecord<>(topic, partition, key, value);
        }
        sent.add(producer.send((ProducerRecord<byte[], byte[]>) record));
    }

    private static List<Object> headers(String field) throws Exception {
        Constructor<?> header = Class.forName("org.apache.kafka.common.header.internals.RecordHeader")
            .getConstructor(String.class, byte[].class);
        List<Object> headers = new ArrayList<>();
        for (String pair : field.split(",")) {
            String[] parts = pair.split(":", -1);
            headers.add(header.newInstance(new String(bytes(parts[0]), StandardCharsets.UTF_8), bytes(parts[1])));
        }
        return headers;
    }

    private static int acknowledged() throws Exception {
        if (producer != null) {
            try {
                call("flush");
            } catch (NoSuchMethodException e) {
                // 0.8.2 sends by itself
            }
        }
        int count = sent.size();
        for (Future<?> future : sent) {
            future.get();
        }
        sent.clear();
        return count;
    }

    private static void close() {
        if (producer != null) {
            producer.close();
        }
        producer = null;
    }

    private static void call(String name) throws Exception {
        Method method = KafkaProducer.class.getMethod(name);
        method.invoke(producer);
    }

    private static Constructor<?> constructor(Class<?>... parameters) {
        try {
            return ProducerRecord.class.getConstructor(parameters);
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    private static String reason(Throwable e) {
        while (e.getCause() != null && (e instanceof InvocationTargetException || e.getMessage() == null
            || e.getMessage().equals(e.getCause().toString()))) {
            e = e.getCause();
        }
        return e.toString();
    }

    private static byte[] bytes(String hex) {
        if (hex.equals("-")) {
            return null;
        }
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (Character.digit(hex.charAt(2 * i), 16) << 4 | Character.digit(hex.charAt(2 * i + 1), 16));
        }
        return bytes;
    }
}
