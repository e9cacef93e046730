//! A coordinator that is away: which waits of a member it may hold up, and how long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use kafka_troupe_actors::lease::BootInstant;
use kafka_troupe_actors::offset_committer::{CommitError, CommitOutcome, CommitSeek, ToCommit};
use kafka_troupe_actors::testkit::MemoryZooKeeper;
use tokio::time::Instant;

use crate::coordinator::Fate;
use crate::in_kafka::{acknowledge, alone, at_20, storing, why};
use crate::member::{Claiming, Member, partition};
use crate::other::Other;

const ALONE: &str = "dual.commit.enabled=false\n";

async fn asked(member: &Member, offset: i64) -> CommitOutcome {
    member.commit_what(ToCommit::Offsets(BTreeMap::from([(partition(), offset)]))).await
}

#[actix::test]
async fn a_flush_does_not_wait_for_a_try_of_each_commit_that_is_queued_before_it() {
    let slow = format!("{ALONE}offsets.channel.socket.timeout.ms=1000");
    let (member, brokers, _) = storing(&slow).await;
    brokers.store(0, 20);
    let claimed = member.claim_number(0).await;
    brokers.begin();
    (1..100).for_each(|step| brokers.fate(step, Fate::Held));
    claimed.advance_delivered(100);
    let commits = join_all((21..33).map(|offset| asked(&member, offset)));
    let began = Instant::now();
    let flush = async {
        member.retire(&claimed);
        member.flush_until(vec![claimed.clone()], began + Duration::from_millis(200)).await;
        began.elapsed()
    };
    let (outcomes, took) = join(commits, flush).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    let errors: Vec<String> = outcomes.into_iter().map(|outcome| why(outcome.all())).collect();
    let untried = errors.iter().filter(|error| error.contains("partitions are given up")).count();
    assert!(untried >= 10, "{errors:?}");
}

/// The coordinator loads, say, and one partition has no offset yet.
#[actix::test]
async fn no_commit_and_no_release_waits_for_a_position_that_cannot_be_read() {
    let (member, brokers, _) = storing(&format!("{ALONE}offsets.commit.max.retries=1000")).await;
    brokers.store(0, 20);
    let claimed = member.claim_number(0).await;
    let (without, given_up) = (member.claim_number(1).await, member.claim_number(2).await);
    brokers.begin();
    brokers.refuse("fetch", 14);
    let others = async {
        assert_eq!(member.commit(&claimed, 30).await, Ok(1));
        member.retire(&claimed);
        member.retire(&given_up);
        member.flush(vec![claimed.clone(), given_up.clone()]).await;
        brokers.begin();
    };
    let resets = join(member.reset(&without, 100), member.reset(&given_up, 100));
    let ((reset, late), ()) = join(resets, others).await;
    assert_eq!((reset, brokers.stored(0), brokers.stored(1)), (Ok(100), Some(30), Some(100)));
    assert!(matches!(late, Err(CommitError::Store { .. })), "{late:?}");
    assert_eq!(brokers.stored(2), None, "it was given up");
}

/// A read may be asked again, so it holds nobody up who waits for a partition.
#[actix::test]
async fn a_flush_does_not_wait_for_a_read_that_is_not_answered() {
    let slow = format!("{ALONE}offsets.channel.socket.timeout.ms=8000\noffsets.commit.max.retries=0");
    let (member, brokers, _) = storing(&slow).await;
    brokers.store(0, 20);
    let claimed = member.claim_number(0).await;
    brokers.begin();
    brokers.fate(1, Fate::Held);
    acknowledge(&claimed, 30);
    let flush = async {
        while brokers.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        let began = Instant::now();
        member.retire(&claimed);
        member.flush_until(vec![claimed.clone()], began + Duration::from_millis(500)).await;
        (began.elapsed(), brokers.stored(0))
    };
    let (read, (took, stored)) = join(member.read_number(1, None), flush).await;
    assert_eq!(stored, Some(30));
    assert!(took < Duration::from_secs(5), "{took:?}");
    read.expect_err("it was cut off, and may not be tried again");
}

