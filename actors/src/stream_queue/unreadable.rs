//! Partitions that cannot be read on: since when, why, and when each is tried again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kafka_troupe_proto::TopicPartition;

use crate::clock;
use crate::record::ConsumeError;
use crate::registry::OwnedPartition;

/// What could not be read is fetched again after this, doubling up to [`RETRY_MOST`]: another replica may have it
/// whole.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(30);

/// A partition that cannot be read on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unreadable {
    /// Where and why, and how to step over it.
    pub error: ConsumeError,
    /// When it was met first.
    pub since: SystemTime,
    /// How often it was met.
    pub attempts: u32,
}

/// Those of one stream.
#[derive(Default)]
pub(super) struct UnreadablePartitions(BTreeMap<TopicPartition, (Arc<OwnedPartition>, Unreadable)>);

impl UnreadablePartitions {
    /// A partition could not be read; gives what is known of it. The same error is logged once.
    pub(super) fn failed(
        &mut self,
        partition: &Arc<OwnedPartition>,
        error: ConsumeError,
        stream: &str,
    ) -> Unreadable {
        let known = self.0.get_mut(&partition.topic_partition);
        match known.filter(|(claim, known)| Arc::ptr_eq(claim, partition) && known.error == error) {
            Some((_, known)) => {
                known.attempts += 1;
                known.clone()
            }
            None => {
                tracing::error!(stream, %error, "cannot read what was fetched; it is fetched again from time to time");
                let unreadable = Unreadable { error, since: clock::now(), attempts: 1 };
                let known = (Arc::clone(partition), unreadable.clone());
                self.0.insert(partition.topic_partition.clone(), known);
                unreadable
            }
        }
    }

    /// Those that still are: not given up, and not read past it.
    pub(super) fn now(&mut self) -> Vec<Unreadable> {
        self.0.retain(|_, (claim, it)| !claim.is_closed() && claim.delivered() <= it.error.offset);
        self.0.values().map(|(_, unreadable)| unreadable.clone()).collect()
    }
}

/// How long to wait before it is fetched again.
pub(super) fn pause_after(attempts: u32) -> Duration {
    RETRY_FIRST.saturating_mul(1 << (attempts - 1).min(10)).min(RETRY_MOST)
}
