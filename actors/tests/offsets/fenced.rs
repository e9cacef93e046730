//! Rule 10: what is written to an offset node, for each way in which others may come between.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use kafka_troupe_actors::offset_committer::CommitError;
use kafka_troupe_actors::registry::OwnedPartition;

use crate::member::Member;
use crate::other::Other;
use kafka_troupe_actors::testkit::MemoryZooKeeper;

/// Our member has claimed the partition, at this stored offset; nobody else has written since.
async fn claimed(stored: Option<i64>) -> (Member, Arc<OwnedPartition>, Other) {
    let ensemble = MemoryZooKeeper::default();
    let other = Other::connect(&ensemble);
    stored.into_iter().for_each(|offset| other.commit(offset));
    let member = Member::join(&ensemble, "a", true).await;
    let claimed = member.claim().await;
    assert_eq!(claimed.committed(), stored.unwrap_or(-1));
    (member, claimed, other)
}

const RESOLVED: [&str; 4] = ["set offset", "read offset", "read owner", "set offset"];
const LOST: [&str; 3] = ["set offset", "read offset", "read owner"];

#[track_caller]
fn assert_lost(outcome: Result<usize, CommitError>, by: &str) {
    match outcome {
        Err(CommitError::Lost { why, .. }) => assert!(why.contains(by), "{why}"),
        other => panic!("not lost: {other:?}"),
    }
}

#[actix::test]
async fn a_claim_writes_nothing() {
    for stored in [None, Some((5, 0))] {
        let ensemble = MemoryZooKeeper::default();
        let other = Other::connect(&ensemble);
        stored.into_iter().for_each(|(offset, _)| other.commit(offset));
        let member = Member::join(&ensemble, "a", true).await;
        let claimed = member.claim().await;
        assert_eq!(other.stored(), stored);
        assert_eq!(member.commit_again().await, Ok(0));
        assert_eq!(claimed.committed(), stored.map_or(-1, |(offset, _)| offset));
        assert_eq!((other.stored(), member.zk.steps().len()), (stored, 0));
    }
}

#[actix::test]
async fn a_commit_meets_the_version_that_was_read_or_written_last() {
    let (member, partition, other) = claimed(Some(5)).await;
    for (acked, version) in [(10, 1), (11, 2), (20, 3)] {
        assert_eq!(member.commit(&partition, acked).await, Ok(1));
        assert_eq!(other.stored(), Some((acked, version)));
        assert_eq!(member.commit_again().await, Ok(0), "nothing new");
    }
    assert_eq!(member.zk.steps(), ["set offset"; 3]);
}

#[actix::test]
async fn the_first_commit_creates_the_node() {
    let (member, partition, other) = claimed(None).await;
    assert_eq!(member.commit(&partition, 10).await, Ok(1));
    assert_eq!(member.commit(&partition, 11).await, Ok(1));
    assert_eq!(other.stored(), Some((11, 1)));
    assert_eq!(member.zk.steps(), ["create offset", "set offset"]);
}

/// Such as the last commit of the owner before us, a Scala member, that comes late.
#[actix::test]
async fn over_a_foreign_write_the_larger_offset_is_written() {
    for (foreign, expected) in [(7, 10), (10, 10), (12, 12)] {
        let (member, partition, other) = claimed(Some(5)).await;
        other.commit(foreign);
        assert_eq!(member.commit(&partition, 10).await, Ok(1));
        assert_eq!(other.stored(), Some((expected, 2)), "{foreign} was written meanwhile");
        assert_eq!(member.zk.steps(), RESOLVED);
        assert_eq!(partition.committed(), expected);
        // from there on by that version, and never below
        assert_eq!(member.commit(&partition, 11).await, Ok(usize::from(expected < 11)));
        assert_eq!(other.stored().unwrap().0, expected.max(11));
    }
}

#[actix::test]
async fn over_a_foreign_create_the_larger_offset_is_written() {
    for (foreign, expected) in [(7, 10), (12, 12)] {
        let (member, partition, other) = claimed(None).await;
        other.commit(foreign);
        assert_eq!(member.commit(&partition, 10).await, Ok(1));
        assert_eq!(other.stored(), Some((expected, 1)));
        assert_eq!(member.zk.steps(), ["create offset", "read offset", "read owner", "set offset"]);
    }
}

#[actix::test]
async fn a_node_that_was_deleted_is_created_again() {
    let (member, partition, other) = claimed(Some(5)).await;
    other.delete_offset();
    assert_eq!(member.commit(&partition, 10).await, Ok(1));
    assert_eq!(other.stored(), Some((10, 0)));
    assert_eq!(member.zk.steps(), ["set offset", "read offset", "read owner", "create offset"]);
}

