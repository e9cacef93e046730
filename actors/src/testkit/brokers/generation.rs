//! What a broker speaks.

use kafka_troupe_proto::kafka::frame::ApiKey;

/// A generation of brokers, by what they speak and how they take ApiVersions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Generation {
    /// Closes the connection on ApiVersions.
    Kafka0_8_2,
    /// Swallows ApiVersions.
    Kafka0_9,
    /// Fetch 7: sessions.
    Kafka1_1,
    /// Leader epochs, and no topic ids yet.
    Kafka2_4,
    /// The latest versions that this crate speaks.
    #[default]
    Latest,
    /// As the latest, without what 4.0 took out.
    Kafka4,
    /// No broker: answers nothing.
    Silent,
    /// No broker: closes the connection on whatever comes.
    HangsUp,
}

/// How a broker takes a request.
pub(super) enum Take {
    Answer(ApiKey),
    Swallow,
    Close,
}

impl Generation {
    /// What is spoken, and in which versions.
    pub(super) fn spoken(self) -> &'static [(ApiKey, i16, i16)] {
        use ApiKey::{ApiVersions, Fetch, ListOffsets, Metadata, OffsetForLeaderEpoch};
        use ApiKey::{FindCoordinator, OffsetCommit, OffsetFetch, Produce};
        match self {
            Self::Silent | Self::HangsUp => &[],
            Self::Kafka0_8_2 => &[
                (Produce, 0, 0),
                (Fetch, 0, 0),
                (ListOffsets, 0, 0),
                (Metadata, 0, 0),
                (OffsetCommit, 1, 1),
                (OffsetFetch, 1, 1),
                (FindCoordinator, 0, 0),
            ],
            Self::Kafka0_9 => &[
                (Produce, 0, 1),
                (Fetch, 0, 1),
                (ListOffsets, 0, 0),
                (Metadata, 0, 0),
                (OffsetCommit, 1, 2),
                (OffsetFetch, 1, 1),
                (FindCoordinator, 0, 0),
            ],
            Self::Kafka1_1 => &[
                (Produce, 0, 3),
                (Fetch, 0, 7),
                (ListOffsets, 0, 2),
                (Metadata, 0, 5),
                (OffsetCommit, 1, 2),
                (OffsetFetch, 1, 2),
                (FindCoordinator, 0, 0),
                (ApiVersions, 0, 1),
            ],
            Self::Kafka2_4 => &[
                (Produce, 0, 3),
                (Fetch, 0, 11),
                (ListOffsets, 0, 2),
                (Metadata, 0, 9),
                (OffsetCommit, 1, 2),
                (OffsetFetch, 1, 2),
                (FindCoordinator, 0, 0),
                (OffsetForLeaderEpoch, 3, 3),
                (ApiVersions, 0, 0),
            ],
            Self::Latest => &[
                (Produce, 0, 3),
                (Fetch, 0, 11),
                (ListOffsets, 0, 2),
                (Metadata, 0, 12),
                (OffsetCommit, 1, 2),
                (OffsetFetch, 1, 2),
                (FindCoordinator, 0, 0),
                (ApiVersions, 0, 0),
            ],
            Self::Kafka4 => &[
                (Produce, 3, 3),
                (Fetch, 4, 11),
                (ListOffsets, 1, 2),
                (Metadata, 0, 12),
                (OffsetCommit, 2, 2),
                (OffsetFetch, 1, 2),
                (FindCoordinator, 0, 0),
                (ApiVersions, 0, 0),
            ],
        }
    }

    pub(super) fn take(self, api: i16, version: i16) -> Take {
        let is_it = |(spoken, low, high): &&(ApiKey, i16, i16)| {
            spoken.code() == api && (*low..=*high).contains(&version)
        };
        match self.spoken().iter().find(is_it) {
            Some((api, ..)) => Take::Answer(*api),
            None if self == Self::Kafka0_9 && api == ApiKey::ApiVersions.code() => Take::Swallow,
            None if self == Self::Silent => Take::Swallow,
            None => Take::Close,
        }
    }
}
