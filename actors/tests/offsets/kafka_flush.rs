//! The last commit before a partition is released, with offsets in Kafka: others wait for it, and nothing fences it.

use std::time::Duration;

use futures_util::future::join;
use kafka_troupe_actors::fetcher_manager::SetBrokers;
use kafka_troupe_actors::testkit::MemoryZooKeeper;
use tokio::time::Instant;

use crate::coordinator::{Brokers, Fate};
use crate::in_kafka::{acknowledge, at_20, channel, storing, why};
use crate::member::Member;
use crate::other::Other;

#[actix::test]
async fn a_flush_waits_for_the_commit_in_flight_and_then_writes_the_last() {
    let (member, brokers, claimed) = at_20().await;
    brokers.fate(1, Fate::Held);
    acknowledge(&claimed, 30);
    let flush = async {
        acknowledge(&claimed, 31);
        member.retire(&claimed);
        member.flush_until(vec![claimed.clone()], Instant::now() + Duration::from_secs(20)).await;
        brokers.seen()
    };
    let (committed, seen) = join(member.commit_again(), flush).await;
    assert_eq!(committed, Ok(1));
    assert_eq!(seen.last().map(String::as_str), Some("commit 0=31"), "{seen:?}");
    assert_eq!(brokers.stored(0), Some(31));
}

/// With no commit of its own the flush still waits for one that is under way, which nothing fences.
#[actix::test]
async fn without_automatic_commit_a_release_waits_for_the_commit_in_flight() {
    let ensemble = MemoryZooKeeper::default();
    Other::connect(&ensemble);
    let brokers = Brokers::start().await;
    let kafka = channel("dual.commit.enabled=false");
    let member = Member::join_storing(&ensemble, "a", false, Some(kafka)).await;
    member.committer.do_send(SetBrokers(brokers.addresses()));
    brokers.store(0, 20);
    let claimed = member.claim_number(0).await;
    brokers.begin();
    brokers.fate(1, Fate::Held);
    acknowledge(&claimed, 30);
    let began = Instant::now();
    let flush = async {
        member.retire(&claimed);
        member.flush_until(vec![claimed.clone()], Instant::now()).await;
        (brokers.seen(), began.elapsed())
    };
    let (committed, (seen, took)) = join(member.commit_again(), flush).await;
    why(committed);
    assert_eq!(seen, ["commit 0=30"]);
    assert!(took >= Duration::from_millis(300), "{took:?}");
}

/// A coordinator that is away: refused, silent, or not to be dialled at all.
#[actix::test]
async fn a_flush_ends_in_bounded_time() {
    for away in ["refuses", "silent", "gone"] {
        let more = "dual.commit.enabled=false\noffsets.commit.max.retries=1000";
        let (member, brokers, _) = storing(more).await;
        brokers.store(0, 20);
        let claimed = member.claim_number(0).await;
        brokers.begin();
        match away {
            "refuses" => brokers.refuse("commit", 14),
            "silent" => (1..2000).for_each(|step| brokers.fate(step, Fate::Held)),
            _ => {
                (1..2000).for_each(|step| brokers.fate(step, Fate::Closed));
                brokers.refuse("find", 15);
            }
        }
        acknowledge(&claimed, 30);
        // one is being tried again and again already
        let began = Instant::now();
        let flush = async {
            member.retire(&claimed);
            member.flush_until(vec![claimed.clone()], began + Duration::from_millis(200)).await;
        };
        let (committed, ()) = join(member.commit_again(), flush).await;
        why(committed);
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(180) && took < Duration::from_secs(5), "{away}: {took:?}");
    }
}

#[actix::test]
async fn a_coordinator_that_moves_between_commit_and_flush_is_flushed_to() {
    let (member, brokers, claimed) = at_20().await;
    assert_eq!(member.commit(&claimed, 30).await, Ok(1));
    brokers.move_to(1);
    acknowledge(&claimed, 31);
    member.retire(&claimed);
    member.flush_until(vec![claimed], Instant::now() + Duration::from_secs(20)).await;
    assert_eq!(brokers.stored(0), Some(31));
}

/// A long pause, and little time.
#[actix::test]
async fn a_flush_does_not_wait_for_the_pause_before_the_coordinator_is_looked_up() {
    let (member, brokers, _) = storing("dual.commit.enabled=false\noffsets.channel.backoff.ms=3600000").await;
    brokers.store(0, 20);
    let claimed = member.claim_number(0).await;
    brokers.fate(3, Fate::Refused(16));
    acknowledge(&claimed, 30);
    let flush = async {
        while brokers.seen().len() < 3 {
            tokio::task::yield_now().await;
        }
        acknowledge(&claimed, 31);
        member.retire(&claimed);
        member.flush_until(vec![claimed.clone()], Instant::now() + Duration::from_millis(200)).await;
    };
    let (committed, ()) = join(member.commit_again(), flush).await;
    why(committed);
    assert_eq!(brokers.stored(0), Some(31));
}

/// In ZooKeeper the version would tell.
#[actix::test]
async fn a_flush_is_not_tried_again_when_the_partition_is_lost_meanwhile() {
    let (member, brokers, claimed) = at_20().await;
    brokers.fate(1, Fate::Refused(14));
    brokers.before(1, member.losing(&claimed));
    acknowledge(&claimed, 30);
    member.retire(&claimed);
    let settled = member.settle(&claimed);
    member.flush_until(settled, Instant::now() + Duration::from_secs(20)).await;
    assert_eq!((brokers.seen(), brokers.stored(0)), (vec!["commit 0=30".to_owned()], Some(20)));
}
