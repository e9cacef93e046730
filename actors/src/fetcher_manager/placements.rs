//! Where each partition stands on its way to a fetcher: tables and decisions, no sockets, no actor.
//!
//! ```text
//!            leader found,           position made, or
//!            position in doubt       found to be good
//! Leaderless ------------> Resolving -------------> Fetching
//!     ^  \                     |                        |
//!     |   `-- has a position --+----------------------->|
//!     '------- failed, after the backoff <--------------'      Failed: until it is started again,
//!                                                              or its topic is made again
//! ```
//!
//! A leader may tell that a partition is to be read from a replica in our rack (KIP-392): it is *Following* then, for
//! [`FOLLOWS_FOR`], and whatever goes wrong there makes it leaderless again.
//!
//! A position is in [`Doubt`] also when a new leader was elected since (KIP-320): its log may lack what we have read,
//! and go on with other records at the same offsets.
//!
//! A topic that is made again makes its partitions leaderless, wherever they are. One whose position is being made goes
//! there when that has ended, for it may have been made in the earlier topic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::Disposition;
use tokio::time::Instant;

use super::Assigned;
use super::placed::Placed;
pub(super) use super::placed::{Doubt, InDoubt, Led, Place};
use crate::registry::OwnedPartition;

/// So long a replica is read from before the leader is asked again, which may know a better one, or be one itself.
pub(super) const FOLLOWS_FOR: Duration = Duration::from_secs(300);

/// So long after a replica failed its partition is read from the leader, which may go on naming that replica: the
/// leader sees it, and we may not reach it.
pub(super) const LED_FOR: Duration = Duration::from_secs(30);

/// All partitions that we are to fetch.
#[derive(Default)]
pub(super) struct Placements(BTreeMap<TopicPartition, Placed>);

/// What follows from knowing leaders, by broker.
#[derive(Default)]
pub(super) struct Found {
    /// To the broker's fetcher.
    pub(super) fetch: BTreeMap<i32, Vec<Assigned>>,
    /// A position is to be made or looked at first.
    pub(super) resolve: BTreeMap<i32, Vec<InDoubt>>,
    /// Has no leader, and why; without what was known of it already.
    pub(super) leaderless: Vec<(TopicPartition, String)>,
    /// Of some a lower epoch was told than we know.
    pub(super) is_behind: bool,
    /// These were not known to be so.
    pub(super) newly_behind: Vec<TopicPartition>,
}

/// A claim that goes to a replica.
pub(super) struct Moved {
    pub(super) assigned: Assigned,
    /// It was not read from there the last time.
    pub(super) is_news: bool,
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

impl Placements {
    /// Puts a claim in, in place of an earlier one; says at which broker the earlier is fetched.
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
        let placed = Placed {
            assigned,
            place,
            out_of_range: false,
            epoch: None,
            behind: None,
            led_until: None,
            replica: None,
            remade_meanwhile: false,
            why: None,
        };
        self.0.insert(key, placed).and_then(|earlier| earlier.fetching_at())
    }

    /// Takes one out; says at which broker it is fetched.
    pub(super) fn stop(&mut self, partition: &TopicPartition) -> Option<i32> {
        self.0.remove(partition).and_then(|placed| placed.fetching_at())
    }

    /// A partition is that of another topic now; says at which broker it is fetched.
    pub(super) fn topic_remade(&mut self, partition: &TopicPartition, now: Instant) -> Option<i32> {
        let placed = self.0.get_mut(partition)?;
        let fetching_at = placed.fetching_at();
        match placed.place {
            Place::Resolving { .. } => placed.remade_meanwhile = true,
            _ => placed.remade(now),
        }
        fetching_at
    }

    /// The topics whose leaders are to be looked up now.
    pub(super) fn due_topics(&self, now: Instant) -> BTreeSet<Arc<str>> {
        self.0
            .iter()
            .filter(|(_, placed)| placed.is_due(now))
            .map(|(key, _)| Arc::clone(&key.topic))
            .collect()
    }

