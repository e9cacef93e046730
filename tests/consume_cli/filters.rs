//! White and black lists, with the old Scala consumer in the same group.

use rustix::process::Signal;
use troupe_cluster::Cluster;

use crate::programs::{PATIENCE, Scala, Troupe, eventually, exit_code, produce};
use crate::znodes::Znodes;
use crate::{numbered, on_both, set, topic};

on_both! {
    a_topic_that_is_no_name_is_a_white_list_as_it_was
    a_black_list_takes_the_rest
    b11_a_a_filter_is_read_by_the_scala_consumer_as_it_was_meant
    b11_a_a_filter_of_scala_beyond_our_engine_is_left_alone
    members_of_one_filter_share_what_appears
}

/// A member with quick commits.
fn ours(cluster: &Cluster, group: &str, filter: [&str; 2], more: &[&str]) -> Troupe {
    let connect = cluster.zookeeper_connect();
    let arguments = ["--zookeeper", &connect, "--group", group];
    let properties = ["--property", "consumer.id=a", "--property", "auto.commit.interval.ms=200"];
    Troupe::run(&[&arguments[..], &filter, &properties, more].concat())
}

/// From the beginning, with quick commits. Must be the first to commit: it refuses to begin where offsets stand.
fn scala(cluster: &Cluster, group: &str, white_list: &str) -> Scala {
    let properties = ["consumer.id=b", "auto.offset.reset=smallest", "auto.commit.interval.ms=200"];
    let properties = properties.map(|property| ["--consumer-property", property]);
    Scala::matching(cluster, group, white_list, properties.as_flattened())
}

/// Waits until these threads own a topic's partitions, in order; `a` are ours, `b` are Scala's.
fn await_owners(znodes: &Znodes, group: &str, topic: &str, members: &str) {
    let expected: Vec<String> = members.chars().map(|member| format!("{group}_{member}-0")).collect();
    eventually(&format!("owners {members} of {topic}"), || {
        let owners: Vec<String> = znodes.owners(group, topic).into_values().collect();
        if owners == expected { Ok(()) } else { Err(format!("{owners:?}")) }
    });
}

/// The old tool makes a filter of `--topic`, and people use it.
fn a_topic_that_is_no_name_is_a_white_list_as_it_was(cluster: &Cluster) {
    for (name, from) in [("both-a", 0), ("both-b", 10)] {
        topic(cluster, name, 2, &numbered(from, from + 10));
    }
    let end = ["--from-beginning", "--max-messages", "20"];
    let ours = Troupe::consume(cluster, "both-ours", "both-a,both-b", &end).end().printed();
    let theirs = Scala::consume(cluster, "both-theirs", "both-a,both-b", &end).end().printed();
    assert_eq!(set(ours), set(numbered(0, 20)));
    assert_eq!(set(theirs), set(numbered(0, 20)));
}

fn await_committed(znodes: &Znodes, group: &str, topic: &str, count: usize) {
    eventually("all is committed", || match znodes.committed(group, topic) {
        committed if committed == count => Ok(()),
        committed => Err(format!("{committed} of {count}")),
    });
}

fn registration(znodes: &Znodes, group: &str) -> String {
    znodes.data(&format!("/consumers/{group}/ids/{group}_a")).unwrap()
}

/// Of the topics that begin with `bl`, all but one; the names keep those of other tests out.
fn a_black_list_takes_the_rest(cluster: &Cluster) {
    for (name, from) in [("bl-a", 0), ("bl-hidden", 10), ("bl-b", 20)] {
        topic(cluster, name, 2, &numbered(from, from + 10));
    }
    let filter = ["--blacklist", "[^b].*,b[^l].*,bl-hidden"];
    let troupe = ours(cluster, "black", filter, &["--from-beginning"]);
    assert_eq!(set(troupe.next_lines(20)), set([numbered(0, 10), numbered(20, 30)].concat()));
    let znodes = Znodes::of(cluster);
    let expected =
        r#"{"version":1,"subscription":{"[^b].*|b[^l].*|bl-hidden":1},"pattern":"black_list","timestamp":"#;
    assert!(registration(&znodes, "black").starts_with(expected), "{}", registration(&znodes, "black"));
    troupe.signal(Signal::TERM);
    assert_eq!(troupe.end().printed(), [""; 0]);
    assert_eq!(znodes.children("/consumers/black/offsets"), ["bl-a", "bl-b"]);
    znodes.assert_left("black", "bl-a", 10);
    znodes.assert_left("black", "bl-b", 10);
}

