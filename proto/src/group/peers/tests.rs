use super::*;
use crate::group::{Member, SessionNumber, Strategy};

const BACKOFF: u64 = 2000;
const LIMIT: u64 = 4 * BACKOFF;

fn snapshot(members: &[(&str, &[(&str, u32)])], topics: &[(&str, i32)]) -> GroupSnapshot {
    let member = |(id, topics): &(&str, &[(&str, u32)])| Member {
        id: (*id).to_owned(),
        topics: topics.iter().map(|(topic, streams)| ((*topic).into(), *streams)).collect(),
    };
    GroupSnapshot {
        members: members.iter().map(member).collect(),
        partitions: topics.iter().map(|(topic, n)| ((*topic).into(), (0..*n).collect())).collect(),
        brokers: 1,
    }
}

/// Members a, b and c of topic t with as many partitions.
fn three() -> GroupSnapshot {
    snapshot(&[("a", &[("t", 1)]), ("b", &[("t", 1)]), ("c", &[("t", 1)])], &[("t", 3)])
}

fn check(strategy: Strategy) -> PeerCheck {
    let consumer_id = "a".to_owned();
    PeerCheck::new(Settings { consumer_id, strategy, backoff: BACKOFF, max_retries: 4, drain: 0 })
}

/// Owners as `topic-partition` and thread.
fn owners(nodes: &[(&str, &str)]) -> Owners {
    let node = |(tp, thread): &(&str, &str)| {
        let (topic, partition) = tp.rsplit_once('-').unwrap();
        let owner = Owner { session: SessionNumber(1), thread: (*thread).to_owned() };
        (TopicPartition::new(topic, partition.parse().unwrap()), owner)
    };
    nodes.iter().map(node).collect()
}

fn names(partitions: &BTreeSet<TopicPartition>) -> Vec<String> {
    partitions.iter().map(TopicPartition::to_string).collect()
}

/// Looks when it is due, and finds these nodes; what was to be read, and whether the report changed.
#[track_caller]
fn look(check: &mut PeerCheck, at: u64, nodes: &[(&str, &str)]) -> (Look, bool) {
    assert_eq!(check.due(), Some(at));
    assert_eq!(check.look(at - 1), None);
    let (asked, look) = check.look(at).unwrap();
    assert_eq!(check.look(at), None, "one at a time");
    let mut owners = owners(nodes);
    if let Look::These(these) = &look {
        owners.retain(|tp, _| these.contains(tp));
    }
    (look, check.owners_read::<()>(at, asked, Ok(owners)))
}

/// The report after a group has stood like this for long.
#[track_caller]
fn report(strategy: Strategy, snapshot: &GroupSnapshot, nodes: &[(&str, &str)]) -> Vec<PeerFault> {
    let mut check = check(strategy);
    check.group_read(0, snapshot);
    look(&mut check, LIMIT, nodes);
    look(&mut check, LIMIT + BACKOFF, nodes);
    check.faults().to_vec()
}

#[test]
fn a_healthy_group_is_looked_at_once() {
    let mut check = check(Strategy::Range);
    check.group_read(5, &three());
    let nodes = [("t-0", "a-0"), ("t-1", "b-0"), ("t-2", "c-0")];
    assert_eq!(look(&mut check, 5 + LIMIT, &nodes), (Look::All, false));
    assert_eq!((check.due(), check.faults()), (None, &[][..]));
}

/// b plans with the one partition that it knows until it polls, 60 s later.
#[test]
fn members_that_poll_for_topics_get_the_time_to_learn_of_partitions() {
    const LATE: u64 = 60_000;
    let mut check = check(Strategy::Range).learning_late(LATE);
    let group = |partitions| snapshot(&[("a", &[("t", 1)]), ("b", &[("t", 1)])], &[("t", partitions)]);
    check.group_read(0, &group(2));
    look(&mut check, LATE + LIMIT, &[("t-0", "a-0"), ("t-1", "b-0")]);
    check.group_read(100_000, &group(4));
    assert_eq!(check.look(100_000 + LATE + LIMIT - 1), None, "b may hold on to t-1, and not know of t-3");
    let settled = [("t-0", "a-0"), ("t-1", "a-0"), ("t-2", "b-0"), ("t-3", "b-0")];
    look(&mut check, 100_000 + LATE + LIMIT, &settled);
    assert_eq!((check.due(), check.faults()), (None, &[][..]));
}

