//! Handlers of batches.

use std::sync::Mutex;

use super::*;

/// What each batch was: its partition, and its values.
type Batches = Arc<Mutex<Vec<(i32, Vec<String>)>>>;

/// A handler that notes each batch, and fails, or panics, with it as it is told to.
fn noting(
    batches: &Batches,
    ends: impl Fn(&RecordBatch) -> HandlerResult + Clone + Send + Sync + 'static,
) -> impl Fn() -> Does<RecordBatch, Box<dyn Fn(RecordBatch) -> HandlerResult>> + Send + Sync + 'static {
    let batches = Arc::clone(batches);
    move || {
        let (batches, ends) = (Arc::clone(&batches), ends.clone());
        does(Box::new(move |batch: RecordBatch| {
            let values: Vec<_> = batch.records().map(|record| record.text().into_owned()).collect();
            assert_eq!(values.len(), batch.len());
            batches.lock().unwrap().push((batch.partition(), values));
            ends(&batch)
        }))
    }
}

fn of(batches: &Batches) -> Vec<String> {
    batches.lock().unwrap().iter().map(|(_, values)| values.concat()).collect()
}

fn subscription(policy: FailurePolicy) -> Subscription {
    Subscription::topic("orders").on_failure(policy)
}

/// Fails at a record.
fn failing_at(value: &'static str) -> impl Fn(&RecordBatch) -> HandlerResult + Clone + Send + Sync {
    move |batch| {
        batch.try_for_each(|record| if record.text() == value { Err("it is bad".into()) } else { Ok(()) })
    }
}

#[test]
fn a_batch_spans_batches_of_the_producer_has_at_most_so_many_and_waits_for_no_more() {
    on_paused_clock(async |world| {
        for values in [&["0", "1"][..], &["2"], &["3", "4", "5"], &["6", "7", "8", "9", "a"], &["b"]] {
            world.produce_batch(values);
        }
        let batches = Batches::default();
        let make = noting(&batches, |_| Ok(()));
        let handle = world.subscribed(subscription(soon(0)).handle_batches(4, make)).await;
        until("all is handled", || of(&batches).concat() == "0123456789ab").await;
        world.produce_batch(&["c"]);
        until("one more is", || of(&batches).concat() == "0123456789abc").await;
        // whole batches of the producer's while they fit; one that alone is too large is cut
        assert_eq!(of(&batches), ["012", "345", "6789", "ab", "c"]);
        let partition = &status(&handle).await.partitions[0];
        assert_eq!((partition.acked, partition.records), (13, 13));
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("13"));
    });
}

#[test]
fn a_batch_is_of_one_partition_and_its_records_are_in_order() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 3);
        for round in 0..20 {
            for partition in 0..3 {
                world.produce_to("orders", partition, &format!("{partition}.{round} "));
            }
        }
        let batches = Batches::default();
        let make = noting(&batches, |_| Ok(()));
        let handle = world.subscribed(subscription(soon(0)).handle_batches(7, make)).await;
        until("all is handled", || batches.lock().unwrap().iter().map(|it| it.1.len()).sum::<usize>() == 60)
            .await;
        for partition in 0..3 {
            let its =
                batches.lock().unwrap().iter().filter(|it| it.0 == partition).cloned().collect::<Vec<_>>();
            let values: Vec<_> = its.into_iter().flat_map(|(_, values)| values).collect();
            let expected: Vec<_> = (0..20).map(|round| format!("{partition}.{round} ")).collect();
            assert_eq!(values, expected);
        }
        handle.shutdown().await;
    });
}

#[test]
fn a_record_at_which_a_batch_fails_comes_again_alone_at_its_front_and_what_is_before_is_acknowledged() {
    on_paused_clock(async |world| {
        world.produce_batch(&["0", "1", "x", "3", "4"]);
        let batches = Batches::default();
        let make = noting(&batches, failing_at("x"));
        let handle = world.subscribed(subscription(soon(2).then(Then::Skip)).handle_batches(10, make)).await;
        until("all is handled", || of(&batches).last().is_some_and(|last| last == "34")).await;
        assert_eq!(of(&batches), ["01x34", "x34", "x34", "34"], "two retries, then it is skipped");
        let stream = status(&handle).await.streams.remove(0);
        let skipped = stream.last_skipped.expect("one was");
        assert_eq!((stream.skipped, skipped.offset, skipped.attempts), (1, 2, 3));
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("5"));
    });
}

