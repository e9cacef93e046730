//! Where each partition stands on its way to a fetcher: tables and decisions, no sockets, no actor.
//!
//! ```text
//!            leader found            position made
//! Leaderless ------------> Resolving -------------> Fetching
//!     ^  \                     |                        |
//!     |   `-- has a position --+----------------------->|
//!     '------- failed, after the backoff <--------------'      Failed: until it is started again
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::Disposition;
use tokio::time::Instant;

use super::Assigned;
use crate::registry::{NO_OFFSET, OwnedPartition};

/// Where a partition stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its leader is to be looked up, not before then.
    Leaderless { not_before: Instant },
    /// Its position is being made at this leader.
    Resolving { broker: i32 },
    /// It is in this broker's fetcher.
    Fetching { broker: i32 },
    /// It has failed for good.
    Failed,
}

struct Placed {
    assigned: Assigned,
    place: Place,
    /// Its offset is not in the log.
    out_of_range: bool,
    /// The last that went wrong.
    why: Option<String>,
}

/// All partitions that we are to fetch.
#[derive(Default)]
pub(super) struct Placements(BTreeMap<TopicPartition, Placed>);

/// What follows from knowing leaders, by broker.
#[derive(Default)]
pub(super) struct Found {
    /// To the broker's fetcher.
    pub(super) fetch: BTreeMap<i32, Vec<Assigned>>,
    /// A position is to be made first: the claim, and whether it has one that is out of range.
    pub(super) resolve: BTreeMap<i32, Vec<Positionless>>,
    /// Has no leader, and why; without what was known of it already.
    pub(super) leaderless: Vec<(TopicPartition, String)>,
}

/// A claim that needs a position.
#[derive(Clone)]
pub(super) struct Positionless {
    pub(super) partition: Arc<OwnedPartition>,
    /// It has an offset, which is not in the log.
    pub(super) out_of_range: bool,
}

/// What a claim that was given back makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivenBack {
    /// It is not there any more: nothing.
    Stale,
    /// It failed as it did before.
    Again,
    /// It failed in a new way.
    News,
}

/// What a metadata response says of a partition: its leader's broker id, or why it has none.
pub(super) type Leader = Result<i32, String>;

impl Placements {
    /// Puts a claim in, in place of an earlier one; says which fetcher has the earlier.
    pub(super) fn start(&mut self, assigned: Assigned, now: Instant) -> Option<i32> {
        let key = assigned.partition.topic_partition.clone();
        if let Some(placed) = self.current(&assigned.partition)
            && matches!(placed.place, Place::Resolving { .. })
        {
            // a second position, stored after records past the first were delivered, would pass over them
            placed.assigned = assigned;
            return None;
        }
        let place = Place::Leaderless { not_before: now };
        let placed = Placed { assigned, place, out_of_range: false, why: None };
        self.0.insert(key, placed).and_then(|earlier| earlier.fetching_at())
    }

    /// Takes one out; says which fetcher has it.
    pub(super) fn stop(&mut self, partition: &TopicPartition) -> Option<i32> {
        self.0.remove(partition).and_then(|placed| placed.fetching_at())
    }

    /// The topics whose leaders are to be looked up now.
    pub(super) fn due_topics(&self, now: Instant) -> BTreeSet<Arc<str>> {
        self.0
            .iter()
            .filter(|(_, placed)| placed.is_due(now))
            .map(|(key, _)| Arc::clone(&key.topic))
            .collect()
    }

