//! Rule 8: a position made by `auto.offset.reset` is stored before its first record can be fetched, and made once.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::prelude::*;
use futures_util::future::join_all;
use kafka_troupe_actors::broker_connection::ConnectOptions;
use kafka_troupe_actors::fetcher_manager::{
    Assigned, BrokerAddress, Describe, FetchSettings, FetcherManager, SetBrokers, StartFetching,
};
use kafka_troupe_actors::offset_committer::CommitError;
use kafka_troupe_actors::registry::{NO_OFFSET, OwnedPartition};
use kafka_troupe_actors::stream_queue::FetchedChunk;
use kafka_troupe_proto::config::OffsetReset;

use crate::fake_broker::{Seen, start_watched};
use crate::member::{Member, PATIENCE, guard};
use crate::other::Other;
use kafka_troupe_actors::testkit::{MemoryZooKeeper, fetch_settings};

/// Gets nothing.
struct Stream;

impl Actor for Stream {
    type Context = Context<Self>;
}

impl Handler<FetchedChunk> for Stream {
    type Result = ();

    fn handle(&mut self, _: FetchedChunk, _: &mut Context<Self>) {}
}

/// A fetch: from which offset, and what was stored when the broker was asked.
type Fetched = (i64, Option<i64>);

/// A log that begins at 3, and a look at the offset node whenever it is fetched.
#[derive(Clone)]
struct Log {
    end: Arc<AtomicI64>,
    /// How often it was asked for its end.
    asked: Arc<AtomicI64>,
    fetches: Arc<Mutex<Vec<Fetched>>>,
    /// How many fetchers have ended.
    hung_up: Arc<AtomicI64>,
    port: u16,
}

impl Log {
    fn start(end: i64, other: &Other) -> Self {
        let end = Arc::new(AtomicI64::new(end));
        let (asked, hung_up) = (Arc::<AtomicI64>::default(), Arc::<AtomicI64>::default());
        let fetches = Arc::<Mutex<Vec<_>>>::default();
        let (log_end, count) = (end.clone(), asked.clone());
        let ends = move |timestamp| {
            if timestamp != -1 {
                return 3;
            }
            count.fetch_add(1, Ordering::SeqCst);
            log_end.load(Ordering::SeqCst)
        };
        let (seen, ends_seen, other) = (fetches.clone(), hung_up.clone(), other.clone());
        let watch = move |it| match it {
            Seen::Fetch(_, offset) => {
                seen.lock().unwrap().push((offset, other.stored().map(|(offset, _)| offset)));
            }
            Seen::HungUp => drop(ends_seen.fetch_add(1, Ordering::SeqCst)),
        };
        let port = start_watched("t", Arc::new(ends), Arc::new(watch)).unwrap();
        Self { end, asked, fetches, hung_up, port }
    }

    fn grow_to(&self, end: i64) {
        self.end.store(end, Ordering::SeqCst);
    }

    /// The first fetch since the last call.
    async fn first_fetch(&self) -> Fetched {
        self.fetches.lock().unwrap().clear();
        until("a fetch", || self.fetches.lock().unwrap().first().copied()).await
    }

    fn has_been_fetched(&self) -> bool {
        !self.fetches.lock().unwrap().is_empty()
    }
}

