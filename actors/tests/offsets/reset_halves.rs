//! A position, or a commit, of which only a part was done before something else came between: the topic was made again,
//! an automatic commit was due, the claim was renewed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use kafka_troupe_actors::offset_committer::{CommitError, ToCommit, TopicNodes};
use kafka_troupe_actors::registry::OwnedPartition;
use kafka_troupe_actors::testkit::MemoryZooKeeper;

use crate::in_kafka::{acknowledge, alone, at_20, storing};
use crate::member::{Member, partition};
use crate::other::Other;

fn in_zookeeper(other: &Other) -> Option<i64> {
    other.stored().map(|(offset, _)| offset)
}

fn remaking(claimed: &Arc<OwnedPartition>) -> impl FnOnce() + Send + use<> {
    let claimed = claimed.clone();
    move || claimed.topic_remade()
}

async fn commit_explicitly(member: &Member, offset: i64) -> Result<usize, CommitError> {
    member.commit_what(ToCommit::Offsets(BTreeMap::from([(partition(), offset)]))).await.all()
}

/// Else a graceful release is enough to have the successor pass over records of the later topic.
#[actix::test]
async fn a_position_of_the_earlier_topic_is_not_stored_in_the_later_one() {
    let (member, brokers, _) = alone().await;
    let claimed = member.claim_number(0).await;
    brokers.begin();
    brokers.before(1, remaking(&claimed));
    assert!(matches!(member.reset(&claimed, 5000).await, Err(CommitError::Store { .. })));
    assert_eq!((brokers.seen(), brokers.stored(0)), (vec!["fetch 0".to_owned()], None));
    brokers.refuse("commit", 7);
    assert!(member.reset(&claimed, 0).await.is_err(), "the store fails");
    brokers.begin();
    assert_eq!((member.reset(&claimed, 0).await, brokers.stored(0)), (Ok(0), Some(0)));
    assert!(!claimed.is_of_earlier_topic());
}

/// Its storing failed in the one that is gone.
#[actix::test]
async fn a_position_that_was_made_while_the_topic_was_made_again_does_not_stand() {
    let (member, brokers, _) = alone().await;
    let claimed = member.claim_number(0).await;
    brokers.begin();
    brokers.before(1, remaking(&claimed));
    brokers.refuse("commit", 7);
    assert!(member.reset(&claimed, 5000).await.is_err());
    brokers.begin();
    assert_eq!((member.reset(&claimed, 0).await, brokers.stored(0)), (Ok(0), Some(0)));
}

/// ZooKeeper has it, and tells by its transaction that it is of the earlier topic.
#[actix::test]
async fn in_both_stores_a_topic_that_is_made_again_between_them_keeps_kafka_unwritten() {
    for seeks in [false, true] {
        let (member, brokers, other) = storing("").await;
        other.commit(20);
        brokers.store(0, 20);
        let claimed = member.claim_number(0).await;
        brokers.begin();
        member.zk.begin();
        member.zk.after(1, remaking(&claimed));
        let failed = match seeks {
            true => member.seek(&claimed, 5000).await.map(drop),
            false => member.reset(&claimed, 5000).await.map(drop),
        };
        assert!(matches!(failed, Err(CommitError::Store { .. })), "{failed:?}");
        assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(5000), Some(20)));
        assert_eq!(brokers.seen(), Vec::<String>::new());
    }
}

/// Somebody else wrote the node, so it is looked at again, and the topic is made again meanwhile.
#[actix::test]
async fn nothing_of_the_earlier_topic_is_tried_again_in_zookeeper() {
    for resets in [true, false] {
        let ensemble = MemoryZooKeeper::default();
        let other = Other::connect(&ensemble);
        other.commit(20);
        let member = Member::join(&ensemble, "a", true).await;
        let claimed = member.claim().await;
        let another = other.clone();
        member.zk.before(1, move || another.commit(21));
        member.zk.after(3, remaking(&claimed));
        let failed = match resets {
            true => member.reset(&claimed, 5000).await.map(drop),
            false => member.commit(&claimed, 30).await.map(drop),
        };
        assert!(matches!(failed, Err(CommitError::Store { .. })), "{failed:?}");
        assert_eq!(in_zookeeper(&other), Some(21));
    }
}