/// It may be carried out as long as nobody answers, so to wait is the only fence.
#[actix::test]
async fn an_answer_is_waited_for_as_long_as_the_lease_is_extended() {
    let patient = format!("{ALONE}offsets.channel.socket.timeout.ms=20000\noffsets.commit.max.retries=0");
    let (member, brokers, _) = storing(&patient).await;
    brokers.store(0, 20);
    let lease = member.lease_of(Duration::from_millis(500));
    let claimed = member.claim_by(Claiming { lease: Some(lease.clone()), ..Claiming::default() }).await;
    brokers.begin();
    brokers.fate(1, Fate::Held);
    let epoch = claimed.epoch;
    brokers.before(1, move || {
        assert!(lease.extend_to(epoch, BootInstant::now() + Duration::from_secs(2)));
    });
    let began = Instant::now();
    let error = why(member.commit(&claimed, 30).await);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(1500) && took < Duration::from_secs(15), "{took:?}");
    assert!(error.contains("lease"), "{error}");
}

/// They are asked for again and again, by each partition for itself.
#[actix::test]
async fn what_is_refused_for_good_is_not_asked_for_without_a_pause() {
    let (member, brokers, _) = storing(&format!("{ALONE}offsets.channel.backoff.ms=300")).await;
    let claimed = member.claim_number(0).await;
    brokers.begin();
    brokers.refuse("commit", 25);
    let began = Instant::now();
    for _ in 0..3 {
        member.reset(&claimed, 100).await.expect_err("it is refused");
    }
    assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
}

#[actix::test]
async fn a_flush_with_little_time_left_asks_more_than_one_broker_for_the_coordinator() {
    let slow = format!("{ALONE}offsets.channel.socket.timeout.ms=8000");
    let (member, brokers, _) = storing(&slow).await;
    brokers.store(0, 20);
    brokers.move_to(1);
    let claimed = member.claim_number(0).await;
    brokers.begin();
    // the one that is asked first; the connection to the other is lost
    brokers.deafen(0);
    brokers.fate(1, Fate::Closed);
    acknowledge(&claimed, 30);
    member.retire(&claimed);
    member.flush(vec![claimed]).await;
    assert_eq!(brokers.stored(0), Some(30));
}

/// It is another than the last, and never answers.
#[actix::test]
async fn a_coordinator_that_cannot_be_reached_is_named_with_the_property_that_bounds_the_wait() {
    let (member, brokers, _) = alone().await;
    brokers.move_to(1);
    brokers.deafen(1);
    let error = member.read_number(0, None).await.expect_err("it is away").to_string();
    for part in [&format!("coordinator {}", brokers.address(1)), "offsets.channel.socket.timeout.ms"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    let (member, brokers, claimed) = at_20().await;
    brokers.deafen(0);
    let error = why(member.commit(&claimed, 30).await);
    assert!(error.contains("offsets.channel.socket.timeout.ms"), "{error}");
}

/// The rebalance coordinator reads them next when it reads the group, which it does not while it leaves it.
#[actix::test]
async fn a_restarted_committer_knows_the_brokers() {
    let (mut member, brokers, claimed) = at_20().await;
    acknowledge(&claimed, 30);
    member.restart_committer_untold().await;
    member.retire(&claimed);
    member.flush_until(vec![claimed], Instant::now() + Duration::from_secs(20)).await;
    assert_eq!(brokers.stored(0), Some(30));
}

/// What the earlier life began goes on; the commit that comes next must not write over it.
#[actix::test]
async fn a_restarted_committer_commits_nothing_beside_a_seek_of_its_earlier_life() {
    let ensemble = MemoryZooKeeper::default();
    let other = Other::connect(&ensemble);
    let mut member = Member::join(&ensemble, "a", true).await;
    let claimed = member.claim().await;
    assert_eq!(member.commit(&claimed, 20).await, Ok(1));
    acknowledge(&claimed, 30);
    member.zk.begin();
    ensemble.set_pace(Arc::new(|| Duration::from_millis(200)));
    claimed.close();
    let seek = actix::spawn(member.committer.send(CommitSeek { claim: claimed.clone(), offset: 7 }));
    while member.zk.steps().is_empty() {
        tokio::task::yield_now().await;
    }
    member.restart_committer_untold().await;
    assert_eq!(member.commit_again().await, Ok(0), "it is at 7 now");
    let sought = seek.await.expect("it does not panic").expect("it is answered").expect("it is stored");
    assert_eq!(sought.map(|sought| sought.acked()), Some(7));
    assert_eq!(other.stored().map(|(offset, _)| offset), Some(7));
}