#[test]
fn a_batch_that_stops_its_partition_at_a_record_has_committed_what_is_before_it_and_no_more() {
    on_paused_clock(async |world| {
        world.produce_batch(&["0", "1", "x", "3"]);
        let batches = Batches::default();
        let make = noting(&batches, failing_at("x"));
        let handle = world.subscribed(subscription(soon(0)).handle_batches(10, make)).await;
        until("it failed", || of(&batches) == ["01x3"]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let halted = halted(&handle).await;
        assert_eq!((&*halted.reason, halted.offset, halted.attempts), ("failed", 2, 1));
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("2"));
        assert_eq!(of(&batches), ["01x3"]);
    });
}

#[test]
fn an_error_without_a_place_is_one_of_the_whole_batch() {
    on_paused_clock(async |world| {
        world.produce_batch(&["0", "1", "2"]);
        let batches = Batches::default();
        let make = noting(&batches, |_| Err("no disk".into()));
        let handle = world.subscribed(subscription(soon(1)).handle_batches(2, make)).await;
        until("it failed twice", || of(&batches) == ["01", "01"]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(halted(&handle).await.offset, 0);
        handle.shutdown().await;
        assert_eq!(world.stored().unwrap_or_default(), "0", "of the position that was made");
    });
}

/// The place that an error names may be of a record that this batch does not have.
#[test]
fn a_place_outside_of_the_batch_is_none() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        world.produce_batch(&["0"]);
        let batches = Batches::default();
        let kept: Arc<Mutex<Option<Record>>> = Arc::default();
        let make = noting(&batches, move |batch| {
            let mut kept = kept.lock().unwrap();
            let first = kept.get_or_insert_with(|| batch.records().next().unwrap());
            if first.partition() == batch.partition() {
                Ok(())
            } else {
                Err(HandlerError::at(first, "of another"))
            }
        });
        let handle = world.subscribed(subscription(soon(0)).handle_batches(2, make)).await;
        until("the first is handled", || of(&batches) == ["0"]).await;
        world.produce_to("orders", 1, "1");
        until("the second failed", || of(&batches) == ["0", "1"]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((halted(&handle).await.partition, halted(&handle).await.offset), (1, 0));
        handle.shutdown().await;
    });
}

/// The error of a decoder, of a record that is none of the batch's: it may be another the next time.
#[test]
fn a_record_of_elsewhere_that_cannot_be_decoded_makes_no_batch_undecodable() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        world.produce_batch(&["0"]);
        let batches = Batches::default();
        let kept: Arc<Mutex<Option<Record>>> = Arc::default();
        let make = noting(&batches, move |batch| {
            let mut kept = kept.lock().unwrap();
            let first = kept.get_or_insert_with(|| batch.records().next().unwrap()).clone();
            if first.partition() != batch.partition() {
                first.decode_with(&|_: &Record| Err::<(), _>("no such thing"))?;
            }
            Ok(())
        });
        let policy = soon(1).undecodable(Then::Skip);
        let handle = world.subscribed(subscription(policy).handle_batches(2, make)).await;
        until("the first is handled", || of(&batches) == ["0"]).await;
        world.produce_to("orders", 1, "1");
        until("the second failed twice", || of(&batches) == ["0", "1", "1"]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((halted(&handle).await.partition, halted(&handle).await.attempts), (1, 2));
        handle.shutdown().await;
    });
}

#[test]
fn a_batch_that_fails_now_at_a_record_and_now_as_a_whole_gives_up_that_record_alone() {
    on_paused_clock(async |world| {
        world.produce_batch(&["0", "1", "2", "3", "4"]);
        let batches = Batches::default();
        let count = Arc::<std::sync::atomic::AtomicU32>::default();
        let make = noting(&batches, move |batch| {
            let first = batch.records().next().unwrap();
            match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 | 1 => Err(HandlerError::at(&first, "it is bad")),
                2 => Err("no disk".into()),
                _ => Ok(()),
            }
        });
        let policy = soon(2).then(Then::Skip);
        let handle = world.subscribed(subscription(policy).handle_batches(5, make)).await;
        until("the others are handled", || of(&batches).len() == 4).await;
        assert_eq!(of(&batches), ["01234", "01234", "01234", "1234"]);
        assert_eq!(status(&handle).await.streams[0].skipped, 1);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("5"));
    });
}