#[test]
fn a_member_that_has_given_up_is_named_once_until_it_owns_again() {
    let mut check = check(Strategy::Range);
    check.group_read(0, &three());
    let nodes = [("t-0", "a-0"), ("t-1", "b-0")];
    let whole = [("t-0", "a-0"), ("t-1", "b-0"), ("t-2", "c-0")];
    assert_eq!(look(&mut check, LIMIT, &nodes), (Look::All, false), "once is not enough");
    let at = LIMIT + BACKOFF;
    let only = BTreeSet::from([TopicPartition::new("t", 2)]);
    assert_eq!(look(&mut check, at, &nodes), (Look::These(only), true));
    let [fault] = check.faults() else { panic!("{:?}", check.faults()) };
    assert_eq!((fault.member.as_str(), &fault.problem, fault.likely), ("c", &Problem::GaveUp, None));
    assert_eq!(names(&fault.partitions), ["t-2"]);
    let text = fault.to_string();
    assert!(
        text.contains("member c owns nothing although t-2 fall") && text.contains("restart it"),
        "{text}"
    );

    assert!(!look(&mut check, at + BACKOFF, &nodes).1, "said once");
    assert!(look(&mut check, at + 2 * BACKOFF, &whole).1);
    assert_eq!((check.due(), check.faults()), (None, &[][..]));
}

#[test]
fn a_member_that_leaves_is_no_fault_any_more() {
    let mut check = check(Strategy::Range);
    check.group_read(0, &three());
    let nodes = [("t-0", "a-0"), ("t-1", "b-0")];
    look(&mut check, LIMIT, &nodes);
    look(&mut check, LIMIT + BACKOFF, &nodes);
    assert_eq!(check.faults().len(), 1);
    let mut rest = three();
    rest.members.pop();
    check.group_read(20_000, &rest);
    assert_eq!((check.due(), check.faults()), (Some(20_000 + LIMIT), &[][..]));
}

#[test]
fn another_change_of_the_group_neither_clears_nor_repeats_a_report() {
    let mut check = check(Strategy::Range);
    check.group_read(0, &three());
    let nodes = [("t-0", "a-0"), ("t-1", "b-0")];
    look(&mut check, LIMIT, &nodes);
    look(&mut check, LIMIT + BACKOFF, &nodes);
    let mut more = three();
    more.members.push(Member { id: "d".to_owned(), topics: more.members[0].topics.clone() });
    check.group_read(20_000, &more);
    assert_eq!(check.faults().len(), 1);
    assert_eq!(look(&mut check, 20_000 + LIMIT, &nodes), (Look::All, false));
    assert_eq!(check.faults().len(), 1);
}

#[test]
fn a_group_that_changes_gets_its_time_anew_and_one_that_does_not_keeps_it() {
    let mut check = check(Strategy::Range);
    check.group_read(0, &three());
    check.group_read(100, &three());
    assert_eq!(check.due(), Some(LIMIT));
    let (asked, _) = check.look(LIMIT).unwrap();
    let mut other = three();
    other.members.pop();
    check.group_read(LIMIT, &other);
    assert!(!check.owners_read::<()>(LIMIT, asked, Ok(Owners::new())), "of the group as it was");
    assert_eq!(check.due(), Some(2 * LIMIT));
    assert_eq!(look(&mut check, 2 * LIMIT, &[("t-0", "a-0"), ("t-1", "a-0"), ("t-2", "b-0")]).0, Look::All);
    assert_eq!(check.due(), None);
    check.group_read(50_000, &other);
    assert_eq!(check.due(), Some(50_000 + LIMIT), "it was read for a reason");
    other.brokers = 0;
    check.group_read(60_000, &other);
    assert_eq!(check.due(), None, "nobody acts on a plan without brokers");
}

#[test]
fn a_look_that_fails_is_taken_again_after_the_backoff() {
    let mut check = check(Strategy::Range);
    check.group_read(0, &three());
    let (asked, _) = check.look(LIMIT).unwrap();
    assert!(!check.owners_read(LIMIT + 7, asked, Err(())));
    assert_eq!(check.due(), Some(LIMIT + 7 + BACKOFF));
}

#[test]
fn a_member_that_owns_what_falls_to_others_is_named_with_them() {
    let nodes = [("t-0", "b-0"), ("t-1", "b-0"), ("t-2", "b-0")];
    let faults = report(Strategy::Range, &three(), &nodes);
    let found: Vec<_> = faults
        .iter()
        .map(|fault| (fault.member.as_str(), &fault.problem, names(&fault.partitions)))
        .collect();
    let holds = |planned: &str| Problem::Holds { planned: Some(planned.to_owned()) };
    assert_eq!(found, [("b", &holds("a"), vec!["t-0".into()]), ("b", &holds("c"), vec!["t-2".into()])]);
    assert!(faults[1].to_string().contains("member b owns t-2, which fall to member c"), "{}", faults[1]);
}

#[test]
fn a_member_that_claims_only_some_is_not_said_to_have_given_up() {
    let group = snapshot(&[("a", &[("t", 1)]), ("b", &[("t", 1)])], &[("t", 4)]);
    let faults = report(Strategy::Range, &group, &[("t-0", "a-0"), ("t-1", "a-0"), ("t-2", "b-0")]);
    assert_eq!(
        (faults.len(), &faults[0].problem, names(&faults[0].partitions)),
        (1, &Problem::Unclaimed, vec!["t-3".into()])
    );
}

