//! How chunks are turned into records.

use kafka_troupe_proto::config::{ConsumerConfig, IsolationLevel};
use kafka_troupe_proto::kafka::compression::{DEFAULT_LIMIT, Decompressor};
use kafka_troupe_proto::kafka::records::DecodeOptions;

/// How a stream turns chunks into records.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    /// `check.crcs` (true).
    pub decode: DecodeOptions,
    /// `isolation.level=read_committed` (false): leaves out what aborted transactions wrote.
    pub read_committed: bool,
    /// `troupe.decompressed.batch.max.bytes` (64 MiB): what one batch may come to.
    pub decompressed_batch_max_bytes: usize,
}

impl ReadOptions {
    pub(crate) fn decompressor(&self) -> Decompressor {
        Decompressor::new(self.decompressed_batch_max_bytes)
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            decode: DecodeOptions::default(),
            read_committed: false,
            decompressed_batch_max_bytes: DEFAULT_LIMIT,
        }
    }
}

impl From<&ConsumerConfig> for ReadOptions {
    fn from(config: &ConsumerConfig) -> Self {
        Self {
            decode: DecodeOptions::default().check_crcs(config.check_crcs),
            read_committed: config.isolation_level == IsolationLevel::ReadCommitted,
            decompressed_batch_max_bytes: config.decompressed_batch_max_bytes as usize,
        }
    }
}
