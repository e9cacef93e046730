//! The worked examples of the legacy consumer's specification, all produced by the real assignors.

use super::*;
use crate::group::Member;

const TOPICS: [(&str, i32); 4] = [("t5", 5), ("t3", 3), ("t14", 14), ("u2", 2)];

fn group(members: &[(&str, &[(&str, u32)])]) -> GroupSnapshot {
    GroupSnapshot {
        members: members
            .iter()
            .map(|(id, topics)| Member {
                id: (*id).to_owned(),
                topics: topics.iter().map(|(topic, streams)| ((*topic).into(), *streams)).collect(),
            })
            .collect(),
        partitions: TOPICS.iter().map(|(topic, count)| ((*topic).into(), (0..*count).collect())).collect(),
        brokers: 1,
    }
}

/// `thread: topic-partition …` lines, threads in text order, to compare with the specification's table.
fn lines(plan: &Plan) -> Vec<String> {
    let mut by_thread: BTreeMap<&ConsumerThreadId, Vec<String>> = BTreeMap::new();
    for (tp, thread) in plan {
        by_thread.entry(thread).or_default().push(tp.to_string());
    }
    by_thread.iter().map(|(thread, tps)| format!("{thread}: {}", tps.join(" "))).collect()
}

#[test]
fn range_example_1() {
    let plan = Strategy::Range.assign(&group(&[("C1", &[("t5", 2)]), ("C2", &[("t5", 2)])]));
    assert_eq!(lines(&plan), ["C1-0: t5-0 t5-1", "C1-1: t5-2", "C2-0: t5-3", "C2-1: t5-4"]);
}

#[test]
fn range_example_2_sorts_threads_as_text() {
    let plan = Strategy::Range.assign(&group(&[("A", &[("t14", 12)])]));
    let expected = [
        "A-0: t14-0 t14-1",
        "A-1: t14-2 t14-3",
        "A-10: t14-4",
        "A-11: t14-5",
        "A-2: t14-6",
        "A-3: t14-7",
        "A-4: t14-8",
        "A-5: t14-9",
        "A-6: t14-10",
        "A-7: t14-11",
        "A-8: t14-12",
        "A-9: t14-13",
    ];
    assert_eq!(lines(&plan), expected);
}

#[test]
fn range_example_3_leaves_a_thread_without() {
    let plan = Strategy::Range.assign(&group(&[("A", &[("t3", 2)]), ("B", &[("t3", 2)])]));
    assert_eq!(lines(&plan), ["A-0: t3-0", "A-1: t3-1", "B-0: t3-2"]);
}

#[test]
fn range_example_4_several_topics() {
    let members: &[(&str, &[(&str, u32)])] =
        &[("A", &[("t5", 1), ("t3", 1)]), ("B", &[("t5", 3)]), ("C", &[("t3", 2), ("t14", 1)])];
    let plan = Strategy::Range.assign(&group(members));
    let of =
        |tp: &str| plan.iter().find(|(key, _)| key.to_string() == tp).map(|(_, thread)| thread.to_string());
    assert_eq!(of("t3-0").as_deref(), Some("A-0"));
    assert_eq!(of("t5-0").as_deref(), Some("A-0"));
    assert_eq!(of("t5-1").as_deref(), Some("A-0"));
    assert_eq!(of("t5-4").as_deref(), Some("B-2"));
    assert_eq!(of("t3-1").as_deref(), Some("C-0"));
    assert_eq!(of("t3-2").as_deref(), Some("C-1"));
    assert_eq!(of("t14-13").as_deref(), Some("C-0"));
}

#[test]
fn range_example_6_members_interleave_by_character() {
    let plan = Strategy::Range.assign(&group(&[("x", &[("t14", 11)]), ("x-1", &[("t14", 2)])]));
    let expected = [
        "x-0: t14-0 t14-1",
        "x-1: t14-2",
        "x-1-0: t14-3",
        "x-1-1: t14-4",
        "x-10: t14-5",
        "x-2: t14-6",
        "x-3: t14-7",
        "x-4: t14-8",
        "x-5: t14-9",
        "x-6: t14-10",
        "x-7: t14-11",
        "x-8: t14-12",
        "x-9: t14-13",
    ];
    assert_eq!(lines(&plan), expected);
}

#[test]
fn range_example_8_absent_topic() {
    let plan = Strategy::Range.assign(&group(&[("A", &[("nope", 1), ("t5", 1)]), ("B", &[("t5", 1)])]));
    assert_eq!(lines(&plan), ["A-0: t5-0 t5-1 t5-2", "B-0: t5-3 t5-4"]);
}

#[test]
fn round_robin_example_9_is_alike_in_all_families() {
    let both: &[(&str, u32)] = &[("t5", 2), ("t3", 2)];
    let expected = ["A-0: t3-0 t5-1", "A-1: t3-1 t5-2", "B-0: t3-2 t5-3", "B-1: t5-0 t5-4"];
    for strategy in [Strategy::RoundRobinBefore1, Strategy::RoundRobin] {
        assert_eq!(lines(&strategy.assign(&group(&[("A", both), ("B", both)]))), expected);
    }
}

#[test]
fn round_robin_example_11_differs_between_families() {
    let snapshot = group(&[("A", &[("t14", 12)])]);
    let before = lines(&Strategy::RoundRobinBefore1.assign(&snapshot));
    assert_eq!(before[..4], ["A-0: t14-0 t14-12", "A-1: t14-1 t14-13", "A-10: t14-2", "A-11: t14-3"]);
    let from = lines(&Strategy::RoundRobin.assign(&snapshot));
    assert_eq!(
        from[..5],
        ["A-0: t14-8 t14-10", "A-1: t14-9 t14-11", "A-10: t14-12", "A-11: t14-13", "A-2: t14-0"]
    );
}

#[test]
fn round_robin_example_13_skips_threads_without_the_topic() {
    let members: &[(&str, &[(&str, u32)])] =
        &[("A", &[("t5", 2), ("t3", 1)]), ("B", &[("t5", 1)]), ("C", &[("t3", 1), ("u2", 1)])];
    let expected = ["A-0: t3-0 t3-2 t5-2", "A-1: t5-0 t5-3", "B-0: t5-1 t5-4", "C-0: t3-1 u2-0 u2-1"];
    assert_eq!(lines(&Strategy::RoundRobin.assign(&group(members))), expected);
}

/// Undefined in Scala, so at least ours agree among themselves.
#[test]
fn partitions_of_one_hash_are_in_the_order_of_topic_and_partition() {
    assert_eq!(java_hash("Aa-0"), java_hash("BB-0"));
    let topics: BTreeMap<_, _> = ["BB", "Aa"].map(|topic| (topic.into(), 2)).into();
    let snapshot = GroupSnapshot {
        members: vec![Member { id: "m".into(), topics }],
        partitions: ["BB", "Aa"].map(|topic| (topic.into(), vec![0, 1])).into(),
        brokers: 1,
    };
    for strategy in [Strategy::RoundRobinBefore1, Strategy::RoundRobin] {
        assert_eq!(lines(&strategy.assign(&snapshot)), ["m-0: Aa-0 Aa-1", "m-1: BB-0 BB-1"]);
    }
}
