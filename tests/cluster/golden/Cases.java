import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Groups to ask the assignors about: the specification's examples, then drawn ones, the same at each run. */
final class Cases {
    /** Members are consumer ids with the data of their nodes; their order names them in the answers. */
    record Case(int number, String about, boolean excludeInternal, Map<String, List<Integer>> topics,
            Map<String, String> members) {
        String toJson() {
            return "{\"case\":" + number + ",\"about\":" + quote(about) + ",\"exclude_internal\":" + excludeInternal
                    + ",\"topics\":" + object(topics, partitions -> partitions.toString().replace(" ", ""))
                    + ",\"members\":" + object(members, record -> record) + "}";
        }
    }

    /** What the drawn cases are about; each is drawn with each kind of ids. */
    private enum About {
        ALIKE("the same topics, each member its own number of streams"),
        ALIKE_FILTERS("one filter for all, each member its own number of streams"),
        UNEQUAL("unequal subscriptions and uneven counts"),
        MIXED("filters and topics by name"),
        MANY_STREAMS("ten or more streams per member"),
        IDLE("members without partitions, absent topics, filters without a match");

        final String text;

        About(String text) {
            this.text = text;
        }
    }

    private static final int EACH = 22;
    private static final String OFFSETS = "__consumer_offsets";
    private static final String TRANSACTIONS = "__transaction_state";
    private static final String[] TOPICS = {"t3", "t5", "t14", "t-5", "t.5", "t_5", "T5", "u2", "orders", "orders.dlq",
        "Orders", "x", "x-1", "0", "9", "10", "a_b", "a-b", "a.b", "metrics.host-eu-west-1_v2", "_private"};
    private static final String[] FILTERS = {".*", "t.*", "[tu].*", "t\\d+", "t.5|u2", ".*\\.dlq", "orders.*",
        "(?i)orders", "x(-1)?", "[^_].*", "\\w+", "T5,u2", " 'a.b' "};
    private static final int[] COUNTS = {1, 2, 3, 4, 5, 7, 8, 10, 12, 14, 17, 23};
    private static final String[][] IDS = {
        {"A", "B", "C", "D", "E", "F"},
        {"g_web-1-1795989640439-8f02c2d2", "g_web-10-1795989640440-12ab34cd", "g_web-2-1795989640441-ffffffff",
            "g_Web-2-1795989640441-0", "g_db.eu_1-1795989640442-1a", "g_db-eu_1-1795989640443-9b8c7d6e", "g_fix"},
        {"x", "x-1", "x-1-0", "x-10", "x.1", "x_1", "X", "X-1", "x1", "x~", "-", "_", "9", "10", "a", "a-", "B", "b",
            "\u00e9", "e", "z", "\u0416", "\u4e2d", "\uff5e", "\ufb00"},
    };
    private static final String[] KINDS = {"plain ids", "ids as members make them", "ids that differ in their order"};

    private final Random random;
    private final List<Case> cases = new ArrayList<>();

    private Cases(long seed) {
        random = new Random(seed);
    }

    static List<Case> all(long seed) {
        Cases cases = new Cases(seed);
        cases.examples();
        cases.internalTopics();
        for (About about : About.values()) {
            for (int kind = 0; kind < IDS.length; kind++) {
                for (int n = 0; n < EACH; n++) {
                    cases.draw(about, kind);
                }
            }
        }
        return cases.cases;
    }