/// What Kafka says is of the topic whose number was read before, or of a later one, of which we are told.
#[actix::test]
async fn a_topic_that_is_made_again_after_kafka_was_read_is_not_the_one_that_it_was_read_for() {
    for more in ["dual.commit.enabled=false", ""] {
        let (member, brokers, other) = storing(more).await;
        other.make_with("/brokers/topics/t", "");
        brokers.store(0, 700);
        brokers.begin();
        let (ensemble, asked) = (member.zk.ensemble.clone(), brokers.clone());
        let since = ensemble.node("/brokers/topics/t").expect("it stands").stat.czxid;
        member.zk.before_topic(async move {
            let is_read = async {
                while !asked.seen().iter().any(|step| step.starts_with("fetch")) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            // as it should be, it is not read before we go on
            if tokio::time::timeout(Duration::from_millis(300), is_read).await.is_ok() {
                ensemble.remove("/brokers/topics/t");
                ensemble.put("/brokers/topics/t", b"");
            }
        });
        let stored = member.read_stored(TopicNodes::Kafka).await;
        assert_eq!((stored.position.offset, stored.since), (Some(700), Some(since)));
    }
}

/// Rule 8: `largest` is resolved once, also when what is acknowledged is written between.
#[actix::test]
async fn a_position_whose_storing_failed_stands_after_a_commit_that_moved_nothing() {
    let (member, brokers, claimed) = at_20().await;
    brokers.refuse("commit", 7);
    assert!(member.reset(&claimed, 100).await.is_err());
    brokers.begin();
    // not refreshed either: it may stand, and would be taken back
    assert_eq!((member.commit_again().await, brokers.stored(0)), (Ok(0), Some(20)));
    assert_eq!((member.reset(&claimed, 150).await, brokers.stored(0)), (Ok(100), Some(100)));
}

/// Its answer was lost, and the commit that came between has found it.
#[actix::test]
async fn a_position_that_a_commit_has_found_stored_stands() {
    let ensemble = MemoryZooKeeper::default();
    let other = Other::connect(&ensemble);
    other.commit(20);
    let member = Member::join(&ensemble, "a", true).await;
    let claimed = member.claim().await;
    let (losing, id) = (ensemble.clone(), member.id());
    member.zk.before(1, move || losing.lose_reply(id));
    assert!(member.reset(&claimed, 100).await.is_err());
    assert_eq!((member.commit(&claimed, 25).await, in_zookeeper(&other)), (Ok(1), Some(100)));
    assert_eq!((member.reset(&claimed, 150).await, in_zookeeper(&other)), (Ok(100), Some(100)));
}

/// A log that was truncated once more before that was stored.
#[actix::test]
async fn a_lower_position_that_is_found_since_counts_more_than_one_whose_storing_failed() {
    let (member, brokers, other) = storing("").await;
    other.commit(500);
    brokers.store(0, 500);
    let claimed = member.claim_number(0).await;
    brokers.begin();
    brokers.refuse("commit", 7);
    assert!(member.reset(&claimed, 400).await.is_err());
    assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(400), Some(500)));
    brokers.begin();
    assert_eq!(member.reset(&claimed, 300).await, Ok(300));
    assert_eq!((in_zookeeper(&other), brokers.stored(0), claimed.acked()), (Some(300), Some(300), 300));
}

/// The same, where its answer was lost.
#[actix::test]
async fn a_lower_position_that_is_found_since_is_written_over_one_that_stands() {
    let ensemble = MemoryZooKeeper::default();
    let other = Other::connect(&ensemble);
    other.commit(500);
    let member = Member::join(&ensemble, "a", true).await;
    let claimed = member.claim().await;
    let (losing, id) = (ensemble.clone(), member.id());
    member.zk.before(1, move || losing.lose_reply(id));
    assert!(member.reset(&claimed, 400).await.is_err());
    assert_eq!(in_zookeeper(&other), Some(400), "which we do not know");
    assert_eq!((member.reset(&claimed, 300).await, in_zookeeper(&other)), (Ok(300), Some(300)));
}

