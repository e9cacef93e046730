//! Properties whose value is one of a few words.

use std::fmt;

/// Declares an enum whose variants are words of a property.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            pub(super) fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }

            pub(super) const WORDS: &[&str] = &[$($word),+];
        }

        impl fmt::Display for $name {
            /// The word in the properties.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)+ })
            }
        }
    };
}

choice! {
    /// Where offsets are committed: `offsets.storage`.
    OffsetsStorage {
        /// `zookeeper`: fenced, a member that lost a partition cannot overwrite its successor's offset.
        Zookeeper = "zookeeper",
        /// `kafka`: cheaper for many partitions, but not fenced.
        Kafka = "kafka",
    }
}

choice! {
    /// How partitions are dealt out: `partition.assignment.strategy`. All members must have the same.
    AssignmentStrategy {
        /// `range`: per topic, runs of consecutive partitions.
        Range = "range",
        /// `roundrobin`: all partitions of all topics in turn.
        RoundRobin = "roundrobin",
    }
}

choice! {
    /// Whose round-robin to follow: `troupe.roundrobin.peers`. Kafka 1.0 changed the order, so mixed groups
    /// never settle.
    RoundRobinPeers {
        /// `before-1.0`: members of Kafka 0.8.2 to 0.11. Those before 0.10.2 refuse unequal subscriptions.
        Before1 = "before-1.0",
        /// `1.0`: members of Kafka 1.0 and 1.1, or of Troupe only.
        From1 = "1.0",
    }
}

choice! {
    /// Which topics `exclude.internal.topics` keeps out of filters: `troupe.internal.topics.peers`. Kafka 0.11
    /// added `__transaction_state`, so mixed groups plan that topic differently.
    InternalTopicsPeers {
        /// `before-0.11`: members of Kafka 0.8.2 to 0.10.2, to whom only `__consumer_offsets` is internal.
        Before0_11 = "before-0.11",
        /// `0.11`: members of Kafka 0.11 to 1.1, or of Troupe only.
        From0_11 = "0.11",
    }
}

choice! {
    /// Which records of transactions to deliver: `isolation.level` (KIP-98).
    IsolationLevel {
        /// `read_uncommitted`: all, as the old consumer does.
        ReadUncommitted = "read_uncommitted",
        /// `read_committed`: none of aborted or open transactions. Needs brokers of 0.11 or later.
        ReadCommitted = "read_committed",
    }
}