    /** Section 3.5 of the specification of the old consumer. */
    private void examples() {
        Map<String, List<Integer>> topics = topics("t5", 5, "t3", 3, "t14", 14, "u2", 2);
        example("1", topics, "C1", named("t5", 2), "C2", named("t5", 2));
        example("2, 11", topics, "A", named("t14", 12));
        example("3", topics, "A", named("t3", 2), "B", named("t3", 2));
        String[] four = {"A", named("t5", 1, "t3", 1), "B", named("t5", 3), "C", named("t3", 2, "t14", 1)};
        example("4", topics, four);
        example("5", topics, "A", white("t[35]", 2), "B", named("t5", 1), "C", black("t14|u.*", 1));
        example("6", topics, "x", named("t14", 11), "x-1", named("t14", 2));
        example("7", topics, "A", named("t14", 10), "B", named("t14", 1));
        example("8", topics, "A", named("nope", 1, "t5", 1), "B", named("t5", 1));
        example("9", topics, "A", named("t5", 2, "t3", 2), "B", named("t5", 2, "t3", 2));
        example("10", topics, "A", named("t5", 2, "t3", 2), "B", named("t5", 1, "t3", 1));
        example("12", topics, "A", white("[tu].*", 2), "B", white("[tu].*", 1));
        example("13", topics, "A", named("t5", 2, "t3", 1), "B", named("t5", 1), "C", named("t3", 1, "u2", 1));
        example("a number not in a row", topics("t", List.of(0, 3, 4, 11, 20), "u", List.of(7)), "A",
                named("t", 2, "u", 2), "B", named("t", 1, "u", 1));
        example("no partitions", topics("t", 0), "A", named("t", 2), "B", named("t", 1));
        example("no topics", topics("t", 2), "A", white("nope", 2), "B", white("nope", 1));
    }

    private void example(String name, Map<String, List<Integer>> topics, String... members) {
        add("example " + name, true, topics, pairs((Object[]) members));
    }

    private void internalTopics() {
        for (String internal : new String[] {OFFSETS, TRANSACTIONS}) {
            Map<String, List<Integer>> topics = topics("t5", 5, "u2", 2, internal, 7);
            for (boolean exclude : new boolean[] {true, false}) {
                String about = "internal topic " + internal + (exclude ? " excluded" : " not excluded");
                add(about, exclude, topics, pairs("A", white(".*", 2), "B", white(".*", 1)));
                add(about, exclude, topics, pairs("A", white(".*", 2), "B", named("t5", 1, internal, 2)));
                add(about, exclude, topics, pairs("A", black("u.*", 1), "B", white("__.*", 3), "C", named("u2", 1)));
            }
        }
    }

    private void draw(About about, int kind) {
        Map<String, List<Integer>> topics = drawTopics();
        List<String> names = new ArrayList<>(topics.keySet());
        String same = sameFilter(names);
        Map<String, String> members = new LinkedHashMap<>();
        int count = about == About.MANY_STREAMS ? 1 + random.nextInt(3) : 1 + random.nextInt(6);
        while (members.size() < count) {
            String record = switch (about) {
                case ALIKE -> named(names, 1 + random.nextInt(4));
                case ALIKE_FILTERS -> white(same, 1 + random.nextInt(4));
                case UNEQUAL -> namedSome(names, 4);
                case MIXED -> random.nextInt(3) == 0 ? namedSome(names, 3) : filter(4);
                case MANY_STREAMS -> many(names, same);
                case IDLE -> idle(names);
            };
            members.putIfAbsent(pick(IDS[kind]), record);
        }
        add(about.text + "; " + KINDS[kind], random.nextInt(8) > 0, topics, members);
    }

    /** Draws again where two partitions have one hash, for the order of such is undefined in Scala. */
    private Map<String, List<Integer>> drawTopics() {
        Map<String, List<Integer>> topics = new TreeMap<>();
        do {
            topics.clear();
            for (int n = 1 + random.nextInt(5); n > 0; n--) {
                int step = random.nextInt(10) == 0 ? 1 + random.nextInt(5) : 1;
                List<Integer> partitions = IntStream.range(0, COUNTS[random.nextInt(COUNTS.length)])
                        .map(partition -> partition * step).boxed().toList();
                topics.put(random.nextInt(25) == 0 ? OFFSETS : pick(TOPICS), partitions);
            }
        } while (ties(topics, "[%s,%d]") || ties(topics, "%s-%d"));
        return topics;
    }

