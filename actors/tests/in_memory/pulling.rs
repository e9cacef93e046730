//! Streams that are pulled, by consumers that give up asking at any moment.

use std::task::{Context as Task, Poll, Waker};

use futures_util::FutureExt as _;
use kafka_troupe_actors::{ConsumeError, RecordBatch};

use super::*;

/// What is stored, or acknowledged, by the status.
async fn acked(handle: &ConsumerHandle) -> i64 {
    let status = handle.metrics().await.expect("it is alive");
    status.partitions.first().map_or(0, |partition| partition.acked)
}

/// Polls a future of `next()` so many times, and drops it.
async fn poll_at_most(stream: &mut KafkaStream, polls: u32) -> Option<String> {
    let mut next = stream.next();
    for _ in 0..polls {
        if let Poll::Ready(item) = next.poll_unpin(&mut Task::from_waker(Waker::noop())) {
            let record = item.expect("no end").expect("it can be read");
            return Some(record.text().into_owned());
        }
        tokio::task::yield_now().await;
    }
    None
}

/// The future is dropped at every point where it waits: before it has asked for a chunk, while it is asked for, when it
/// is there and nobody has looked, between chunks.
#[test]
fn a_future_of_next_that_is_dropped_loses_nothing_and_acknowledges_nothing_early() {
    on_paused_clock(async |world| {
        let (handle, mut stream) = world.pulling().await;
        let (mut produced, mut given, mut dropped) = (0, 0, 0);
        for round in 0u32..6_000 {
            if round.is_multiple_of(5) {
                world.produce(&produced.to_string());
                produced += 1;
            }
            if round.is_multiple_of(7) {
                tokio::time::sleep(Duration::from_millis(u64::from(round % 4))).await;
            }
            match poll_at_most(&mut stream, round % 4).await {
                Some(text) => {
                    assert_eq!(text, given.to_string(), "in order, and once");
                    given += 1;
                }
                None => dropped += 1,
            }
            if round.is_multiple_of(50) {
                let acked = acked(&handle).await;
                // the last one counts when the next is asked for, whether that comes or not
                assert!((given - 1..=given).contains(&acked), "{acked} acknowledged of {given} given out");
            }
        }
        assert!(dropped > 3_000, "only {dropped} were dropped");
        world.produce(&produced.to_string());
        produced += 1;
        while given < produced {
            assert_eq!(next(&mut stream).await, given.to_string());
            given += 1;
        }
        // in hand, and so not handled
        assert_eq!(acked(&handle).await, given - 1);
        stream.ack();
        handle.shutdown().await;
        assert_eq!(world.stored(), Some(produced.to_string()));
        assert!(stream.next().await.is_none());
        assert!(stream.next().await.is_none(), "an end is an end");
    });
}

#[test]
fn a_loop_that_selects_loses_nothing_whatever_else_is_ready() {
    on_paused_clock(async |world| {
        let (handle, mut stream) = world.pulling().await;
        let mut ticks = tokio::time::interval(Duration::from_micros(700));
        let (mut given, mut produced, mut ticked, mut rounds) = (0, 0, 0, 0u64);
        while given < 2_000 {
            rounds += 1;
            tokio::select! {
                _ = ticks.tick() => {
                    ticked += 1;
                    if produced < 2_000 {
                        world.produce(&produced.to_string());
                        produced += 1;
                    }
                }
                item = stream.next() => {
                    let record = item.expect("no end").expect("it can be read");
                    assert_eq!(record.text(), given.to_string());
                    given += 1;
                }
                // ready at once, two times of three: what was asked for is dropped again and again
                () = tokio::time::sleep(Duration::from_millis(rounds % 3 / 2)) => {}
            }
        }
        assert!(ticked >= 2_000 && rounds > 2 * given, "{ticked} of {rounds}");
        stream.ack();
        handle.shutdown().await;
        assert_eq!(world.stored(), Some("2000".to_owned()));
    });
}

