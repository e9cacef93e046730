//! The gate and the positions of one claim.

use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{Generation, SessionNumber};
use kafka_troupe_proto::zk::ConsumerThreadId;

use super::{Claim, Gate, Joint, OwnedPartition, Position, TopicRegistry};
use crate::lease::BootInstant;
use crate::lease::{Lease, SessionEpoch};
use crate::registry::NO_EPOCH;
use crate::stream_queue::Credit;

const SESSION: SessionEpoch = SessionEpoch(1);

fn claim(offset: Option<i64>) -> (Arc<OwnedPartition>, Arc<Lease>) {
    let lease = Arc::new(Lease::new());
    lease.extend_to(SESSION, BootInstant::now() + Duration::from_secs(60));
    let claim = Claim {
        topic_partition: TopicPartition::new("t", 0),
        generation: Generation(1),
        session: SessionNumber(7),
        epoch: SESSION,
        thread: ConsumerThreadId::new("g_a", 0),
        appeared: false,
        position: Position { offset, in_zookeeper: offset, ..Position::NONE },
    };
    let credit = Arc::new(Credit::new(2, 1 << 20));
    (Arc::new(OwnedPartition::new(claim, credit, Arc::clone(&lease))), lease)
}

#[test]
fn a_record_is_handed_over_only_under_the_lease_of_its_own_session() {
    let (partition, lease) = claim(Some(0));
    assert_eq!(partition.enter(partition.round()), Gate::Open);
    partition.leave();
    lease.close(SESSION);
    assert_eq!(partition.enter(partition.round()), Gate::Fenced);
    // the next session's lease does not cover a claim of the last one
    lease.extend_to(SessionEpoch(2), BootInstant::now() + Duration::from_secs(60));
    assert_eq!(partition.enter(partition.round()), Gate::Fenced);
    partition.close();
    assert_eq!(partition.enter(partition.round()), Gate::Closed);
}

#[actix::test]
async fn draining_waits_for_the_record_in_hand_and_is_bounded() {
    let (partition, _lease) = claim(Some(0));
    assert!(partition.drained(Duration::ZERO).await, "nothing is in hand");
    assert_eq!(partition.enter(partition.round()), Gate::Open);
    partition.close();
    assert!(!partition.drained(Duration::from_millis(5)).await, "the handler is not done");
    let waiting = {
        let partition = Arc::clone(&partition);
        actix::spawn(async move { partition.drained(Duration::from_secs(60)).await })
    };
    tokio::task::yield_now().await;
    partition.leave();
    assert!(waiting.await.unwrap());
}

#[test]
fn chunks_overlap_repeat_and_leave_gaps() {
    let (partition, _lease) = claim(Some(10));
    assert_eq!(partition.take_in(10, 20), Joint::Next);
    // a fetcher that began anew at 10, before the chunk above was taken in
    assert_eq!(partition.take_in(10, 15), Joint::Repeated);
    assert_eq!(partition.take_in(15, 25), Joint::Next);
    assert_eq!(partition.fetched(), 25);
    // rewound while a chunk of the old position was on its way
    partition.advance_delivered(12);
    partition.ack(12);
    assert_eq!(partition.rewind(), 12);
    assert_eq!(partition.take_in(25, 30), Joint::Gap);
    assert_eq!(partition.fetched(), 12);
    assert_eq!(partition.take_in(12, 30), Joint::Next);
}

#[test]
fn positions_never_go_back_but_for_a_reset() {
    let (partition, _lease) = claim(Some(10));
    partition.advance_delivered(20);
    partition.ack(20);
    partition.ack(15);
    partition.advance_delivered(5);
    assert_eq!((partition.delivered(), partition.acked()), (20, 20));
    partition.reset(3);
    assert_eq!((partition.fetched(), partition.delivered(), partition.acked()), (3, 3, 3));
}

/// Whoever has read to the end of what was fetched is told nothing else.
#[test]
fn what_was_taken_in_before_a_reset_is_handed_over_no_more() {
    let (partition, _lease) = claim(Some(10));
    let before = partition.round();
    partition.reset(3);
    assert_eq!((partition.enter(before), partition.enter(partition.round())), (Gate::Halted, Gate::Open));
    assert!(!partition.is_halted() && !partition.end_round(), "it is in hand");
    partition.leave();
    assert!(partition.end_round());
    partition.close();
    partition.reset(0);
    assert_eq!(partition.enter(partition.round()), Gate::Closed);
}

