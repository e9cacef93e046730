//! Partitions that are claimed and cannot start.

use super::*;

#[test]
fn a_start_that_is_dropped_leaves_no_member_behind() {
    on_paused_clock(async |world| {
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(100)));
        for millis in [1, 150, 250] {
            let start = world.builder("a").pull("orders", 1).start();
            assert!(
                timeout(Duration::from_millis(millis), start).await.is_err(),
                "it takes longer than that"
            );
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(world.zookeeper.sessions_of("a"), [0; 0], "after {millis} ms");
            assert_eq!(world.owner(0), None);
        }
        world.zookeeper.set_pace(Arc::new(|| Duration::ZERO));
        let (handle, _stream) = world.pulling().await;
        handle.shutdown().await;
    });
}
use crate::log::Log;

const OFFSET: &str = "/consumers/g/offsets/orders/0";
/// So it is told after 2 s.
const HASTY: &[(&str, &str)] =
    &[("auto.offset.reset", "smallest"), ("rebalance.backoff.ms", "500"), ("rebalance.max.retries", "4")];

async fn failing(handle: &ConsumerHandle) -> String {
    handle.metrics().await.expect("it is alive").failing
}

/// Waits until it is as is wanted, and for how long it was not.
async fn wait_for_failing(handle: &ConsumerHandle, fails: bool) -> Duration {
    let began = Instant::now();
    while failing(handle).await.is_empty() == fails {
        assert!(began.elapsed() < PATIENCE, "not in time: it fails: {fails}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    began.elapsed()
}

/// Rule 2 of the design: after `rebalance.max.retries` x `rebalance.backoff.ms`.
#[test]
fn a_partition_that_cannot_start_is_reported_once_until_it_starts_or_is_another_s() {
    on_paused_clock(async |world| {
        let (log, _logged) = Log::begin();
        let reports = || {
            let lines = log.lines().filter(|line| line.contains("ERROR") && line.contains("could not start"));
            lines.inspect(|line| assert!(line.contains(OFFSET), "{line}")).count()
        };
        // not a number: whoever wrote it
        world.zookeeper.put(OFFSET, b"odd");
        world.produce("0");
        world.produce_to_more("1");
        let builder = world.builder_of("a", HASTY).pull("orders", 1).pull("more", 1);
        let handle = builder.start().await.expect("it starts");
        assert_eq!(next(&mut handle.streams("more").remove(0)).await, "1", "others flow on");
        let took = wait_for_failing(&handle, true).await;
        assert!((1_900..4_000).contains(&took.as_millis()), "{took:?}");
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let failing = failing(&handle).await;
            assert!(failing.contains(OFFSET), "{failing}");
        }
        assert_eq!(reports(), 1);
        // it comes before the first in the order, and so gets the partition
        let other = world.builder_of("0", HASTY).pull("orders", 1).start().await.expect("it starts");
        wait_for_failing(&handle, false).await;
        other.shutdown().await;
        let took = wait_for_failing(&handle, true).await;
        assert!((1_900..4_000).contains(&took.as_millis()), "{took:?}");
        assert_eq!(reports(), 2, "another spell");
        world.zookeeper.put(OFFSET, b"0");
        assert_eq!(next(&mut handle.streams("orders").remove(0)).await, "0");
        assert_eq!(failing(&handle).await, "");
        handle.shutdown().await;
    });
}

impl World {
    fn produce_to_more(&self, value: &str) {
        self.brokers.create_topic("more", 1);
        self.produce_to("more", 0, value);
    }
}
