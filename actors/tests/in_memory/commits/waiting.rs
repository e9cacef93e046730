//! A handler that waits for a commit holds nothing up, and is not held up, whatever happens to its partition.

use super::*;

/// A member whose handler commits each record after `takes`, with the first one in hand.
async fn committing(
    world: &World,
    id: &str,
    takes: Duration,
    more: &[(&str, &str)],
) -> (ConsumerHandle, UnboundedReceiver<Result<CommittedOffset, CommitError>>) {
    let properties = [BY_HAND, more].concat();
    let builder = world.builder_of(id, &properties);
    let ((tell, of), began) = (unbounded_channel(), Arc::default());
    let act = commits_each(&builder.offsets(), takes, &began, tell);
    let handle = builder.handle("orders", 1, Does::make(act)).start().await.expect("it starts");
    timeout(PATIENCE, began.notified()).await.expect("a record in time");
    (handle, of)
}

/// The partition is to go to a member that comes while a record is in hand.
async fn moved_after(
    world: &World,
    delay: u64,
    drain: &str,
) -> (Result<CommittedOffset, CommitError>, String) {
    world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
    world.produce("0");
    let limit = [("troupe.drain.timeout.ms", drain)];
    let (first, mut of) = committing(world, "b", Duration::from_secs(1), &limit).await;
    tokio::time::sleep(Duration::from_millis(delay)).await;
    // it comes before the other in the order, and so gets the partition
    let second = world.builder_of("a", BY_HAND).pull("orders", 1).start().await.expect("it starts");
    let mut stream = second.streams("orders").remove(0);
    until("the second owns it", || world.owner(0).as_deref() == Some("g_a-0")).await;
    world.produce("1");
    let (outcome, begins) = (told(&mut of).await, next(&mut stream).await);
    second.shutdown().await;
    first.shutdown().await;
    (outcome, begins)
}

#[test]
fn what_is_committed_while_its_partition_is_released_stands() {
    for delay in (0..1_100).step_by(50) {
        on_paused_clock(async |world| {
            let (outcome, begins) = moved_after(&world, delay, "3000").await;
            assert_eq!(stored(outcome), (1, true), "after {delay} ms");
            assert_eq!(begins, "1", "after {delay} ms");
        });
    }
}

#[test]
fn a_handler_that_was_cut_off_is_told_that_its_partition_is_gone() {
    on_paused_clock(async |world| {
        let (outcome, begins) = moved_after(&world, 100, "300").await;
        assert_eq!(outcome, Err(CommitError::NotOwned(TopicPartition::new("orders", 0))));
        assert_eq!(begins, "0");
    });
}

#[test]
fn a_shutdown_waits_for_a_handler_that_waits_for_its_commit() {
    on_paused_clock(async |world| {
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
        world.produce("0");
        let (handle, mut of) = committing(&world, "a", Duration::from_secs(1), &[]).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let began = Instant::now();
        handle.shutdown().await;
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!(stored(of.try_recv().expect("it was waited for")), (1, true));
        assert_eq!(world.stored().as_deref(), Some("1"));
    });
}

/// Whatever is still there when it asks: the answer is no, and comes at once.
#[test]
fn a_handler_that_a_shutdown_cut_off_is_told_so_at_once() {
    let mut gone = 0;
    for takes in (100..400).step_by(5) {
        on_paused_clock(async |world| {
            world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
            world.produce("0");
            let limit = [("troupe.drain.timeout.ms", "300")];
            let (handle, mut of) = committing(&world, "a", Duration::from_millis(takes), &limit).await;
            let began = Instant::now();
            handle.shutdown().await;
            let outcome = told(&mut of).await;
            assert!(began.elapsed() < Duration::from_secs(1), "{takes} ms: {:?}", began.elapsed());
            match outcome {
                Ok(_) => assert_eq!(world.stored().as_deref(), Some("1"), "{takes} ms"),
                Err(CommitError::NotOwned(_) | CommitError::NotRunning) => gone += 1,
                Err(error) => panic!("{takes} ms: {error}"),
            }
        });
    }
    assert!((1..60).contains(&gone), "{gone} of 60 came too late");
}

#[test]
fn a_seek_waits_for_a_handler_that_waits_for_its_commit() {
    on_paused_clock(async |world| {
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
        world.brokers.append(&TopicPartition::new("orders", 0), &["0", "1", "2", "3"]);
        let (handle, mut of) =
            committing(&world, "a", Duration::from_secs(1), &[("auto.commit.enable", "true")]).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let began = Instant::now();
        handle.seek("orders", 0, 3).await.expect("it is ours");
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!(stored(of.try_recv().expect("it was waited for")), (1, true));
        assert_eq!(world.stored().as_deref(), Some("3"), "the seek came after it");
        assert_eq!(stored(told(&mut of).await), (4, true));
        handle.shutdown().await;
    });
}