    /// When the next lookup is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = |placed: &Placed| match placed.place {
            Place::Leaderless { not_before } => Some(not_before),
            Place::Resolving { .. } | Place::Fetching { .. } | Place::Failed => None,
        };
        self.0.values().filter_map(due).min()
    }

    /// Moves on the due partitions of the topics that were looked up; those without a leader wait until `retry_at`.
    pub(super) fn leaders_found(
        &mut self,
        topics: &BTreeSet<Arc<str>>,
        leader_of: impl Fn(&TopicPartition) -> Leader,
        now: Instant,
        retry_at: Instant,
    ) -> Found {
        let mut found = Found::default();
        let due = |(key, placed): &(&TopicPartition, &mut Placed)| {
            topics.contains(&key.topic) && placed.is_due(now)
        };
        for (key, placed) in self.0.iter_mut().filter(due) {
            match leader_of(key) {
                Ok(broker) => placed.move_to(broker, &mut found),
                Err(why) => {
                    if placed.why.as_ref() != Some(&why) {
                        found.leaderless.push((key.clone(), why.clone()));
                    }
                    placed.wait(retry_at, why);
                }
            }
        }
        found
    }

    /// Moves on the due partitions that have not failed and whose leader is known from an earlier lookup.
    pub(super) fn leaders_known(
        &mut self,
        leader_of: impl Fn(&TopicPartition) -> Option<i32>,
        now: Instant,
    ) -> Found {
        let mut found = Found::default();
        let due = |(_, placed): &(&TopicPartition, &mut Placed)| placed.is_due(now) && placed.why.is_none();
        for (key, placed) in self.0.iter_mut().filter(due) {
            if let Some(broker) = leader_of(key) {
                placed.move_to(broker, &mut found);
            }
        }
        found
    }

    /// No broker answered: all that is due waits until `retry_at`.
    pub(super) fn lookup_failed(&mut self, now: Instant, retry_at: Instant, why: &str) {
        for placed in self.0.values_mut().filter(|placed| placed.is_due(now)) {
            placed.wait(retry_at, why.to_owned());
        }
    }

    /// A claim was given back by where it was.
    pub(super) fn failed(
        &mut self,
        at: &Place,
        partition: &Arc<OwnedPartition>,
        disposition: Disposition,
        why: &str,
        retry_at: Instant,
    ) -> GivenBack {
        let current = self.current(partition);
        let Some(placed) = current.filter(|placed| placed.place == *at) else { return GivenBack::Stale };
        let known = placed.why.as_deref() == Some(why);
        placed.out_of_range |= disposition == Disposition::ResetOffset;
        placed.wait(retry_at, why.to_owned());
        if disposition == Disposition::Fatal {
            placed.place = Place::Failed;
        }
        if known { GivenBack::Again } else { GivenBack::News }
    }

    /// A claim has its position now; says what to give to the broker's fetcher. None: it is not there any more.
    pub(super) fn resolved(&mut self, broker: i32, partition: &Arc<OwnedPartition>) -> Option<Assigned> {
        let placed = self.current(partition).filter(|placed| placed.place == Place::Resolving { broker })?;
        placed.out_of_range = false;
        placed.place = Place::Fetching { broker };
        Some(placed.assigned.clone())
    }

    /// A broker's fetcher is gone: its partitions are looked up again at `retry_at`.
    pub(super) fn fetcher_gone(&mut self, broker: i32, why: &str, retry_at: Instant) {
        for placed in self.0.values_mut().filter(|placed| placed.fetching_at() == Some(broker)) {
            placed.wait(retry_at, why.to_owned());
        }
    }

    /// Whether a broker's fetcher has anything to fetch.
    pub(super) fn is_fetching_at(&self, broker: i32) -> bool {
        self.0.values().any(|placed| placed.fetching_at() == Some(broker))
    }

    /// Partitions that are not being fetched, each with the last that went wrong; `true` when it has failed for good.
    pub(super) fn not_fetching(&self) -> impl Iterator<Item = (&TopicPartition, bool, Option<&str>)> {
        let waiting = self.0.iter().filter(|(_, placed)| placed.fetching_at().is_none());
        waiting.map(|(key, placed)| (key, placed.place == Place::Failed, placed.why.as_deref()))
    }

    fn current(&mut self, partition: &Arc<OwnedPartition>) -> Option<&mut Placed> {
        let placed = self.0.get_mut(&partition.topic_partition)?;
        Arc::ptr_eq(&placed.assigned.partition, partition).then_some(placed)
    }
}

impl Placed {
    fn is_due(&self, now: Instant) -> bool {
        matches!(self.place, Place::Leaderless { not_before } if not_before <= now)
    }

    fn fetching_at(&self) -> Option<i32> {
        match self.place {
            Place::Fetching { broker } => Some(broker),
            Place::Leaderless { .. } | Place::Resolving { .. } | Place::Failed => None,
        }
    }

    fn wait(&mut self, not_before: Instant, why: String) {
        self.place = Place::Leaderless { not_before };
        self.why = Some(why);
    }

    fn move_to(&mut self, broker: i32, found: &mut Found) {
        let partition = &self.assigned.partition;
        if self.out_of_range || partition.fetched() == NO_OFFSET {
            let positionless =
                Positionless { partition: Arc::clone(partition), out_of_range: self.out_of_range };
            found.resolve.entry(broker).or_default().push(positionless);
            self.place = Place::Resolving { broker };
        } else {
            found.fetch.entry(broker).or_default().push(self.assigned.clone());
            self.place = Place::Fetching { broker };
        }
    }
}

#[cfg(test)]
#[path = "placements_tests.rs"]
mod tests;
