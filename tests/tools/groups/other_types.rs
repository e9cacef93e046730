//! Share groups (KIP-932) and streams groups (KIP-1071): named for what they are, and left as they are.

use troupe_cluster::{Cluster, KafkaVersion};

use super::{Of, field, our_table, ours};
use crate::eventually;
use crate::members::topic;
use crate::old_tools::{Ended, old_tool, troupe};

/// A cluster on which both are switched on (in 4.1 they are previews), and their topics need one broker.
fn started(version: KafkaVersion) -> Cluster {
    let cluster = Cluster::builder()
        .kafka(version)
        .broker_property("share.coordinator.state.topic.replication.factor", "1")
        .broker_property("share.coordinator.state.topic.min.isr", "1")
        .broker_property("share.coordinator.state.topic.num.partitions", "2")
        .broker_property("unstable.feature.versions.enable", "true")
        .broker_property("unstable.api.versions.enable", "true")
        .start()
        .unwrap();
    let servers = cluster.bootstrap();
    let previews: &[&str] =
        if version == KafkaVersion::V4_1_1 { &["share.version=1", "streams.version=1"] } else { &[] };
    for feature in previews {
        let class = "org.apache.kafka.tools.FeatureCommand";
        let upgrade = ["--bootstrap-server", &servers, "upgrade", "--feature", feature];
        old_tool(&cluster, version, class, &upgrade).printed();
    }
    cluster
}

fn listed(cluster: &Cluster, group: &str) -> Option<[Option<String>; 3]> {
    let rows = ours(cluster, Of::Kafka, "list", &[]).rows();
    let row = rows.iter().find(|row| row["group"] == group)?;
    Some(["type", "state", "members"].map(|key| field(row, key)))
}

fn is_refused(ended: &Ended, code: i32, why: &str) {
    assert_eq!(ended.code, code, "{ended:#?}");
    assert!((ended.lines.join("\n") + &ended.errors).contains(why), "{why}: {ended:#?}");
}

fn groups_of_another_type_are_named_and_left_alone(version: KafkaVersion) {
    let cluster = started(version);
    topic(&cluster, "typed", 2, 4);
    let mut share = cluster.share_member(version, "typed", "typed-share").unwrap();
    let mut streams = cluster.streams_member(version, "typed", "typed-streams").unwrap();
    share.join().unwrap();
    streams.join().unwrap();
    let servers = cluster.bootstrap();
    for kind in ["share", "streams"] {
        let group = format!("typed-{kind}");
        eventually(&group, || match listed(&cluster, &group) {
            Some([Some(found), Some(state), None]) if found == kind && state != "Empty" => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
    for kind in ["share", "streams"] {
        let group = format!("typed-{kind}");
        let note = format!("a {kind} group: its members are not shown");
        let described = our_table(&cluster, Of::Kafka, "describe", &["--group", &group]);
        is_refused(&described, 0, &note);
        let state = ours(&cluster, Of::Kafka, "describe", &["--group", &group, "--state"]).rows();
        assert_eq!(["type", "members"].map(|key| field(&state[0], key)), [Some(kind.to_owned()), None]);
        let members = ours(&cluster, Of::Kafka, "describe", &["--group", &group, "--members"]);
        is_refused(&members, 0, &note);
        let arguments = ["groups", "watch", "--bootstrap-server", &servers, "--group", &group];
        let watched = troupe(&[&arguments[..], &["--iterations", "1"]].concat());
        is_refused(&watched, 0, &note);
        let reset = ["--group", &group, "--topic", "typed", "--to-earliest", "--execute"];
        let reset = ours(&cluster, Of::Kafka, "reset", &reset);
        is_refused(&reset, 1, &format!("it is a {kind} group"));
    }
    are_not_deleted(&cluster);
    share.leave().unwrap();
    streams.leave().unwrap();
    for kind in ["share", "streams"] {
        let group = format!("typed-{kind}");
        eventually("it is left by its member", || match listed(&cluster, &group) {
            Some([_, Some(state), None]) if state == "Empty" => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
    are_not_deleted(&cluster);
}

/// Brokers would: the request is the same for groups of all types.
fn are_not_deleted(cluster: &Cluster) {
    for kind in ["share", "streams"] {
        let group = format!("typed-{kind}");
        for more in [&[][..], &["--topic", "typed"]] {
            let arguments = [&["--group", group.as_str()], more].concat();
            let deleted = ours(cluster, Of::Kafka, "delete", &arguments);
            is_refused(&deleted, 1, &format!("is a {kind} group, not one of consumers"));
        }
        let [found, ..] = listed(cluster, &group).unwrap();
        assert_eq!(found.as_deref(), Some(kind));
    }
}

#[test]
fn groups_of_another_type_are_named_and_left_alone_on_4_1_1() {
    groups_of_another_type_are_named_and_left_alone(KafkaVersion::V4_1_1);
}

#[test]
fn groups_of_another_type_are_named_and_left_alone_on_4_4_0() {
    groups_of_another_type_are_named_and_left_alone(KafkaVersion::V4_4_0);
}
