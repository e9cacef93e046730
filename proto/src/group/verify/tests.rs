use std::time::Duration;

use super::*;
use crate::schemas::group::v1::SubscribedTopic;

/// One member with two streams for the topic `t`, which has two partitions, all read.
fn healthy() -> GroupView {
    let topics = vec![SubscribedTopic { topic: "t".to_owned(), streams: 2 }];
    let member = GroupMember {
        id: "g_a".to_owned(),
        pattern: "static".to_owned(),
        topics,
        streams: 2,
        session_id: 7,
        ..GroupMember::default()
    };
    let partitions = (0..2).map(|number| GroupPartition {
        topic: "t".to_owned(),
        partition: number,
        owner_thread: Some(format!("g_a-{number}")),
        owner_member: "g_a".to_owned(),
        session_id: 7,
        committed_zookeeper: Some(5),
        log_end: Some(5),
        lag: Some(0),
        exists: Some(true),
        is_subscribed: true,
        ..GroupPartition::default()
    });
    GroupView {
        group: "g".to_owned(),
        members: vec![member],
        partitions: partitions.collect(),
        ..GroupView::default()
    }
}

/// What is wrong with the healthy group once it is damaged, and where that shows.
#[track_caller]
fn found(damage: impl FnOnce(&mut GroupView)) -> (ReasonKind, String) {
    let (healthy, mut damaged) = (healthy(), healthy());
    damage(&mut damaged);
    let verdict = verify(&healthy, &damaged);
    let [reason] = &verdict.reasons[..] else { panic!("{verdict:#?}") };
    assert!(!verdict.is_good());
    (reason.kind, reason.to_string())
}

#[test]
fn a_group_whose_partitions_are_owned_and_read_is_good() {
    assert_eq!(verify(&healthy(), &healthy()), Verdict::default());
    assert!(verify(&healthy(), &healthy()).is_good());
}

#[test]
fn each_damage_of_an_owner_is_told_with_its_place() {
    let of = |damage: fn(&mut GroupPartition)| found(|view| damage(&mut view.partitions[1]));
    let at = "(/consumers/g/owners/t/1)";
    for (damage, kind, why) in [
        ((|it| it.owner_thread = None) as fn(&mut GroupPartition), ReasonKind::NotOwned, "nobody owns it"),
        (
            |it| (it.owner_is_missing, it.owner_thread) = (true, Some("g_gone-0".to_owned())),
            ReasonKind::OwnerGone,
            "its owner g_gone-0 is a thread of no registered member",
        ),
        (
            |it| it.session_id = 0,
            ReasonKind::OwnerWithoutSession,
            "no session holds the node of its owner g_a-1: it never goes by itself",
        ),
        (
            |it| (it.session_id, it.session_differs) = (6, true),
            ReasonKind::OtherSession,
            "its owner g_a-1 holds it by session 0x6, but is registered by 0x7",
        ),
        (
            |it| it.owner_thread = Some("g_a-2".to_owned()),
            ReasonKind::NoSuchStream,
            "its owner g_a-2 has 2 streams for it, from 0",
        ),
    ] {
        assert_eq!(of(damage), (kind, format!("t-1: {why} {at}")));
    }
}

#[test]
fn an_owner_must_subscribe_by_name_or_by_its_filter() {
    let filtered = |filter: &'static str| {
        move |view: &mut GroupView| {
            let member = &mut view.members[0];
            (member.pattern, member.subscription) = ("white_list".to_owned(), filter.to_owned());
        }
    };
    let mut view = healthy();
    filtered("t|u")(&mut view);
    assert!(verify(&view, &view).is_good());
    filtered("u")(&mut view);
    let kinds: Vec<_> = verify(&view, &view).reasons.iter().map(|reason| reason.kind).collect();
    assert_eq!(kinds, [ReasonKind::OwnerNotSubscribed; 2]);
}

