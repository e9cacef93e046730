//! Offsets in Kafka alone: what the channel to the coordinator does about each answer, and about none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use kafka_troupe_actors::fetcher_manager::SetBrokers;
use kafka_troupe_actors::offset_committer::{
    ChannelSettings, CommitError, CommitNow, CommitOutcome, Describe, ReadPosition, ToCommit, TopicNodes,
};
use kafka_troupe_actors::registry::OwnedPartition;
use kafka_troupe_actors::testkit::MemoryZooKeeper;
use kafka_troupe_proto::config::ConsumerConfig;
use tokio::time::Instant;

use crate::coordinator::{Brokers, Fate};
use crate::member::{Claiming, Member, partition};
use crate::other::Other;

const BACKOFF: Duration = Duration::from_millis(20);

/// As properties say it; `more` may say more.
pub fn channel(more: &str) -> ChannelSettings {
    let text = format!(
        "zookeeper.connect=memory\ngroup.id=g\noffsets.storage=kafka\noffsets.commit.max.retries=3\n\
         offsets.channel.backoff.ms=20\noffsets.channel.socket.timeout.ms=300\n{more}"
    );
    let parsed = ConsumerConfig::from_properties(&text).expect("good properties");
    ChannelSettings::of(&parsed.config).expect("kafka is asked for")
}

/// A member, its brokers and its ensemble.
pub async fn storing(more: &str) -> (Member, Brokers, Other) {
    let ensemble = MemoryZooKeeper::default();
    let other = Other::connect(&ensemble);
    let brokers = Brokers::start().await;
    let member = Member::join_storing(&ensemble, "a", true, Some(channel(more))).await;
    member.committer.do_send(SetBrokers(brokers.addresses()));
    (member, brokers, other)
}

pub async fn alone() -> (Member, Brokers, Other) {
    storing("dual.commit.enabled=false").await
}

pub fn acknowledge(claimed: &OwnedPartition, offset: i64) {
    claimed.advance_delivered(offset);
    claimed.ack(offset);
}

/// Claimed, with 20 committed; what is asked is counted from now.
pub async fn at_20() -> (Member, Brokers, Arc<OwnedPartition>) {
    let (member, brokers, other) = alone().await;
    brokers.store(0, 20);
    let claimed = member.claim_number(0).await;
    assert_eq!((claimed.acked(), claimed.committed(), other.stored()), (20, 20, None));
    brokers.begin();
    (member, brokers, claimed)
}

pub fn why(outcome: Result<usize, CommitError>) -> String {
    outcome.expect_err("it fails").to_string()
}

#[actix::test]
async fn a_thousand_partitions_that_start_at_once_are_few_requests() {
    let (member, brokers, _) = alone().await;
    (0..1000).for_each(|number| brokers.store(number, number.into()));
    let reads = (0..1000).map(|number| member.read_number(number, None));
    let positions = join_all(reads).await;
    assert!((0..).zip(positions).all(|(number, position)| position.unwrap().offset == Some(number)));
    assert!(brokers.seen().len() <= 3, "{}", brokers.seen().len());

    let claims: Vec<_> = join_all((0..1000).map(|number| member.claim_number(number))).await;
    brokers.begin();
    claims.iter().for_each(|claimed| acknowledge(claimed, 2000));
    assert_eq!((member.commit_again().await, brokers.seen().len()), (Ok(1000), 1));
}

#[actix::test]
async fn an_unchanged_offset_is_written_again_so_that_brokers_do_not_drop_it() {
    let (member, brokers, claimed) = at_20().await;
    assert_eq!(member.commit_again().await, Ok(1));
    assert_eq!(member.commit(&claimed, 21).await, Ok(1));
    assert_eq!(brokers.seen(), ["commit 0=20", "commit 0=21"]);
    let status = member.committer.send(Describe).await.unwrap();
    assert_eq!((status.commits, status.to_kafka, status.to_zookeeper), (2, 2, 0));
    assert_eq!(status.coordinator, Some(brokers.address(0)));
}

#[actix::test]
async fn nothing_or_a_negative_offset_is_none_and_is_not_committed() {
    let (member, brokers, _) = alone().await;
    brokers.store(1, -1);
    for number in [0, 1] {
        let claimed = member.claim_number(number).await;
        assert_eq!((claimed.acked(), claimed.committed()), (-1, -1));
    }
    assert_eq!(member.commit_again().await, Ok(0));
    assert_eq!(brokers.seen(), ["find", "fetch 0", "fetch 1"]);
}

