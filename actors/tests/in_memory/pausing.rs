//! Partitions and topics that are paused: nothing of them is handed over, nothing of them is lost or comes twice.

use kafka_troupe_actors::consumer_system::PauseError;
use tokio::sync::Semaphore;

use super::failing::{Deed, Script, all_heard, halted, heard_all, order, status};
use super::*;

fn values(range: std::ops::Range<i32>) -> Vec<String> {
    range.map(|value| value.to_string()).collect()
}

#[test]
fn a_paused_partition_is_not_handed_over_and_the_others_of_its_stream_are() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        let (handle, mut told) = world.playing(FailurePolicy::default(), &Script::default()).await;
        world.produce_all(0, &["0"]);
        assert_eq!(heard(&mut told).await, "0");
        handle.pause([order(0)]).await.expect("it is ours");
        world.produce_all(0, &["1", "2"]);
        world.produce_all(1, &["other"]);
        assert_eq!(heard(&mut told).await, "other");
        let fetches = world.brokers.fetches(&order(0));
        assert_eq!(all_heard(&mut told).await, [""; 0]);
        assert_eq!(world.brokers.fetches(&order(0)), fetches, "it is not fetched");
        let halted = halted(&handle).await;
        assert_eq!((halted.partition, &*halted.reason, halted.offset, halted.attempts), (0, "paused", 1, 0));
        assert_eq!(status(&handle).await.partitions[0].halted, ["paused"]);
        handle.resume([order(0)]).await.expect("it is ours");
        heard_all(&mut told, &["1", "2"]).await;
        assert_eq!(status(&handle).await.halted, []);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
    });
}

/// The record in hand is the last; it counts, and does not come again.
#[test]
fn a_pause_while_a_record_is_in_hand_ends_behind_it_even_if_it_is_over_before_the_record_is() {
    for resumed_before_it_is_done in [true, false] {
        on_paused_clock(async |world| {
            let gate = Arc::new(Semaphore::new(0));
            let script = Script::of(&[("1", Deed::Wait(Arc::clone(&gate)))]);
            world.brokers.append(&order(0), &["0", "1", "2"]);
            world.produce_all(0, &["3", "4"]);
            let (handle, mut told) = world.playing(FailurePolicy::default(), &script).await;
            heard_all(&mut told, &["0", "1"]).await;
            handle.pause([order(0)]).await.expect("it is ours");
            if resumed_before_it_is_done {
                handle.resume([order(0)]).await.expect("it is ours");
            }
            assert_eq!(all_heard(&mut told).await, [""; 0]);
            gate.add_permits(1);
            if !resumed_before_it_is_done {
                assert_eq!(all_heard(&mut told).await, [""; 0]);
                assert_eq!(world.stored().as_deref(), Some("2"), "what was in hand is acknowledged");
                handle.resume([order(0)]).await.expect("it is ours");
            }
            heard_all(&mut told, &["2", "3", "4"]).await;
            assert_eq!(all_heard(&mut told).await, [""; 0]);
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("5"));
        });
    }
}

#[test]
fn a_record_that_waits_to_be_tried_again_holds_up_nobody_once_its_partition_is_paused() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        let script = Script::of(&[("bad", Deed::Fail)]);
        let policy = FailurePolicy::retry(5).backoff(Duration::from_secs(50), Duration::from_secs(50));
        let (handle, mut told) = world.playing(policy, &script).await;
        world.produce_all(0, &["bad", "1"]);
        heard_all(&mut told, &["bad"]).await;
        world.produce_all(1, &["other"]);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(told.try_recv().is_err(), "the record before it is to be tried again");
        let paused = Instant::now();
        handle.pause([order(0)]).await.expect("it is ours");
        heard_all(&mut told, &["other"]).await;
        assert!(paused.elapsed() < Duration::from_secs(1), "after {:?}", paused.elapsed());
        script.set("bad", None);
        handle.resume([order(0)]).await.expect("it is ours");
        heard_all(&mut told, &["bad", "1"]).await;
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("2"));
    });
}