/// The claim is made anew (a stream has panicked, a seek has failed) before the commit of the one before can be sent.
#[actix::test]
async fn an_explicit_commit_that_was_asked_for_before_its_claim_was_renewed_is_not_taken_back() {
    let (member, brokers, claimed) = at_20().await;
    claimed.advance_delivered(110);
    claimed.ack(100);
    brokers.refuse("fetch", 16);
    assert!(member.read_number(1, None).await.is_err(), "the coordinator is to be looked up");
    brokers.begin();
    brokers.refuse("find", 15);
    let renewed = async {
        while brokers.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        member.renew(&claimed);
        brokers.begin();
    };
    let (committed, ()) = join(commit_explicitly(&member, 110), renewed).await;
    assert_eq!((committed, brokers.seen()), (Ok(1), vec!["find".to_owned(), "commit 0=110".to_owned()]));
    assert_eq!((member.commit_again().await, brokers.stored(0)), (Ok(1), Some(110)));
}

#[actix::test]
async fn a_seek_that_failed_and_is_taken_back_leaves_an_explicit_commit() {
    let ensemble = MemoryZooKeeper::default();
    let other = Other::connect(&ensemble);
    other.commit(20);
    let member = Member::join(&ensemble, "a", true).await;
    let claimed = member.claim().await;
    claimed.advance_delivered(30);
    claimed.ack(25);
    assert_eq!((commit_explicitly(&member, 30).await, in_zookeeper(&other)), (Ok(1), Some(30)));
    member.zk.begin();
    let (losing, cut, id) = (ensemble.clone(), ensemble.clone(), member.id());
    member.zk.before(1, move || losing.lose_reply(id));
    member.zk.before(2, move || cut.suspend(id));
    assert!(member.seek(&claimed, 7).await.is_err());
    assert_eq!(in_zookeeper(&other), Some(7), "which we do not know");
    ensemble.reconnect(id);
    member.renew(&claimed);
    assert_eq!((member.commit_again().await, in_zookeeper(&other)), (Ok(1), Some(30)));
}

/// Each caller was told that the next commit stores where the partition is.
#[actix::test]
async fn of_two_seeks_that_failed_the_first_is_taken_back_as_well() {
    let ensemble = MemoryZooKeeper::default();
    let other = Other::connect(&ensemble);
    other.commit(20);
    let member = Member::join(&ensemble, "a", true).await;
    let claimed = member.claim().await;
    let (losing, id) = (ensemble.clone(), member.id());
    let suspending = || {
        let ensemble = ensemble.clone();
        move || ensemble.suspend(id)
    };
    member.zk.before(1, move || losing.lose_reply(id));
    member.zk.before(2, suspending());
    assert!(member.seek(&claimed, 500).await.is_err());
    assert_eq!(in_zookeeper(&other), Some(500), "which we do not know");
    ensemble.reconnect(id);
    let claimed = member.renew(&claimed);
    member.zk.begin();
    member.zk.before(1, suspending());
    assert!(member.seek(&claimed, 300).await.is_err());
    assert_eq!(in_zookeeper(&other), Some(500), "nothing was written");
    ensemble.reconnect(id);
    let claimed = member.renew(&claimed);
    acknowledge(&claimed, 25);
    assert_eq!((member.commit_again().await, in_zookeeper(&other)), (Ok(1), Some(25)));
}

/// Neither written nor said to be.
#[actix::test]
async fn an_explicit_commit_in_a_topic_that_was_made_again_is_refused() {
    for more in ["dual.commit.enabled=false", ""] {
        let (member, brokers, other) = storing(more).await;
        other.commit(20);
        brokers.store(0, 20);
        let claimed = member.claim_number(0).await;
        acknowledge(&claimed, 30);
        claimed.topic_remade();
        let refused = commit_explicitly(&member, 30).await.expect_err("nothing is stored").to_string();
        assert!(refused.contains("made again"), "{refused}");
        assert_eq!((in_zookeeper(&other), brokers.stored(0)), (Some(20), Some(20)));
    }
}