#[actix::test]
async fn a_coordinator_that_loads_is_asked_again_and_one_that_is_none_looked_up() {
    for (code, again) in [(14, &["fetch 0"][..]), (15, &["find", "fetch 0"]), (16, &["find", "fetch 0"])] {
        for whole in [false, true] {
            let (member, brokers, _) = alone().await;
            brokers.store(0, 20);
            brokers.fate(2, if whole { Fate::RefusedWhole(code) } else { Fate::Refused(code) });
            let began = Instant::now();
            let position = member.read_number(0, None).await.unwrap();
            assert_eq!(position.offset, Some(20), "never taken for no offset");
            assert_eq!(brokers.seen(), [&["find", "fetch 0"], again].concat());
            assert!(began.elapsed() >= BACKOFF);
        }
    }
}

/// B23 a: the old consumer takes these for "no offset", and goes by `auto.offset.reset`.
#[actix::test]
async fn b23_an_offset_that_cannot_be_read_is_an_error_and_not_no_offset() {
    for (code, tries, says) in
        [(3, 4, "error 3"), (29, 1, "allow this client READ on the topic"), (30, 1, "DESCRIBE on the group")]
    {
        for whole in [false, true] {
            let (member, brokers, _) = alone().await;
            brokers.store(0, 20);
            for step in 2..10 {
                brokers.fate(step, if whole { Fate::RefusedWhole(code) } else { Fate::Refused(code) });
            }
            let error = member.read_number(0, None).await.expect_err("it cannot be read").to_string();
            assert_eq!(brokers.seen().len(), 1 + tries, "{error}");
            for part in [says, "t-0", "group g", &brokers.address(0)] {
                assert!(error.contains(part), "{part} in {error}");
            }
        }
    }
}

#[actix::test]
async fn a_partition_that_the_answer_leaves_out_is_asked_for_again() {
    let (member, brokers, _) = alone().await;
    (0..2).for_each(|number| brokers.store(number, 20));
    brokers.fate(2, Fate::LeftOut(1));
    let (zero, one) = join(member.read_number(0, None), member.read_number(1, None)).await;
    assert_eq!([zero.unwrap().offset, one.unwrap().offset], [Some(20); 2]);
    assert_eq!(brokers.seen(), ["find", "fetch 0 1", "fetch 1"]);
}

#[actix::test]
async fn a_coordinator_that_moved_is_followed() {
    let (member, brokers, claimed) = at_20().await;
    brokers.move_to(1);
    assert_eq!(member.commit(&claimed, 30).await, Ok(1));
    assert_eq!(brokers.seen(), ["commit 0=30", "find", "commit 0=30"]);
    let status = member.committer.send(Describe).await.unwrap();
    assert_eq!(status.coordinator, Some(brokers.address(1)));
}

#[actix::test]
async fn a_broker_that_is_silent_is_not_the_only_one_asked_for_the_coordinator() {
    let (member, brokers, _) = alone().await;
    brokers.store(0, 20);
    brokers.move_to(1);
    brokers.deafen(0);
    assert_eq!(member.read_number(0, None).await.unwrap().offset, Some(20));
}

#[actix::test]
async fn a_commit_that_fails_is_tried_so_often_and_then_reported() {
    let (member, brokers, claimed) = at_20().await;
    brokers.refuse("commit", 7);
    let error = why(member.commit(&claimed, 30).await);
    assert_eq!(brokers.seen(), ["commit 0=30"; 4]);
    assert!(error.contains("tried 4 times") && error.contains(&brokers.address(0)), "{error}");
    let status = member.committer.send(Describe).await.unwrap();
    assert_eq!((status.failures, status.last_error), (1, Some(error)));
    brokers.begin();
    assert_eq!((member.commit_again().await, brokers.stored(0)), (Ok(1), Some(30)));
}

/// For good, and for the time being.
#[actix::test]
async fn each_partition_has_its_own_outcome_and_one_that_is_refused_keeps_no_other_back() {
    let again = ["commit 0=30 1=30", "commit 0=30", "commit 0=30", "commit 0=30"];
    for (code, seen) in [(29, &again[..1]), (7, &again)] {
        let (member, brokers, _) = alone().await;
        [0, 1].into_iter().for_each(|number| brokers.store(number, 20));
        let claims = [member.claim_number(0).await, member.claim_number(1).await];
        brokers.begin();
        claims.iter().for_each(|claimed| acknowledge(claimed, 30));
        (1..=4).for_each(|step| brokers.fate(step, Fate::RefusedOne(0, code)));
        let outcome = member.commit_what(ToCommit::Acknowledged).await;
        assert!(matches!(outcome.of("t", 0), Some(Err(CommitError::Store { .. }))), "{outcome:?}");
        assert!(matches!(outcome.of("t", 1), Some(Ok(it)) if it.offset == 30 && it.written), "{outcome:?}");
        assert_eq!(brokers.seen(), seen, "after {code}");
        assert_eq!([0, 1].map(|number| brokers.stored(number)), [Some(20), Some(30)]);
        assert_eq!(claims.each_ref().map(|claimed| claimed.committed()), [20, 30]);
        brokers.begin();
        assert!(member.commit_again().await.is_ok());
        assert_eq!([0, 1].map(|number| brokers.stored(number)), [Some(30); 2]);
    }
}