    /// When the next lookup is due, or the next way back to a leader.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = |placed: &Placed| match placed.place {
            Place::Leaderless { not_before } => Some(not_before),
            Place::Following { until, .. } => Some(until),
            Place::Resolving { .. } | Place::Fetching { .. } | Place::Failed => None,
        };
        self.0.values().filter_map(due).min()
    }

    /// Moves on the due partitions of the topics that were looked up; those without a leader wait until `retry_at`.
    pub(super) fn leaders_found(
        &mut self,
        topics: &BTreeSet<Arc<str>>,
        leader_of: impl Fn(&TopicPartition) -> Result<Led, String>,
        now: Instant,
        retry_at: Instant,
    ) -> Found {
        let mut found = Found::default();
        let due = |(key, placed): &(&TopicPartition, &mut Placed)| {
            topics.contains(&key.topic) && placed.is_due(now)
        };
        for (key, placed) in self.0.iter_mut().filter(due) {
            match leader_of(key) {
                Ok(led) => placed.move_to(led, now, &mut found),
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
        leader_of: impl Fn(&TopicPartition) -> Option<Led>,
        now: Instant,
    ) -> Found {
        let mut found = Found::default();
        let due = |(_, placed): &(&TopicPartition, &mut Placed)| placed.is_due(now) && placed.why.is_none();
        for (key, placed) in self.0.iter_mut().filter(due) {
            if let Some(led) = leader_of(key) {
                placed.move_to(led, now, &mut found);
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
        let Some(placed) = current.filter(|placed| placed.is_at(at)) else { return GivenBack::Stale };
        let known = placed.why.as_deref() == Some(why);
        placed.out_of_range |= disposition == Disposition::ResetOffset;
        placed.keep_to_leader(retry_at + LED_FOR);
        if disposition != Disposition::Retry {
            placed.behind = None;
        }
        if placed.remade_meanwhile {
            placed.remade(retry_at);
            return GivenBack::News;
        }
        placed.wait(retry_at, why.to_owned());
        if disposition == Disposition::Fatal {
            placed.place = Place::Failed;
        }
        if known { GivenBack::Again } else { GivenBack::News }
    }

    /// A claim has its position now; says what to give to the broker's fetcher. None: it is not there any more, or has
    /// to get another.
    pub(super) fn resolved(
        &mut self,
        broker: i32,
        partition: &Arc<OwnedPartition>,
        now: Instant,
    ) -> Option<Assigned> {
        let placed = self.current(partition).filter(|placed| placed.place == Place::Resolving { broker })?;
        placed.out_of_range = false;
        if placed.remade_meanwhile {
            placed.remade(now);
            return None;
        }
        Some(placed.fetch_at(broker))
    }

    /// Whether a fetcher of this broker has the claim.
    pub(super) fn is_fetched_by(&mut self, broker: i32, partition: &Arc<OwnedPartition>) -> bool {
        self.current(partition).is_some_and(|placed| placed.fetching_at() == Some(broker))
    }

    /// Until when a partition is to be read from its leader, whatever replica that names.
    pub(super) fn led_until(&self, partition: &TopicPartition) -> Option<Instant> {
        self.0.get(partition)?.led_until
    }

    /// A claim's leader tells it to be read from a replica; says what to give to that broker's fetcher. Who follows
    /// knows no better one, and one that has just failed is not tried again: then the leader is looked up.
    pub(super) fn moved(
        &mut self,
        leader: i32,
        partition: &Arc<OwnedPartition>,
        replica: i32,
        now: Instant,
    ) -> Option<Moved> {
        let placed = self.current(partition).filter(|placed| placed.fetching_at() == Some(leader))?;
        let follows = matches!(placed.place, Place::Following { .. });
        if follows || placed.led_until.is_some_and(|until| now < until) {
            placed.place = Place::Leaderless { not_before: now };
            return None;
        }
        placed.place = Place::Following { broker: replica, until: now + FOLLOWS_FOR };
        let is_news = placed.replica.replace(replica) != Some(replica);
        Some(Moved { assigned: placed.assigned.clone(), is_news })
    }

    /// Sends back to their leaders what has followed for long, or at a broker that is not known any more; says at
    /// which brokers they are fetched.
    pub(super) fn back_to_leaders(
        &mut self,
        is_known: impl Fn(i32) -> bool,
        now: Instant,
    ) -> Vec<(i32, TopicPartition)> {
        let mut back = Vec::new();
        for (key, placed) in &mut self.0 {
            if let Place::Following { broker, until } = placed.place
                && (until <= now || !is_known(broker))
            {
                if !is_known(broker) {
                    placed.keep_to_leader(now + LED_FOR);
                }
                placed.place = Place::Leaderless { not_before: now };
                back.push((broker, key.clone()));
            }
        }
        back
    }

    /// A fetcher of a broker is gone, or all are: its partitions (those of the broker that `is_its` names) are looked
    /// up again at `retry_at`.
    pub(super) fn fetcher_gone(
        &mut self,
        broker: i32,
        is_its: impl Fn(&TopicPartition) -> bool,
        why: &str,
        retry_at: Instant,
    ) {
        for (key, placed) in &mut self.0 {
            if placed.fetching_at() != Some(broker) || !is_its(key) {
                continue;
            }
            placed.keep_to_leader(retry_at + LED_FOR);
            placed.behind = None;
            placed.wait(retry_at, why.to_owned());
        }
    }

    /// Whether a fetcher of a broker has anything to fetch: `is_its` names its partitions.
    pub(super) fn is_fetching_at(&self, broker: i32, is_its: impl Fn(&TopicPartition) -> bool) -> bool {
        self.0.iter().any(|(key, placed)| placed.fetching_at() == Some(broker) && is_its(key))
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

#[cfg(test)]
#[path = "placements_tests.rs"]
mod tests;
