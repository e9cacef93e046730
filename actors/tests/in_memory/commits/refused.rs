//! How a commit comes out partition by partition, of one member or of several; and what no commit touches.

use super::*;

fn of(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

impl World {
    fn offset_of(&self, topic: &str, partition: i32) -> Option<String> {
        let node = self.zookeeper.node(&format!("/consumers/g/offsets/{topic}/{partition}"))?;
        Some(String::from_utf8(node.data).expect("text"))
    }

    /// A member that has read three records of each of the topic's `partitions`.
    async fn having_read_three_of_each(&self, partitions: i32) -> (ConsumerHandle, KafkaStream) {
        self.fill_with("orders", partitions, &["0", "1", "2"]);
        let handle = self.builder_of("a", BY_HAND).pull("orders", 1).start().await.expect("it starts");
        let mut stream = handle.streams("orders").remove(0);
        for _ in 0..3 * partitions {
            next(&mut stream).await;
        }
        stream.ack();
        (handle, stream)
    }
}

#[test]
fn each_partition_has_its_own_outcome_and_one_that_fails_keeps_no_other_back() {
    on_paused_clock(async |world| {
        let (handle, _stream) = world.having_read_three_of_each(5).await;
        assert_eq!(handle.commit_offsets([(of(1), 2)]).await.expect("it runs").all(), Ok(1));
        // not a number: whoever wrote it
        world.zookeeper.put("/consumers/g/offsets/orders/4", b"odd");
        let asked = [(of(0), 2), (of(1), 1), (of(2), -1), (of(3), 4), (of(4), 3), (of(5), 1)];
        let outcome = handle.commit_offsets(asked).await.expect("it runs");
        let error =
            |partition| outcome.of("orders", partition).expect("it was asked for").clone().unwrap_err();
        assert_eq!(stored(outcome.of("orders", 0).expect("it was asked for").clone()), (2, true));
        assert_eq!(error(1), CommitError::Backwards { partition: of(1), stored: 2, offset: 1 });
        assert_eq!(error(2), CommitError::Negative { partition: of(2), offset: -1 });
        assert_eq!(error(3), CommitError::NotDelivered { partition: of(3), delivered: 3, offset: 4 });
        let CommitError::Store { partition, why } = error(4) else { panic!("{:?}", error(4)) };
        assert!(partition == of(4) && why.contains("/consumers/g/offsets/orders/4"), "{why}");
        assert_eq!(error(5), CommitError::NotOwned(of(5)));
        assert_eq!(outcome.iter().count(), 6);
        let now: Vec<_> = (0..6).map(|partition| world.offset_of("orders", partition)).collect();
        assert_eq!(
            now,
            [Some("2"), Some("2"), None, None, Some("odd"), None].map(|it| it.map(str::to_owned))
        );
        // and of all that is acknowledged
        let outcome = handle.commit().await.expect("it runs");
        assert!(matches!(outcome.all(), Err(CommitError::Store { .. })), "{outcome:?}");
        assert!((0..4).all(|partition| world.offset_of("orders", partition).as_deref() == Some("3")));
        handle.shutdown().await;
    });
}

#[test]
fn a_partition_that_any_member_of_the_system_owns_is_committed() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("most", 1);
        let (orders, more, most) = (of(0), TopicPartition::new("more", 0), TopicPartition::new("most", 0));
        ["orders", "more"].iter().for_each(|topic| world.fill_with(topic, 1, &["0", "1"]));
        let handle = world.builder_of("a", BY_HAND).pull("orders", 1).start().await.expect("it starts");
        let added = handle.subscribe().pull("more", 1).start().await.expect("it starts");
        let third = handle.subscribe().pull("most", 1).start().await.expect("it starts");
        let (mut stream, mut its) = (handle.streams("orders").remove(0), added.streams("more").remove(0));
        for stream in [&mut stream, &mut its] {
            assert_eq!([next(stream).await, next(stream).await], ["0", "1"]);
            stream.ack();
        }
        let unowned = TopicPartition::new("orders", 9);
        let asked = || [(orders.clone(), 1), (more.clone(), 1), (unowned.clone(), 1)];
        let outcome = handle.commit_offsets(asked()).await.expect("it runs");
        assert_eq!(stored(outcome.of("orders", 0).expect("asked for").clone()), (1, true));
        assert_eq!(stored(outcome.of("more", 0).expect("asked for").clone()), (1, true));
        assert_eq!(outcome.of("orders", 9), Some(&Err(CommitError::NotOwned(unowned.clone()))));
        // the added one speaks for itself
        let outcome = added.commit_offsets(asked()).await.expect("it runs");
        assert_eq!(outcome.of("orders", 0), Some(&Err(CommitError::NotOwned(orders.clone()))));
        assert_eq!(stored(outcome.of("more", 0).expect("asked for").clone()), (1, false));
        // one that has ended is no failure of the others
        third.shutdown().await;
        let outcome = handle.commit_offsets([(orders.clone(), 2), (most.clone(), 1)]).await.expect("it runs");
        assert_eq!(stored(outcome.of("orders", 0).expect("asked for").clone()), (2, true));
        assert_eq!(outcome.of("most", 0), Some(&Err(CommitError::NotOwned(most))));
        assert_eq!(handle.commit().await.expect("it runs").all(), Ok(1), "of the added one");
        assert_eq!(world.offset_of("more", 0).as_deref(), Some("2"));
        handle.shutdown().await;
        assert_eq!(added.commit().await, Err(CommitError::NotRunning));
    });
}

