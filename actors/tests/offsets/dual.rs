//! Offsets in ZooKeeper and in Kafka (`dual.commit.enabled`).

use std::sync::Arc;

use kafka_troupe_actors::offset_committer::{CommitError, Describe, TopicNodes};
use kafka_troupe_actors::registry::OwnedPartition;

use crate::coordinator::{Brokers, Fate};
use crate::in_kafka::{acknowledge, storing};
use crate::member::{Claiming, Member};
use crate::other::Other;

/// Claimed, with these offsets stored in ZooKeeper and in Kafka; what is asked is counted from now.
async fn stored(
    in_zookeeper: Option<i64>,
    in_kafka: Option<i64>,
) -> (Member, Brokers, Other, Arc<OwnedPartition>) {
    let (member, brokers, other) = storing("").await;
    in_zookeeper.into_iter().for_each(|offset| other.commit(offset));
    in_kafka.into_iter().for_each(|offset| brokers.store(0, offset));
    let claimed = member.claim_number(0).await;
    assert_eq!(claimed.acked(), in_zookeeper.max(in_kafka).unwrap_or(-1), "the larger");
    brokers.begin();
    member.zk.begin();
    (member, brokers, other, claimed)
}

fn in_zookeeper(other: &Other) -> Option<i64> {
    other.stored().map(|(offset, _)| offset)
}

#[actix::test]
async fn both_are_written_zookeeper_first_and_an_unchanged_offset_in_kafka_only() {
    let (member, brokers, other, claimed) = stored(Some(20), Some(20)).await;
    assert_eq!(member.commit(&claimed, 30).await, Ok(1));
    assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(30), Some(30)));
    assert_eq!(member.commit_again().await, Ok(1));
    assert_eq!(member.zk.steps(), ["set offset"]);
    assert_eq!(brokers.seen(), ["commit 0=30", "commit 0=30"]);
    let status = member.committer.send(Describe).await.unwrap();
    assert_eq!((status.commits, status.to_zookeeper, status.to_kafka), (2, 1, 2));
}

/// The way into dual commit, and the way back: one store is behind.
#[actix::test]
async fn the_first_commit_brings_the_store_that_is_behind_up() {
    for (zookeeper, kafka) in [(None, Some(50)), (Some(20), Some(50)), (Some(50), None), (Some(50), Some(20))]
    {
        let (member, brokers, other, claimed) = stored(zookeeper, kafka).await;
        assert_eq!((claimed.acked(), claimed.committed()), (50, 50));
        assert_eq!(member.commit_again().await, Ok(1));
        assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(50), Some(50)));
    }
}

#[actix::test]
async fn who_has_lost_the_partition_writes_nothing_to_kafka() {
    let (member, brokers, other, claimed) = stored(Some(20), Some(20)).await;
    other.take_over("g_b-0", 25);
    let lost = member.commit(&claimed, 30).await;
    assert!(matches!(lost, Err(CommitError::Lost { .. })), "{lost:?}");
    assert_eq!((in_zookeeper(&other), brokers.seen()), (Some(25), vec![]));
}

#[actix::test]
async fn what_one_store_has_taken_stays_when_the_other_fails() {
    let (member, brokers, other, claimed) = stored(Some(20), Some(20)).await;
    brokers.refuse("commit", 7);
    let error = member.commit(&claimed, 30).await.expect_err("kafka fails").to_string();
    assert!(error.contains("commit to Kafka"), "{error}");
    assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(30), Some(20)));
    assert_eq!(claimed.committed(), 30);
    brokers.begin();
    assert_eq!((member.commit_again().await, brokers.stored(0)), (Ok(1), Some(30)));
}

/// Else the larger one would be read.
#[actix::test]
async fn a_reset_and_a_seek_lower_both_and_are_done_when_both_are_lower() {
    for seeks in [false, true] {
        let (member, brokers, other, claimed) = stored(Some(20), Some(20)).await;
        brokers.refuse("commit", 7);
        let failed = match seeks {
            true => member.seek(&claimed, 7).await.map(drop),
            false => member.reset(&claimed, 7).await.map(drop),
        };
        assert!(matches!(failed, Err(CommitError::Store { .. })), "{failed:?}");
        assert_eq!((claimed.acked(), brokers.stored(0)), (20, Some(20)));
        brokers.begin();
        match seeks {
            true => drop(member.seek(&claimed, 7).await.unwrap().expect("the claim is current")),
            false => assert_eq!(member.reset(&claimed, 7).await, Ok(7)),
        }
        assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(7), Some(7)));
        assert_eq!(member.commit_again().await, Ok(1));
        assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(7), Some(7)));
    }
}