#[test]
fn lag_is_known_after_the_first_fetch_and_never_negative() {
    let (partition, _lease) = claim(None);
    assert_eq!(partition.lag(), None);
    partition.set_high_watermark(5);
    assert_eq!(partition.lag(), None, "no position yet");
    partition.reset(9);
    assert_eq!(partition.lag(), Some(0));
    partition.set_high_watermark(12);
    assert_eq!(partition.lag(), Some(3));
}

#[test]
fn a_renewed_claim_begins_at_the_acknowledged_position() {
    let (partition, _lease) = claim(Some(10));
    partition.set_in_zookeeper(10, 4);
    partition.take_in(10, 40);
    partition.advance_delivered(15);
    partition.ack(14);
    partition.close();
    let renewed = partition.renewed();
    assert_eq!(
        (renewed.fetched(), renewed.acked(), renewed.committed(), renewed.offset_version()),
        (14, 14, 10, 4)
    );
    assert_eq!(
        (partition.enter(partition.round()), renewed.enter(renewed.round())),
        (Gate::Closed, Gate::Open)
    );
}

#[test]
fn a_retired_claim_can_be_committed_until_its_last_flush_and_a_lost_one_not_at_all() {
    let (registry, tp) = (TopicRegistry::default(), TopicPartition::new("t", 0));
    let is_committable = |registry: &TopicRegistry| !registry.committable().is_empty();
    for lost in [false, true] {
        registry.insert(claim(Some(0)).0);
        let retired = registry.retire(&tp).unwrap();
        assert!(registry.all().is_empty() && is_committable(&registry));
        if lost {
            registry.forget(&tp);
        }
        assert_eq!(is_committable(&registry), !lost);
        assert_eq!(registry.settle(vec![retired]).len(), usize::from(!lost));
        assert!(!is_committable(&registry));
    }
    // the stop of an earlier claim does not touch the next one
    registry.insert(claim(Some(0)).0);
    let earlier = registry.retire(&tp).unwrap();
    registry.forget(&tp);
    registry.insert(claim(Some(0)).0);
    registry.retire(&tp);
    assert!(registry.settle(vec![earlier]).is_empty() && is_committable(&registry));
}

/// It waits for its turn, or is tried again.
#[test]
fn a_claim_that_is_being_flushed_is_told_that_its_topic_was_made_again() {
    let (registry, tp) = (TopicRegistry::default(), TopicPartition::new("t", 0));
    registry.insert(claim(Some(0)).0);
    let flushed = registry.settle(vec![registry.retire(&tp).unwrap()]);
    assert!(registry.may_be_written(&tp) && flushed[0].may_commit());
    assert_eq!(registry.unflushed().len(), 1);
    registry.topic_remade(&tp);
    assert!(!flushed[0].may_commit());
    drop(flushed);
    assert!(!registry.may_be_written(&tp) && registry.unflushed().is_empty());
}

/// A stream's restart renews its claims, at whatever moment.
#[test]
fn a_renewed_claim_needs_a_new_position_exactly_if_the_one_before_did() {
    let (partition, _lease) = claim(Some(10));
    partition.set_last_epoch(4);
    assert!(!partition.renewed().is_of_earlier_topic());
    partition.topic_remade();
    let renewed = partition.renewed();
    assert!(renewed.is_of_earlier_topic() && renewed.has_appeared());
    assert_eq!((renewed.acked(), renewed.last_epoch()), (10, NO_EPOCH), "the new topic counts from 0");
    renewed.reset(0);
    assert_eq!((renewed.is_of_earlier_topic(), renewed.has_appeared()), (false, true));
    assert!(!renewed.renewed().is_of_earlier_topic());
}

#[test]
fn what_a_partition_counts_goes_on_over_its_claims() {
    let registry = TopicRegistry::default();
    let (first, _) = claim(Some(0));
    registry.insert(Arc::clone(&first));
    first.count(10);
    first.count(20);
    registry.retire(&first.topic_partition);
    let (second, _) = claim(Some(2));
    registry.insert(Arc::clone(&second));
    assert_eq!(registry.counted_of(&second), (2, 30));
    second.count(5);
    let renewed = Arc::new(second.renewed());
    assert!(registry.renew(&second, Arc::clone(&renewed)));
    assert_eq!((registry.counted_of(&renewed), registry.counted()), ((3, 35), (3, 35)));
}

#[test]
fn a_partition_knows_since_when_it_cannot_be_fetched_until_it_can() {
    let (partition, _) = claim(Some(0));
    assert_eq!(partition.unfetched(), None);
    partition.set_unfetched("refused");
    let (since, _) = partition.unfetched().unwrap();
    partition.set_unfetched("no answer");
    assert_eq!(partition.unfetched(), Some((since, "no answer".to_owned())));
    partition.set_fetched_well();
    assert_eq!(partition.unfetched(), None);
}
