//! What is printed of a record, row by row and byte by byte as by Kafka's own console consumer of each generation.

use troupe_cluster::{Cluster, JavaRecord, KafkaVersion};

use crate::programs::{Troupe, exit_code, printed_bytes, printed_bytes_by};
use crate::{new, old, oldest};

const SCALA: &str = "kafka.tools.ConsoleConsumer";
const JAVA: &str = "org.apache.kafka.tools.consumer.ConsoleConsumer";

/// Records with all that may be missing, empty or no text; headers and times where the generation has them.
fn awkward(version: KafkaVersion) -> Vec<JavaRecord> {
    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    // times of long ago would be deleted by the broker
    let timed = version > KafkaVersion::V0_9_0_1;
    let record = |key, value| JavaRecord {
        key,
        value,
        timestamp: timed.then_some(4_000_000_000_123),
        ..JavaRecord::default()
    };
    let mut records = vec![
        record(None, bytes("value without key")),
        record(bytes("key without value"), None),
        record(bytes(""), bytes("")),
        record(None, None),
        record(bytes("k"), bytes("tab\tand é€ and \u{1f3ad}")),
        record(Some(vec![0xff, 0xfe, b'k']), Some(vec![b'v', 0xc3, 0x28, 0x00, 0x80])),
    ];
    if version > KafkaVersion::V0_10_2_2 {
        let headers = [
            ("h", bytes("1")),
            ("h", None),
            ("empty", bytes("")),
            ("bytes", Some(vec![0xff, b','])),
            ("h", bytes("2")),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
        records.push(JavaRecord { headers, ..record(bytes("with headers"), bytes("v")) });
    }
    records
}

/// A topic of one partition with these, once plain and once compressed.
fn fill(cluster: &Cluster, version: KafkaVersion, topic: &str, records: &[JavaRecord]) -> String {
    let mut producer = cluster.java_producer(version, &[]).unwrap();
    for compression in ["none", "gzip"] {
        producer.configure(&[("compression.type", compression), ("linger.ms", "100")]).unwrap();
        records.iter().for_each(|record| producer.send(topic, record).unwrap());
        producer.flush().unwrap();
    }
    (records.len() * 2).to_string()
}

/// Prints all of a topic by both, and compares.
struct Comparison<'a> {
    cluster: &'a Cluster,
    version: KafkaVersion,
    topic: &'a str,
    count: String,
}

impl Comparison<'_> {
    fn of<'a>(cluster: &'a Cluster, version: KafkaVersion, topic: &'a str) -> Comparison<'a> {
        cluster.create_topic(topic, 1, 1).unwrap();
        cluster.wait_for_leaders(topic).unwrap();
        let count = fill(cluster, version, topic, &awkward(version));
        Comparison { cluster, version, topic, count }
    }

    fn check(&self, options: &[&str]) {
        let (zookeeper, brokers) = (self.cluster.zookeeper_connect(), self.cluster.bootstrap());
        let all = ["--topic", self.topic, "--from-beginning", "--max-messages", &self.count];
        let (class, servers) = match self.version {
            KafkaVersion::V3_9_1 => (JAVA, ["--bootstrap-server", &brokers]),
            _ => (SCALA, ["--zookeeper", &zookeeper]),
        };
        let theirs = [&servers[..], &all, options].concat();
        let theirs = printed_bytes_by(self.cluster, self.version, class, &theirs);
        let ours = printed_bytes(&[&["--zookeeper", &zookeeper][..], &all, options].concat());
        assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&theirs), "{options:?}");
        assert_eq!(ours, theirs, "{options:?}");
    }
}

const PROPERTIES: &str = "--property";

#[test]
fn as_0_8_2_2_prints() {
    let comparison = Comparison::of(oldest(), KafkaVersion::V0_8_2_2, "formats");
    comparison.check(&[]);
    comparison.check(&[
        PROPERTIES,
        "print.key=true",
        PROPERTIES,
        "key.separator= | ",
        PROPERTIES,
        "line.separator=;\n",
    ]);
    comparison.check(&["--formatter", "kafka.tools.ChecksumMessageFormatter"]);
    comparison.check(&["--formatter", "kafka.tools.NoOpMessageFormatter"]);
}

