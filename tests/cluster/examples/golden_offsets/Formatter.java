import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;

/**
 * What Kafka's own formatters say of records of the offsets topic: a line of key and value (hex, null as "-") is answered
 * by what the formatter of offsets writes, that of groups, and what the members of a group were assigned, as
 * MEMBER=[TOPIC-PARTITION, ...] with ";" between; all separated by tabs, and empty where there is nothing.
 * Arguments are the classes of both formatters, "-" for none, and of what reads a group. All by reflection, so that this
 * compiles against every release.
 */
public class Formatter {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            byte[] key = bytes(fields[0]);
            byte[] value = bytes(fields[1]);
            boolean isGroup = key[1] == 2 && value != null;
            out.println(format(arguments[0], key, value) + "\t" + format(arguments[1], key, value) + "\t"
                + (isGroup ? assignments(arguments[2], value) : ""));
        }
    }

    private static byte[] bytes(String hex) {
        return hex.equals("-") ? null : HEX.parseHex(hex);
    }

    private static String format(String name, byte[] key, byte[] value) throws Exception {
        if (name.equals("-")) {
            return "";
        }
        Object formatter = Class.forName(name).getConstructor().newInstance();
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        PrintStream to = new PrintStream(written, true, StandardCharsets.UTF_8);
        Method write = method(formatter.getClass(), "writeTo", 0);
        if (write.getParameterCount() == 3) {
            call(write, formatter, key, value, to);
        } else {
            Object record = Class.forName("org.apache.kafka.clients.consumer.ConsumerRecord")
                .getConstructor(String.class, int.class, long.class, Object.class, Object.class)
                .newInstance("__consumer_offsets", 0, 0L, key, value);
            call(write, formatter, record, to);
        }
        to.flush();
        return written.toString(StandardCharsets.UTF_8).trim();
    }

    private static String assignments(String reader, byte[] value) throws Exception {
        List<String> all = new ArrayList<>();
        for (Object member : members(Class.forName(reader), value)) {
            byte[] bytes = (byte[]) get(member, "assignment");
            Object partitions = "[]";
            if (bytes.length > 0) {
                Class<?> protocol = Class.forName("org.apache.kafka.clients.consumer.internals.ConsumerProtocol");
                Method read = method(protocol, "deserializeAssignment", 1);
                partitions = get(call(read, null, ByteBuffer.wrap(bytes)), "partitions");
            }
            all.add(get(member, "memberId") + "=" + partitions);
        }
        return String.join(";", all);
    }

    /** Of the generated class of 4.x, or of the Scala code before. */
    private static List<Object> members(Class<?> reader, byte[] value) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(value);
        if (reader.getSimpleName().equals("GroupMetadataValue")) {
            short version = buffer.getShort();
            Object accessor = Class.forName("org.apache.kafka.common.protocol.ByteBufferAccessor")
                .getConstructor(ByteBuffer.class).newInstance(buffer);
            Object group = reader.getConstructor(Class.forName("org.apache.kafka.common.protocol.Readable"), short.class)
                .newInstance(accessor, version);
            return new ArrayList<>((List<?>) get(group, "members"));
        }
        Method read = method(reader, "readGroupMessageValue", 0);
        Object group = read.getParameterCount() == 2
            ? call(read, null, "group", buffer)
            : call(read, null, "group", buffer,
                Class.forName("org.apache.kafka.common.utils.Time").getField("SYSTEM").get(null));
        List<Object> all = new ArrayList<>();
        Object iterator = get(get(group, "allMemberMetadata"), "iterator");
        while ((boolean) get(iterator, "hasNext")) {
            all.add(get(iterator, "next"));
        }
        return all;
    }

    private static Object get(Object from, String name) throws Exception {
        for (Method method : from.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == 0) {
                return call(method, from);
            }
        }
        throw new NoSuchMethodException(from.getClass() + "." + name);
    }

    /** The first of this name and so many parameters, 0 for any. */
    private static Method method(Class<?> of, String name, int parameters) throws Exception {
        for (Method method : of.getMethods()) {
            boolean fits = parameters == 0 || method.getParameterCount() == parameters;
            if (method.getName().equals(name) && fits && !method.isBridge()) {
                return method;
            }
        }
        throw new NoSuchMethodException(of + "." + name);
    }

    private static Object call(Method method, Object of, Object... arguments) throws Exception {
        method.setAccessible(true);
        try {
            return method.invoke(of, arguments);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(method + " fails", e.getCause());
        }
    }
}