#[actix::test]
async fn what_does_not_get_better_is_reported_at_once() {
    let active = "consumers of Kafka's own group protocol";
    for (code, says) in [(22, active), (25, active), (27, active), (30, "on the group"), (29, "on the topic")]
    {
        let (member, brokers, claimed) = at_20().await;
        brokers.refuse("commit", code);
        let error = why(member.commit(&claimed, 30).await);
        assert!(error.contains(says), "{error}");
        assert_eq!(brokers.seen().len(), 1);
    }
}

#[actix::test]
async fn an_acl_that_forbids_to_look_up_the_coordinator_is_named_at_once() {
    let (member, brokers, _) = alone().await;
    brokers.refuse("find", 30);
    let error = member.read_number(0, None).await.expect_err("it is forbidden").to_string();
    assert!(error.contains("on the group") && error.contains("group g"), "{error}");
    assert_eq!(brokers.seen(), ["find"]);
}

/// It counts for nothing: a broker closes what was idle, and the last flush must not be lost to that.
#[actix::test]
async fn a_commit_whose_connection_is_closed_is_sent_again_on_another() {
    for fate in [Fate::Lost, Fate::Closed] {
        let (member, brokers, _) = storing("dual.commit.enabled=false\noffsets.commit.max.retries=0").await;
        brokers.store(0, 20);
        let claimed = member.claim_number(0).await;
        brokers.begin();
        brokers.fate(1, fate);
        assert_eq!((member.commit(&claimed, 30).await, brokers.stored(0)), (Ok(1), Some(30)));
        assert_eq!(brokers.seen(), ["commit 0=30", "find", "commit 0=30"]);
    }
}

#[actix::test]
async fn a_commit_that_is_not_answered_in_time_is_sent_again_and_one_that_is_done_late_is_put_right() {
    let (member, brokers, claimed) = at_20().await;
    brokers.fate(1, Fate::Held);
    assert_eq!((member.commit(&claimed, 30).await, brokers.stored(0)), (Ok(1), Some(30)));
    assert_eq!(brokers.seen(), ["commit 0=30", "find", "commit 0=30"]);
    assert_eq!((member.commit(&claimed, 40).await, brokers.stored(0)), (Ok(1), Some(40)));
    brokers.carry_out_late();
    assert_eq!(brokers.stored(0), Some(30), "nothing fences it");
    assert_eq!((member.commit_again().await, brokers.stored(0)), (Ok(1), Some(40)));
}

async fn commit_offset(member: &Member, offset: i64) -> CommitOutcome {
    member.commit_what(ToCommit::Offsets(BTreeMap::from([(partition(), offset)]))).await
}

/// 30 was committed explicitly, past what is acknowledged.
#[actix::test]
async fn an_automatic_commit_takes_no_explicit_one_back_not_even_one_whose_answers_were_lost() {
    let (member, brokers, claimed) = at_20().await;
    claimed.advance_delivered(40);
    assert_eq!(commit_offset(&member, 30).await.all(), Ok(1));
    assert_eq!((member.commit(&claimed, 25).await, brokers.stored(0)), (Ok(1), Some(30)));
    brokers.begin();
    (1..20).for_each(|step| brokers.fate(step, Fate::Lost));
    why(commit_offset(&member, 35).await.all());
    brokers.begin();
    assert_eq!(
        (member.commit_again().await, brokers.seen()[1..].to_vec()),
        (Ok(1), vec!["commit 0=35".to_owned()])
    );
    assert!(matches!(
        commit_offset(&member, 32).await.of("t", 0),
        Some(Err(CommitError::Backwards { stored: 35, offset: 32, .. }))
    ));
    assert_eq!((member.commit(&claimed, 40).await, brokers.stored(0)), (Ok(1), Some(40)));
}

