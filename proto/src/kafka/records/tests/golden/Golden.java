// Writes record sets with Kafka's own Java classes, and what those classes read from them: one line per set,
// "<release> <name> <hex> <records>", each record "<offset>@<timestamp>:<key>=<value>[<headers>]".
// Run with the jars of a Kafka release (1.1.1 and 2.8.2 were used; zstd from 2.1 on) on the class path:
//   java -cp "<jars>/*" Golden.java 2.8.2 >> golden.txt
// Of 2.8.2 only what differs from 1.1.1 was kept.
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.utils.*;

class Golden {
    static final Header[] HEADERS = {header("h", "1"), header("n", null), header("h", "")};

    public static void main(String[] args) {
        for (CompressionType codec : CompressionType.values()) {
            for (byte magic = 0; magic <= 2; magic++) {
                if (codec.name.equals("zstd") && magic < 2) continue;
                String name = "magic" + magic + "-" + codec.name;
                print(args[0], name, set(magic, codec, TimestampType.CREATE_TIME, 0));
                print(args[0], name + "-compacted", compacted(set(magic, codec, TimestampType.CREATE_TIME, 0), 2));
                if (codec.id > 0) print(args[0], name + "-large", set(magic, codec, TimestampType.CREATE_TIME, 100));
                if (magic > 0) print(args[0], name + "-logappend", set(magic, codec, TimestampType.LOG_APPEND_TIME, 0));
            }
        }
        print(args[0], "magic2-emptied", compacted(set((byte) 2, CompressionType.GZIP, TimestampType.CREATE_TIME, 0), 0));
        print(args[0], "magic2-abort", MemoryRecords.withEndTransactionMarker(
                70, 1500000000000L, 3, 9, (short) 1, new EndTransactionMarker(ControlRecordType.ABORT, 5)));
        print(args[0], "magic2-commit", MemoryRecords.withEndTransactionMarker(
                71, 1500000000000L, 3, 9, (short) 1, new EndTransactionMarker(ControlRecordType.COMMIT, 5)));
    }

    static MemoryRecords set(byte magic, CompressionType codec, TimestampType type, int filler) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 20);
        MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, magic, codec, type, 40, 1600000000000L);
        String value = "v".repeat(filler * 700);
        add(builder, magic, 40, "k", "one" + value);
        add(builder, magic, 41, null, "two" + value);
        add(builder, magic, 42, "", "");
        add(builder, magic, 43, "gone", null);
        return builder.build();
    }

    static void add(MemoryRecordsBuilder builder, byte magic, long offset, String key, String value) {
        Header[] headers = magic == 2 && offset == 41 ? HEADERS : Record.EMPTY_HEADERS;
        builder.appendWithOffset(offset, 1500000000000L + offset, bytes(key), bytes(value), headers);
    }

    // keeps the offsets that `step` divides, as the log cleaner does; none for 0
    static MemoryRecords compacted(MemoryRecords set, long step) {
        ByteBuffer out = ByteBuffer.allocate(1 << 20);
        set.filterTo(new TopicPartition("t", 0), new MemoryRecords.RecordFilter() {
            protected BatchRetention checkBatchRetention(RecordBatch batch) {
                return batch.magic() < 2 ? BatchRetention.DELETE_EMPTY : BatchRetention.RETAIN_EMPTY;
            }
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return step > 0 && record.offset() % step == 0;
            }
        }, out, Integer.MAX_VALUE, BufferSupplier.NO_CACHING);
        out.flip();
        return MemoryRecords.readableRecords(out);
    }

    static void print(String version, String name, MemoryRecords set) {
        StringBuilder line = new StringBuilder(version + " " + name + " ");
        ByteBuffer buffer = set.buffer().duplicate();
        while (buffer.hasRemaining()) line.append(String.format("%02x", buffer.get()));
        for (RecordBatch batch : set.batches()) {
            if (batch.isControlBatch()) continue;
            for (Record record : batch) {
                line.append(" " + record.offset() + "@" + record.timestamp() + ":");
                line.append(text(record.key()) + "=" + text(record.value()) + "[");
                for (Header header : record.headers()) {
                    line.append(header.key() + "=" + text(header.value() == null ? null : ByteBuffer.wrap(header.value())) + ";");
                }
                line.append("]");
            }
        }
        System.out.println(line);
    }

    static Header header(String key, String value) { return new RecordHeader(key, bytes(value)); }

    static byte[] bytes(String text) { return text == null ? null : text.getBytes(StandardCharsets.UTF_8); }

    static String text(ByteBuffer bytes) {
        if (bytes == null) return "null";
        if (bytes.remaining() > 1000) return bytes.remaining() + "bytes";
        return StandardCharsets.UTF_8.decode(bytes.duplicate()).toString();
    }
}