/// The version that is met is the one that was read before the owner, so a write after that read is not overwritten.
#[actix::test]
async fn a_foreign_write_between_the_read_and_the_second_set_is_met_too() {
    for step in [3, 4] {
        let (member, partition, other) = claimed(Some(5)).await;
        other.commit(7);
        let late = other.clone();
        member.zk.before(step, move || late.commit(30));
        assert_eq!(member.commit(&partition, 10).await, Ok(1));
        assert_eq!(other.stored(), Some((30, 3)));
        let steps = [&RESOLVED[..], &["read offset", "read owner", "set offset"]].concat();
        assert_eq!(member.zk.steps(), steps, "written before step {step}");
    }
}

#[actix::test]
async fn against_others_that_never_stop_writing_a_commit_fails_and_writes_nothing() {
    let (member, partition, other) = claimed(Some(5)).await;
    let offset = Arc::new(AtomicI64::new(6));
    for step in [1, 4, 7, 10] {
        let (other, offset) = (other.clone(), offset.clone());
        member.zk.before(step, move || other.commit(offset.fetch_add(1, Ordering::SeqCst)));
    }
    let failed = member.commit(&partition, 100).await;
    assert!(matches!(&failed, Err(CommitError::Store { why, .. }) if why.contains("others")), "{failed:?}");
    assert_eq!(other.stored(), Some((9, 4)));
    assert_eq!(partition.committed(), 5);
    // and what was not committed is tried again
    assert_eq!(member.commit_again().await, Ok(1));
    assert_eq!(other.stored(), Some((100, 5)));
}

/// Of whatever thread and session, and nobody at all.
#[actix::test]
async fn over_the_write_of_another_owner_nothing_is_written() {
    type Change = fn(&Other);
    let changes: [(Change, &str); 4] = [
        (Other::disown, "nobody owns it"),
        (|other| other.take_over("g_b-0", 6), "g_b-0"),
        // our own name in another session: the same consumer.id, started again
        (|other| other.take_over("g_a-0", 6), "g_a-0"),
        // another thread of ours
        (|other| other.rethread("g_a-1"), "g_a-1"),
    ];
    for (change, owner) in changes {
        let (member, partition, other) = claimed(Some(5)).await;
        change(&other);
        other.commit(7);
        let stored = other.stored();
        assert_lost(member.commit(&partition, 10).await, owner);
        assert_eq!(other.stored(), stored);
        assert_eq!((member.zk.steps(), partition.committed()), (LOST.map(str::to_owned).to_vec(), 5));
    }
}

/// The offset is read first, the owner THEN: a takeover between the two is seen.
#[actix::test]
async fn a_takeover_between_the_two_reads_is_seen() {
    let (member, partition, other) = claimed(Some(5)).await;
    other.commit(7);
    let next = other.clone();
    member.zk.before(3, move || next.take_over("g_b-0", 8));
    assert_lost(member.commit(&partition, 10).await, "g_b-0");
    assert_eq!(other.stored(), Some((8, 2)));
    assert_eq!(member.zk.steps(), LOST);
}

/// Its write is met by the second set, and the owner read anew.
#[actix::test]
async fn a_takeover_after_the_read_of_the_owner_is_seen_once_the_next_owner_commits() {
    let (member, partition, other) = claimed(Some(5)).await;
    other.commit(7);
    let next = other.clone();
    member.zk.after(3, move || next.take_over("g_b-0", 8));
    assert_lost(member.commit(&partition, 10).await, "g_b-0");
    assert_eq!(other.stored(), Some((8, 2)));
    assert_eq!(member.zk.steps(), [&RESOLVED[..], &LOST[1..]].concat());
}

/// The same, where there is no node yet.
#[actix::test]
async fn a_takeover_before_the_first_commit_is_seen() {
    let (member, partition, other) = claimed(None).await;
    let next = other.clone();
    member.zk.before(1, move || next.take_over("g_b-0", 3));
    assert_lost(member.commit(&partition, 10).await, "g_b-0");
    assert_eq!(other.stored(), Some((3, 0)));
    assert_eq!(member.zk.steps(), ["create offset", "read offset", "read owner"]);
}

