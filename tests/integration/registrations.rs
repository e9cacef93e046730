//! Brokers' entries in ZooKeeper: several listeners, and what tools and other versions have written (B26).

use troupe_cluster::{Cluster, KafkaVersion};

use crate::support::by_hand::ByHand;
use crate::support::clusters::{builder, shared};
use crate::support::group::Group;
use crate::support::load::{Load, numbered};
use crate::support::member::Member;
use crate::support::system::run;

#[test]
fn b26_brokers_with_named_listeners_are_read_from() {
    let cluster = builder(KafkaVersion::V3_9_1).brokers(2).listeners(["INSIDE", "OUTSIDE"]).start().unwrap();
    let group = Group::new(&cluster, "listeners", 4);
    let load = Load::start(&cluster, "listeners");
    let one = group.join("m1", 1, &[]);
    let two = group.join("m2", 1, &[]);
    group.wait_for_owners(&["m1-0", "m1-0", "m2-0", "m2-0"]);
    group.wait_for_more(200);
    load.end();
    group.wait_for_all();
    group.wait_for_all_committed();
    let logs = [one.leave(), two.leave()];
    assert!(logs.iter().all(|log| !log.contains("ERROR")), "{logs:?}");
    let history = group.history();
    history.check(&group.zookeeper());
    assert_eq!(history.duplicates(), 0);
}

/// Entries that are not of use: no JSON, one of Kafka 0.7, and one whose only listener is encrypted.
const BAD: [(&str, &str); 3] = [
    ("7", "no JSON"),
    ("8", "creator:host:9092"),
    (
        "9",
        r#"{"listener_security_protocol_map":{"SASL_SSL":"SASL_SSL"},"endpoints":["SASL_SSL://elsewhere:9093"],"jmx_port":-1,"host":null,"timestamp":"1","port":-1,"version":4}"#,
    ),
];

/// Below a chroot of its own, of which no broker knows, with a topic of one partition, which the cluster really has.
struct Tree<'a> {
    group: Group<'a>,
    zookeeper: ByHand,
}

impl<'a> Tree<'a> {
    async fn grow(cluster: &'a Cluster, name: &str) -> Self {
        let tree = Self { group: Group::new(cluster, name, 1), zookeeper: ByHand::of_all(cluster).await };
        cluster.produce(name, numbered(100)).unwrap();
        tree.make(&format!("brokers/topics/{name}"), r#"{"version":1,"partitions":{"0":[0]}}"#).await;
        tree
    }

    async fn make(&self, path: &str, data: &str) {
        self.zookeeper.make(&format!("{}/{path}", self.group.name), data).await;
    }

    async fn register(&self, id: &str, entry: &str) {
        self.make(&format!("brokers/ids/{id}"), entry).await;
    }

    fn join(&self) -> Member {
        let connect = format!("{}/{}", self.group.cluster.zookeeper_connect(), self.group.name);
        self.group.join_through(&connect, "m", 1, &[])
    }
}

/// The entry of a broker at this port, as versions have written it. An IPv6 address that stands for an IPv4 one reaches
/// the broker on machines without a loopback of IPv6 too.
fn entries(port: u16) -> [(&'static str, String); 4] {
    let rest = r#""jmx_port":-1,"timestamp":"1""#;
    [
        ("v1", format!(r#"{{{rest},"version":1,"host":"127.0.0.1","port":{port}}}"#)),
        (
            "two",
            format!(
                r#"{{{rest},"version":2,"host":null,"port":-1,"endpoints":["SSL://elsewhere:1","PLAINTEXT://127.0.0.1:{port}"]}}"#
            ),
        ),
        (
            "named",
            format!(
                r#"{{{rest},"version":5,"host":null,"port":-1,"features":{{}},"rack":"a","endpoints":["OUTSIDE://elsewhere:1","INSIDE://127.0.0.1:{port}"],"listener_security_protocol_map":{{"OUTSIDE":"SASL_SSL","INSIDE":"PLAINTEXT"}}}}"#
            ),
        ),
        (
            "ipv6",
            format!(
                r#"{{{rest},"version":3,"host":"::ffff:127.0.0.1","port":{port},"endpoints":["PLAINTEXT://[::ffff:127.0.0.1]:{port}"]}}"#
            ),
        ),
    ]
}

#[test]
fn b26_entries_of_all_forms_are_used_and_bad_ones_among_them_named() {
    let cluster = shared(KafkaVersion::V3_9_1);
    run(async {
        for (form, entry) in entries(cluster.broker(0).port()) {
            let tree = Tree::grow(cluster, &format!("b26-{form}")).await;
            for (id, bad) in BAD {
                tree.register(id, bad).await;
            }
            tree.register("0", &entry).await;
            let member = tree.join();
            tree.group.wait_for_all();
            for parts in [
                ["WARN", "/brokers/ids/7 cannot be read", "not JSON"],
                ["WARN", "/brokers/ids/8 cannot be read", "Kafka 0.7"],
                ["WARN", "broker 9 has no PLAINTEXT listener", "it offers SASL_SSL://elsewhere:9093"],
            ] {
                member.wait_for_log(&parts);
            }
            member.leave();
            tree.zookeeper.close().await;
        }
    });
}

#[test]
fn b26_when_no_broker_can_be_used_the_error_lists_what_is_on_offer_and_one_that_comes_is_used() {
    let cluster = shared(KafkaVersion::V3_9_1);
    run(async {
        let tree = Tree::grow(cluster, "b26-none").await;
        let (id, entry) = BAD[2];
        tree.register(id, entry).await;
        let member = tree.join();
        member.wait_for_log(&["WARN", "broker 9 has no PLAINTEXT listener", "SASL_SSL://elsewhere:9093"]);
        member.wait_for_log(&["ERROR", "no broker in /brokers/ids can be used"]);
        let [(_, entry), ..] = entries(cluster.broker(0).port());
        tree.register("0", &entry).await;
        tree.group.wait_for_all();
        member.leave();
        tree.zookeeper.close().await;
    });
}