#[actix::test]
async fn a_seek_that_only_zookeeper_took_is_taken_back_by_the_next_commit() {
    for offset in [7, 50] {
        let (member, brokers, other, claimed) = stored(Some(20), Some(20)).await;
        brokers.refuse("commit", 7);
        assert!(member.seek(&claimed, offset).await.is_err());
        assert_eq!(in_zookeeper(&other), Some(offset));
        brokers.begin();
        let goes_on = member.renew(&claimed);
        assert_eq!(member.commit_again().await, Ok(1));
        assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(20), Some(20)));
        assert_eq!(member.commit(&goes_on, 21).await, Ok(1));
        assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(21), Some(21)));
    }
}

/// Rule 8: `largest` is resolved once.
#[actix::test]
async fn a_position_that_only_zookeeper_took_stands_when_it_is_made_again() {
    for late in [false, true] {
        let (member, brokers, other, claimed) = stored(None, None).await;
        (2..20).for_each(|step| brokers.fate(step, Fate::Held));
        assert!(member.reset(&claimed, 100).await.is_err());
        assert_eq!((in_zookeeper(&other), brokers.stored(0), claimed.acked()), (Some(100), None, -1));
        brokers.begin();
        if late {
            brokers.carry_out_late();
        }
        assert_eq!(member.reset(&claimed, 150).await, Ok(100));
        assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(100), Some(100)));
        assert_eq!((claimed.acked(), claimed.committed()), (100, 100));
    }
}

/// The claim knows of it, whoever writes.
#[actix::test]
async fn a_position_that_only_zookeeper_took_stands_for_the_next_life_of_the_committer() {
    let (mut member, brokers, other, claimed) = stored(None, None).await;
    brokers.fate(2, Fate::Held);
    let reset = member.resetting(&claimed, 100);
    let reset = actix::spawn(reset);
    while brokers.seen().len() < 2 {
        tokio::task::yield_now().await;
    }
    member.restart_committer(brokers.addresses()).await;
    assert_eq!(reset.await.unwrap(), Err(CommitError::NotRunning));
    assert_eq!((in_zookeeper(&other), claimed.acked()), (Some(100), -1));
    assert_eq!(member.reset(&claimed, 150).await, Ok(100));
    assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(100), Some(100)));
}

/// Its ZooKeeper write was not answered, and nothing was sent to Kafka.
#[actix::test]
async fn a_position_that_zookeeper_may_have_taken_stands_when_it_is_made_again() {
    let (member, brokers, other, claimed) = stored(None, None).await;
    let (ensemble, id) = (member.zk.ensemble.clone(), member.id());
    member.zk.before(1, move || ensemble.lose_reply(id));
    assert!(member.reset(&claimed, 100).await.is_err());
    assert_eq!(in_zookeeper(&other), Some(100));
    assert_eq!(member.reset(&claimed, 150).await, Ok(100));
    assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(100), Some(100)));
}

#[actix::test]
async fn what_the_owner_before_us_stored_late_counts_in_either_store() {
    for (zookeeper, kafka) in [(Some(70), None), (None, Some(70)), (Some(60), Some(70)), (Some(70), Some(60))]
    {
        let (member, brokers, other, claimed) = stored(None, None).await;
        zookeeper.into_iter().for_each(|offset| other.commit(offset));
        kafka.into_iter().for_each(|offset| brokers.store(0, offset));
        assert_eq!(member.reset(&claimed, 100).await, Ok(70));
        assert_eq!((claimed.acked(), brokers.stored(0)), (70, Some(70)));
        assert_eq!(member.commit_again().await, Ok(1));
        assert_eq!(in_zookeeper(&other), Some(70));
    }
}

/// Its transaction number tells in ZooKeeper; in Kafka nothing does.
#[actix::test]
async fn an_offset_of_an_earlier_topic_counts_in_neither_store() {
    for (kafka, offset, earlier) in [(None, 100, true), (Some(100), 100, true), (Some(7), 7, false)] {
        let (member, brokers, other) = storing("").await;
        other.commit(100);
        other.make_with("/brokers/topics/t", "");
        kafka.into_iter().for_each(|offset| brokers.store(0, offset));
        let position = member.read_number(0, Some(TopicNodes::Kafka)).await.unwrap();
        assert_eq!((position.offset, position.earlier_topic), (Some(offset), earlier));
        let expected = if earlier { Some(100) } else { None };
        assert_eq!(position.in_zookeeper, expected);
    }
}

/// The offset of the topic that is gone is larger, and is written over.
#[actix::test]
async fn a_commit_writes_over_the_offset_of_an_earlier_topic_in_zookeeper() {
    let (member, brokers, other) = storing("").await;
    other.commit(100);
    other.make_with("/brokers/topics/t", "");
    brokers.store(0, 7);
    let claimed = member.claim_by(Claiming { topics: Some(TopicNodes::Kafka), ..Claiming::default() }).await;
    acknowledge(&claimed, 8);
    assert_eq!(member.commit_again().await, Ok(1));
    assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(8), Some(8)));
}
