//! What a failure policy, a pause or a seek does to several records in flight.

use kafka_troupe_proto::group::Then;

use super::super::failing::{halted, order};
use super::*;

const SMALL: [(&str, &str); 1] = [("fetch.message.max.bytes", "500")];

/// All are handled in about 5 ms, but for one that does as it is told, and has the policy be applied in the midst of
/// others.
fn one_does(partition: i32, offset: i64, deed: Deed) -> Script {
    Arc::new(move |number, at, _| if (number, at) == (partition, offset) { deed } else { Deed::After(5) })
}

/// A script that can be changed.
fn until_told(script: Script) -> (Arc<std::sync::atomic::AtomicBool>, Script) {
    let told = Arc::<std::sync::atomic::AtomicBool>::default();
    let is_told = Arc::clone(&told);
    let script: Script = Arc::new(move |partition, offset, count| {
        let is_told = is_told.load(std::sync::atomic::Ordering::SeqCst);
        if is_told { Deed::After(5) } else { script(partition, offset, count) }
    });
    (told, script)
}

fn all_limits() -> [InFlight; 2] {
    [InFlight::window(8), InFlight::by_key(8)]
}

#[test]
fn a_record_that_is_given_up_is_skipped_and_the_others_are_handled_once() {
    for limit in all_limits() {
        on_paused_clock(async |world| {
            world.produce_keyed(0, 100, 7);
            let journal = Journal::default();
            let worker = worker("a", limit, &journal, one_does(0, 33, Deed::Fail));
            let handle = world.working_under(soon(2).then(Then::Skip), worker, &SMALL).await;
            until("all but one are done", || journal.order().len() == 99).await;
            until("all is stored", || world.stored_of(0) == Some(100)).await;
            assert_eq!((journal.begun(0, 33), journal.again()), (3, 1));
            let stream = status(&handle).await.streams.remove(0);
            let skipped = stream.last_skipped.expect("one was");
            assert_eq!((stream.skipped, skipped.offset, skipped.attempts), (1, 33, 3));
            handle.shutdown().await;
        });
    }
}

#[test]
fn a_stopped_partition_acknowledges_nothing_from_the_record_on_and_the_others_go_on() {
    for limit in all_limits() {
        on_paused_clock(async |world| {
            world.with_partitions(2);
            (0..2).for_each(|partition| world.produce_keyed(partition, 100, 7));
            let journal = Journal::default();
            world.observe_commits(&journal);
            let (told, script) = until_told(one_does(0, 33, Deed::Fail));
            let handle = world.working_under(soon(2), worker("a", limit, &journal, script), &SMALL).await;
            until("the other is done", || journal.handled(1) == 100).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            let halted = halted(&handle).await;
            assert_eq!((halted.partition, &*halted.reason), (0, "failed"));
            assert_eq!((halted.offset, halted.attempts), (33, 3));
            assert_eq!((world.stored_of(0), world.stored_of(1)), (Some(33), Some(100)));
            assert_eq!(status(&handle).await.streams[0].queued_chunks, 0, "it keeps no memory");
            let begun = journal.order().len();
            told.store(true, std::sync::atomic::Ordering::SeqCst);
            handle.resume([order(0)]).await.expect("it is ours");
            until("all is handled", || world.stored_of(0) == Some(100)).await;
            // from there on all comes again
            assert_eq!(journal.order().len() - begun, 67, "{limit:?}");
            handle.shutdown().await;
            journal.check();
        });
    }
}

#[test]
fn a_stopped_stream_lets_what_is_in_flight_end_and_begins_nothing() {
    on_paused_clock(async |world| {
        world.with_partitions(2);
        (0..2).for_each(|partition| world.produce_keyed(partition, 100, 7));
        let journal = Journal::default();
        let policy = soon(0).then(Then::StopStream);
        let (told, script) = until_told(one_does(0, 33, Deed::Fail));
        let worker = worker("a", InFlight::window(8), &journal, script);
        let handle = world.working_under(policy, worker, &SMALL).await;
        let begun = || (0..200).map(|number| journal.begun(number / 100, i64::from(number % 100))).collect();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let soon: Vec<_> = begun();
        tokio::time::sleep(Duration::from_secs(55)).await;
        assert_eq!(soon, begun(), "nothing begins any more");
        assert_eq!(status(&handle).await.halted.len(), 2);
        assert_eq!(world.stored_of(0), Some(33));
        told.store(true, std::sync::atomic::Ordering::SeqCst);
        handle.resume_topic("orders").await.expect("it runs");
        until("all is handled", || (0..2).all(|partition| world.stored_of(partition) == Some(100))).await;
        handle.shutdown().await;
        journal.check();
    });
}

/// Two in one partition, in turn or at once: neither makes the other's failures forgotten.
#[test]
fn records_that_end_their_handler_are_each_tried_as_often_as_the_policy_says() {
    for limit in all_limits() {
        on_paused_clock(async |world| {
            world.produce_keyed(0, 60, 60);
            let journal = Journal::default();
            world.observe_commits(&journal);
            let script: Script = Arc::new(|_, offset, _| match offset {
                11 | 13 => Deed::Panic,
                _ => Deed::After(5),
            });
            let policy = soon(2).then(Then::Skip);
            let handle = world.working_under(policy, worker("a", limit, &journal, script), &SMALL).await;
            until("all is stored", || world.stored_of(0) == Some(60)).await;
            // one that was cut off by the other's panic counts for nothing
            for offset in [11, 13] {
                assert!((3..=6).contains(&journal.begun(0, offset)), "{}", journal.begun(0, offset));
            }
            let stream = status(&handle).await.streams.remove(0);
            assert_eq!((stream.skipped, stream.handler_restarts), (2, 6));
            handle.shutdown().await;
        });
    }
}