/// Looks again and again.
async fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let wait = async {
        loop {
            match look() {
                Some(seen) => return seen,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("no {what} in time"))
}

fn largest() -> FetchSettings {
    fetch_settings(ConnectOptions::new("test", Duration::from_secs(10)))
}

/// Has a claim fetched, by a manager that stores positions with the member's committer.
async fn fetch(
    member: &Member,
    claimed: &Arc<OwnedPartition>,
    log: &Log,
    settings: FetchSettings,
) -> Addr<FetcherManager> {
    let manager =
        FetcherManager::new(settings, member.committer.clone().into(), Arbiter::current(), guard()).start();
    let broker = BrokerAddress { id: 0, host: "127.0.0.1".to_owned(), port: log.port };
    manager.send(SetBrokers(vec![broker])).await.unwrap();
    let assigned = Assigned { partition: claimed.clone(), stream: Stream.start().recipient() };
    manager.send(StartFetching(vec![assigned])).await.unwrap();
    manager
}

async fn member(automatic: bool) -> (Member, Other, Log) {
    let ensemble = MemoryZooKeeper::default();
    let other = Other::connect(&ensemble);
    let log = Log::start(100, &other);
    (Member::join(&ensemble, "a", automatic).await, other, log)
}

#[actix::test]
async fn a_position_is_stored_before_the_first_fetch() {
    for (reset, expected) in [(OffsetReset::Largest, 100), (OffsetReset::Smallest, 3)] {
        let (member, _, log) = member(true).await;
        let claimed = member.claim().await;
        let mut settings = largest();
        settings.offset_reset = reset;
        fetch(&member, &claimed, &log, settings).await;
        assert_eq!(log.first_fetch().await, (expected, Some(expected)));
        assert_eq!(member.zk.steps(), ["create offset"]);
        assert_eq!((claimed.acked(), claimed.committed()), (expected, expected));
    }
}

/// The application commits, and nobody else.
#[actix::test]
async fn without_automatic_commit_nothing_is_stored() {
    let (member, other, log) = member(false).await;
    let claimed = member.claim().await;
    fetch(&member, &claimed, &log, largest()).await;
    assert_eq!(log.first_fetch().await, (100, None));
    assert_eq!((other.stored(), member.zk.steps().len()), (None, 0));
}

/// Else what came to the log between the two would be nobody's.
#[actix::test]
async fn after_a_crash_before_the_first_commit_the_successor_begins_where_the_first_did() {
    let (first, other, log) = member(true).await;
    let claimed = first.claim().await;
    let fetching = fetch(&first, &claimed, &log, largest()).await;
    assert_eq!(log.first_fetch().await, (100, Some(100)));
    // it dies without a word
    fetching.do_send(kafka_troupe_actors::fetcher_manager::Stop);
    first.zk.ensemble.expire(first.id());
    until("end of the first fetcher", || (log.hung_up.load(Ordering::SeqCst) == 1).then_some(())).await;
    log.grow_to(150);
    let second = Member::join(&first.zk.ensemble, "b", true).await;
    let claimed = second.claim().await;
    assert_eq!(claimed.fetched(), 100);
    fetch(&second, &claimed, &log, largest()).await;
    assert_eq!(log.first_fetch().await, (100, Some(100)));
    assert_eq!(log.asked.load(Ordering::SeqCst), 1, "resolved once");
    assert_eq!(other.stored(), Some((100, 0)));
}

/// The position was stored, but that is not known: the log has grown when it is made again.
#[actix::test]
async fn a_position_whose_storing_was_not_answered_is_not_made_anew() {
    let (member, other, log) = member(true).await;
    let claimed = member.claim().await;
    let (ensemble, id, growing) = (member.zk.ensemble.clone(), member.id(), log.clone());
    member.zk.before(1, move || {
        growing.grow_to(150);
        ensemble.lose_reply(id);
    });
    fetch(&member, &claimed, &log, largest()).await;
    assert_eq!(log.first_fetch().await, (100, Some(100)));
    assert_eq!(other.stored(), Some((100, 0)));
    assert_eq!(log.asked.load(Ordering::SeqCst), 2);
    assert_eq!(member.zk.steps(), ["create offset", "create offset", "read offset", "read owner"]);
    // commits go on from there
    assert_eq!(member.commit(&claimed, 101).await, Ok(1));
    assert_eq!(other.stored(), Some((101, 1)));
}

/// The fetcher manager asked for it and has ended before the answer; the next one asks again, when the log has grown.
#[actix::test]
async fn a_position_whose_asker_has_ended_is_not_made_anew() {
    for (automatic, stored) in [(true, Some((100, 0))), (false, None)] {
        let (member, other, _) = member(automatic).await;
        let claimed = member.claim().await;
        let asks = [100, 150].map(|end| member.reset_from(&claimed, NO_OFFSET, end));
        assert_eq!(join_all(asks).await, [Ok(100), Ok(100)], "both under way");
        assert_eq!(member.reset_from(&claimed, NO_OFFSET, 200).await, Ok(100), "long after");
        assert_eq!((claimed.fetched(), other.stored()), (100, stored));
    }
}

#[actix::test]
async fn nothing_is_fetched_while_the_position_cannot_be_stored() {
    let (member, other, log) = member(true).await;
    let claimed = member.claim().await;
    let (ensemble, id, growing) = (member.zk.ensemble.clone(), member.id(), log.clone());
    member.zk.before(1, move || {
        growing.grow_to(150);
        ensemble.suspend(id);
    });
    let manager = fetch(&member, &claimed, &log, largest()).await;
    until("second attempt", || (log.asked.load(Ordering::SeqCst) >= 2).then_some(())).await;
    let status = manager.send(Describe).await.unwrap();
    let why = status.waiting[0].why.clone().unwrap_or_default();
    assert!(why.starts_with("store position"), "{why}");
    assert!(!log.has_been_fetched() && other.stored().is_none());
    member.zk.ensemble.reconnect(id);
    // it is not made again: what came meanwhile would be passed over
    assert_eq!(log.first_fetch().await, (100, Some(100)));
}

/// Of a Scala member, which does not look whether the partition still is its own.
#[actix::test]
async fn a_late_commit_of_the_owner_before_counts_more_than_a_new_position() {
    let (member, other, log) = member(true).await;
    let claimed = member.claim().await;
    let late = other.clone();
    member.zk.before(1, move || late.commit(42));
    fetch(&member, &claimed, &log, largest()).await;
    assert_eq!(log.first_fetch().await, (42, Some(42)));
    assert_eq!(other.stored(), Some((42, 0)));
}

#[actix::test]
async fn a_partition_that_is_lost_before_its_position_is_stored_is_neither_written_nor_fetched() {
    let (member, other, log) = member(true).await;
    let claimed = member.claim().await;
    let next = other.clone();
    member.zk.before(1, move || next.take_over("g_b-0", 7));
    let lost = member.reset(&claimed, 100).await;
    assert!(matches!(&lost, Err(CommitError::Lost { why, .. }) if why.contains("g_b-0")), "{lost:?}");
    let manager = fetch(&member, &claimed, &log, largest()).await;
    until("attempt", || (log.asked.load(Ordering::SeqCst) >= 2).then_some(())).await;
    let status = manager.send(Describe).await.unwrap();
    assert!(status.waiting[0].why.clone().unwrap_or_default().contains("lost"), "{status:?}");
    assert_eq!((other.stored(), log.has_been_fetched()), (Some((7, 0)), false));
}

/// `troupe.new.partitions.reset`: what was written before the group noticed them counts.
#[actix::test]
async fn a_partition_that_appeared_starts_at_its_beginning_unless_the_setting_says_otherwise() {
    for (new_partitions, expected) in [(None, 3), (Some(OffsetReset::Largest), 100)] {
        let (member, _, log) = member(true).await;
        let claimed = member.claim_appeared().await;
        let mut settings = largest();
        settings.new_partitions_reset = new_partitions.unwrap_or(settings.new_partitions_reset);
        fetch(&member, &claimed, &log, settings).await;
        assert_eq!(log.first_fetch().await, (expected, Some(expected)));
    }
}

/// One that has an offset was read before, whenever it appeared.
#[actix::test]
async fn a_partition_that_appeared_and_has_an_offset_goes_on_from_it() {
    let (member, other, log) = member(true).await;
    other.commit(50);
    let claimed = member.claim_appeared().await;
    fetch(&member, &claimed, &log, largest()).await;
    assert_eq!(log.first_fetch().await, (50, Some(50)));
    assert_eq!((log.asked.load(Ordering::SeqCst), member.zk.steps().len()), (0, 0));
}

/// The log does not reach as far any more: the one way by which a stored offset goes down.
#[actix::test]
async fn a_reset_may_go_down_and_is_settled_when_its_answer_is_lost() {
    for lost in [false, true] {
        let (member, other, _) = member(true).await;
        other.commit(500);
        let claimed = member.claim().await;
        let (ensemble, id) = (member.zk.ensemble.clone(), member.id());
        if lost {
            member.zk.before(1, move || ensemble.lose_reply(id));
            assert!(matches!(member.reset(&claimed, 100).await, Err(CommitError::Store { .. })));
        }
        let made = member.reset(&claimed, if lost { 150 } else { 100 }).await;
        assert_eq!((made, other.stored()), (Ok(100), Some((100, 1))));
        assert_eq!(claimed.committed(), 100);
    }
}

/// It is nothing that came from others: what stands past the end of a truncated log must not stay, nor an offset of an
/// earlier topic.
#[actix::test]
async fn a_commit_of_ours_whose_answer_was_lost_does_not_keep_a_new_position_from_being_stored() {
    for remade in [false, true] {
        let (member, other, _) = member(true).await;
        other.commit(300);
        let claimed = member.claim().await;
        let (ensemble, id) = (member.zk.ensemble.clone(), member.id());
        member.zk.before(1, move || ensemble.lose_reply(id));
        assert!(member.commit(&claimed, 500).await.is_err());
        assert_eq!(other.stored(), Some((500, 1)), "which we do not know");
        if remade {
            claimed.topic_remade();
        }
        assert_eq!(member.reset(&claimed, 400).await, Ok(400));
        assert_eq!((other.stored(), claimed.acked()), (Some((400, 2)), 400));
    }
}

#[actix::test]
async fn a_position_made_in_the_earlier_topic_does_not_stand_in_the_later() {
    let (member, other, _) = member(true).await;
    let claimed = member.claim().await;
    let (ensemble, id) = (member.zk.ensemble.clone(), member.id());
    member.zk.before(1, move || ensemble.lose_reply(id));
    assert!(member.reset(&claimed, 100).await.is_err());
    claimed.topic_remade();
    assert_eq!((member.reset(&claimed, 3).await, other.stored()), (Ok(3), Some((3, 1))));
}

#[actix::test]
async fn a_topic_that_is_made_again_while_a_position_is_stored_needs_another() {
    let (member, other, _) = member(true).await;
    other.commit(50);
    let claimed = member.claim().await;
    claimed.topic_remade();
    let once_more = claimed.clone();
    member.zk.before(1, move || once_more.topic_remade());
    assert!(matches!(member.reset(&claimed, 10).await, Err(CommitError::Store { .. })));
    assert!(claimed.is_of_earlier_topic());
    assert_eq!((member.reset(&claimed, 3).await, other.stored().unwrap().0), (Ok(3), 3));
    assert!(!claimed.is_of_earlier_topic());
}

/// It is of the earlier topic, and what the stream would begin with.
#[actix::test]
async fn no_position_is_made_while_a_chunk_lies_in_the_mailbox_of_its_stream() {
    let (member, other, _) = member(true).await;
    other.commit(5);
    let claimed = member.claim().await;
    claimed.topic_remade();
    let chunk = FetchedChunk::new(claimed.clone(), 5, 9, Default::default(), Vec::new());
    let refused = member.reset(&claimed, 3).await;
    assert!(matches!(refused, Err(CommitError::Store { .. })), "{refused:?}");
    assert_eq!(other.stored(), Some((5, 0)));
    drop(chunk);
    assert_eq!(member.reset(&claimed, 3).await, Ok(3));
}

/// Whoever asks for a position of a claim that is not ours to deliver any more.
#[actix::test]
async fn no_position_is_stored_for_a_claim_that_is_closed() {
    let (member, other, _) = member(true).await;
    other.commit(500);
    let claimed = member.claim().await;
    claimed.close();
    assert!(matches!(member.reset(&claimed, 3).await, Err(CommitError::Store { .. })));
    assert_eq!(other.stored(), Some((500, 0)));
}