/// Also one that was not asked for its next record, or is held by somebody who never asks.
#[test]
fn a_stream_that_is_dropped_with_a_record_in_hand_acknowledges_it_not() {
    on_paused_clock(async |world| {
        let (handle, mut stream) = world.pulling().await;
        for value in ["0", "1"] {
            world.produce(value);
        }
        assert_eq!(next(&mut stream).await, "0");
        assert_eq!(next(&mut stream).await, "1");
        drop(stream);
        let began = Instant::now();
        assert!(handle.shutdown().await.is_complete());
        assert!(began.elapsed() < Duration::from_secs(1), "nothing is in hand: {:?}", began.elapsed());
        assert_eq!(world.stored(), Some("1".to_owned()));
    });
}

/// In batches, one by one, and dropped in between.
#[test]
fn batches_and_single_records_may_be_asked_for_in_turn_and_each_comes_once() {
    on_paused_clock(async |world| {
        let (handle, mut stream) = world.pulling().await;
        let (mut produced, mut given) = (0u32, 0u32);
        for round in 0..3_000u32 {
            if round.is_multiple_of(3) {
                let values: Vec<String> =
                    (produced..produced + round % 11).map(|it| it.to_string()).collect();
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                world.brokers.append(&TopicPartition::new("orders", 0), &values);
                produced += round % 11;
            }
            let (before, most) = (given, 1 + round as usize % 7);
            match round % 4 {
                0 => given += u32::from(poll_at_most(&mut stream, 3).await == Some(given.to_string())),
                // dropped while it waits
                1 => drop(
                    stream.next_batch(most).now_or_never().map(|batch| given += check(batch, given, most)),
                ),
                _ => {
                    let next = timeout(Duration::from_millis(50), stream.next_batch(most)).await;
                    given += next.map_or(0, |batch| check(batch, given, most));
                }
            }
            if round.is_multiple_of(50) {
                let acked = u32::try_from(acked(&handle).await).expect("no less than 0");
                assert!(
                    (before..=given).contains(&acked),
                    "{acked} acknowledged of {given}, {before} before"
                );
            }
        }
        assert!(given > 2_000, "{given}");
        while given < produced {
            given += check(stream.next_batch(100).await, given, 100);
        }
        stream.ack();
        handle.shutdown().await;
        assert_eq!(world.stored(), Some(produced.to_string()));
        assert!(stream.next_batch(1).await.is_none());
    });
}

/// Walks a batch that begins with this record; how many there were.
fn check(batch: Option<Result<RecordBatch, ConsumeError>>, first: u32, most: usize) -> u32 {
    let batch = batch.expect("no end").expect("it can be read");
    assert!((1..=most).contains(&batch.len()), "{} of {most}", batch.len());
    let texts: Vec<String> = batch.records().map(|record| record.text().into_owned()).collect();
    let expected: Vec<String> = (first..).take(batch.len()).map(|it| it.to_string()).collect();
    assert_eq!(texts, expected);
    batch.len() as u32
}

/// What lies behind a batch and cannot be read is told to whoever asks next, however it is asked.
#[test]
fn a_batch_ends_before_what_cannot_be_read_and_the_next_one_asked_for_is_the_error() {
    for in_batches in [true, false] {
        on_paused_clock(async |world| {
            let (handle, mut stream) = world.pulling().await;
            for value in ["0", "1", "2", "3"] {
                world.produce(value);
            }
            world.brokers.damage(&TopicPartition::new("orders", 0), 2);
            assert_eq!(check(stream.next_batch(100).await, 0, 100), 2);
            let error = match in_batches {
                true => stream.next_batch(100).await.expect("no end").err(),
                false => stream.next().await.expect("no end").err(),
            };
            assert_eq!(error.map(|error| (error.offset, error.resume_at)), Some((2, 3)));
            handle.seek("orders", 0, 3).await.expect("it is stepped over");
            assert_eq!(check(stream.next_batch(100).await, 3, 100), 1);
            stream.ack();
            handle.shutdown().await;
            assert_eq!(world.stored(), Some("4".to_owned()));
        });
    }
}