/// At whatever moment.
#[test]
fn a_member_that_is_ending_is_no_failure_of_the_others() {
    for delay in (0..80).step_by(2) {
        on_paused_clock(async |world| {
            let (handle, _stream) = world.having_read_three_of_each(1).await;
            world.brokers.create_topic("more", 1);
            let added = handle.subscribe().pull("more", 1).start().await.expect("it starts");
            until("the added one owns its partition", || world.owner_of("more", 0).is_some()).await;
            world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
            let ending = actix::spawn(async move { added.shutdown().await });
            tokio::time::sleep(Duration::from_millis(delay)).await;
            let outcome = handle.commit_offsets([(of(0), 2)]).await;
            assert_eq!(outcome.expect("it runs").all(), Ok(1), "after {delay} ms");
            ending.await.expect("it does not panic");
            handle.shutdown().await;
        });
    }
}

/// And whose fault it is, is told.
#[test]
fn a_member_whose_committer_does_not_come_back_hides_no_outcome_of_the_others() {
    on_paused_clock(async |world| {
        let (handle, _stream) = world.having_read_three_of_each(1).await;
        world.fill_with("more", 1, &["0", "1"]);
        let added = handle.subscribe().pull("more", 1).start().await.expect("it starts");
        let mut its = added.streams("more").remove(0);
        assert_eq!([next(&mut its).await, next(&mut its).await], ["0", "1"]);
        let crashing = {
            let added = added.clone();
            actix::spawn(async move {
                loop {
                    crash(&added, "offset-committer");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
        };
        tokio::time::sleep(Duration::from_millis(10)).await;
        let more = TopicPartition::new("more", 0);
        let outcome = handle.commit_offsets([(of(0), 2), (more, 1)]).await.expect("one of them runs");
        assert_eq!(stored(outcome.of("orders", 0).expect("asked for").clone()), (2, true));
        assert_eq!(outcome.of("more", 0), Some(&Err(CommitError::NotRunning)));
        let outcome = handle.commit().await.expect("one of them runs");
        assert_eq!(stored(outcome.of("orders", 0).expect("asked for").clone()), (3, true));
        assert_eq!(outcome.of("more", 0), Some(&Err(CommitError::NotRunning)));
        crashing.abort();
        handle.shutdown().await;
    });
}

/// By the handle of the first member, from the first record on, and while the system shuts down.
#[test]
fn a_handler_of_an_added_member_commits_by_the_handle_of_the_first() {
    on_paused_clock(async |world| {
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
        world.fill_with("more", 1, &["0", "1"]);
        let builder = world.builder_of("a", BY_HAND).pull("orders", 1);
        let offsets = builder.offsets();
        let handle = builder.start().await.expect("it starts");
        let (tell, mut of) = unbounded_channel();
        let first = Arc::new(Mutex::new(true));
        let act = move |record: Record| -> ResponseFuture<HandlerResult> {
            let (offsets, tell) = (offsets.clone(), tell.clone());
            let is_first = std::mem::take(&mut *first.lock().unwrap());
            Box::pin(async move {
                if !is_first {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                tell.send(offsets.commit_record(&record).await)?;
                Ok(())
            })
        };
        handle.subscribe().handle("more", 1, Does::make(act)).start().await.expect("it starts");
        assert_eq!(stored(told(&mut of).await), (1, true));
        handle.shutdown().await;
        assert_eq!(stored(of.try_recv().expect("it was waited for")), (2, true));
        assert_eq!(world.offset_of("more", 0).as_deref(), Some("2"));
    });
}