#[actix::test]
async fn a_commit_without_time_before_the_end_of_the_lease_is_not_sent() {
    let (member, brokers, other) = alone().await;
    for time in [Duration::ZERO, Duration::from_millis(50)] {
        let claimed =
            member.claim_by(Claiming { lease: Some(member.lease_of(time)), ..Claiming::default() }).await;
        brokers.begin();
        acknowledge_new(&claimed, 30);
        assert_eq!(member.commit_again().await, Err(CommitError::Fenced(partition())));
        assert_eq!(brokers.seen(), [""; 0]);
        other.disown();
    }
}

fn acknowledge_new(claimed: &OwnedPartition, offset: i64) {
    claimed.reset(0);
    acknowledge(claimed, offset);
}

/// Afterwards the partition may be another's: whoever waits for the answer goes on then, not later.
#[actix::test]
async fn the_wait_for_an_answer_ends_with_the_lease_and_nothing_is_sent_after_it() {
    let (member, brokers, _) =
        storing("dual.commit.enabled=false\noffsets.channel.socket.timeout.ms=30000").await;
    member.read_number(0, None).await.unwrap();
    let lease = Duration::from_millis(500);
    let began = Instant::now();
    let claimed =
        member.claim_by(Claiming { lease: Some(member.lease_of(lease)), ..Claiming::default() }).await;
    brokers.begin();
    acknowledge_new(&claimed, 30);
    brokers.fate(1, Fate::Held);
    let outcome = member.commit_again().await;
    assert_eq!(outcome, Err(CommitError::Fenced(partition())));
    assert!(began.elapsed() >= lease && began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(brokers.seen(), ["commit 0=30"]);
}

#[actix::test]
async fn a_commit_that_is_tried_again_looks_again_whether_it_may_be() {
    for (purpose, happens) in [
        ("commit", "remade"),
        ("commit", "lost"),
        ("reset", "remade"),
        ("reset", "lost"),
        ("reset", "given up"),
        ("seek", "remade"),
        ("seek", "lost"),
    ] {
        let (member, brokers, claimed) = at_20().await;
        brokers.fate(1, Fate::Refused(14));
        let it = claimed.clone();
        match happens {
            "remade" => brokers.before(1, move || it.topic_remade()),
            "lost" => brokers.before(1, member.losing(&claimed)),
            _ => brokers.before(1, move || it.close()),
        }
        let outcome = match purpose {
            "commit" => member.commit(&claimed, 30).await.map(drop),
            "reset" => member.reset(&claimed, 30).await.map(drop),
            _ => member.seek(&claimed, 30).await.map(drop),
        };
        let error = outcome.expect_err(purpose);
        assert!(error.to_string().contains("meanwhile"), "{error}");
        assert_eq!((brokers.seen(), brokers.stored(0)), (vec!["commit 0=30".to_owned()], Some(20)));
    }
}

#[actix::test]
async fn a_committer_that_panics_in_the_middle_goes_on_once_it_knows_the_brokers() {
    let (mut member, brokers, claimed) = at_20().await;
    brokers.fate(1, Fate::Held);
    acknowledge(&claimed, 30);
    let pending = member.committer.send(CommitNow { what: ToCommit::Acknowledged, why: "test" });
    let pending = actix::spawn(pending);
    while brokers.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    member.restart_committer(brokers.addresses()).await;
    assert_eq!(pending.await.unwrap().unwrap().all(), Err(CommitError::NotRunning));
    assert_eq!((member.commit(&claimed, 31).await, brokers.stored(0)), (Ok(1), Some(31)));
}

#[actix::test]
async fn before_the_brokers_are_known_it_is_waited_for_them() {
    let ensemble = MemoryZooKeeper::default();
    Other::connect(&ensemble);
    let brokers = Brokers::start().await;
    let member = Member::join_storing(&ensemble, "a", true, Some(channel(""))).await;
    brokers.store(0, 20);
    let tell = async {
        tokio::task::yield_now().await;
        member.committer.do_send(SetBrokers(brokers.addresses()));
    };
    let (position, ()) = join(member.read_number(0, None), tell).await;
    assert_eq!(position.unwrap().offset, Some(20));
}

/// Where no offset node tells, the topic's own still tells since when it stands.
#[actix::test]
async fn since_when_the_topic_stands_is_read_without_offset_nodes() {
    let (member, _, other) = alone().await;
    other.make_with("/brokers/topics/t", "");
    let read = ReadPosition { partition: partition(), topics: Some(TopicNodes::Kafka) };
    let stored = member.committer.send(read).await.unwrap().unwrap();
    assert!(stored.since.is_some_and(|since| since > 0) && stored.position.offset.is_none());
}