/// The next commit does not know the version, and settles it by reading.
#[actix::test]
async fn a_set_or_create_whose_answer_is_lost_is_settled_by_reading() {
    for (stored, before) in [(None, "create offset"), (Some(5), "set offset")] {
        let (member, partition, other) = claimed(stored).await;
        let (ensemble, id) = (member.zk.ensemble.clone(), member.id());
        member.zk.before(1, move || ensemble.lose_reply(id));
        let failed = member.commit(&partition, 10).await;
        assert!(matches!(failed, Err(CommitError::Store { .. })), "{failed:?}");
        assert_eq!(other.stored().unwrap().0, 10, "it was written all the same");
        assert_eq!(member.commit_again().await, Ok(1), "which we do not know");
        assert_eq!(partition.committed(), 10);
        assert_eq!(member.zk.steps(), [before, before, "read offset", "read owner", "set offset"]);
        assert_eq!(member.commit(&partition, 11).await, Ok(1));
        assert_eq!(other.stored().unwrap().0, 11);
    }
}

/// It was written, or not; the next owner's offset stands in both cases.
#[actix::test]
async fn a_set_whose_answer_is_lost_is_not_repeated_over_the_next_owner() {
    for executed in [true, false] {
        let (member, partition, other) = claimed(Some(5)).await;
        let (ensemble, id) = (member.zk.ensemble.clone(), member.id());
        member.zk.before(1, move || if executed { ensemble.lose_reply(id) } else { ensemble.suspend(id) });
        assert!(member.commit(&partition, 10).await.is_err());
        other.take_over("g_b-0", 8);
        if !executed {
            member.zk.ensemble.reconnect(id);
        }
        let stored = other.stored();
        assert_lost(member.commit_again().await, "g_b-0");
        assert_eq!((other.stored(), stored.map(|(offset, _)| offset)), (stored, Some(8)));
    }
}

/// The lease is looked at before each write, so nothing planned in one session is sent in the next.
#[actix::test]
async fn a_session_that_expires_between_two_steps_writes_nothing() {
    for after in [1, 2, 3] {
        let (member, partition, other) = claimed(Some(5)).await;
        other.commit(7);
        let (ensemble, id) = (member.zk.ensemble.clone(), member.id());
        member.zk.after(after, move || ensemble.expire(id));
        let failed = member.commit(&partition, 10).await;
        assert!(failed.is_err(), "expired after step {after}: {failed:?}");
        assert_eq!(other.stored(), Some((7, 1)));
        // in the next session the claim of this one counts for nothing, though nobody else has come
        member.wait_for_next_session().await;
        member.zk.begin();
        let failed = member.commit_again().await;
        assert!(matches!(failed, Err(CommitError::Fenced(_))), "{failed:?}");
        assert_eq!((other.stored(), member.zk.steps().len()), (Some((7, 1)), 0));
    }
}

#[actix::test]
async fn after_the_end_of_its_session_a_member_does_not_even_ask() {
    let (member, partition, other) = claimed(Some(5)).await;
    member.zk.ensemble.expire(member.id());
    let failed = member.commit(&partition, 10).await;
    assert!(matches!(failed, Err(CommitError::Fenced(_))), "{failed:?}");
    assert_eq!((other.stored(), member.zk.steps().len()), (Some((5, 0)), 0));
}

/// Written after the new topic was made, it would look like one of that.
#[actix::test]
async fn an_offset_of_an_earlier_topic_is_not_committed() {
    let (member, claimed, other) = claimed(Some(5)).await;
    claimed.topic_remade();
    assert_eq!(member.commit(&claimed, 10).await, Ok(0));
    assert_eq!(other.stored(), Some((5, 0)));
    // a chunk that was on its way moved it while its new position was being made
    let made = member.reset_from(&claimed, 7, 0).await;
    assert!(matches!(&made, Err(CommitError::Store { why, .. }) if why.contains("from 7 to 5")), "{made:?}");
    assert_eq!(member.reset(&claimed, 0).await, Ok(0));
    assert_eq!(other.stored(), Some((0, 1)));
    assert_eq!(member.commit(&claimed, 3).await, Ok(1));
    assert_eq!(other.stored(), Some((3, 2)));
}

/// Only the application commits: what it commits in the new topic counts, though it is less.
#[actix::test]
async fn without_automatic_commit_the_first_commit_in_the_new_topic_goes_down() {
    let ensemble = MemoryZooKeeper::default();
    let other = Other::connect(&ensemble);
    other.commit(10);
    let member = Member::join(&ensemble, "a", false).await;
    let claimed = member.claim_of_earlier_topic().await;
    assert_eq!(member.reset(&claimed, 0).await, Ok(0));
    assert_eq!(other.stored(), Some((10, 0)), "that is the application's to do");
    assert_eq!(member.commit(&claimed, 3).await, Ok(1));
    assert_eq!(other.stored(), Some((3, 1)));
}
