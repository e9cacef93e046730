//! Groups with `offsets.storage=kafka`: what is stored there counts, so it is looked at, and deleted, as well.

use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

use crate::programs::{Troupe, eventually, exit_code};
use crate::znodes::Znodes;
use crate::{numbered, oldest, on_both, set, topic};

const KAFKA: [&str; 4] =
    ["--consumer-property", "offsets.storage=kafka", "--consumer-property", "dual.commit.enabled=false"];
const BOTH: [&str; 4] =
    ["--consumer-property", "offsets.storage=kafka", "--consumer-property", "dual.commit.enabled=true"];
const BEGIN: [&str; 3] = ["--from-beginning", "--max-messages", "10"];

on_both! {
    a_group_that_has_offsets_in_kafka_does_not_begin_again_unless_they_are_deleted
    offsets_in_kafka_of_a_group_in_use_are_not_deleted
    a_temporary_group_leaves_nothing_in_kafka
}

/// The sum of what is committed in Kafka.
fn committed(cluster: &Cluster, group: &str) -> i64 {
    cluster.client().committed_offsets(group, group).unwrap().values().sum()
}

fn a_group_that_has_offsets_in_kafka_does_not_begin_again_unless_they_are_deleted(cluster: &Cluster) {
    for (name, stored) in [("again-kafka", &KAFKA), ("again-both", &BOTH)] {
        topic(cluster, name, 2, &numbered(0, 10));
        let begin = [&BEGIN[..], stored].concat();
        assert_eq!(Troupe::consume(cluster, name, name, &begin).end().printed().len(), 10);
        assert_eq!(committed(cluster, name), 10);
        let refused = Troupe::consume(cluster, name, name, &begin).end();
        assert_eq!(exit_code(&refused), 1, "{refused:?}");
        let why =
            format!("Found previous offset information for this group {name}. Please use --delete-cons");
        assert!(refused.errors.starts_with(&why), "{refused:?}");

        let deleting = [&begin[..], &["--delete-consumer-offsets"]].concat();
        let again = Troupe::consume(cluster, name, name, &deleting).end().printed();
        assert_eq!(set(again), set(numbered(0, 10)), "{name}");
        // without any beginning it is as new: nothing is left where it had been
        let end = [&stored[..], &["--delete-consumer-offsets", "--timeout-ms", "1500"]].concat();
        assert_eq!(Troupe::consume(cluster, name, name, &end).end().printed(), [""; 0]);
    }
}

fn offsets_in_kafka_of_a_group_in_use_are_not_deleted(cluster: &Cluster) {
    let name = "used-kafka";
    topic(cluster, name, 1, &numbered(0, 5));
    let often = ["--from-beginning", "--property", "auto.commit.interval.ms=50"];
    let member = Troupe::consume(cluster, name, name, &[&often[..], &KAFKA].concat());
    assert_eq!(member.next_lines(5), numbered(0, 5));
    eventually("it has committed", || match committed(cluster, name) {
        4.. => Ok(()),
        other => Err(other.to_string()),
    });
    let more = [&KAFKA[..], &["--from-beginning", "--delete-consumer-offsets"]].concat();
    let refused = Troupe::consume(cluster, name, name, &more).end();
    assert_eq!(exit_code(&refused), 1, "{refused:?}");
    assert!(refused.errors.contains("the group \"used-kafka\" is active: used-kafka_"), "{refused:?}");
    assert!(committed(cluster, name) >= 4);
    member.signal(rustix::process::Signal::TERM);
    assert_eq!(member.end().printed(), [""; 0]);
}

fn a_temporary_group_leaves_nothing_in_kafka(cluster: &Cluster) {
    let name = "tidy-kafka";
    topic(cluster, name, 1, &numbered(0, 10));
    let (znodes, connect) = (Znodes::of(cluster), cluster.zookeeper_connect());
    let often = ["--property", "auto.commit.interval.ms=50"];
    let arguments = ["--zookeeper", &connect, "--topic", name, "--from-beginning"];
    let troupe = Troupe::run(&[&arguments[..], &often, &KAFKA].concat());
    troupe.next_lines(10);
    let groups =
        || znodes.children("/consumers").into_iter().filter(|it| it.starts_with("console-consumer-"));
    let stored = |group: &String| cluster.client().committed_offsets(group, name).unwrap();
    let group = eventually("it has committed", || {
        groups().find(|group| !stored(group).is_empty()).ok_or_else(|| "no group with offsets".to_owned())
    });
    troupe.signal(rustix::process::Signal::TERM);
    assert_eq!(exit_code(&troupe.end()), 0);
    assert!(!znodes.exists(&format!("/consumers/{group}")));
    assert!(stored(&group).is_empty(), "{:?}", stored(&group));
}

/// Who looks for offsets where there are none must not make the topic that would keep them.
#[test]
fn looking_makes_no_topic_of_offsets() {
    let cluster = Cluster::start(KafkaVersion::V3_9_1, 1).unwrap();
    topic(&cluster, "looked", 1, &numbered(0, 1));
    // ends before its member comes: there is no such topic to begin at
    let connect = cluster.zookeeper_connect();
    let more =
        ["--zookeeper", &connect, "--group", "looked", "--from-beginning", "--delete-consumer-offsets"];
    // a filter that peers could not read
    let ended = Troupe::run(&[&KAFKA[..], &more, &["--whitelist", "'\t*'"]].concat()).end();
    assert_eq!(exit_code(&ended), 3, "{ended:?}");
    assert!(ended.errors.contains("is not a regular expression"), "{ended:?}");
    assert_eq!(cluster.client().topics().unwrap(), ["looked"]);
}

#[test]
fn brokers_that_delete_no_offsets_are_told_of_with_what_else_to_do() {
    let (cluster, name) = (oldest(), "again-oldest");
    cluster.create_topic(name, 1, 1).unwrap();
    cluster.wait_for_leaders(name).unwrap();
    cluster.produce(name, numbered(0, 10).into_iter().map(ProduceRecord::value)).unwrap();
    let begin = [&BEGIN[..], &BOTH].concat();
    assert_eq!(Troupe::consume(cluster, name, name, &begin).end().printed(), numbered(0, 10));
    let deleting = [&begin[..], &["--delete-consumer-offsets"]].concat();
    let refused = Troupe::consume(cluster, name, name, &deleting).end();
    assert_eq!(exit_code(&refused), 3, "{refused:?}");
    let connect = cluster.zookeeper_connect();
    let reset = format!(
        "troupe groups reset --zookeeper {connect} --group {name} --all-topics --to-earliest --execute"
    );
    assert!(refused.errors.contains("too old") && refused.errors.contains(&reset), "{refused:?}");
    Znodes::of(cluster).assert_left(name, name, 10);

    // as it says
    let reset: Vec<_> = reset.split(' ').skip(1).collect();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_troupe"));
    assert!(command.args(reset).env_remove("RUST_LOG").output().unwrap().status.success());
    let rest = [&BOTH[..], &["--max-messages", "10"]].concat();
    assert_eq!(Troupe::consume(cluster, name, name, &rest).end().printed(), numbered(0, 10));
}