#[test]
fn an_offset_moves_when_nothing_is_behind_or_more_is_committed_than_before() {
    let behind = |it: &mut GroupPartition| it.log_end = Some(9);
    let stuck = found(|view| behind(&mut view.partitions[0]));
    let said =
        "t-0: it is 4 behind, and the offset 5 that is committed does not move (/consumers/g/offsets/t/0)";
    assert_eq!(stuck, (ReasonKind::OffsetStuck, said.to_owned()));
    let mut moved = healthy();
    behind(&mut moved.partitions[0]);
    moved.partitions[0].committed_kafka = Some(6);
    assert!(verify(&healthy(), &moved).is_good(), "the larger of both counts");
    assert!(!verify(&moved, &moved).is_good(), "the same twice");
    let mut first = healthy();
    first.partitions[0].committed_zookeeper = None;
    let mut second = healthy();
    behind(&mut second.partitions[0]);
    assert!(verify(&first, &second).is_good(), "the first commit is one");
}

#[test]
fn a_partition_with_records_must_have_an_offset_within_its_log() {
    let of = |damage: fn(&mut GroupPartition)| found(|view| damage(&mut view.partitions[0])).0;
    assert_eq!(of(|it| it.committed_zookeeper = None), ReasonKind::NoOffset);
    assert_eq!(of(|it| it.committed_zookeeper = Some(6)), ReasonKind::OffsetBeyondEnd);
    assert_eq!(of(|it| it.error = "no number".to_owned()), ReasonKind::OffsetUnreadable);
    let mut empty = healthy();
    (empty.partitions[0].committed_zookeeper, empty.partitions[0].log_end) = (None, Some(0));
    assert!(verify(&empty, &empty).is_good(), "nothing was ever written to it");
    (empty.partitions[0].log_start, empty.partitions[0].log_end) = (Some(8), Some(8));
    assert!(verify(&empty, &empty).is_good(), "all that was written is deleted");
}

#[test]
fn members_must_be_there_readable_and_held_by_a_session() {
    let mut nobody = healthy();
    nobody.members.clear();
    nobody.partitions.clear();
    let said: Vec<_> = verify(&nobody, &nobody).reasons.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["no member is registered (/consumers/g/ids)"]);
    let (kind, said) = found(|view| view.members[0].error = "not JSON".to_owned());
    assert_eq!(kind, ReasonKind::MemberUnreadable);
    assert!(said.contains("g_a") && said.contains("/consumers/g/ids/g_a"), "{said}");
    let mut persistent = healthy();
    persistent.members[0].session_id = 0;
    let kinds: Vec<_> = verify(&healthy(), &persistent).reasons.iter().map(|reason| reason.kind).collect();
    assert_eq!(kinds, [ReasonKind::MemberWithoutSession]);
}

#[test]
fn what_cannot_be_told_is_neither_good_nor_wrong() {
    let mut dark = healthy();
    dark.errors.push("ends of t-0 and 1 more: broker 0 is silent".to_owned());
    dark.partitions.iter_mut().for_each(|it| it.log_end = None);
    let verdict = verify(&healthy(), &dark);
    assert!(!verdict.is_good() && verdict.reasons.is_empty());
    assert_eq!(verdict.unknown, dark.errors);
    dark.errors.clear();
    assert_eq!(verify(&healthy(), &dark).unknown, ["the end of t-0 is not known"]);
}

#[test]
fn partitions_that_nobody_subscribes_to_or_that_are_gone_are_no_concern() {
    let mut view = healthy();
    let left = GroupPartition { topic: "u".to_owned(), exists: Some(true), ..GroupPartition::default() };
    let gone = GroupPartition { topic: "t".to_owned(), partition: 9, exists: Some(false), ..left.clone() };
    view.partitions.extend([left, gone]);
    assert!(verify(&view, &view).is_good());
}

#[test]
fn a_store_that_is_not_used_any_more_does_not_hide_the_one_that_moves() {
    // offsets.storage=kafka without dual.commit.enabled, since something far ahead was left in ZooKeeper
    let mut before = healthy();
    (before.partitions[0].committed_zookeeper, before.partitions[0].committed_kafka) = (Some(900), Some(3));
    before.partitions[0].log_end = Some(1000);
    let mut moved = before.clone();
    moved.partitions[0].committed_kafka = Some(7);
    assert!(verify(&before, &moved).is_good());
    // a topic that was made again since
    (moved.partitions[0].committed_kafka, moved.partitions[0].log_end) = (Some(9), Some(9));
    assert!(verify(&before, &moved).is_good(), "all read");
    moved.partitions[0].log_end = Some(10);
    assert!(verify(&before, &moved).is_good(), "it moves");
    let kinds: Vec<_> = verify(&moved, &moved).reasons.iter().map(|reason| reason.kind).collect();
    assert_eq!(kinds, [ReasonKind::OffsetBeyondEnd]);
}