#[test]
fn a_dead_letter_is_written_before_anything_behind_it_is_acknowledged() {
    for limit in all_limits() {
        on_paused_clock(async |world| {
            world.produce_keyed(0, 60, 7);
            let journal = Journal::default();
            let policy = soon(1).then(Then::DeadLetter("orders.dead".into()));
            let worker = worker("a", limit, &journal, one_does(0, 33, Deed::Fail));
            // nobody made the topic yet
            let handle = world.working_under(policy, worker, &SMALL).await;
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert_eq!(world.stored_of(0), Some(33));
            // by key, 40 and 47 wait for it
            assert_eq!(journal.order().len(), if limit.is_by_key() { 57 } else { 59 });
            world.brokers.create_topic("orders.dead", 1);
            until("all is stored", || world.stored_of(0) == Some(60)).await;
            let dead = TopicPartition::new("orders.dead", 0);
            assert_eq!(world.brokers.range(&dead), Some((0, 1)));
            let stream = status(&handle).await.streams.remove(0);
            let letter = stream.last_dead_letter.expect("one was written");
            assert_eq!((stream.dead_letters, letter.offset, letter.attempts), (1, 33, 2));
            assert_eq!(journal.again(), 1);
            handle.shutdown().await;
        });
    }
}

#[test]
fn what_is_in_flight_when_its_partition_is_paused_counts_and_does_not_come_again() {
    for (limit, resumed_early) in all_limits().into_iter().flat_map(|it| [(it, true), (it, false)]) {
        on_paused_clock(async |world| {
            world.produce_keyed(0, 100, 7);
            let journal = Journal::default();
            world.observe_commits(&journal);
            let script: Script = Arc::new(|_, offset, _| Deed::After(if offset == 40 { 5_000 } else { 10 }));
            let handle = world.working(worker("a", limit, &journal, script), &SMALL).await;
            until("the one that takes long is in flight", || journal.begun(0, 40) == 1).await;
            handle.pause([order(0)]).await.expect("it is ours");
            if resumed_early {
                handle.resume([order(0)]).await.expect("it is ours");
            }
            tokio::time::sleep(Duration::from_secs(4)).await;
            let begun = journal.order().len();
            assert!(begun < 60, "{begun} began");
            tokio::time::sleep(Duration::from_secs(2)).await;
            if !resumed_early {
                assert_eq!(journal.order().len(), begun + 1, "only the one that took long ended");
                handle.resume([order(0)]).await.expect("it is ours");
            }
            until("all is stored", || world.stored_of(0) == Some(100)).await;
            // those behind another of their key had not begun, and what was done behind them comes again
            let most = if limit.is_by_key() { 20 } else { 0 };
            assert!(journal.again() <= most, "{} {limit:?}, resumed early: {resumed_early}", journal.again());
            handle.shutdown().await;
            journal.check();
        });
    }
}

/// It is taken anew when its partition goes on; what was taken before is of no effect when its time comes.
#[test]
fn what_waits_to_be_tried_again_when_its_partition_is_paused_is_not_tried_twice() {
    for limit in all_limits() {
        on_paused_clock(async |world| {
            world.produce_keyed(0, 20, 20);
            let journal = Journal::default();
            let script: Script = Arc::new(|_, offset, count| match (offset, count) {
                (5, 1) => Deed::Fail,
                _ => Deed::After(5),
            });
            let policy = FailurePolicy::retry(5).backoff(Duration::from_secs(10), Duration::from_secs(10));
            let handle = world.working_under(policy, worker("a", limit, &journal, script), &SMALL).await;
            until("all others are done", || journal.order().len() == 19).await;
            handle.pause([order(0)]).await.expect("it is ours");
            handle.resume([order(0)]).await.expect("it is ours");
            until("all is stored", || world.stored_of(0) == Some(20)).await;
            tokio::time::sleep(Duration::from_secs(20)).await;
            assert_eq!(journal.begun(0, 5), 2, "{limit:?}");
            handle.shutdown().await;
        });
    }
}

#[test]
fn after_a_seek_what_is_in_flight_acknowledges_nothing() {
    on_paused_clock(async |world| {
        world.produce_keyed(0, 100, 100);
        let journal = Journal::default();
        let script: Script = Arc::new(|_, offset, count| match (offset, count) {
            (50.., 1) => Deed::After(3_000),
            _ => Deed::After(5),
        });
        let handle = world.working(worker("a", InFlight::window(8), &journal, script), &SMALL).await;
        until("they take long", || journal.begun(0, 57) == 1).await;
        until("what is before them is stored", || world.stored_of(0) == Some(50)).await;
        handle.seek("orders", 0, 10).await.expect("it is ours");
        assert_eq!(world.stored_of(0), Some(10));
        until("all is handled", || world.stored_of(0) == Some(100)).await;
        assert!((10..50).all(|offset| journal.begun(0, offset) == 2));
        assert!((0..10).all(|offset| journal.begun(0, offset) == 1));
        handle.shutdown().await;
        journal.check();
    });
}