#[test]
fn what_is_ours_to_settle_is_no_fault_of_others() {
    let faults = report(Strategy::Range, &three(), &[("t-1", "b-0"), ("t-2", "x-0")]);
    let [fault] = &faults[..] else { panic!("{faults:?}") };
    assert_eq!(
        (fault.member.as_str(), fault.likely),
        ("x", Some(Likely::NotRegistered)),
        "t-0 is ours to claim"
    );
    let mut check = check(Strategy::Range);
    check.group_read(0, &three());
    look(&mut check, LIMIT, &[("t-0", "a-0"), ("t-1", "b-0"), ("t-2", "a-0")]);
    assert_eq!(check.due(), None, "we let go of t-2 by ourselves");
}

#[test]
fn a_refusal_of_round_robin_before_0_10_2_is_given_as_the_reason() {
    let group = snapshot(&[("a", &[("t", 1), ("u", 1)]), ("b", &[("t", 1)])], &[("t", 2), ("u", 1)]);
    let plan = Strategy::RoundRobinBefore1.assign(&group);
    let ours: Vec<_> = plan.iter().filter(|(_, thread)| thread.consumer() == "a").collect();
    let ours: Vec<_> = ours.iter().map(|(tp, thread)| (tp.to_string(), thread.to_string())).collect();
    let nodes: Vec<_> = ours.iter().map(|(tp, thread)| (tp.as_str(), thread.as_str())).collect();
    let faults = report(Strategy::RoundRobinBefore1, &group, &nodes);
    let [fault] = &faults[..] else { panic!("{faults:?}") };
    assert_eq!((fault.member.as_str(), &fault.problem), ("b", &Problem::GaveUp));
    assert_eq!(fault.likely, Some(Likely::RefusesUnequalSubscriptions));
    assert!(fault.to_string().contains("before 0.10.2 refuses roundrobin"), "{fault}");
    // range knows no such rule
    let faults = report(Strategy::Range, &group, &[("t-0", "a-0"), ("u-0", "a-0")]);
    assert_eq!((&faults[0].problem, faults[0].likely), (&Problem::GaveUp, None));
}

/// Each member of one family, against each other strategy: what it owns tells by what it plans, if only one fits.
#[test]
fn the_strategy_of_a_member_that_plans_differently_is_told_where_it_shows() {
    let group = snapshot(&[("a", &[("t14", 1)]), ("b", &[("t14", 1)]), ("c", &[("t14", 1)])], &[("t14", 14)]);
    let all = [Strategy::Range, Strategy::RoundRobinBefore1, Strategy::RoundRobin];
    for ours in all {
        for theirs in all.into_iter().filter(|strategy| *strategy != ours) {
            let plan = theirs.assign_to(&group, "b");
            let nodes: Vec<_> =
                plan.iter().map(|(tp, thread)| (tp.to_string(), thread.to_string())).collect();
            let nodes: Vec<_> = nodes.iter().map(|(tp, thread)| (tp.as_str(), thread.as_str())).collect();
            let faults = report(ours, &group, &nodes);
            let holds = faults.iter().filter(|fault| matches!(fault.problem, Problem::Holds { .. }));
            let likely: Vec<_> = holds.map(|fault| (fault.member.as_str(), fault.likely)).collect();
            assert!(!likely.is_empty(), "{ours:?} {theirs:?}");
            assert!(
                likely.iter().all(|it| *it == ("b", Some(Likely::PlansBy(theirs)))),
                "{ours:?} {theirs:?} {likely:?}"
            );
        }
    }
}

#[test]
fn nodes_of_a_topic_that_nobody_wants_are_told_and_those_of_a_deleted_one_are_not() {
    let mut group = three();
    group.partitions.insert("gone".into(), Vec::new());
    group.members[1].topics.insert("gone".into(), 1);
    let nodes =
        [("t-0", "a-0"), ("t-1", "b-0"), ("t-2", "c-0"), ("gone-0", "b-0"), ("__transaction_state-4", "c-0")];
    let faults = report(Strategy::Range, &group, &nodes);
    let [fault] = &faults[..] else { panic!("{faults:?}") };
    assert_eq!((fault.member.as_str(), &fault.problem), ("c", &Problem::Holds { planned: None }));
    assert_eq!(fault.likely, Some(Likely::TakesInTransactionState));
    assert!(fault.to_string().contains("troupe.internal.topics.peers=before-0.11"), "{fault}");
    let mut check = check(Strategy::Range);
    check.group_read(0, &group);
    let concerns = ["t", "gone", "__transaction_state"].map(|topic| check.concerns(topic));
    assert_eq!(concerns, [true, false, true]);
    group.members[2].topics.insert("unread".into(), 1);
    check.group_read(0, &group);
    assert!(!check.concerns("unread"), "by range its partitions are not known to us");
}

#[test]
fn many_partitions_are_counted_not_listed() {
    let partitions = (0..20).map(|partition| TopicPartition::new("t", partition)).collect();
    let fault = PeerFault { member: "m".into(), problem: Problem::GaveUp, partitions, likely: None };
    assert!(fault.to_string().contains("t-6, t-7 and 12 more fall to it"), "{fault}");
}