/// A quote in it must be escaped. If Scala read it otherwise, or not at all, it would not leave half of the topic.
fn b11_a_a_filter_is_read_by_the_scala_consumer_as_it_was_meant(cluster: &Cluster) {
    for name in ["feed-live", "feed-tmp"] {
        cluster.create_topic(name, 2, 1).unwrap();
    }
    let (group, znodes) = ("feed", Znodes::of(cluster));
    let mut scala = scala(cluster, group, "feed-.*");
    await_owners(&znodes, group, "feed-live", "bb");
    let troupe = ours(cluster, group, ["--whitelist", r#"feed-(live|a"b)"#], &[]);
    await_owners(&znodes, group, "feed-live", "ab");
    await_owners(&znodes, group, "feed-tmp", "bb");
    let expected =
        r#"{"version":1,"subscription":{"feed-(live|a\"b)":1},"pattern":"white_list","timestamp":"#;
    assert!(registration(&znodes, group).starts_with(expected), "{}", registration(&znodes, group));
    produce(cluster, "feed-live", &numbered(0, 10));
    produce(cluster, "feed-tmp", &numbered(10, 20));
    await_committed(&znodes, group, "feed-live", 10);
    await_committed(&znodes, group, "feed-tmp", 10);
    troupe.signal(Signal::TERM);
    let mut all = troupe.end().printed();
    assert!(!all.is_empty() && set(all.clone()).is_subset(&set(numbered(0, 10))), "feed-live only: {all:?}");
    scala.term();
    all.extend(scala.end().lines);
    assert_eq!(set(all), set(numbered(0, 20)));
}

/// We cannot tell which topics are its own, so we do not join, and it keeps all that it has.
fn b11_a_a_filter_of_scala_beyond_our_engine_is_left_alone(cluster: &Cluster) {
    for name in ["ahead-live", "ahead-tmp"] {
        cluster.create_topic(name, 2, 1).unwrap();
    }
    let (group, znodes) = ("ahead", Znodes::of(cluster));
    let mut scala = scala(cluster, group, "ahead-(?!tmp)[a-z]+");
    await_owners(&znodes, group, "ahead-live", "bb");
    let ended = Troupe::consume(cluster, group, "ahead-live", &[]).end();
    assert_eq!(exit_code(&ended), 3, "{ended:?}");
    let why = "troupe: could not join the group: no plan can be made while /consumers/ahead/ids/ahead_b is in \
               the group, for its topics cannot be told: topic filter \"ahead-(?!tmp)[a-z]+\" uses look-ahead";
    assert!(ended.said().starts_with(why), "{}", ended.said());
    assert_eq!(znodes.members(group), ["ahead_b"]);
    await_owners(&znodes, group, "ahead-live", "bb");
    assert!(znodes.owners(group, "ahead-tmp").is_empty());
    scala.term();
    scala.end();
}

/// They begin with nothing. What appears is read from its beginning, though ours would start at the end elsewhere;
/// what vanishes takes nothing else with it.
fn members_of_one_filter_share_what_appears(cluster: &Cluster) {
    let (group, znodes) = ("mix", Znodes::of(cluster));
    let troupe = ours(cluster, group, ["--whitelist", "mix-.*"], &[]);
    let mut scala = scala(cluster, group, "mix-.*");
    eventually("both have joined", || match znodes.members(group) {
        members if members.len() == 2 => Ok(()),
        members => Err(format!("{members:?}")),
    });
    topic(cluster, "mix-one", 4, &numbered(0, 40));
    await_owners(&znodes, group, "mix-one", "aabb");
    await_committed(&znodes, group, "mix-one", 40);
    topic(cluster, "mix-two", 2, &numbered(40, 60));
    await_owners(&znodes, group, "mix-two", "ab");
    await_committed(&znodes, group, "mix-two", 20);
    scala.term();
    let mut all = scala.end().lines;
    assert!(!all.is_empty());

    await_owners(&znodes, group, "mix-two", "aa");
    cluster.delete_topic("mix-one").unwrap();
    await_owners(&znodes, group, "mix-one", "");
    produce(cluster, "mix-two", &numbered(60, 80));
    await_committed(&znodes, group, "mix-two", 40);
    await_owners(&znodes, group, "mix-two", "aa");
    troupe.signal(Signal::TERM);
    let begun = std::time::Instant::now();
    all.extend(troupe.end().printed());
    assert!(begun.elapsed() < PATIENCE / 6, "it leaves at once: {:?}", begun.elapsed());
    assert_eq!(all.len(), 80, "each once");
    assert_eq!(set(all), set(numbered(0, 80)));
    znodes.assert_left(group, "mix-two", 40);
}
