//! A position that somebody asked for: stored whatever is stored, while the partition is ours.

use std::sync::Arc;

use kafka_troupe_actors::offset_committer::CommitError;
use kafka_troupe_actors::registry::{NO_OFFSET, OwnedPartition};
use kafka_troupe_actors::testkit::MemoryZooKeeper;

use crate::member::Member;
use crate::other::Other;

/// Our member has claimed the partition, and committed 20 there.
async fn at_20(automatic: bool) -> (Member, Arc<OwnedPartition>, Other) {
    let ensemble = MemoryZooKeeper::default();
    let other = Other::connect(&ensemble);
    let member = Member::join(&ensemble, "a", automatic).await;
    let claimed = member.claim().await;
    assert_eq!(member.commit(&claimed, 20).await, Ok(1));
    (member, claimed, other)
}

async fn sought(member: &Member, claimed: &Arc<OwnedPartition>, offset: i64) -> Arc<OwnedPartition> {
    member.seek(claimed, offset).await.expect("it is stored").expect("the claim is current")
}

#[actix::test]
async fn a_seek_may_go_down_and_the_next_commit_goes_on_from_there() {
    let (member, claimed, other) = at_20(true).await;
    let sought = sought(&member, &claimed, 7).await;
    assert_eq!([sought.fetched(), sought.delivered(), sought.acked(), sought.committed()], [7; 4]);
    assert_eq!(other.stored(), Some((7, 1)));
    assert!(claimed.is_closed() && !sought.is_closed());
    assert_eq!(member.commit_again().await, Ok(0), "the claim before is not committed any more");
    assert_eq!(member.commit(&sought, 8).await, Ok(1));
    assert_eq!(other.stored(), Some((8, 2)));
}

#[actix::test]
async fn a_seek_writes_over_what_a_late_commit_of_another_left() {
    let (member, claimed, other) = at_20(true).await;
    other.commit(50);
    assert_eq!(sought(&member, &claimed, 7).await.committed(), 7);
    assert_eq!(other.stored(), Some((7, 2)));
}

#[actix::test]
async fn a_reset_that_was_under_way_does_not_write_over_a_seek() {
    let ensemble = MemoryZooKeeper::default();
    let other = Other::connect(&ensemble);
    let member = Member::join(&ensemble, "a", true).await;
    let claimed = member.claim().await;
    let sought = sought(&member, &claimed, 7).await;
    // asked for before, and answered after
    assert!(matches!(member.reset_from(&claimed, NO_OFFSET, 100).await, Err(CommitError::Store { .. })));
    assert_eq!((other.stored(), sought.fetched()), (Some((7, 0)), 7));
}

#[actix::test]
async fn a_partition_that_is_lost_is_not_written() {
    let (member, claimed, other) = at_20(true).await;
    other.take_over("g_b-0", 30);
    let lost = member.seek(&claimed, 7).await;
    assert!(matches!(lost, Err(CommitError::Lost { .. })), "{:?}", lost.err());
    assert_eq!(other.stored(), Some((30, 1)));
}

#[actix::test]
async fn the_second_of_two_seeks_at_once_is_to_look_again() {
    let (member, claimed, other) = at_20(true).await;
    let first = sought(&member, &claimed, 7).await;
    assert!(member.seek(&claimed, 9).await.expect("nothing fails").is_none());
    assert_eq!(other.stored(), Some((7, 1)));
    sought(&member, &first, 9).await;
    assert_eq!(other.stored(), Some((9, 2)));
}

#[actix::test]
async fn without_automatic_commit_nothing_is_stored_until_the_next_commit() {
    for (offset, written) in [(7, 1), (20, 0), (30, 1)] {
        let (member, claimed, other) = at_20(false).await;
        let sought = sought(&member, &claimed, offset).await;
        assert_eq!((other.stored(), sought.acked()), (Some((20, 0)), offset));
        assert_eq!(member.commit_again().await, Ok(written));
        assert_eq!(other.stored().map(|(stored, _)| stored), Some(offset));
    }
}

/// The commit is asked for while the seek has the store for itself.
#[actix::test]
async fn a_commit_that_waits_for_a_seek_does_not_undo_it() {
    let (member, claimed, other) = at_20(true).await;
    claimed.advance_delivered(30);
    claimed.ack(30);
    let (sought, committed) = tokio::join!(member.seek(&claimed, 7), member.commit_again());
    assert!(sought.expect("it is stored").is_some());
    assert_eq!((committed, other.stored()), (Ok(0), Some((7, 1))));
}

#[actix::test]
async fn a_seek_whose_answer_is_lost_is_settled() {
    for offset in [7, 50] {
        let (member, claimed, other) = at_20(true).await;
        member.zk.begin();
        let (ensemble, id) = (member.zk.ensemble.clone(), member.id());
        member.zk.before(1, move || ensemble.lose_reply(id));
        assert_eq!(sought(&member, &claimed, offset).await.committed(), offset);
        assert_eq!(other.stored(), Some((offset, 2)));
    }
}

/// Else a crash would pass over what lies before it.
#[actix::test]
async fn a_seek_that_failed_and_is_stored_all_the_same_is_taken_back_by_the_next_commit() {
    let (member, claimed, other) = at_20(true).await;
    member.zk.begin();
    let (ensemble, id) = (member.zk.ensemble.clone(), member.id());
    member.zk.before(1, move || ensemble.lose_reply(id));
    let ensemble = member.zk.ensemble.clone();
    member.zk.before(2, move || ensemble.suspend(id));
    let failed = member.seek(&claimed, 50).await;
    assert!(matches!(failed, Err(CommitError::Store { .. })), "{:?}", failed.err());
    assert_eq!(other.stored(), Some((50, 1)), "which we do not know");
    let goes_on = member.renew(&claimed);
    member.zk.ensemble.reconnect(id);
    assert_eq!((member.commit_again().await, other.stored()), (Ok(1), Some((20, 2))));
    assert_eq!(member.commit_again().await, Ok(0), "once");
    assert_eq!((member.commit(&goes_on, 21).await, other.stored()), (Ok(1), Some((21, 3))));
}

#[actix::test]
async fn a_seek_of_a_partition_that_is_given_up_meanwhile_is_done_and_not_flushed_over() {
    let (member, claimed, other) = at_20(true).await;
    claimed.advance_delivered(30);
    claimed.ack(30);
    member.zk.begin();
    let retire = member.retiring();
    member.zk.before(1, retire);
    assert!(member.seek(&claimed, 7).await.expect("it is stored").is_some());
    member.flush(vec![claimed]).await;
    assert_eq!(other.stored(), Some((7, 1)));
}