/// Paused and resumed at every moment of a flow: each record comes once, in order.
#[test]
fn pauses_at_any_moment_neither_lose_nor_repeat_a_record() {
    for step in 1..12 {
        on_paused_clock(async |world| {
            world.brokers.set_pace(Arc::new(|| Duration::from_millis(2)));
            let (handle, mut told) = world.playing(FailurePolicy::default(), &Script::default()).await;
            let all = values(0..60);
            for (number, value) in all.iter().enumerate() {
                world.produce_all(0, &[value]);
                tokio::time::sleep(Duration::from_millis(1)).await;
                match number % step {
                    0 => handle.pause([order(0)]).await.expect("it is ours"),
                    half if half == step / 2 => handle.resume([order(0)]).await.expect("it is ours"),
                    _ => {}
                }
            }
            handle.resume([order(0)]).await.expect("it is ours");
            assert_eq!(all_heard(&mut told).await, all, "every {step}");
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("60"));
        });
    }
}

#[test]
fn a_pulled_stream_gets_nothing_of_what_is_paused_and_all_of_it_later() {
    on_paused_clock(async |world| {
        world.brokers.append(&order(0), &["0", "1", "2"]);
        let (handle, mut stream) = world.pulling().await;
        assert_eq!(next(&mut stream).await, "0");
        handle.pause([order(0)]).await.expect("it is ours");
        assert!(timeout(Duration::from_secs(10), stream.next()).await.is_err(), "it is paused");
        handle.resume([order(0)]).await.expect("it is ours");
        assert_eq!(next(&mut stream).await, "1");
        // while a record is out
        handle.pause([order(0)]).await.expect("it is ours");
        handle.resume([order(0)]).await.expect("it is ours");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(next(&mut stream).await, "2");
        stream.ack();
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
    });
}

/// What the stream has in hand of the old one is handed over in no other round.
#[test]
fn a_topic_that_is_made_again_while_it_is_paused_is_read_from_its_beginning_when_it_is_resumed() {
    on_paused_clock(async |world| {
        world.brokers.append(&order(0), &["0", "1", "2"]);
        let (handle, mut stream) = world.pulling().await;
        assert_eq!(next(&mut stream).await, "0");
        stream.ack();
        handle.pause([order(0)]).await.expect("it is ours");
        world.brokers.delete_topic("orders");
        world.brokers.create_topic("orders", 1);
        world.brokers.append(&order(0), &["new 0", "new 1", "new 2"]);
        tokio::time::sleep(Duration::from_secs(30)).await;
        handle.resume([order(0)]).await.expect("it is ours");
        tokio::time::sleep(Duration::from_secs(30)).await;
        for value in ["new 0", "new 1", "new 2"] {
            assert_eq!(next(&mut stream).await, value);
        }
        handle.shutdown().await;
    });
}

#[test]
fn a_seek_of_a_paused_partition_is_followed_when_it_is_resumed() {
    on_paused_clock(async |world| {
        world.produce_all(0, &["0", "1", "2"]);
        let (handle, mut told) = world.playing(FailurePolicy::default(), &Script::default()).await;
        heard_all(&mut told, &["0", "1", "2"]).await;
        handle.pause([order(0)]).await.expect("it is ours");
        handle.seek("orders", 0, 1).await.expect("it is ours");
        assert_eq!(world.stored().as_deref(), Some("1"));
        assert_eq!(all_heard(&mut told).await, [""; 0]);
        assert_eq!(&*halted(&handle).await.reason, "paused");
        handle.resume([order(0)]).await.expect("it is ours");
        heard_all(&mut told, &["1", "2"]).await;
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
    });
}

#[test]
fn a_pause_outlives_actors_that_panic() {
    for child in ["stream-queue/orders-0", "fetcher-manager", "rebalance-coordinator", "broker-fetchers"] {
        on_paused_clock(async |world| {
            world.produce_all(0, &["0"]);
            let (handle, mut told) = world.playing(FailurePolicy::default(), &Script::default()).await;
            assert_eq!(heard(&mut told).await, "0");
            handle.pause([order(0)]).await.expect("it is ours");
            world.produce_all(0, &["1"]);
            crash(&handle, child);
            assert_eq!(all_heard(&mut told).await, [""; 0], "{child}");
            handle.resume([order(0)]).await.expect("it is ours");
            // the stream panics before it hears of it
            crash(&handle, child);
            assert_eq!(heard(&mut told).await, "1", "{child}");
            assert_eq!(all_heard(&mut told).await, [""; 0], "{child}");
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("2"), "{child}");
        });
    }
}