#[test]
fn as_1_1_1_prints() {
    let comparison = Comparison::of(old(), KafkaVersion::V1_1_1, "formats");
    comparison.check(&[]);
    comparison.check(&[
        PROPERTIES,
        "print.key=TRUE",
        PROPERTIES,
        "key.separator=é",
        PROPERTIES,
        "print.timestamp=true",
    ]);
    comparison.check(&[PROPERTIES, "print.value=false", PROPERTIES, "print.timestamp=true"]);
    comparison.check(&[PROPERTIES, "print.value=false"]);
    let text = "org.apache.kafka.common.serialization.StringDeserializer";
    let bytes = "value.deserializer=org.apache.kafka.common.serialization.BytesDeserializer";
    comparison.check(&["--key-deserializer", text, PROPERTIES, bytes, PROPERTIES, "print.key=true"]);
    comparison.check(&["--formatter", "kafka.tools.LoggingMessageFormatter", PROPERTIES, "print.key=true"]);
    comparison.check(&["--formatter", "kafka.tools.NoOpMessageFormatter"]);
    comparison.check(&["--formatter", "kafka.tools.ChecksumMessageFormatter", PROPERTIES, "topic=of this"]);
}

#[test]
fn as_1_1_1_prints_times_of_the_broker() {
    let (cluster, topic) = (old(), "formats-appended");
    cluster.create_topic_with(topic, 1, 1, &[("message.timestamp.type", "LogAppendTime")]).unwrap();
    cluster.wait_for_leaders(topic).unwrap();
    let version = KafkaVersion::V1_1_1;
    let count = fill(cluster, version, topic, &awkward(version));
    let comparison = Comparison { cluster, version, topic, count };
    comparison.check(&[PROPERTIES, "print.timestamp=true"]);
    comparison.check(&["--formatter", "kafka.tools.ChecksumMessageFormatter"]);
}

#[test]
fn as_3_9_1_prints() {
    let comparison = Comparison::of(new(), KafkaVersion::V3_9_1, "formats");
    let everything =
        ["timestamp", "partition", "offset", "headers", "key"].map(|what| format!("print.{what}=true"));
    let everything: Vec<&str> = everything.iter().flat_map(|what| [PROPERTIES, what]).collect();
    comparison.check(&everything);
    let more =
        [PROPERTIES, "headers.separator=;", PROPERTIES, "null.literal=NULL", PROPERTIES, "key.separator=|"];
    comparison.check(&[&everything[..], &more].concat());
    let text = "headers.deserializer=org.apache.kafka.common.serialization.StringDeserializer";
    comparison.check(&[PROPERTIES, text, PROPERTIES, "print.headers=true", PROPERTIES, "print.value=false"]);
    comparison.check(&[
        "--formatter",
        "kafka.tools.LoggingMessageFormatter",
        PROPERTIES,
        "print.partition=true",
    ]);
    comparison.check(&["--formatter", "org.apache.kafka.tools.consumer.NoOpMessageFormatter"]);
}

/// Numbers of every size, as the deserializers of 3.9.1 have them.
#[test]
fn as_3_9_1_deserializes() {
    let cluster = new();
    let doubles =
        [0.0, -1.5, 1e7, 9_999_999.0, 1e-3, 9.9e-4, 1e300, f64::MIN_POSITIVE, f64::NAN, f64::NEG_INFINITY];
    let cases: [(&str, Vec<Vec<u8>>); 7] = [
        ("Long", [0, -1, i64::MAX, i64::MIN].map(|number| number.to_be_bytes().to_vec()).to_vec()),
        ("Integer", [0, -1, i32::MAX, i32::MIN].map(|number| number.to_be_bytes().to_vec()).to_vec()),
        ("Short", [0, -1, i16::MAX, i16::MIN].map(|number| number.to_be_bytes().to_vec()).to_vec()),
        ("Double", doubles.map(|number| number.to_be_bytes().to_vec()).to_vec()),
        ("Float", [0.1_f32, 1e10, -3.4e38, 1.0e-5].map(|number| number.to_be_bytes().to_vec()).to_vec()),
        ("Boolean", vec![vec![0], vec![1]]),
        ("UUID", vec![b"123e4567-e89b-12d3-a456-426614174000".to_vec()]),
    ];
    for (name, values) in cases {
        let topic = format!("formats-{name}");
        cluster.create_topic(&topic, 1, 1).unwrap();
        cluster.wait_for_leaders(&topic).unwrap();
        let records =
            values.into_iter().map(|value| JavaRecord { value: Some(value), ..JavaRecord::default() });
        let count = fill(cluster, KafkaVersion::V3_9_1, &topic, &records.collect::<Vec<_>>());
        let comparison = Comparison { cluster, version: KafkaVersion::V3_9_1, topic: &topic, count };
        let class = format!("org.apache.kafka.common.serialization.{name}Deserializer");
        comparison.check(&["--value-deserializer", &class]);
    }
}