    private static boolean ties(Map<String, List<Integer>> topics, String key) {
        Set<Integer> hashes = new HashSet<>();
        return topics.entrySet().stream().anyMatch(topic -> topic.getValue().stream()
                .anyMatch(partition -> !hashes.add(String.format(key, topic.getKey(), partition).hashCode())));
    }

    private String namedSome(List<String> names, int streams) {
        Map<String, Integer> some = new LinkedHashMap<>();
        for (int n = 1 + random.nextInt(names.size()); n > 0; n--) {
            some.put(names.get(random.nextInt(names.size())), 1 + random.nextInt(streams));
        }
        return record("static", some);
    }

    /** Mostly one that matches some topic. */
    private String sameFilter(List<String> names) {
        while (true) {
            String filter = pick(FILTERS);
            String regex = filter.replace(',', '|');
            if (names.stream().anyMatch(name -> name.matches(regex)) || random.nextInt(20) == 0) {
                return filter;
            }
        }
    }

    private String filter(int streams) {
        int count = 1 + random.nextInt(streams);
        return random.nextInt(3) == 0 ? black(pick(FILTERS), count) : white(pick(FILTERS), count);
    }

    private String many(List<String> names, String same) {
        return switch (random.nextInt(3)) {
            case 0 -> namedSome(names, 14);
            case 1 -> named(names, 10 + random.nextInt(16));
            default -> white(same, 10 + random.nextInt(4));
        };
    }

    private String idle(List<String> names) {
        return switch (random.nextInt(4)) {
            case 0 -> named(List.of("absent", names.get(0)), 1 + random.nextInt(9));
            case 1 -> named("absent", 1 + random.nextInt(3));
            case 2 -> white("nothing.matches", 1 + random.nextInt(3));
            default -> namedSome(names, 9);
        };
    }

    private String pick(String[] from) {
        return from[random.nextInt(from.length)];
    }

    private void add(String about, boolean exclude, Map<String, List<Integer>> topics, Map<String, String> members) {
        cases.add(new Case(cases.size(), about, exclude, topics, members));
    }

    private static String named(Object... topicsAndStreams) {
        return record("static", pairs(topicsAndStreams));
    }

    private static String named(List<String> topics, int streams) {
        Map<String, Integer> all = new LinkedHashMap<>();
        topics.forEach(topic -> all.put(topic, streams));
        return record("static", all);
    }

    private static String white(String filter, int streams) {
        return record("white_list", Map.of(filter, streams));
    }

    private static String black(String filter, int streams) {
        return record("black_list", Map.of(filter, streams));
    }

    private static String record(String pattern, Map<String, Integer> subscription) {
        return "{\"version\":1,\"subscription\":" + object(subscription, String::valueOf) + ",\"pattern\":\"" + pattern
                + "\",\"timestamp\":\"1\"}";
    }

    /** A number of partitions, or their list, for each topic. */
    private static Map<String, List<Integer>> topics(Object... pairs) {
        Map<String, Object> given = pairs(pairs);
        Map<String, List<Integer>> topics = new TreeMap<>();
        given.forEach((topic, partitions) -> topics.put(topic, partitions instanceof Integer count
                ? IntStream.range(0, count).boxed().toList()
                : ((List<?>) partitions).stream().map(Integer.class::cast).toList()));
        return topics;
    }

    @SuppressWarnings("unchecked")
    private static <V> Map<String, V> pairs(Object... pairs) {
        Map<String, V> map = new LinkedHashMap<>();
        for (int at = 0; at < pairs.length; at += 2) {
            map.put((String) pairs[at], (V) pairs[at + 1]);
        }
        return map;
    }

    static <V> String object(Map<String, V> map, java.util.function.Function<V, String> json) {
        return map.entrySet().stream().map(entry -> quote(entry.getKey()) + ":" + json.apply(entry.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
    }

    static String quote(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
