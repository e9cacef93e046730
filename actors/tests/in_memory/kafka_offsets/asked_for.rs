//! Commits that are asked for, whose coordinator is silent or whose committer panics.

use super::*;

/// Six tries of four seconds: longer than a committer that has panicked may take to come back.
#[test]
fn a_commit_to_a_coordinator_that_is_silent_says_so_however_long_it_takes() {
    stored(Generation::Latest, 1, async |world| {
        let (handle, mut stream) = world.member(false, &[("auto.commit.enable", "false")]).await;
        assert_eq!([next_offset(&mut stream).await, next_offset(&mut stream).await], [0, 1]);
        (0..6).for_each(|_| world.brokers.spoil_offsets(OffsetsFault::CommitUnanswered));
        let began = Instant::now();
        let Err(CommitError::Store { why, .. }) = committed(&handle).await else {
            panic!("it was not stored")
        };
        assert!(why.contains("commit to"), "{why}");
        assert!(began.elapsed() > Duration::from_secs(12), "{:?}", began.elapsed());
        world.brokers.heal_offsets();
        assert_eq!(committed(&handle).await, Ok(1));
        handle.shutdown().await;
    });
}

#[test]
fn a_commit_after_so_many_records_is_not_asked_for_again_while_it_is_under_way() {
    stored(Generation::Latest, 1, async |world| {
        let by_hand = [("auto.commit.enable", "false"), ("client.id", "a")];
        let kafka = [("offsets.storage", "kafka"), ("dual.commit.enabled", "false")];
        let properties = [&by_hand[..], &kafka, &[("auto.offset.reset", "smallest")]].concat();
        let builder = world.builder_of("a", &properties).commit_after(1);
        let handle = builder.pull("orders", 1).start().await.expect("it starts");
        let mut stream = handle.streams("orders").remove(0);
        next_offset(&mut stream).await;
        (0..6).for_each(|_| world.brokers.spoil_offsets(OffsetsFault::CommitUnanswered));
        next_offset(&mut stream).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        // the one that is under way does not cover it
        next_offset(&mut stream).await;
        let told = async || {
            let status = handle.metrics().await.expect("it is alive");
            let committer = status.actors.into_iter().find(|actor| actor.name == "offset-committer");
            committer.expect("it is told").handled
        };
        let before = told().await;
        tokio::time::sleep(Duration::from_secs(11)).await;
        // the one that asks how it stands
        assert_eq!(told().await - before, 1);
        handle.shutdown().await;
        assert_eq!(world.in_kafka(0), Some(2));
    });
}

/// Its connection goes with it, so the commit under way is answered by nobody.
#[test]
fn a_commit_to_kafka_outlives_a_committer_that_panics() {
    for explicit in [false, true] {
        stored(Generation::Latest, 2, async |world| {
            let (handle, mut stream) = world.member(false, &[("auto.commit.enable", "false")]).await;
            for _ in 0..300 {
                next_offset(&mut stream).await;
            }
            stream.ack();
            world.brokers.spoil_offsets(OffsetsFault::CommitLate(Duration::from_secs(1)));
            let (outcome, ()) = tokio::join!(
                async {
                    match explicit {
                        true => handle.commit_offsets([(key(0), 5), (key(1), -1)]).await,
                        false => handle.commit().await,
                    }
                },
                async {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    crash(&handle, "offset-committer");
                }
            );
            let outcome = outcome.expect("it runs");
            let of = |partition| outcome.of("orders", partition).expect("it was asked for").clone();
            let stored = if explicit { 5 } else { 150 };
            assert_eq!(of(0).map(|it| it.offset), Ok(stored));
            assert_eq!(of(1).is_ok(), !explicit);
            assert_eq!(world.in_kafka(0), Some(stored));
            handle.shutdown().await;
        });
    }
}