/// So many seconds for members and owners, and for offsets.
fn looking() -> Looking {
    Looking::new(Duration::from_secs(10), Duration::from_secs(65))
}

#[track_caller]
fn left(looking: &mut Looking, view: &GroupView, at: u64) -> (Vec<ReasonKind>, Option<u64>) {
    let (verdict, left) = looking.judge(view, Duration::from_secs(at));
    (verdict.reasons.iter().map(|it| it.kind).collect(), left.map(|left| left.as_secs()))
}

#[test]
fn an_offset_has_the_time_of_a_commit_to_move_and_a_member_that_of_a_rebalance() {
    let mut behind = healthy();
    behind.partitions[0].log_end = Some(9);
    let mut looking = looking();
    let stuck = vec![ReasonKind::OffsetStuck];
    assert_eq!(left(&mut looking, &behind, 0), (stuck.clone(), Some(65)));
    assert_eq!(left(&mut looking, &behind, 60), (stuck.clone(), Some(5)));
    // a rebalance meanwhile has a time of its own
    let mut rebalance = behind.clone();
    rebalance.partitions[1].owner_thread = None;
    let both = vec![ReasonKind::OffsetStuck, ReasonKind::NotOwned];
    assert_eq!(left(&mut looking, &rebalance, 64), (both.clone(), Some(10)));
    assert_eq!(left(&mut looking, &rebalance, 73), (both.clone(), Some(1)));
    assert_eq!(left(&mut looking.clone(), &rebalance, 74), (both, None), "it stays");
    assert_eq!(left(&mut looking.clone(), &behind, 74), (stuck, None), "it had its time");
    behind.partitions[0].committed_zookeeper = Some(6);
    assert_eq!(left(&mut looking, &behind, 74), (vec![], None), "it has moved at last");
}

#[test]
fn what_is_wrong_with_members_or_owners_does_not_wait_for_a_commit() {
    let mut nobody = healthy();
    nobody.partitions.iter_mut().for_each(|it| (it.owner_thread, it.log_end) = (None, Some(9)));
    let mut at_nobody = looking();
    assert_eq!(at_nobody.judge(&nobody, Duration::ZERO).1, Some(Duration::from_secs(10)));
    assert_eq!(at_nobody.judge(&nobody, Duration::from_secs(10)).1, None);
    let mut dark = healthy();
    dark.errors.push("the brokers are silent".to_owned());
    let mut looking = looking();
    assert_eq!(looking.judge(&dark, Duration::from_secs(1)).1, Some(Duration::from_secs(10)));
    assert_eq!(looking.judge(&healthy(), Duration::from_secs(2)), (Verdict::default(), None));
}

#[test]
fn records_that_come_late_to_who_had_read_all_are_no_reason() {
    let mut looking = looking();
    let mut behind = healthy();
    behind.partitions[0].log_end = Some(9);
    assert_eq!(left(&mut looking, &behind, 0).1, Some(65));
    // the other one gets a record just before the time is up, and the first moves
    (behind.partitions[0].committed_zookeeper, behind.partitions[1].log_end) = (Some(8), Some(6));
    assert_eq!(left(&mut looking, &behind, 64), (vec![], None));
}

#[test]
fn an_offset_that_could_not_be_read_at_first_has_not_moved_when_it_is() {
    let mut behind = healthy();
    behind.partitions[0].log_end = Some(9);
    let mut dark = behind.clone();
    dark.partitions[0].committed_zookeeper = None;
    dark.errors.push("offsets of group g in kafka: not within 10s".to_owned());
    let mut looking = looking();
    looking.judge(&dark, Duration::ZERO);
    assert_eq!(left(&mut looking, &behind, 1).0, [ReasonKind::OffsetStuck]);
}