/// The record was given out before the partition was given another position.
#[test]
fn a_record_from_before_a_seek_does_not_pass_over_what_comes_after_it() {
    on_paused_clock(async |world| {
        ["0", "1", "2"].iter().for_each(|value| world.produce(value));
        let handle = world.builder_of("a", BY_HAND).pull("orders", 1).start().await.expect("it starts");
        let mut stream = handle.streams("orders").remove(0);
        for value in ["0", "1"] {
            assert_eq!(next(&mut stream).await, value);
        }
        let old = timeout(PATIENCE, stream.next()).await.expect("in time").expect("no end").expect("whole");
        stream.ack();
        handle.seek("orders", 0, 0).await.expect("it is ours");
        let partition = TopicPartition::new("orders", 0);
        let refused = CommitError::NotDelivered { partition, delivered: 0, offset: 3 };
        assert_eq!(handle.offsets().commit_record(&old).await, Err(refused));
        assert_eq!(next(&mut stream).await, "0");
        handle.shutdown().await;
    });
}

#[test]
fn a_commit_outlives_a_committer_that_panics() {
    for delay in (0..40).step_by(2) {
        on_paused_clock(async |world| {
            world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
            world.brokers.append(&TopicPartition::new("orders", 0), &["0", "1"]);
            let (handle, mut of) = committing(&world, "a", Duration::from_millis(500), &[]).await;
            tokio::time::sleep(Duration::from_millis(490 + delay)).await;
            crash(&handle, "offset-committer");
            assert_eq!(told(&mut of).await.expect("it is stored").offset, 1, "after {delay} ms");
            assert_eq!(stored(told(&mut of).await), (2, true), "after {delay} ms");
            assert_eq!(world.stored().as_deref(), Some("2"), "after {delay} ms");
            handle.shutdown().await;
        });
    }
}

/// One that does not come back: the handler is told, and may try again.
#[test]
fn a_commit_is_given_up_when_no_committer_comes_back() {
    on_paused_clock(async |world| {
        world.produce("0");
        let handle = world.builder_of("a", BY_HAND).pull("orders", 1).start().await.expect("it starts");
        let mut stream = handle.streams("orders").remove(0);
        assert_eq!(next(&mut stream).await, "0");
        stream.ack();
        let crashing = {
            let handle = handle.clone();
            actix::spawn(async move {
                loop {
                    crash(&handle, "offset-committer");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
        };
        tokio::time::sleep(Duration::from_millis(10)).await;
        let began = Instant::now();
        assert_eq!(handle.commit().await, Err(CommitError::NotRunning));
        assert_eq!(began.elapsed().as_secs(), 10);
        crashing.abort();
        assert_eq!(handle.commit().await.expect("it runs").all(), Ok(1));
        handle.shutdown().await;
    });
}

/// They never leave the store alone: somebody commits, and the next one waits.
#[test]
fn handlers_that_commit_each_record_do_not_keep_the_interval_s_commit_from_its_turn() {
    on_paused_clock(async |world| {
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
        world.fill_with("busy", 3, &["x"; 1000]);
        ["0", "1"].iter().for_each(|value| world.produce(value));
        let interval = Duration::from_millis(100);
        let properties = [("auto.offset.reset", "smallest"), ("auto.commit.interval.ms", "100")];
        let builder = world.builder_of("a", &properties);
        let offsets = builder.offsets();
        let (tell, mut of) = unbounded_channel();
        let act = move |record: Record| -> ResponseFuture<HandlerResult> {
            let (offsets, tell) = (offsets.clone(), tell.clone());
            Box::pin(async move { Ok(tell.send(offsets.commit_record(&record).await)?) })
        };
        let builder = builder.handle("busy", 3, Does::make(act)).pull("orders", 1);
        let handle = builder.start().await.expect("it starts");
        let mut stream = handle.streams("orders").remove(0);
        assert_eq!([next(&mut stream).await, next(&mut stream).await], ["0", "1"]);
        tokio::time::sleep(4 * interval).await;
        assert_eq!(world.stored().as_deref(), Some("1"));
        while let Ok(committed) = of.try_recv() {
            assert!(committed.expect("it is stored").offset < 1000, "they are busy all the time");
        }
        handle.shutdown().await;
    });
}