#[test]
fn records_that_join_a_batch_between_two_tries_are_not_given_up_with_it() {
    on_paused_clock(async |world| {
        world.produce_batch(&["0", "1"]);
        let batches = Batches::default();
        let make = noting(&batches, |batch| match batch.records().next() {
            Some(first) if first.text() == "0" => Err("no disk".into()),
            _ => Ok(()),
        });
        let policy = FailurePolicy::retry(1).backoff(Duration::from_secs(10), Duration::from_secs(10));
        let subscription = subscription(policy.then(Then::Skip));
        let handle = world.subscribed(subscription.handle_batches(500, make)).await;
        until("it failed", || of(&batches) == ["01"]).await;
        world.produce_batch(&["2", "3"]);
        handle.pause([order(0)]).await.expect("it is ours");
        handle.resume([order(0)]).await.expect("it is ours");
        until("the others are handled", || of(&batches).last().is_some_and(|last| last == "23")).await;
        assert_eq!(of(&batches), ["01", "0123", "23"]);
        assert_eq!(status(&handle).await.streams[0].skipped, 2);
        handle.shutdown().await;
    });
}

#[test]
fn a_batch_with_which_its_handler_panics_comes_again_and_nothing_of_it_is_acknowledged_meanwhile() {
    on_paused_clock(async |world| {
        world.produce_batch(&["0", "1", "2", "3"]);
        let batches = Batches::default();
        let seen = Arc::clone(&batches);
        let make = noting(&batches, move |_| {
            let times = seen.lock().unwrap().len();
            assert_ne!(times, 2, "the second time it panics");
            Ok(())
        });
        let handle = world.subscribed(subscription(soon(3)).handle_batches(2, make)).await;
        until("it panicked", || of(&batches).len() == 2).await;
        tokio::task::yield_now().await;
        assert_eq!(status(&handle).await.partitions[0].acked, 2);
        until("all is handled", || of(&batches) == ["01", "23", "23"]).await;
        assert_eq!(status(&handle).await.streams[0].handler_restarts, 1);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("4"));
    });
}

#[test]
fn a_batch_ends_before_what_cannot_be_read_and_nothing_past_it_is_acknowledged() {
    on_paused_clock(async |world| {
        for values in [&["0", "1"][..], &["2", "3"], &["4"]] {
            world.produce_batch(values);
        }
        world.brokers.damage(&TopicPartition::new("orders", 0), 2);
        let batches = Batches::default();
        let make = noting(&batches, |_| Ok(()));
        let handle = world.subscribed(subscription(soon(0)).handle_batches(100, make)).await;
        until("it cannot be read on", || !of(&batches).is_empty()).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(of(&batches), ["01"]);
        assert_eq!(halted(&handle).await.reason, "unreadable");
        handle.seek("orders", 0, 4).await.expect("it is ours");
        until("it is stepped over", || of(&batches) == ["01", "4"]).await;
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("5"));
    });
}

/// Handled means all of it, walked or not; and a batch may be kept for as long as one likes.
#[test]
fn a_batch_that_is_not_walked_is_handled_and_one_that_is_kept_can_be_walked_later() {
    on_paused_clock(async |world| {
        world.produce_batch(&["0", "1", "2"]);
        let kept: Arc<Mutex<Vec<RecordBatch>>> = Arc::default();
        let keep = Arc::clone(&kept);
        let make = move || {
            let keep = Arc::clone(&keep);
            does(move |batch: RecordBatch| {
                keep.lock().unwrap().push(batch);
                Ok(())
            })
        };
        let handle = world.subscribed(subscription(soon(0)).handle_batches(100, make)).await;
        until("it is handled", || kept.lock().unwrap().len() == 1).await;
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
        let batch = kept.lock().unwrap().remove(0);
        assert!(batch.is_fenced());
        assert_eq!((batch.first_offset(), batch.next_offset()), (0, 3));
        let walk = || batch.iter().map(|record| record.unwrap().text().into_owned()).collect::<String>();
        assert_eq!((walk(), walk()), ("012".to_owned(), "012".to_owned()));
        assert_eq!(batch.into_iter().map(|record| record.unwrap().offset()).collect::<Vec<_>>(), [0, 1, 2]);
    });
}

/// It is the same batch each time, and no larger, so that nothing is passed over that was not tried.
#[test]
fn a_batch_that_ends_its_handler_each_time_falls_under_the_policy() {
    on_paused_clock(async |world| {
        world.produce_batch(&["0", "x"]);
        let batches = Batches::default();
        let make = noting(&batches, |batch| {
            assert!(batch.records().all(|record| record.text() != "x"), "a bad one");
            Ok(())
        });
        let handle = world.subscribed(subscription(soon(2).then(Then::Skip)).handle_batches(3, make)).await;
        until("it is tried", || of(&batches) == ["0x"]).await;
        world.produce_batch(&["2", "3"]);
        until("the rest is handled", || of(&batches).last().is_some_and(|last| last == "23")).await;
        assert_eq!(of(&batches), ["0x", "0x", "0x", "23"]);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("4"));
    });
}
