//! B27: names of groups that others have made.

use std::sync::OnceLock;

use troupe_cluster::{Cluster, JavaMember, KafkaVersion};

use super::{Of, field, fields, old_groups, our_table, ours};
use crate::members::{java, topic};
use crate::old_tools::{Ended, troupe};
use crate::znodes::Znodes;
use crate::{eventually, on_1_1_1, on_3_9_1};

/// The last two would be orders to a terminal.
const ODD: [&str; 6] = [
    "data/x:y",
    "p_#1",
    "sp ace",
    "<img src=x onerror=1>",
    "two\nlines",
    "b27\u{1b}[2J\u{1b}]0;title\u{7}b27",
];

/// A topic for them, made once.
fn records(cluster: &Cluster) -> &'static str {
    static MADE: OnceLock<()> = OnceLock::new();
    MADE.get_or_init(|| topic(cluster, "b27", 1, 3));
    "b27"
}

#[test]
fn b27_groups_of_others_are_listed_described_and_deleted_by_their_exact_names() {
    let (cluster, version) = (on_3_9_1(), KafkaVersion::V3_9_1);
    let topic = records(cluster);
    let members = ODD.map(|group| (group, java(cluster, version, group, topic, &[])));
    for (group, member) in members {
        eventually("a member that has read all", || {
            let ended = ours(cluster, Of::Kafka, "describe", &["--group", group]);
            let is_read = ended.code == 0 && ended.rows().iter().any(|row| row["lag"] == 0);
            if is_read { Ok(()) } else { Err(format!("{ended:?}\n{}", tail(&member))) }
        });
        member.leave().unwrap();
    }
    let listed = ours(cluster, Of::Both, "list", &[]).rows();
    for group in ODD {
        assert!(listed.iter().any(|row| row["group"] == group), "{listed:#?}");
        let described = ours(cluster, Of::Both, "describe", &["--group", group]);
        assert_eq!(described.code, 0, "{described:#?}");
        let rows = fields(&described.rows(), ["group", "topic", "committed", "lag"]);
        assert_eq!(rows, [[group, topic, "3", "0"].map(|text| Some(text.to_owned()))], "{described:#?}");
        let state = our_table(cluster, Of::Both, "describe", &["--group", group, "--state"]);
        assert_eq!(state.code, 0, "{state:#?}");
        assert!(!printed(&state).contains(char::is_control), "{state:?}");
    }
    for view in [&["list"][..], &["describe", "--all-groups"], &["describe", "--all-groups", "--members"]] {
        let table = our_table(cluster, Of::Both, view[0], &view[1..]);
        assert_eq!(table.code, 0, "{table:#?}");
        assert!(!printed(&table).contains(char::is_control), "{table:?}");
    }
    let groups: Vec<_> = ODD.iter().flat_map(|group| ["--group", group]).collect();
    let deleted = our_table(cluster, Of::Both, "delete", &groups);
    assert_eq!(deleted.code, 0, "{deleted:#?}");
    assert!(!printed(&deleted).contains(char::is_control), "{deleted:?}");
    let servers = cluster.bootstrap();
    let old = old_groups(cluster, version, &["--bootstrap-server", &servers, "--list"]).printed().join("\n");
    assert!(ODD.iter().all(|group| !old.contains(group)), "{old:?}");
}

fn tail(member: &JavaMember) -> String {
    let log = std::fs::read_to_string(member.log()).unwrap();
    log.lines().rev().take(5).collect()
}

/// What has reached the terminal, without the ends of lines.
fn printed(ended: &Ended) -> String {
    ended.lines.concat() + &ended.errors.replace('\n', "")
}

/// In ZooKeeper a name with a slash would be another node; all else may be there.
#[test]
fn b27_groups_of_others_in_zookeeper_are_listed_described_and_deleted_by_their_exact_names() {
    let cluster = on_1_1_1();
    let znodes = Znodes::of(cluster);
    for group in ["p_#1", "sp ace", "<img src=x onerror=1>", "data:y"] {
        znodes.commit(group, "b27-of-others", 0, 7);
        let listed = ours(cluster, Of::ZooKeeper, "list", &[]);
        assert!(listed.rows().iter().any(|row| row["group"] == group), "{listed:#?}");
        let described = ours(cluster, Of::ZooKeeper, "describe", &["--group", group]);
        assert_eq!(field(&described.rows()[0], "committed").as_deref(), Some("7"), "{described:#?}");
        let deleted = ours(cluster, Of::ZooKeeper, "delete", &["--group", group]);
        assert_eq!(deleted.code, 0, "{deleted:#?}");
        assert!(!znodes.exists(&format!("/consumers/{group}")));
    }
}

#[test]
fn b27_names_that_are_no_node_are_groups_that_do_not_exist_and_nothing_is_deleted() {
    let cluster = on_1_1_1();
    let znodes = Znodes::of(cluster);
    znodes.commit("b27-neighbour", "b27-of-others", 0, 7);
    let long = "x".repeat(5000);
    for group in ["a/b", "..", ".", "", "b27-neighbour/", "x/../b27-neighbour", "two\nlines", &long] {
        for command in ["describe", "delete"] {
            let ended = our_table(cluster, Of::ZooKeeper, command, &["--group", group]);
            assert_eq!(ended.code, 1, "{group:?} {ended:#?}");
            assert!(!printed(&ended).contains(char::is_control), "{ended:?}");
        }
    }
    assert!(znodes.exists("/consumers/b27-neighbour/offsets/b27-of-others/0"));
}

#[test]
fn b27_an_own_group_with_such_a_name_is_refused_and_nothing_is_made() {
    let cluster = on_1_1_1();
    let znodes = Znodes::of(cluster);
    let (before, connect) = (znodes.children("/consumers"), cluster.zookeeper_connect());
    let long = "x".repeat(5000) + "/";
    for group in ["a/b", "..", ".", "a b", "", "data/x:y", "<img src=x onerror=1>", "two\nlines", &long] {
        let ended = troupe(&["consume", "--zookeeper", &connect, "--topic", "b27", "--group", group]);
        assert_ne!(ended.code, 0, "{group:?} {ended:#?}");
        assert!(
            ended.errors.contains("group.id") || ended.errors.contains("--group"),
            "{group:?} {ended:#?}"
        );
        assert!(ended.lines.is_empty(), "{ended:#?}");
    }
    let made: Vec<_> =
        znodes.children("/consumers").into_iter().filter(|name| !before.contains(name)).collect();
    let odd = |name: &String| {
        name.contains(|letter: char| !letter.is_ascii_alphanumeric() && !"._-".contains(letter))
    };
    assert!(!made.iter().any(odd), "{made:?}");
}