#[test]
fn the_next_owner_of_a_paused_partition_handles_it() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        let (first, mut told) = world.playing(FailurePolicy::default(), &Script::default()).await;
        world.produce_all(1, &["0"]);
        assert_eq!(heard(&mut told).await, "0");
        first.pause([order(0), order(1)]).await.expect("both are ours");
        world.produce_all(1, &["1"]);
        // it comes behind the other in the order, and so gets the second partition
        let (second, mut stream) = world.pulling_as("b").await;
        assert_eq!(next(&mut stream).await, "1");
        stream.ack();
        assert_eq!(first.pause([order(1)]).await, Err(PauseError::NotOwned(vec![order(1)])));
        second.shutdown().await;
        until("the first owns it again", || world.owner(1).as_deref() == Some("g_a-0")).await;
        world.produce_all(1, &["2"]);
        assert_eq!(heard(&mut told).await, "2", "a pause ends with the claim");
        assert_eq!(halted(&first).await.partition, 0);
        first.shutdown().await;
        assert_eq!(world.stored_of(1), Some(3));
    });
}

#[test]
fn a_paused_topic_is_paused_for_claims_that_come_later_as_well() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        world.produce_all(1, &["0"]);
        let (handle, mut told) = world.playing(FailurePolicy::default(), &Script::default()).await;
        assert_eq!(heard(&mut told).await, "0");
        handle.pause_topic("orders").await.expect("it runs");
        let (second, stream) = world.pulling_as("b").await;
        until("the second owns its share", || world.owner(1).as_deref() == Some("g_b-0")).await;
        drop(stream);
        second.shutdown().await;
        until("the first owns it again", || world.owner(1).as_deref() == Some("g_a-0")).await;
        world.produce_all(0, &["1"]);
        world.produce_all(1, &["2"]);
        assert_eq!(all_heard(&mut told).await, [""; 0]);
        let reasons: Vec<_> = status(&handle).await.halted.into_iter().map(|it| it.reason).collect();
        assert_eq!(reasons, ["topic_paused", "topic_paused"]);
        handle.pause([order(0)]).await.expect("it is ours");
        handle.resume_topic("orders").await.expect("it runs");
        heard_all(&mut told, &["2"]).await;
        assert_eq!(all_heard(&mut told).await, [""; 0], "one is paused by itself");
        handle.resume([order(0)]).await.expect("it is ours");
        heard_all(&mut told, &["1"]).await;
        handle.shutdown().await;
    });
}

#[test]
fn a_topic_is_paused_in_added_members_too_whenever_they_were_added() {
    on_paused_clock(async |world| {
        let (handle, mut stream) = world.pulling().await;
        world.brokers.create_topic("more", 1);
        handle.pause_topic("more").await.expect("it runs");
        world.produce_to("more", 0, "0");
        let added = handle.subscribe().pull("more", 1).start().await.expect("it starts");
        let mut more = added.streams("more").remove(0);
        assert!(timeout(Duration::from_secs(10), more.next()).await.is_err(), "it is paused");
        handle.resume_topic("more").await.expect("it runs");
        assert_eq!(next(&mut more).await, "0");
        handle.pause([TopicPartition::new("more", 0)]).await.expect("the added one owns it");
        world.produce_to("more", 0, "1");
        world.produce("2");
        assert_eq!(next(&mut stream).await, "2");
        assert!(timeout(Duration::from_secs(10), more.next()).await.is_err(), "it is paused");
        handle.resume([TopicPartition::new("more", 0)]).await.expect("the added one owns it");
        assert_eq!(next(&mut more).await, "1");
        let unknown = TopicPartition::new("none", 0);
        assert_eq!(handle.resume([unknown.clone()]).await, Err(PauseError::NotOwned(vec![unknown])));
        handle.shutdown().await;
        assert_eq!(handle.pause([order(0)]).await, Err(PauseError::NotRunning));
    });
}

#[test]
fn a_partition_that_is_paused_before_it_has_a_position_gets_one_and_is_read_when_it_is_resumed() {
    on_paused_clock(async |world| {
        world.produce("old");
        let handle = world.builder_with("a", "largest").pull("orders", 1).start().await.expect("it starts");
        let mut stream = handle.streams("orders").remove(0);
        handle.pause_topic("orders").await.expect("it runs");
        until("its position is stored", || world.stored().is_some()).await;
        world.produce("new");
        assert!(timeout(Duration::from_secs(10), stream.next()).await.is_err(), "it is paused");
        handle.resume_topic("orders").await.expect("it runs");
        assert_eq!(next(&mut stream).await, "new");
        handle.shutdown().await;
    });
}
