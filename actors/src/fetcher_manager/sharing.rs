//! Which of a broker's fetchers has a partition: always the same one, and the one that the old consumer would choose.

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::java::{java_hash, java_index};
use std::num::NonZeroU32;

/// One of a broker's fetchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FetcherId {
    pub(super) broker: i32,
    /// The old consumer's `fetcherId`, below `num.consumer.fetchers`.
    pub(super) index: u32,
}

/// How many fetchers share a broker's partitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing(pub(super) u32);

impl Sharing {
    /// Who has a partition that is read from `broker`.
    pub(super) fn fetcher_of(self, broker: i32, partition: &TopicPartition) -> FetcherId {
        FetcherId { broker, index: self.index_of(partition) }
    }

    /// Java's arithmetic, which wraps at 32 bits.
    fn index_of(self, partition: &TopicPartition) -> u32 {
        let hash = java_hash(&partition.topic).wrapping_mul(31).wrapping_add(partition.partition);
        NonZeroU32::new(self.0).map_or(0, |fetchers| java_index(hash, fetchers))
    }

    /// As in the metrics. In the order of the old consumer's thread names,
    /// `ConsumerFetcherThread-<consumerId>-<fetcherId>-<brokerId>`.
    pub(super) fn name_of(self, FetcherId { broker, index }: FetcherId) -> String {
        if self.0 <= 1 {
            format!("broker-fetcher/{broker}")
        } else {
            format!("broker-fetcher/{index}-{broker}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `Utils.abs(31 * topic.hashCode + partition) % n` of the Scala consumer.
    #[test]
    fn partitions_are_shared_out_as_the_old_consumer_does() {
        let index = |topic: &str, partition: i32, fetchers: u32| {
            Sharing(fetchers).fetcher_of(7, &TopicPartition::new(topic, partition)).index
        };
        // "orders".hashCode is -1008770331, and 31 times that wraps to -1207109189
        let of_orders = [2, 1, 0, 2, 1, 0];
        assert_eq!(of_orders.map(|_| 0), [0, 1, 2, 3, 4, 5].map(|partition| index("orders", partition, 1)));
        assert_eq!(of_orders, [0, 1, 2, 3, 4, 5].map(|partition| index("orders", partition, 3)));
        // the empty name hashes to 0, so that what is left is the partition
        assert_eq!([index("", i32::MIN, 3), index("", -4, 3), index("", i32::MAX, 2)], [0, 1, 1]);
    }

    #[test]
    fn a_broker_with_one_fetcher_is_named_as_ever() {
        let third = FetcherId { broker: 7, index: 2 };
        assert_eq!(Sharing(1).name_of(FetcherId { index: 0, ..third }), "broker-fetcher/7");
        assert_eq!(Sharing(3).name_of(third), "broker-fetcher/2-7");
    }
}
