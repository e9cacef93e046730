//! A coordinator that panics while its last commits of partitions that are given up are under way.

use super::*;

const OFFSET_COMMIT: i16 = 8;

/// Nothing fences it: released before, it would overwrite what the next owner has committed.
#[test]
fn a_restarted_coordinator_releases_nothing_before_the_flush_of_its_earlier_life_is_answered() {
    stored(Generation::Latest, 1, async |world| {
        let seldom = [("auto.commit.interval.ms", "3600000")];
        world.brokers.store_offset("g", &key(0), 140);
        let (first, mut stream) = world.member_as("b", false, &seldom).await;
        for _ in 0..10 {
            next_offset(&mut stream).await;
        }
        // nothing more comes, and nothing is in hand
        assert!(timeout(INTERVAL, stream.next()).await.is_err());
        world.brokers.spoil_offsets(OffsetsFault::CommitLate(Duration::from_secs(3)));
        let crashed = async {
            until("its flush is under way", || !world.asked(OFFSET_COMMIT).is_empty()).await;
            crash(&first, "rebalance-coordinator");
        };
        let next_owner = async {
            let member = world.member_as("a", false, &seldom).await;
            until("it has moved", || world.owner(0).as_deref() == Some("g_a-0")).await;
            (member, world.in_kafka(0))
        };
        let ((), ((second, _stream), in_kafka)) = tokio::join!(crashed, next_owner);
        assert_eq!(in_kafka, Some(150));
        second.shutdown().await;
        first.shutdown().await;
    });
}
