//! Groups of one of ours (the first member) and real Scala members: their owner nodes are what their assignors answered.

use super::*;
use crate::group::peers::{Likely, Owners, Problem};
use crate::group::{Owner, PeerCheck, SessionNumber, Settings};
use crate::zk::ConsumerThreadId;

/// What is reported after such a group has stood for long, and how many partitions it is about.
fn reported(case: &Case, ours: Strategy, before_0_11: bool, theirs: &Answer) -> (PeerCheck, usize) {
    let snapshot = case.snapshot(before_0_11);
    let own = case.members[0].0.clone();
    let mut owners = nodes(case, theirs, &own);
    for (tp, thread) in ours.assign_to(&snapshot, &own) {
        owners.entry(tp).or_insert_with(|| owner(thread.as_str()));
    }
    let settings = Settings { consumer_id: own, strategy: ours, backoff: 1, max_retries: 4, drain: 0 };
    let mut check = PeerCheck::new(settings);
    check.group_read(0, &snapshot);
    for _ in 0..2 {
        let due = check.due().unwrap_or_default();
        if let Some((asked, _)) = check.look(due) {
            check.owners_read::<()>(due, asked, Ok(owners.clone()));
        }
    }
    let about = check.faults().iter().map(|fault| fault.partitions.len()).sum();
    (check, about)
}

fn owner(thread: &str) -> Owner {
    Owner { session: SessionNumber(1), thread: thread.to_owned() }
}

/// The owner nodes of the others.
fn nodes(case: &Case, answer: &Answer, own: &str) -> Owners {
    let mut found = Owners::new();
    for (topic, threads) in &answer.plan {
        for (partition, thread) in case.topics[topic].iter().zip(threads.split(' ')) {
            let Some((member, index)) = thread.split_once('-') else { continue };
            let id = &case.members[member.parse::<usize>().unwrap()].0;
            if id != own {
                found
                    .insert(TopicPartition::new(topic.as_str(), *partition), owner(&format!("{id}-{index}")));
            }
        }
    }
    found
}

#[test]
fn nobody_is_reported_where_the_settings_are_those_of_the_peers() {
    for peer in [V0_8_2, V0_10_2, V1_1] {
        for (strategy, ours) in [("range", Strategy::Range), ("roundrobin", peer.round_robin)] {
            for (case, answer) in peer.answers(strategy).filter(|(_, answer)| answer.failed.is_empty()) {
                let (check, _) = reported(&case, ours, peer.before_0_11, &answer);
                assert_eq!(check.faults(), [], "{}", case.name);
            }
        }
    }
}

/// So many that nobody reads, or that one has and another should.
#[test]
fn every_partition_planned_differently_is_reported() {
    let mut groups = 0;
    for (peer, ours) in [(V1_1, Strategy::RoundRobinBefore1), (V0_10_2, Strategy::RoundRobin)] {
        for (case, answer) in peer.answers("roundrobin") {
            let own = &case.members[0].0;
            let theirs = nodes(&case, &answer, own);
            let plan = ours.assign(&case.snapshot(peer.before_0_11));
            let differs = plan.iter().filter(|(tp, thread)| match theirs.get(tp) {
                Some(owner) => {
                    ConsumerThreadId::parse(&owner.thread).unwrap().consumer() != thread.consumer()
                }
                None => thread.consumer() != own,
            });
            let differs = differs.count();
            let (check, about) = reported(&case, ours, peer.before_0_11, &answer);
            assert_eq!(about, differs, "{}: {:?}", case.name, check.faults());
            groups += usize::from(differs > 0);
        }
    }
    assert!(groups > 150, "{groups}");
}

#[test]
fn members_that_refuse_round_robin_are_all_named_with_the_reason() {
    let mut named = 0;
    for (case, answer) in V0_8_2.answers("roundrobin").filter(|(_, answer)| !answer.failed.is_empty()) {
        let (check, _) = reported(&case, Strategy::RoundRobinBefore1, true, &answer);
        let plan = Strategy::RoundRobinBefore1.assign(&case.snapshot(true));
        let mut theirs: Vec<_> = plan.values().map(|thread| thread.consumer().to_owned()).collect();
        theirs.retain(|member| *member != case.members[0].0);
        theirs.sort();
        theirs.dedup();
        let faults = check.faults();
        assert_eq!(
            faults.iter().map(|fault| fault.member.clone()).collect::<Vec<_>>(),
            theirs,
            "{}",
            case.name
        );
        for fault in faults {
            let refuses = (&Problem::GaveUp, Some(Likely::RefusesUnequalSubscriptions));
            assert_eq!((&fault.problem, fault.likely), refuses, "{}", case.name);
        }
        named += faults.len();
    }
    assert!(named > 150, "{named}");
}

/// By range that topic is all that is told; `transaction_state_concerns_only_itself_by_range` says why.
#[test]
fn members_before_0_11_that_take_in_transaction_state_are_named_unless_the_setting_says_so() {
    let mut named = 0;
    for (case, answer) in V0_8_2.answers("range") {
        let (check, _) = reported(&case, Strategy::Range, false, &answer);
        for fault in check.faults() {
            assert!(fault.partitions.iter().all(|tp| &*tp.topic == TRANSACTION_STATE), "{}", case.name);
            named += 1;
        }
    }
    assert!(named > 0);
}
