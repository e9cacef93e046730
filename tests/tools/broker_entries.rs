//! B26: entries of brokers in ZooKeeper, as tools meet them.

use serde_json::Value;
use troupe_cluster::{Cluster, KafkaVersion};

use crate::members::topic;
use crate::old_tools::{Ended, troupe};
use crate::on_3_9_1;
use crate::znodes::Znodes;

/// Below a path of its own, of which no broker knows: a topic of one partition with 10 records, which the cluster really
/// has, and a group that has read 4 of them.
struct Tree {
    connect: String,
    name: &'static str,
    znodes: Znodes,
}

impl Tree {
    fn grow(cluster: &Cluster, name: &'static str) -> Self {
        topic(cluster, name, 1, 10);
        let tree = Self {
            connect: format!("{}/{name}", cluster.zookeeper_connect()),
            name,
            znodes: Znodes::of(cluster),
        };
        tree.put(&format!("brokers/topics/{name}"), r#"{"version":1,"partitions":{"0":[0]}}"#);
        tree.put(&format!("consumers/{name}/offsets/{name}/0"), "4");
        tree
    }

    fn put(&self, path: &str, data: &str) {
        self.znodes.put(&format!("/{}/{path}", self.name), data);
    }

    fn register(&self, id: i32, entry: &str) {
        self.put(&format!("brokers/ids/{id}"), entry);
    }

    fn offsets_get(&self) -> Ended {
        troupe(&["offsets", "get", "--zookeeper", &self.connect, "--topic", self.name, "--output", "json"])
    }

    fn describe(&self) -> Ended {
        described(&self.connect, self.name)
    }
}

fn described(connect: &str, group: &str) -> Ended {
    troupe(&["groups", "describe", "--zookeeper", connect, "--group", group, "--output", "json"])
}

/// The end of the log and the lag, which only a broker tells.
#[track_caller]
fn assert_told(ended: &Ended) {
    assert_eq!(ended.code, 0, "{ended:?}");
    let rows = ended.rows();
    assert_eq!(rows.len(), 1, "{ended:?}");
    let facts = ["partition", "committed", "log_end", "lag"].map(|key| &rows[0][key]);
    assert_eq!(facts, [0, 4, 10, 6].map(Value::from).each_ref(), "{ended:?}");
}

/// The rest of every entry.
const REST: &str = r#""jmx_port":-1,"timestamp":"1""#;

/// Entries that are not of use: no JSON, one of Kafka 0.7, none that has a host, and one with nothing but SASL_SSL.
const BAD: [(i32, &str, &str); 4] = [
    (6, r#"{"version":1,"host":null,"port":-1}"#, "broker 6 has no PLAINTEXT listener"),
    (7, "no JSON", "/brokers/ids/7 cannot be read: not JSON"),
    (8, "creator:host:9092", "/brokers/ids/8 cannot be read: written by Kafka 0.7"),
    (
        9,
        r#"{"listener_security_protocol_map":{"SASL_SSL":"SASL_SSL"},"endpoints":["SASL_SSL://elsewhere:9093"],"jmx_port":-1,"host":null,"timestamp":"1","port":-1,"version":4}"#,
        "broker 9 has no PLAINTEXT listener to connect to; it offers SASL_SSL://elsewhere:9093",
    ),
];

/// A broker at this port, as versions have written it. An IPv6 address that stands for an IPv4 one reaches it on machines
/// without a loopback of IPv6 too.
fn entries(port: u16) -> [String; 4] {
    [
        format!(r#"{{{REST},"version":1,"host":"127.0.0.1","port":{port}}}"#),
        format!(
            r#"{{{REST},"version":3,"host":null,"port":-1,"endpoints":["SSL://elsewhere:1","PLAINTEXT://127.0.0.1:{port}"]}}"#
        ),
        format!(
            r#"{{{REST},"version":5,"host":null,"port":-1,"features":{{}},"endpoints":["OUTSIDE://elsewhere:1","INSIDE://127.0.0.1:{port}"],"listener_security_protocol_map":{{"OUTSIDE":"SASL_SSL","INSIDE":"PLAINTEXT"}}}}"#
        ),
        format!(
            r#"{{{REST},"version":2,"host":"::ffff:127.0.0.1","port":{port},"endpoints":["PLAINTEXT://[::ffff:127.0.0.1]:{port}"]}}"#
        ),
    ]
}

#[test]
fn b26_entries_of_all_forms_are_used_and_bad_ones_among_them_passed_over_with_a_warning() {
    let cluster = on_3_9_1();
    let tree = Tree::grow(cluster, "b26-forms");
    BAD.iter().for_each(|(id, bad, _)| tree.register(*id, bad));
    for entry in entries(cluster.broker(0).port()) {
        tree.register(0, &entry);
        for ended in [tree.describe(), tree.offsets_get()] {
            assert_eq!(ended.code, 0, "{entry}: {ended:?}");
            for (_, _, why) in BAD {
                assert!(ended.errors.contains(why), "{why}: {ended:?}");
            }
        }
        assert_told(&tree.describe());
        let got = tree.offsets_get().rows();
        assert_eq!((got.len(), &got[0]["offset"]), (1, &10.into()), "{entry}: {got:?}");
    }
}

#[test]
fn b26_where_nothing_fits_the_error_lists_what_is_on_offer() {
    let tree = Tree::grow(on_3_9_1(), "b26-none");
    let (id, entry, why) = BAD[3];
    tree.register(id, entry);
    let ended = tree.offsets_get();
    assert_eq!((ended.code, ended.lines.len()), (3, 0), "{ended:?}");
    assert!(ended.errors.contains(why), "{ended:?}");
    // what stands in ZooKeeper is shown all the same
    let ended = tree.describe();
    assert!(ended.code == 0 && ended.errors.contains(why), "{ended:?}");
    let rows = ended.rows();
    assert_eq!((&rows[0]["committed"], &rows[0]["log_end"]), (&4.into(), &Value::Null), "{ended:?}");
}

#[test]
fn b26_a_broker_with_named_listeners_is_asked_on_the_one_that_is_plaintext() {
    let login = r#"org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b";"#;
    let cluster = Cluster::builder().kafka(KafkaVersion::V3_9_1).listeners(["INSIDE", "OUTSIDE"]);
    let map = "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT";
    let cluster = cluster
        .broker_property("listener.security.protocol.map", map)
        .broker_property("sasl.enabled.mechanisms", "PLAIN")
        .broker_property("listener.name.outside.plain.sasl.jaas.config", login)
        .start()
        .unwrap();
    let name = "b26-named";
    topic(&cluster, name, 1, 10);
    let znodes = Znodes::of(&cluster);
    let entry = znodes.data("/brokers/ids/0").unwrap();
    assert!(entry.contains(r#""OUTSIDE":"SASL_PLAINTEXT""#) && entry.contains("OUTSIDE://"), "{entry}");
    znodes.commit(name, name, 0, 4);
    let connect = cluster.zookeeper_connect();
    assert_told(&described(&connect, name));
    let got = troupe(&["offsets", "get", "--zookeeper", &connect, "--topic", name, "--output", "json"]);
    assert_eq!(got.rows()[0]["offset"], 10);
}