/// Ours alone: all of a record, and nothing lost.
#[test]
fn json_and_hex_lose_nothing() {
    let (cluster, topic) = (new(), "formats-json");
    let comparison = Comparison::of(cluster, KafkaVersion::V3_9_1, topic);
    let connect = cluster.zookeeper_connect();
    let all =
        ["--zookeeper", &connect, "--topic", topic, "--from-beginning", "--max-messages", &comparison.count];
    let print = |options: &[&str]| String::from_utf8(printed_bytes(&[&all[..], options].concat())).unwrap();
    let json = print(&["--formatter", "json"]);
    assert_eq!(print(&["--output", "json"]), json);
    let expected = format!(
        r#"{{"topic":"{topic}","partition":0,"offset":0,"timestamp":4000000000123,"headers":[],"key":null,"value":"value without key"}}"#
    );
    assert_eq!(json.lines().next(), Some(expected.as_str()));
    let rows: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len().to_string(), comparison.count);
    assert_eq!((&rows[1]["value"], &rows[2]["value"]), (&serde_json::Value::Null, &serde_json::json!("")));
    assert_eq!(rows[5]["value"], serde_json::json!({ "base64": "dsMoAIA=" }));
    let headers = serde_json::json!([
        { "key": "h", "value": "1" }, { "key": "h", "value": null }, { "key": "empty", "value": "" },
        { "key": "bytes", "value": { "base64": "/yw=" } }, { "key": "h", "value": "2" },
    ]);
    assert_eq!(rows[6]["headers"], headers);
    let hex = print(&["--formatter", "hex", "--property", "print.key=true"]);
    let lines: Vec<&str> = hex.lines().collect();
    assert_eq!(lines[1], "6b657920776974686f75742076616c7565\tnull");
    assert_eq!((lines[2], lines[5]), ("\t", "fffe6b\t76c3280080"));
}

/// The place is named; what was printed before it is committed, and nothing else.
#[test]
fn what_does_not_decode_ends_it_or_is_stepped_over() {
    let (cluster, topic) = (new(), "formats-bad");
    cluster.create_topic(topic, 1, 1).unwrap();
    cluster.wait_for_leaders(topic).unwrap();
    let values = [&7_i64.to_be_bytes()[..], b"no long", &8_i64.to_be_bytes()];
    let records = values.map(|value| JavaRecord { value: Some(value.to_vec()), ..JavaRecord::default() });
    fill(cluster, KafkaVersion::V3_9_1, topic, &records);
    let znodes = crate::Znodes::of(cluster);
    let ended =
        Troupe::consume(cluster, topic, topic, &["--from-beginning", "--value-decoder", "long"]).end();
    assert_eq!(exit_code(&ended), 3, "{ended:?}");
    assert_eq!(ended.lines, ["7"]);
    let why = "formats-bad-0 at offset 1: value: 7 bytes are not a long, which has 8";
    assert_eq!(
        ended.said(),
        format!(
            "Processed a total of 1 messages\ntroupe: cannot decode {why}; to step over it, consume with \
             --skip-message-on-error\n"
        )
    );
    znodes.assert_left(topic, topic, 1);
    let more = ["--value-decoder", "long", "--skip-on-error", "--max-messages", "3"];
    let ended = Troupe::consume(cluster, topic, topic, &more).end();
    // it counts, as with the old tool
    assert_eq!(ended.lines, ["8", "7"]);
    assert!(ended.said().starts_with(&format!("cannot decode {why}; stepping over it\n")), "{ended:?}");
    znodes.assert_left(topic, topic, 4);
}
