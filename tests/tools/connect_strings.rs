//! B03: the forms of a connect string. They reach one tree, or are refused with the reason; nothing is made outside a
//! chroot that does not exist.

use troupe_cluster::{Cluster, KafkaVersion};

use crate::old_tools::{Ended, old_tool, troupe};
use crate::znodes::Znodes;
use crate::{CHROOT, on_1_1_1};

const TOPIC: &str = "b03";

/// A topic with three records, made once for all tests here.
fn topic() -> &'static Cluster {
    static MADE: std::sync::Once = std::sync::Once::new();
    let cluster = on_1_1_1();
    MADE.call_once(|| {
        cluster.create_topic(TOPIC, 1, 1).unwrap();
        cluster.wait_for_leaders(TOPIC).unwrap();

        cluster.produce(TOPIC, ["a", "b", "c"].map(Into::into)).unwrap();
    });
    cluster
}

fn consume(zookeeper: &str, group: &str, more: &[&str]) -> Ended {
    let arguments =
        ["consume", "--zookeeper", zookeeper, "--group", group, "--topic", TOPIC, "--from-beginning"];
    troupe(&[&arguments, more].concat())
}

fn listed(zookeeper: &str) -> Vec<String> {
    let ended = troupe(&["groups", "list", "--zookeeper", zookeeper, "--output", "json"]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    ended.rows().iter().map(|row| row["group"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn b03_forms_of_a_connect_string_reach_the_same_tree() {
    let cluster = topic();
    let (znodes, server) = (Znodes::of(cluster), cluster.zookeeper().connect());
    // what the old consumer leaves, by the plain form
    let plain = format!("{server},{server}{CHROOT}");
    let old = [
        "--zookeeper",
        &plain,
        "--topic",
        TOPIC,
        "--from-beginning",
        "--max-messages",
        "3",
        "--group",
        "b03-old",
    ];
    let old = old_tool(cluster, KafkaVersion::V1_1_1, "kafka.tools.ConsoleConsumer", &old);
    assert_eq!(old.printed(), ["a", "b", "c"]);
    let tree = znodes.tree("/consumers/b03-old");
    assert!(tree.contains(&format!("/offsets/{TOPIC}/0")), "{tree:?}");
    for (form, group) in [
        (plain, "b03-plain"),
        (format!("{server}{CHROOT},{server}{CHROOT}"), "b03-repeated"),
        (format!("{server},{server}{CHROOT}/"), "b03-slash"),
        (format!("{server}, {server}{CHROOT}"), "b03-spaces"),
    ] {
        assert_eq!(consume(&form, group, &["--max-messages", "3"]).printed(), ["a", "b", "c"], "{form}");
        assert_eq!(znodes.tree(&format!("/consumers/{group}")), tree, "{form}");
        assert_eq!(
            znodes.data(&format!("/consumers/{group}/offsets/{TOPIC}/0")).as_deref(),
            Some("3"),
            "{form}"
        );
        let groups = listed(&form);
        assert!(groups.iter().any(|listed| listed == group), "{form}: {groups:?}");
        assert!(groups.iter().any(|listed| listed == "b03-old"), "{form}: {groups:?}");
    }
}

#[test]
fn b03_a_lone_slash_is_the_root() {
    let cluster = topic();
    let server = cluster.zookeeper().connect();
    let root = Znodes::at(&server);
    // Kafka stands below the chroot, so the brokers are named
    let more = ["--max-messages", "3", "--bootstrap-server", &cluster.bootstrap()];
    for (form, group) in [(format!("{server}/"), "b03-root"), (server.clone(), "b03-bare")] {
        assert_eq!(consume(&form, group, &more).printed(), ["a", "b", "c"], "{form}");
        assert_eq!(
            root.data(&format!("/consumers/{group}/offsets/{TOPIC}/0")).as_deref(),
            Some("3"),
            "{form}"
        );
        let groups = listed(&form);
        assert!(groups.iter().any(|listed| listed == group), "{form}: {groups:?}");
        assert!(!groups.iter().any(|listed| listed == "b03-plain"), "{form}: {groups:?}");
    }
    assert_eq!(root.tree("/consumers/b03-root"), root.tree("/consumers/b03-bare"));
}

#[test]
fn b03_a_missing_chroot_is_one_error_that_names_it_and_nothing_is_made() {
    let server = topic().zookeeper().connect();
    let root = Znodes::at(&server);
    // but for what another test makes at the root
    let top = || root.children("/").into_iter().filter(|name| name != "consumers").collect::<Vec<_>>();
    let around = || (top(), root.children("/kafka"), root.children(CHROOT));
    let before = around();
    let missing = format!("{CHROOT}/missing");
    for connect in [format!("{server}{missing}"), format!("{server}/b03/missing")] {
        let chroot = connect.split_once('/').unwrap().1;
        for ended in [
            consume(&connect, "b03-missing", &["--timeout-ms", "1000"]),
            troupe(&["groups", "list", "--zookeeper", &connect]),
            troupe(&["groups", "describe", "--group", "b03-missing", "--zookeeper", &connect]),
        ] {
            assert_eq!((ended.code, ended.lines.len()), (3, 0), "{ended:#?}");
            let said: Vec<_> = ended.errors.lines().collect();
            assert_eq!(said.len(), 1, "one error: {ended:#?}");
            assert!(said[0].contains(&format!("/{chroot}")), "{ended:#?}");
        }
    }
    assert_eq!(around(), before);
}

#[test]
fn b03_a_form_that_means_two_things_is_refused_with_the_one_that_was_meant() {
    let ended = troupe(&["groups", "list", "--zookeeper", "z1:2181/kafka,z2:2181"]);
    assert_eq!(ended.code, 2, "{ended:#?}");
    assert!(ended.errors.contains("write z1:2181,z2:2181/kafka"), "{ended:#?}");
}
