import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/**
 * Asks the assignors of the Kafka release on the class path who gets which partition, for every case of {@link Cases}.
 *
 * <p>A group is written to a ZooKeeper server in this process, and each of its members is asked for its own part, as its
 * connector would. Per case one line of JSON: by strategy, each topic's partitions in ascending order as
 * {@code member-thread}, the member by its position in the case, {@code .} for nobody's. A strategy's members that threw
 * are under {@code failed} with the exception.
 */
public final class Assignors {
    private static final int SESSION_MS = 30_000;

    private final ZooKeeper writer;
    private final Object reader;
    private List<String> lastTopics = List.of();

    private Assignors(String connect) throws Exception {
        writer = new ZooKeeper(connect, SESSION_MS, event -> { });
        create("/consumers", "");
        create("/brokers", "");
        create("/brokers/topics", "");
        create("/brokers/ids", "");
        create("/brokers/ids/0", "{\"jmx_port\":-1,\"timestamp\":\"1\",\"host\":\"localhost\",\"version\":1,\"port\":9092}");
        reader = reader(connect);
    }

    /** {@code cases SEED} prints the cases, {@code answers SEED} what this release makes of them. */
    public static void main(String[] arguments) {
        try {
            run(arguments);
            // the threads of server and clients are no daemons
            System.exit(0);
        } catch (Exception failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static void run(String[] arguments) throws Exception {
        List<Cases.Case> cases = Cases.all(Long.parseLong(arguments[1]));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        if (arguments[0].equals("cases")) {
            cases.forEach(group -> out.print(group.toJson() + "\n"));
        } else {
            Assignors assignors = new Assignors(startZooKeeper());
            for (Cases.Case group : cases) {
                out.print(assignors.answer(group) + "\n");
            }
        }
        out.flush();
    }

    private static String startZooKeeper() throws Exception {
        Path data = Files.createTempDirectory(Path.of(System.getProperty("golden.scratch")), "zookeeper");
        NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
        factory.configure(new InetSocketAddress("127.0.0.1", 0), 10);
        factory.startup(new ZooKeeperServer(data.toFile(), data.toFile(), 2000));
        return "127.0.0.1:" + factory.getLocalPort();
    }

    /** What the release's {@code AssignmentContext} reads ZooKeeper by: ZkClient in 0.8.2, ZkUtils later. */
    private static Object reader(String connect) throws Exception {
        Class<?> wanted = contextClass().getConstructors()[0].getParameterTypes()[3];
        if (wanted.getSimpleName().equals("ZkUtils")) {
            return wanted.getMethod("apply", String.class, int.class, int.class, boolean.class)
                    .invoke(null, connect, SESSION_MS, SESSION_MS, false);
        }
        Object strings = Class.forName("kafka.utils.ZKStringSerializer$").getField("MODULE$").get(null);
        return wanted.getConstructor(String.class, int.class, int.class,
                Class.forName("org.I0Itec.zkclient.serialize.ZkSerializer"))
                .newInstance(connect, SESSION_MS, SESSION_MS, strings);
    }

    private static Class<?> contextClass() throws ClassNotFoundException {
        return Class.forName("kafka.consumer.AssignmentContext");
    }

    private void create(String path, String data) throws Exception {
        writer.multi(List.of(creation(path, data)));
    }

    private static Op creation(String path, String data) {
        return Op.create(path, data.getBytes(StandardCharsets.UTF_8), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    }

    private String answer(Cases.Case group) throws Exception {
        write(group);
        StringBuilder line = new StringBuilder("{\"case\":" + group.number());
        for (String strategy : new String[] {"range", "roundrobin"}) {
            line.append(",\"").append(strategy).append("\":").append(ask(group, strategy));
        }
        return line.append('}').toString();
    }

    private static String groupId(Cases.Case group) {
        return "g" + group.number();
    }

    /** Puts the case's topics in the place of the last one's, and its members into a group of their own. */
    private void write(Cases.Case group) throws Exception {
        List<Op> operations = new ArrayList<>();
        lastTopics.forEach(topic -> operations.add(Op.delete("/brokers/topics/" + topic, -1)));
        group.topics().forEach((topic, partitions) -> operations.add(creation("/brokers/topics/" + topic,
                partitions.stream().map(partition -> "\"" + partition + "\":[0]")
                        .collect(Collectors.joining(",", "{\"version\":1,\"partitions\":{", "}}")))));
        String path = "/consumers/" + groupId(group);
        operations.add(creation(path, ""));
        operations.add(creation(path + "/ids", ""));
        group.members().forEach((id, record) -> operations.add(creation(path + "/ids/" + id, record)));
        writer.multi(operations);
        lastTopics = List.copyOf(group.topics().keySet());
    }

    /** All members' parts, merged. */
    private String ask(Cases.Case group, String strategy) throws Exception {
        Map<String, Map<Integer, String>> owners = new TreeMap<>();
        Map<String, String> failed = new TreeMap<>();
        List<String> ids = List.copyOf(group.members().keySet());
        for (int member = 0; member < ids.size(); member++) {
            try {
                for (String[] own : part(group, strategy, ids.get(member))) {
                    // should two members take one partition, it shows as no thread's name
                    owners.computeIfAbsent(own[0], topic -> new TreeMap<>()).merge(Integer.valueOf(own[1]),
                            member + own[2].substring(ids.get(member).length()), (one, other) -> one + "+" + other);
                }
            } catch (InvocationTargetException thrown) {
                failed.put(String.valueOf(member), thrown.getCause().getClass().getName());
            }
        }
        Map<String, String> plan = new TreeMap<>();
        owners.forEach((topic, threads) -> plan.put(topic, group.topics().get(topic).stream()
                .map(partition -> threads.getOrDefault(partition, ".")).collect(Collectors.joining(" "))));
        String json = "{\"plan\":" + Cases.object(plan, Cases::quote);
        return json + (failed.isEmpty() ? "}" : ",\"failed\":" + Cases.object(failed, Cases::quote) + "}");
    }

    /** Topic, partition and thread of each partition that a member would claim. */
    private List<String[]> part(Cases.Case group, String strategy, String id) throws Exception {
        Object context = contextClass().getConstructors()[0]
                .newInstance(groupId(group), id, group.excludeInternal(), reader);
        Class<?> assignorClass = Class.forName("kafka.consumer.PartitionAssignor");
        Class<?> companion = Class.forName("kafka.consumer.PartitionAssignor$");
        Object assignor = companion.getMethod("createInstance", String.class)
                .invoke(companion.getField("MODULE$").get(null), strategy);
        Object answer = assignorClass.getMethod("assign", contextClass()).invoke(assignor, context);
        if (!(answer instanceof scala.collection.Map<?, ?>)) {
            // from 0.9 on the answer is for all members, of which a connector takes its own
            answer = answer.getClass().getMethod("get", Object.class).invoke(answer, id);
        }
        List<String[]> part = new ArrayList<>();
        if (answer != null) {
            scala.collection.Iterator<?> entries = ((scala.collection.Map<?, ?>) answer).iterator();
            while (entries.hasNext()) {
                scala.Tuple2<?, ?> entry = (scala.Tuple2<?, ?>) entries.next();
                part.add(new String[] {field(entry._1(), "topic"), field(entry._1(), "partition"), entry._2().toString()});
                if (!entry._2().toString().startsWith(id + "-")) {
                    throw new IllegalStateException(id + " would claim for " + entry._2());
                }
            }
        }
        return part;
    }

    private static String field(Object object, String name) throws Exception {
        return object.getClass().getMethod(name).invoke(object).toString();
    }
}
