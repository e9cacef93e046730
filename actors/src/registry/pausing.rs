//! What the application has paused.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kafka_troupe_proto::TopicPartition;

use super::{Halt, HaltReason, OwnedPartition, TopicRegistry};
use crate::lease::SessionEpoch;

/// What is paused beyond the claims that there are. Held while claims are put in and pauses change, so that none slips
/// through.
#[derive(Default)]
pub(super) struct Pauses(Mutex<Paused>);

#[derive(Default)]
pub(super) struct Paused {
    /// Topics, for claims to come as well.
    topics: BTreeMap<Arc<str>, Halt>,
    /// Partitions that are claimed anew without having been another member's: by another of our threads, or by a
    /// coordinator that was restarted.
    kept: BTreeMap<TopicPartition, (SessionEpoch, Halt)>,
}

impl Pauses {
    pub(super) fn lock(&self) -> MutexGuard<'_, Paused> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It may be claimed anew.
    pub(super) fn keep(&self, partition: &OwnedPartition) {
        if let Some(halt) = partition.halted_for(HaltReason::Paused) {
            self.lock().kept.insert(partition.topic_partition.clone(), (partition.epoch, halt));
        }
    }

    /// It is another member's to claim.
    pub(super) fn forget(&self, partition: &TopicPartition) {
        self.lock().kept.remove(partition);
    }
}

impl Paused {
    /// A claim is about to be put in.
    pub(super) fn apply(&mut self, claim: &OwnedPartition) {
        if let Some(halt) = self.topics.get(&claim.topic_partition.topic) {
            claim.halt(HaltReason::TopicPaused, halt.clone());
        }
        if let Some((_, halt)) =
            self.kept.remove(&claim.topic_partition).filter(|(epoch, _)| *epoch == claim.epoch)
        {
            claim.halt(HaltReason::Paused, halt);
        }
    }
}

impl TopicRegistry {
    /// Nothing more of the partition is handed over, until it is resumed or given up. Gives its claim, if it is owned.
    pub(crate) fn pause(&self, partition: &TopicPartition) -> Option<Arc<OwnedPartition>> {
        let _pausing = self.paused.lock();
        let claim = self.get(partition)?;
        if !claim.is_halted_as(HaltReason::Paused) {
            claim.halt(HaltReason::Paused, Halt::asked_for("paused by the application"));
        }
        Some(claim)
    }

    /// The partition is not paused any more, and tried again if it was stopped. Gives its claim, if it is owned.
    pub(crate) fn resume(&self, partition: &TopicPartition) -> Option<Arc<OwnedPartition>> {
        let mut paused = self.paused.lock();
        paused.kept.remove(partition);
        let claim = self.get(partition)?;
        claim.lift(&[HaltReason::Paused, HaltReason::Failed, HaltReason::Unreadable]);
        Some(claim)
    }

    /// Nothing more of the topic is handed over until it is resumed, also of partitions that are claimed later. Gives
    /// the claims that there are.
    pub(crate) fn pause_topic(&self, topic: &str) -> Vec<Arc<OwnedPartition>> {
        let mut paused = self.paused.lock();
        let halt =
            paused.topics.entry(topic.into()).or_insert_with(|| Halt::asked_for("its topic is paused"));
        let claims = self.of_topic(topic);
        claims.iter().for_each(|claim| claim.halt(HaltReason::TopicPaused, halt.clone()));
        claims
    }

    /// The topic is not paused any more, and its partitions are tried again if they were stopped. One that is paused by
    /// itself stays so.
    pub(crate) fn resume_topic(&self, topic: &str) -> Vec<Arc<OwnedPartition>> {
        let mut paused = self.paused.lock();
        paused.topics.remove(topic);
        let claims = self.of_topic(topic);
        let reasons = [HaltReason::TopicPaused, HaltReason::Failed, HaltReason::Unreadable];
        claims.iter().for_each(|claim| claim.lift(&reasons));
        claims
    }

    /// The same topics are paused as with `other`: for one that owns nothing yet.
    pub(crate) fn pause_as(&self, other: &Self) {
        let topics = other.paused.lock().topics.clone();
        self.paused.lock().topics = topics;
    }

    fn of_topic(&self, topic: &str) -> Vec<Arc<OwnedPartition>> {
        self.all().into_iter().filter(|claim| &*claim.topic_partition.topic == topic).collect()
    }
}
