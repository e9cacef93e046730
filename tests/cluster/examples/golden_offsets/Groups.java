import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.utils.Utils;

/** Names of groups, each with its hash and its partition of the counts given, as Kafka computes them. */
public class Groups {
    /** Letters, umlauts, Chinese, emoji and a clef: the last two are of two UTF-16 units. */
    private static final int[] ALPHABET =
        "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789._-\u00E4\u00F6\u00DF\u00E9\u00F1\u6D88\u8D39\u8005\u7EC4\u504F\u79FB\u91CF\uD83D\uDE00\uD834\uDD1E".codePoints().toArray();

    public static void main(String[] counts) {
        List<String> names = new ArrayList<>(List.of(
            "", "a", "lcsnew", "polygenelubricants", "console-consumer-50059", "my-group", "\u6D88\u8D39\u8005\u7EC4", "gr\u00FC\u00DFe-\uD834\uDD1E"));
        Random random = new Random(1);
        while (names.size() < 200) {
            StringBuilder name = new StringBuilder();
            for (int length = 1 + random.nextInt(24); length > 0; length--) {
                name.appendCodePoint(ALPHABET[random.nextInt(ALPHABET.length)]);
            }
            names.add(name.toString());
        }
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String name : names) {
            out.print(name + "\t" + name.hashCode());
            for (String count : counts) {
                out.print("\t" + Utils.abs(name.hashCode()) % Integer.parseInt(count));
            }
            out.println();
        }
    }
}
